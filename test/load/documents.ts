/** The examples that documents 000-003 print, and the agents they make when what they leave out is added. */
import { readFileSync } from "node:fs";
import type { Json, JsonObject } from "../../src/flow/json.ts";
import { set, type Tree } from "./world.ts";

/** The text of an example, just as its document prints it. */
export function printed(name: string): string {
  return readFileSync(new URL(`../fixtures/documents/${name}`, import.meta.url), "utf8");
}

/** The value of an example; comments are left out. */
export function parsed(name: string): JsonObject {
  return JSON.parse(printed(name).replaceAll(/\s\/\/ .*$/gm, "")) as JsonObject;
}

/** Pointers → values; undefined removes. */
export type Edits = { readonly [pointer: string]: unknown };

export function edited(value: Json, edits: Edits): string {
  const copy = structuredClone(value);
  for (const [pointer, leaf] of Object.entries(edits)) set(copy, pointer, structuredClone(leaf));
  return JSON.stringify(copy, null, 2);
}

/** Document 001: registry and agent.json to the letter, in the folder tree it shows, with prompts of our own. */
export function tree001(registry: Edits = {}, agent: Edits = {}): Tree {
  const isVerbatim = (edits: Edits) => Object.keys(edits).length === 0;
  const folder = ".agent/code-improver";
  const prompt = (path: string, text: string) => [`${folder}/prompts/${path}/f_default.md`, text];
  return {
    [`${folder}/agent.json`]: isVerbatim(agent)
      ? printed("001-agent.json")
      : edited(parsed("001-agent.json"), agent),
    [`${folder}/steps_registry.json`]: isVerbatim(registry)
      ? printed("001-steps-registry.json")
      : edited(parsed("001-steps-registry.json"), registry),
    [`${folder}/prompts/system.md`]: "You improve code.\n",
    ...Object.fromEntries([
      prompt("steps/phase/analyze", "Analyze: {uv-topic}, {topic}, {{topic}}; keep {other} and { this }."),
      prompt("steps/phase/implement", "Implement what was found."),
      prompt("steps/phase/review", "Review the change."),
      prompt("checks/step/analyze", 'Is the analysis complete? Answer { "result": "ok", "message": "…" }.'),
      prompt("checks/step/implement", printed("001-check-prompt.md")),
      prompt("checks/completion/final", "Is everything done?"),
    ]),
  };
}

const FLAT_AGENT = {
  name: "issues",
  displayName: "Issues",
  description: "Works on issues",
  parameters: { issue: { type: "number", description: "The issue", cli: "--issue", default: 1 } },
  runner: { verdict: { type: "detect:graph" }, boundaries: { permissionMode: "acceptEdits" } },
};

const words = (...intents: readonly string[]) => ({
  type: "object",
  required: ["action"],
  properties: {
    action: { enum: intents },
    reason: { type: "string" },
    details: { type: "object", properties: { target: { type: "string" } } },
  },
});
const schemaFor = (
  stepId: string,
  more: object = {},
  intents = ["continue", "retry", "complete", "escalate"],
) => ({
  type: "object",
  required: ["stepId", "next_action"],
  properties: { stepId: { const: stepId }, next_action: words(...intents), ...more },
});

/** The final step that document 002's example leads to and never defines. */
export const COMPLETE_ISSUE = {
  stepId: "complete.issue",
  name: "Issue Complete Prompt",
  c2: "complete",
  c3: "issue",
  outputSchemaRef: { file: "issue.schema.json", schema: "#/definitions/complete.issue" },
  structuredGate: { allowedIntents: ["complete", "repeat"] },
  transitions: { complete: { target: null }, repeat: { target: "complete.issue" } },
};

/** Document 002: its registry with an entry step and, unless it is edited out, `complete.issue`. */
export function tree002(registry: Edits = {}, more: Tree = {}): Tree {
  const folder = ".agent/issues";
  const example = parsed("002-steps-registry.jsonc");
  const text = { type: "string" };
  const list = { type: "array", items: text };
  return {
    [`${folder}/agent.json`]: JSON.stringify(FLAT_AGENT),
    [`${folder}/steps_registry.json`]: edited(example, {
      "/entryStep": "initial.issue",
      "/steps/complete.issue": COMPLETE_ISSUE,
      ...registry,
    }),
    [`${folder}/schemas/issue.schema.json`]: JSON.stringify({
      definitions: {
        "initial.issue": schemaFor("initial.issue", {
          issue: { type: "number" },
          analysis: { type: "object", properties: { understanding: text, approach: text } },
        }),
        "continuation.issue": schemaFor("continuation.issue", {
          progress: { type: "object", properties: { completed_files: list, pending_tasks: list } },
        }),
        "complete.issue": schemaFor("complete.issue", {}, ["complete", "repeat"]),
      },
    }),
    [`${folder}/prompts/system.md`]: "You work on issues.\n",
    [`${folder}/prompts/steps/initial/issue/f_default.md`]: "Begin with issue {uv-issue}.",
    [`${folder}/prompts/steps/continuation/issue/f_default.md`]: "Go on.",
    [`${folder}/prompts/steps/complete/issue/f_default.md`]: "Finish.",
    ...more,
  };
}
