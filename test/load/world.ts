/** A small project in memory: files over a Map, and one good agent of which the tests change one thing at a time. */
import { createHash } from "node:crypto";
import { TOOL_NAMES } from "../../src/boundaries/gate/gate.ts";
import { OFFERED } from "../../src/boundaries/tools/toolbox.ts";
import type { FileTree } from "../../src/flow/files.ts";
import type { Json } from "../../src/flow/json.ts";
import type { LoadResult } from "../../src/load/index.ts";
import { climptIn } from "../../src/load/agent/climpt.ts";
import { readYaml } from "../../src/load/text/yaml.ts";
import { loadRegistry } from "../../src/load/registry/registry-agent.ts";
import { unescapeSegment } from "../../src/flow/json-pointer.ts";
import { findPrompt } from "../../src/prompts/find.ts";
import { compared } from "./findings.ts";

export type Tree = { readonly [path: string]: string };

export function filesOf(tree: Tree): FileTree {
  const texts = new Map(Object.entries(tree));
  return {
    list: (folder) => {
      const below = [...texts.keys()].filter((path) => path.startsWith(`${folder}/`));
      const names = new Set(below.map((path) => path.slice(folder.length + 1).split("/")[0]!));
      return names.size === 0 ? null : [...names].toSorted();
    },
    read: (path) => {
      const text = texts.get(path);
      return text === undefined ? { kind: "missing" } : { kind: "text", text };
    },
  };
}

export function load(tree: Tree, name = "iterator"): LoadResult {
  const files = filesOf(tree);
  const world = { tools: TOOLS, digest: sha256 };
  const climpt = climptIn(files, readYaml);
  const found = loadRegistry(name, files, (ref) => findPrompt(files, ref), world, climpt);
  return compared(name, tree, found);
}

export const TOOLS = { offered: OFFERED, known: TOOL_NAMES };

export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/**
 * What a test changes: `agent /runner/verdict/type`, `registry /steps/initial.issue/c2`, `schema /initial.issue` set a
 * value (undefined removes it); any other key is a path below the agent's folder, or below .agent/ if it says so, with
 * its whole text.
 */
export type Changes = { readonly [place: string]: unknown };

const FOLDER = ".agent/iterator";
const DOCUMENTS: ReadonlyMap<string, string> = new Map([
  ["agent", `${FOLDER}/agent.json`],
  ["registry", `${FOLDER}/steps_registry.json`],
  ["schema", `${FOLDER}/schemas/issue.schema.json`],
]);

export function tree(changes: Changes = {}): Tree {
  const documents = structuredClone({ agent: AGENT, registry: REGISTRY, schema: SCHEMA }) as {
    [name: string]: Json;
  };
  const files: { [path: string]: string } = {};
  for (const [path, text] of Object.entries(PROMPTS)) files[`${FOLDER}/${path}`] = text;
  const whole: [string, string | undefined][] = [];
  for (const [place, value] of Object.entries(changes)) {
    const [, name, pointer] = /^(agent|registry|schema) (\/.*)$/.exec(place) ?? [];
    if (name === undefined || pointer === undefined)
      whole.push([place.startsWith(".agent/") ? place : `${FOLDER}/${place}`, value as string | undefined]);
    else set(documents[name]!, pointer, value);
  }
  for (const [name, file] of DOCUMENTS) files[file] = JSON.stringify(documents[name], null, 2);
  for (const [file, text] of whole) {
    if (text === undefined) delete files[file];
    else files[file] = text;
  }
  return files;
}

type Draft = { [key: string]: unknown };

export function set(document: unknown, pointer: string, value: unknown): void {
  const segments = pointer.slice(1).split("/").map(unescapeSegment);
  const last = segments.pop()!;
  let here = document as Draft;
  for (const segment of segments) {
    here[segment] ??= {};
    here = here[segment] as Draft;
  }
  if (value === undefined) delete here[last];
  else Object.defineProperty(here, last, { value, enumerable: true, configurable: true, writable: true });
}

/** Document 003, section 11.10, with the verdict, effects and logs of document 000's plainest flow. */
export const AGENT = {
  version: "1.12.0",
  name: "iterator",
  displayName: "Iterator Agent",
  description: "Autonomous development agent that works on GitHub Issues",
  parameters: {
    issue: { type: "number", description: "GitHub Issue number to work on", required: true, cli: "--issue" },
    iterateMax: {
      type: "number",
      description: "Maximum number of iterations (fallback)",
      required: false,
      default: 500,
      cli: "--iterate-max",
    },
  },
  runner: {
    flow: {
      systemPromptPath: "prompts/system.md",
      prompts: { registry: "steps_registry.json", fallbackDir: "prompts/" },
    },
    verdict: { type: "detect:graph", config: { maxIterations: 50 } },
    boundaries: { allowedTools: ["Read", "Write", "Bash"], permissionMode: "acceptEdits" },
  },
};

