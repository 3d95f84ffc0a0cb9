/** A machine of stages in memory: three good stages, of which the tests change one thing at a time. */
import { stringify } from "yaml";
import type { Problem } from "../../src/flow/problem.ts";
import type { LoadResult } from "../../src/load/index.ts";
import { loadMachine } from "../../src/load/stages/machine.ts";
import { compared } from "./findings.ts";
import { filesOf, TOOLS, type Tree } from "./world.ts";

export const FOLDER = ".agent/release";

/** A key that is `undefined` is left out of the front matter; `body` is what follows it. */
export type Stage = { readonly [key: string]: unknown };

/** Texts of files below the agent's folder, or fields of the stage of that name. */
export type StageChanges = { readonly [name: string]: string | Stage | undefined };

const text = { type: "string" };
export const PLAN: Stage = {
  id: "plan",
  name: "Plan",
  allowedTools: ["Read", "Grep"],
  completionTool: "submit_plan",
  completionSchema: {
    type: "object",
    required: ["summary", "steps"],
    properties: { summary: text, steps: { type: "array", items: text }, note: text },
  },
  retryPolicy: { maxAttempts: 2, backoff: "none" },
  turnCap: 5,
  resolutionPolicy: "retry-later",
  next: "build",
  body: "Plan {{ctx.task}}.",
};
export const BUILD: Stage = {
  ...PLAN,
  id: "build",
  name: "Build",
  allowedTools: ["Read", "Write", "Bash"],
  completionTool: "submit_build",
  completionSchema: {
    type: "object",
    required: ["green"],
    properties: { green: { type: "boolean" } },
    additionalProperties: false,
  },
  next: { switch: "parsed.green", cases: { true: "review", false: "plan" } },
  body: "Build what was planned: {{ctx.upstream[0].parsed.summary}}",
};
export const REVIEW: Stage = {
  ...PLAN,
  id: "review",
  name: "Review",
  completionTool: "submit_review",
  next: undefined,
  body: "Review.",
};
const GOOD: { readonly [name: string]: Stage } = { plan: PLAN, build: BUILD, review: REVIEW };

export function stageText({ body = "", ...front }: Stage): string {
  const written = Object.fromEntries(Object.entries(front).filter(([, value]) => value !== undefined));
  return `---\n${stringify(written, { aliasDuplicateObjects: false })}---\n\n${String(body)}\n`;
}

/** The good machine, changed: `plan: { turnCap: 0 }` changes a field, `machine: {…}` is machine.yaml. */
export function stageTree(changes: StageChanges = {}): Tree {
  const files: { [path: string]: string } = {
    [`${FOLDER}/machine.yaml`]: stringify({ entry: "plan" }),
  };
  for (const [name, stage] of Object.entries(GOOD)) files[`${FOLDER}/stages/${name}.md`] = stageText(stage);
  for (const [name, change] of Object.entries(changes)) {
    const path = `${FOLDER}/${name.includes(".") ? name : name === "machine" ? "machine.yaml" : `stages/${name}.md`}`;
    if (change === undefined) delete files[path];
    else if (typeof change === "string") files[path] = change;
    else if (name === "machine") files[path] = stringify(change);
    else files[path] = stageText({ ...(GOOD[name] ?? { ...REVIEW, id: name }), ...change });
  }
  return files;
}

export function loadStages(tree: Tree): LoadResult {
  const world = { tools: TOOLS, digest: (all: string) => `digest of ${all}` };
  return compared("release", tree, loadMachine("release", filesOf(tree), world));
}

/** `error StageTurnCapTooLow stages/plan.md /turnCap` */
export function findingLine({ severity, code, file, pointer }: Problem): string {
  return `${severity} ${code} ${file.replace(`${FOLDER}/`, "")} ${pointer}`.trimEnd();
}
