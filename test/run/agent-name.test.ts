/** Names of agents that cannot be recorded or printed line by line. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "../../src/run/index.ts";
import { agentFiles, projectWith, stepTo } from "./project.ts";

const steps = {
  "initial.x": stepTo("work", { handoff: "closure.x" }),
  "closure.x": stepTo("closure", { closing: null }),
};

for (const [name, isFine] of [
  ["plain", true],
  ["with space", true],
  ["tab\tname", false],
  ["line\nname", false],
  ["ev\u001b[31mil", false],
] as const)
  test(`an agent called ${JSON.stringify(name)} is ${isFine ? "loaded" : "refused"}`, async () => {
    const { problems } = await load(name, { cwd: projectWith(agentFiles(name, steps)) });
    const found = problems.filter(({ message }) => message.includes("control character"));
    assert.deepEqual(
      found.map(({ code, severity }) => [code, severity]),
      isFine ? [] : [["AC-SERVICE-003", "error"]],
    );
  });