export const REGISTRY = {
  agentId: "iterator",
  version: "1.0.0",
  c1: "steps",
  entryStepMapping: { "detect:graph": "initial.issue" },
  failurePatterns: {
    "git-dirty": {
      description: "Uncommitted changes present",
      edition: "failed",
      adaptation: "git-dirty",
      params: ["changedFiles", "untrackedFiles"],
    },
  },
  validators: {
    "git-clean": {
      type: "command",
      command: "git status --porcelain",
      successWhen: "empty",
      failurePattern: "git-dirty",
      extractParams: { changedFiles: "parseChangedFiles" },
    },
  },
  validationSteps: {
    "closure.issue": {
      stepId: "closure.issue",
      name: "Issue Validation",
      c2: "retry",
      c3: "issue",
      validationConditions: [{ validator: "git-clean" }],
      onFailure: { action: "retry", maxAttempts: 3 },
    },
  },
  steps: {
    "initial.issue": {
      stepId: "initial.issue",
      name: "Issue Initial Prompt",
      stepKind: "work",
      c2: "initial",
      c3: "issue",
      edition: "default",
      fallbackKey: "issue_initial_default",
      uvVariables: ["issue"],
      usesStdin: false,
      outputSchemaRef: { file: "issue.schema.json", schema: "initial.issue" },
      structuredGate: {
        allowedIntents: ["next", "repeat"],
        intentSchemaRef: "#/properties/next_action/properties/action",
        intentField: "next_action.action",
        handoffFields: ["analysis.understanding", "analysis.approach"],
      },
      transitions: { next: { target: "continuation.issue" }, repeat: { target: "initial.issue" } },
    },
    "continuation.issue": {
      stepId: "continuation.issue",
      name: "Issue Continuation Prompt",
      stepKind: "work",
      c2: "continuation",
      c3: "issue",
      uvVariables: ["issue", "iteration", "iterateMax"],
      outputSchemaRef: { file: "issue.schema.json", schema: "continuation.issue" },
      structuredGate: {
        allowedIntents: ["next", "repeat", "handoff"],
        intentSchemaRef: "#/properties/next_action/properties/action",
        intentField: "next_action.action",
      },
      transitions: {
        next: { target: "continuation.issue" },
        repeat: { target: "continuation.issue" },
        handoff: { target: "closure.issue" },
      },
    },
    "closure.issue": {
      stepId: "closure.issue",
      name: "Issue Closure Prompt",
      stepKind: "closure",
      c2: "closure",
      c3: "issue",
      uvVariables: ["issue"],
      outputSchemaRef: { file: "issue.schema.json", schema: "closure.issue" },
      structuredGate: {
        allowedIntents: ["closing", "repeat"],
        intentSchemaRef: "#/properties/next_action/properties/action",
        intentField: "next_action.action",
      },
      transitions: { closing: { target: null }, repeat: { target: "closure.issue" } },
    },
  },
};

export const SCHEMA = {
  $schema: "http://json-schema.org/draft-07/schema#",
  definitions: { base: { type: "object", properties: { stepId: { type: "string" } }, required: ["stepId"] } },
  "initial.issue": {
    allOf: [{ $ref: "#/definitions/base" }],
    type: "object",
    required: ["next_action"],
    properties: {
      analysis: {
        type: "object",
        properties: { understanding: { type: "string" }, approach: { type: "string" } },
      },
      next_action: actionOf("next", "repeat"),
    },
  },
  "continuation.issue": answerOf("next", "repeat", "handoff"),
  "closure.issue": answerOf("closing", "repeat"),
};

export const PROMPTS: Tree = {
  "prompts/system.md": "---\ntitle: system\n---\nYou are {uv-agent_name}. {uv-verdict_criteria}\n",
  "prompts/steps/initial/issue/f_default.md": "Look at issue {uv-issue}.",
  "prompts/steps/continuation/issue/f_default.md":
    "Go on with issue {uv-issue}, iteration {uv-iteration} of at most {uv-iterateMax}.",
  "prompts/steps/closure/issue/f_default.md": "Close issue {uv-issue}.",
  "prompts/steps/retry/issue/f_failed_git-dirty.md": "Commit: {{#each changedFiles}}{{this}} {{/each}}",
};

export function answerOf(...intents: readonly string[]) {
  return {
    type: "object",
    required: ["next_action"],
    properties: { stepId: { type: "string" }, next_action: actionOf(...intents) },
  };
}

function actionOf(...intents: readonly string[]) {
  return {
    type: "object",
    required: ["action"],
    properties: { action: { enum: intents }, reason: { type: "string" } },
  };
}
