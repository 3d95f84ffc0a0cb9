/** The reports of tests: read by parsers of others, and no more annotations than GitHub shows. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { githubReport, githubSummary } from "../../../src/cli/tests/report-github.ts";
import { testsDocument } from "../../../src/cli/tests/report-json.ts";
import { junitReport } from "../../../src/cli/tests/report-junit.ts";
import { tapReport } from "../../../src/cli/tests/report-tap.ts";
import type { Tested, TestReport } from "../../../src/cli/tests/tested.ts";
import { needs } from "../../needs.ts";

const folder = mkdtempSync(join(tmpdir(), "lockstep-reports-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const has = (program: string, flag: string) => spawnSync(program, [flag]).status === 0;

/** What would break a report if it were written as it is. */
const NASTY = "a <b> & \"c\" # SKIP %0A ::error::x \u001b[31m\u0000 \ud800 ]]> 'd', e: 1\n2";

function one(name: string, status: Tested["status"]): Tested {
  return {
    agent: "fixer",
    test: {
      name,
      file: ".agent/fixer/tests/a,b.yaml",
      line: 3,
      ...(status === "skipped" && { skip: NASTY }),
    },
    status,
    unmet: status === "failed" ? [{ key: "path", line: 7, at: "", expected: [NASTY], got: undefined }] : [],
    because: status === "failed" ? [NASTY] : [],
    look: status === "failed" ? "lockstep why x.json" : null,
    ms: 2,
  };
}

const report = (tested: readonly Tested[]): TestReport => ({ tested, notRun: 0, stopped: null, remarks: [] });
const mixed = report([one("passes", "passed"), one(NASTY, "failed"), one("later", "skipped")]);

test("JUnit XML is read by Python", needs(has("python3", "--version"), "python3"), () => {
  const file = join(folder, "junit.xml");
  writeFileSync(file, junitReport(mixed));
  const code = `
import sys, json, xml.etree.ElementTree as E
root = E.parse(sys.argv[1]).getroot()
cases = root.findall('testsuite/testcase')
print(json.dumps([root.attrib['tests'], root.attrib['failures'], root.attrib['skipped'],
  [[c.attrib['name'], c.attrib['file'], [k.tag for k in c]] for c in cases], cases[1].find('failure').text]))`;
  const read = JSON.parse(execFileSync("python3", ["-c", code, file], { encoding: "utf8" })) as readonly [
    string,
    string,
    string,
    readonly (readonly [name: string, file: string, inside: readonly string[]])[],
    string,
  ];
  assert.deepEqual(read.slice(0, 3), ["3", "1", "1"]);
  assert.deepEqual(
    read[3].map(([, , inside]) => inside),
    [[], ["failure"], ["skipped"]],
  );
  assert.equal(read[3][1]![0], NASTY.toWellFormed().replaceAll(/(?!\n)\p{Cc}/gu, "\ufffd"));
  assert.match(read[4], /^path \(\.agent\/fixer\/tests\/a,b\.yaml:7\)\n {2}expected: /);
});

test("TAP is read by prove", needs(has("prove", "--version"), "prove, of Perl"), () => {
  const read = (tap: TestReport) => {
    const file = join(folder, "report.tap");
    writeFileSync(file, `${tapReport(tap)}\n`);
    const { status, stdout } = spawnSync("prove", ["--exec", "cat", file], { encoding: "utf8" });
    return { status, stdout };
  };
  const failed = read(mixed);
  assert.notEqual(failed.status, 0);
  assert.match(failed.stdout, /Failed 1\/3 subtests/);
  assert.doesNotMatch(failed.stdout, /Parse errors/);
  const passed = read(report([one("passes", "passed"), one("later", "skipped")]));
  assert.equal(passed.status, 0, passed.stdout);
  assert.match(passed.stdout, /Result: PASS/);
});

test("of 50 failures GitHub gets 10 annotations, and the summary has all", () => {
  const many = report(Array.from({ length: 50 }, (_, at) => one(`test ${at} ${NASTY}`, "failed")));
  const lines = githubReport(many, "/work/project", "/work").split("\n");
  assert.equal(lines.length, 10);
  for (const line of lines.slice(0, 9))
    assert.match(
      line,
      /^::error file=project\/\.agent\/fixer\/tests\/a%2Cb\.yaml,line=7,title=fixer › test [^:,]*::path/,
    );
  assert.match(lines[9]!, /^::error title=lockstep test::41 more tests failed/);
  const summary = githubSummary(many);
  for (let at = 0; at < 50; at++) assert.ok(summary.includes(`fixer › test ${at} `), String(at));
  assert.doesNotMatch(summary, /^### .*<b>/m);
  const ten = report(many.tested.slice(0, 10));
  assert.doesNotMatch(githubReport(ten, "/work", undefined), /more tests failed/);
});

test("the document has every result, and nothing that JSON cannot hold", () => {
  const document = testsDocument(mixed);
  assert.deepEqual(JSON.parse(JSON.stringify(document)), document);
  assert.deepEqual([document.ok, document.passed, document.failed, document.skipped], [false, 1, 1, 1]);
  assert.equal(testsDocument(report([])).ok, true);
  assert.equal(testsDocument({ ...report([]), stopped: "interrupted" }).ok, false);
});
