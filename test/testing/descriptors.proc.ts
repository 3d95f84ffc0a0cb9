/** Many tests in one process: what each has opened is closed. In a process of its own, where nothing else opens files. */
import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { agentTests } from "../../src/testing/agent-tests.ts";
import { needs } from "../needs.ts";

const OPEN = "/proc/self/fd";
const isThere = needs(existsSync(OPEN), `${OPEN} is not there`);

test("a thousand tests of an example in memory leave no descriptor and no timer open", isThere, async () => {
  const cwd = new URL("../../examples/09-tested-agent/", import.meta.url).pathname;
  const { tests, run, scenario } = await agentTests("notes", { cwd, memory: true, isCi: true });
  const all = async (times: number) => {
    for (let count = 0; count < times; count++) {
      const { unmet } = await run(tests[count % tests.length]!);
      assert.deepEqual(unmet, []);
    }
    await scenario({ name: "waits", script: [], expect: { outcome: "failed" } });
  };
  const held = () => [readdirSync(OPEN).length, process.getActiveResourcesInfo().toSorted()];
  await all(tests.length);
  const before = held();
  await all(1000);
  assert.deepEqual(held(), before);
});
