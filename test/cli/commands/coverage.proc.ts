/** Coverage and generation by the command: tables, files, thresholds, recorded runs, drawings, and what is kept on disk. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { needs } from "../../needs.ts";
import { createWorld, type World } from "../world.ts";

const EXAMPLE = new URL("../../../examples/01-fix-a-test/", import.meta.url).pathname;
const hasLcov = spawnSync("lcov", ["--version"]).status === 0;

function fixer(): World {
  const world = createWorld();
  cpSync(join(EXAMPLE, ".agent"), join(world.root, ".agent"), { recursive: true });
  rmSync(join(world.root, ".agent/fixer/tests"), { recursive: true, force: true });
  return world;
}

const GENERATED = ".agent/fixer/tests/generated.yaml";
const FIRST = `tests:
  - name: closes at once
    params: { issue: 7 }
    script: [initial.issue next, continuation.issue handoff, closure.issue closing]
`;

type CoverageDocument = {
  readonly kind: string;
  readonly totals: { readonly [kind: string]: { readonly covered: number; readonly of: number } };
  readonly elements: readonly {
    readonly id: string;
    readonly hits: number;
    readonly by: readonly string[];
    readonly file: string | null;
  }[];
  readonly missed?: readonly unknown[];
};

test("thresholds, files and drawings from the tests of an agent", async (t) => {
  using world = fixer();
  world.write(".agent/fixer/tests/first.yaml", FIRST);
  const args = ["--coverage-file", "c.html", "--coverage-file", "c.json", "--coverage-file", "c.info"];
  const plain = await world.lockstep(["test", "fixer", "--coverage", ...args]);
  assert.equal(plain.code, 0, plain.stderr);
  assert.match(plain.stdout, /steps +3\/3 +100 %/);
  assert.match(
    plain.stdout,
    /closure\.issue repeat -> closure\.issue +\.agent\/fixer\/steps_registry\.json:\d+/,
  );

  world.write(
    ".agent/fixer/tests/settings.yaml",
    "coverage: { steps: 100, transitions: 90 }\nignore:\n  - { id: closure.issue is gone, why: it was }\n",
  );
  const missed = await world.lockstep(["test", "fixer", "--coverage", "--json"]);
  assert.equal(missed.code, 7);
  const document = JSON.parse(missed.stdout) as {
    readonly ok: boolean;
    readonly coverage: readonly CoverageDocument[];
  };
  assert.equal(document.ok, false);
  assert.deepEqual(document.coverage[0]!.missed, [{ kind: "transitions", least: 90, got: 27.2 }]);
  assert.equal((await world.lockstep(["test", "fixer"])).code, 0, "thresholds hold with --coverage only");

  await t.test("the JSON file names every element once", () => {
    const file = JSON.parse(readFileSync(join(world.root, "c.json"), "utf8")) as CoverageDocument;
    assert.equal(file.kind, "lockstep-coverage");
    assert.equal(new Set(file.elements.map(({ id }) => id)).size, file.elements.length);
    const entry = file.elements.find(({ id }) => id === "initial.issue")!;
    assert.deepEqual([entry.hits, entry.by], [1, ["closes at once"]]);
  });
  await t.test("the HTML file has a drawing, no script and nothing from outside", () => {
    const html = readFileSync(join(world.root, "c.html"), "utf8");
    assert.match(html, /<svg /);
    assert.match(html, /class="[^"]*uncovered/);
    assert.doesNotMatch(html, /<script|<link|<img|src=|@import|url\(/i);
    assert.deepEqual(html.match(/https?:\/\/[^"]*/g), ["http://www.w3.org/2000/svg"]);
  });
  await t.test("lcov itself reads the lcov file", needs(hasLcov, "lcov is not installed"), () => {
    const read = spawnSync("lcov", ["--summary", "c.info", "--rc", "lcov_branch_coverage=1"], {
      cwd: world.root,
      encoding: "utf8",
    });
    assert.equal(read.status, 0, read.stderr);
    assert.match(read.stdout + read.stderr, /branches\.*: 27\.3% \(3 of 11 branches\)/);
  });
  await t.test("drawings in all formats show the hits", async () => {
    const marks = { text: /\(not covered\)/, mermaid: /linkStyle/, dot: /#ffebe9|#c00000/, svg: /uncovered/ };
    for (const [format, mark] of Object.entries(marks)) {
      const drawn = await world.lockstep(["graph", "fixer", "--coverage", "c.json", "--format", format]);
      assert.equal(drawn.code, 0, drawn.stderr);
      assert.match(drawn.stdout, mark, format);
      assert.match(drawn.stdout, /initial\.issue.*\(1x\)/, format);
    }
    const json = await world.lockstep(["graph", "fixer", "--coverage", "tests", "--json"]);
    const { nodes } = JSON.parse(json.stdout) as { readonly nodes: readonly { readonly hits?: number }[] };
    assert.deepEqual(
      nodes.map(({ hits }) => hits),
      [1, 1, 1],
    );
    const wrong = await world.lockstep(["graph", "fixer", "--coverage", "c.html"]);
    assert.equal(wrong.code, 2);
    assert.match(wrong.stderr, /is not JSON/);
  });
});

