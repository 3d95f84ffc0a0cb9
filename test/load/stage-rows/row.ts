/** The form of a row about stages, and what rows of several subjects change in the good machine. */
import { BUILD, type StageChanges } from "../stage-world.ts";

/** A change to the good machine, and the findings it brings: exactly these. */
export type Row = readonly [name: string, changes: StageChanges, findings: readonly string[]];

export const plan = (pointer: string, code: string, severity = "error") =>
  `${severity} ${code} stages/plan.md ${pointer}`.trimEnd();

/** Code that may lead anywhere, so that nothing is proved about the ways. */
export const NEXT_HOOK: StageChanges = { "hooks.mjs": "export default { plan: { next() {} } }" };

export const inputs = {
  type: "object",
  required: ["task", "label"],
  properties: {
    task: { type: "string" },
    label: { type: "object", required: ["text"], properties: { text: { type: "string" } } },
    branch: { type: "string", default: "main" },
    note: { type: "string" },
    issue: {
      type: "object",
      required: ["title"],
      properties: { title: { type: "string" }, body: { type: "string" } },
    },
  },
};
export const body = (text: string, more: StageChanges = {}): StageChanges => ({
  plan: { body: text },
  ...more,
});

export const build = (pointer: string, code: string, severity = "error") =>
  `${severity} ${code} stages/build.md ${pointer}`;

export const CHECK = { type: "command", command: "test -f ready", successWhen: "exitCode:0" };

/** plan, then a and b side by side, then review. `b` has the payload of build. */
export const forked: StageChanges = {
  plan: { next: { parallel: ["a", "b"], join: "review" } },
  a: { id: "a" },
  b: { id: "b", completionSchema: BUILD.completionSchema },
  build: undefined,
};

/** Stages that nobody need lead to, since code may. */
export const AROUND: StageChanges = {
  ...NEXT_HOOK,
  build: undefined,
  review: undefined,
  a: { id: "a" },
  b: { id: "b" },
  c: { id: "c" },
};

export const machine = (pointer: string, code: string, severity = "error") =>
  `${severity} ${code} machine.yaml ${pointer}`.trimEnd();
