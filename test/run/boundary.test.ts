/** What is said about the sandbox of a run before it starts is decided as the run decides it. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { boundaryOf } from "../../src/run/boundary.ts";
import { load } from "../../src/run/index.ts";
import { agentFiles, homeBeside, projectWith, stepTo } from "./project.ts";

test("a module of the project that the agent loads cannot be written, and the boundary says so", async () => {
  const actions = { enabled: true, types: ["x"], outputFormat: "json", handlers: { x: "./act.mjs" } };
  const verdict = { type: "detect:graph", config: { maxIterations: 5 } };
  const boundaries = { allowedTools: ["*"], permissionMode: "acceptEdits" };
  const root = projectWith({
    ...agentFiles(
      "a",
      { "closure.a": stepTo("closure", { closing: null }) },
      { runner: { flow: { systemPromptPath: "prompts/system.md" }, verdict, boundaries, actions } },
    ),
    ".agent/a/act.mjs": 'import { act } from "../../lib/act.mjs"; export default act;\n',
    "lib/act.mjs": "export const act = () => {};\n",
  });
  const { flow, project, problems } = await load("a", { cwd: root });
  assert.ok(!problems.some(({ severity }) => severity === "error"));
  const env = { PATH: process.env.PATH, HOME: homeBeside() };
  const around = { project, cwd: root, env, wish: "on" } as const;
  const { sandbox } = await boundaryOf(flow!, Object.values(flow!.steps), around);
  assert.ok(sandbox.confined);
  assert.ok(sandbox.readOnly.includes(join(root, "lib/act.mjs")), sandbox.readOnly.join("\n"));
});
