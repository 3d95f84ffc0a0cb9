/** A planted defect: it is served to the tests in a process of its own, and nothing is written into the source. */
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import type { Job, Outcome } from "../scripts/mutant.ts";

const root = new URL("../", import.meta.url);
const FILE = "src/flow/machine/install.ts";
const TESTS = "test/flow/machine/install.test.ts";
const source = readFileSync(new URL(FILE, root), "utf8");

async function carriedOut(job: Job): Promise<Outcome> {
  const child = fork(new URL("scripts/mutant.ts", root), { cwd: root, execArgv: [], stdio: "inherit" });
  child.send(job);
  const [outcome] = (await once(child, "message")) as [Outcome];
  await once(child, "exit");
  return outcome;
}

describe("tests run over a defect", { concurrency: 2 }, () => {
  const files = [{ file: TESTS, tests: null }];
  const withDefect = (text: string): Job => ({
    mutant: { file: FILE, source: text },
    files,
    isRecorded: false,
  });

  test("one that changes what they see is noticed, with the test that did", async () => {
    const outcome = await carriedOut(
      withDefect(source.replace("folder !== undefined", "folder === undefined")),
    );
    assert.ok(outcome.is === "failed");
    assert.equal(outcome.file, TESTS);
    assert.equal(readFileSync(new URL(FILE, root), "utf8"), source);
  });

  test("one that changes nothing survives", async () => {
    assert.equal((await carriedOut(withDefect(`${source}\n// nothing`))).is, "passed");
  });

  test("one that never lets a test end is noticed", async () => {
    const outcome = await carriedOut(withDefect(`${source}\nawait new Promise(() => {});`));
    assert.ok(outcome.is === "failed" && outcome.why === "the test never ended", JSON.stringify(outcome));
  });

  test("without a defect each test is recorded with the lines that it reaches", async () => {
    const outcome = await carriedOut({ mutant: null, files, isRecorded: true });
    assert.ok(outcome.is === "passed");
    assert.ok(outcome.recorded.length > 1 && outcome.read.includes(FILE));
    const lines = outcome.recorded
      .filter(({ number }) => number >= 0)
      .flatMap((one) => one.lines[FILE] ?? []);
    assert.ok(lines.some((bits) => /[1-9a-f]/.test(bits)));
  });
});