test("generated tests pass, are the same when written again, and leave tests alone that a person took over", async () => {
  using world = fixer();
  const made = await world.lockstep(["test", "fixer", "--generate", "--write", "--json"]);
  assert.equal(made.code, 0, made.stderr);
  const { agents } = JSON.parse(made.stdout) as {
    readonly agents: readonly { readonly tests: readonly unknown[]; readonly gaps: readonly unknown[] }[];
  };
  assert.deepEqual(agents[0]!.gaps, []);
  const first = readFileSync(join(world.root, GENERATED), "utf8");
  await world.lockstep(["test", "fixer", "--generate", "--write"]);
  assert.equal(readFileSync(join(world.root, GENERATED), "utf8"), first);

  const covered = await world.lockstep(["test", "fixer", "--coverage", "--json"]);
  assert.equal(covered.code, 0);
  const { coverage } = JSON.parse(covered.stdout) as { readonly coverage: readonly CoverageDocument[] };
  for (const [kind, { covered: got, of }] of Object.entries(coverage[0]!.totals)) assert.equal(got, of, kind);

  const mine = first.replace(
    '  - name: "initial.issue answers with abort (AGENT_ABORTED)"\n    generated: true\n',
    "  # mine now\n  - name: aborts\n",
  );
  assert.notEqual(mine, first);
  world.write(GENERATED, mine);
  await world.lockstep(["test", "fixer", "--generate", "--write"]);
  const again = readFileSync(join(world.root, GENERATED), "utf8");
  assert.match(again, /  # mine now\n  - name: aborts\n    covers:/);
  assert.doesNotMatch(again, /initial\.issue answers with abort \(/);
  const last = await world.lockstep(["test", "fixer"]);
  assert.equal(last.code, 0, last.stdout);

  const none = await world.lockstep(["test", "fixer", "--generate"]);
  assert.equal(none.code, 0);
  assert.equal(none.stdout, "");
  assert.ok(existsSync(join(world.root, GENERATED)));
});

test("a prompt that lacks a value on one way is reported with its script; what is not found is not called unreachable", async () => {
  using world = fixer();
  const change = (file: string, [from, to]: readonly [RegExp, string]) => {
    const before = readFileSync(join(world.root, ".agent/fixer", file), "utf8");
    assert.match(before, from);
    world.write(`.agent/fixer/${file}`, before.replace(from, to));
  };
  change("schemas/issue.schema.json", [/"stepId", "summary", "next_action"/, '"stepId", "next_action"']);
  change("prompts/steps/closure/issue/f_default.md", [
    /$/,
    "\nDone so far: {uv-continuation_issue_summary}\n",
  ]);
  const text = await world.lockstep(["test", "fixer", "--generate"]);
  assert.equal(text.code, 7, text.stderr);
  const reports = text.stdout.split("✗ ").slice(1);
  assert.equal(reports.length, 1, "one report for one reason");
  assert.match(
    reports[0]!,
    /f_default\.md of step "closure\.issue" reads \{uv-continuation_issue_summary\}[^]*initial\.issue next\n *- continuation\.issue handoff\s*$/,
  );
  assert.doesNotMatch(text.stderr, /unreachable|not found/);

  type Gaps = { agents: { gaps: { id: string; word: string; why: string }[] }[] };
  change("schemas/issue.schema.json", [
    /"summary": \{ "type": "string" \}/,
    '"summary": { "type": "integer", "minimum": 1, "not": { "maximum": 50 } }',
  ]);
  change("schemas/issue.schema.json", [/"stepId", "next_action"/, '"stepId", "summary", "next_action"']);
  const made = await world.lockstep(["test", "fixer", "--generate", "--json"]);
  const { gaps } = (JSON.parse(made.stdout) as Gaps).agents[0]!;
  const step = gaps.find(({ id }) => id === "closure.issue");
  assert.equal(step?.word, "not found");
  assert.match(step.why, /not proved: an answer of step "continuation\.issue" may exist/);
});

test("recorded runs, and both side by side", async () => {
  using world = fixer();
  world.write(".agent/fixer/tests/first.yaml", FIRST);
  const before = await world.lockstep(["coverage", "fixer", "--runs", "--json"]);
  assert.deepEqual((JSON.parse(before.stdout) as { recorded: unknown }).recorded, {
    runs: 0,
    earlier: 0,
    damaged: 0,
  });
  world.write("script.yaml", "- { step: initial.issue, error: { kind: auth } }\n");
  const run = await world.lockstep(
    ["run", "fixer", "--issue", "7", "--script", "script.yaml", "--sandbox", "off"],
    {
      env: { LOCKSTEP_TRUST: "all" },
    },
  );
  assert.notEqual(run.code, 0);
  const both = await world.lockstep(["coverage", "fixer", "--json", "--since", "30d"]);
  assert.equal(both.code, 0, both.stderr);
  const document = JSON.parse(both.stdout) as {
    readonly kind: string;
    readonly recorded: { readonly runs: number };
    readonly onlyRuns: readonly string[];
    readonly onlyTests: readonly string[];
  };
  assert.equal(document.kind, "lockstep-coverage-compared");
  assert.equal(document.recorded.runs, 1, run.stderr);
  assert.deepEqual(document.onlyRuns, ["initial.issue reaches a fault that stops the run"]);
  assert.ok(document.onlyTests.includes("closure.issue closing -> end"));
  const shown = await world.lockstep(["coverage", "fixer"]);
  assert.match(shown.stdout, /write tests for these first\n +limits +initial\.issue reaches a fault/);
});

test("what cannot be done is refused with exit code 2", async () => {
  using world = fixer();
  world.write(".agent/fixer/tests/first.yaml", FIRST);
  for (const [args, why] of [
    [["test", "fixer", "--coverage-file", "c.txt"], /\.html .*\.json .*\.info/],
    [["test", "fixer", "--write"], /--generate/],
    [["test", "fixer", "--generate", "--covers", "nothing"], /No element/],
    [["coverage", "fixer", "--tests", "--runs"], /exclude each other/],
    [["coverage", "fixer", "--out", "c.html"], /--tests or --runs/],
  ] as const) {
    const refused = await world.lockstep(args);
    assert.equal(refused.code, 2, args.join(" "));
    assert.match(refused.stderr, why);
  }
  world.write(".agent/fixer/tests/settings.yaml", "coverage: { stesp: 1 }\n");
  const invalid = await world.lockstep(["test", "fixer", "--coverage", "--json"]);
  assert.equal(invalid.code, 2);
  assert.match(invalid.stdout, /"TEST-SETTING"/);
});
