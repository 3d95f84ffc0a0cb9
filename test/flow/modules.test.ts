/** Every module that a flow may start is guarded, confined and a line of what is trusted. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Flow } from "../../src/flow/flow.ts";
import { modulesIn } from "../../src/flow/rules.ts";
import { trustLines } from "../../src/run/trust/trust-lines.ts";
import { loadedModules } from "../../src/run/world/own-modules.ts";
import { startsProcesses } from "../../src/run/world/processes.ts";
import { sketchFlow } from "../../src/testing/flows.ts";

const one = (file: string) => ({ file, digest: `${file}-digest` });
const { settings } = sketchFlow({});
const withActions = (enabled: boolean, types: readonly string[]): Partial<Flow> => ({
  settings: {
    ...settings,
    actions: { ...settings.actions, enabled, types, modules: { note: one("note.mjs") } },
  },
});
const stopBy = (file: string) => ({ kind: "module", module: one(file), config: {} }) as const;

const rows: readonly [name: string, more: Partial<Flow>, files: readonly string[]][] = [
  ["none", {}, []],
  ["hooks", { hooks: one("hooks.mjs") }, ["hooks.mjs"]],
  ["a stop rule", { stop: stopBy("stop.mjs") }, ["stop.mjs"]],
  [
    "parts of a stop rule",
    { stop: { kind: "any", of: [{ kind: "visits", count: 2 }, stopBy("a.mjs")] } },
    ["a.mjs"],
  ],
  ["a handler", withActions(true, ["note"]), ["note.mjs"]],
  ["a handler that is disabled", withActions(false, ["note"]), []],
  ["a handler of a type that no answer may use", withActions(true, []), []],
  [
    "all",
    { hooks: one("h.mjs"), stop: stopBy("s.mjs"), ...withActions(true, ["note"]) },
    ["s.mjs", "h.mjs", "note.mjs"],
  ],
];
for (const [name, more, files] of rows)
  test(`modules of a flow: ${name}`, async () => {
    const flow = sketchFlow({}, more);
    assert.deepEqual(
      modulesIn(flow).map(({ file }) => file),
      files,
    );
    assert.deepEqual(
      loadedModules(flow, "/p"),
      files.map((file) => `/p/${file}`),
    );
    assert.equal(startsProcesses(flow, false), files.length > 0);
    const lines = await trustLines(flow, true, () => ({ root: import.meta.dirname, home: "/nowhere" }));
    assert.deepEqual(lines, files.map((file) => `node ${file} (sha256 ${file}-digest)`).toSorted());
  });
