/** Small flows built by hand, for tests of whatever stands on them. */
import type {
  Answer,
  CommandCheck,
  Decider,
  Flow,
  Label,
  Move,
  Prompt,
  Lifecycle,
  Step,
  StepGuard,
  StepId,
  StepKind,
  StepLimits,
} from "../flow/flow.ts";
import type { JsonSchema } from "../flow/json.ts";
import { parseDotPath } from "../flow/json.ts";
import type { Settings } from "../flow/settings.ts";
import { requireOptions, requireText, type OptionKinds } from "./kit-options.ts";

export type StepSketch = {
  readonly kind?: StepKind;
  readonly prompt?: string;
  readonly variables?: readonly string[];
  /** Labels and where they lead: a step id, null for the end, or a move. `abort` is added to every step. */
  readonly edges: { readonly [label: Label]: StepId | null | Move };
  readonly schema?: JsonSchema;
  readonly handoff?: readonly string[];
  readonly guard?: StepGuard;
  readonly alias?: { readonly [word: string]: Label };
  readonly fallback?: Label;
  readonly transcript?: "shared" | "fresh";
  readonly tool?: string;
  readonly turns?: number;
  /** No contract and no gate: whatever is said leads to `done`. */
  readonly free?: true;
  readonly answer?: Partial<Answer & { kind: "object" }>;
  readonly tools?: readonly string[];
  readonly limits?: StepLimits;
};

export function sketchFlow(
  steps: { readonly [id: StepId]: StepSketch },
  more: Partial<Omit<Flow, "steps">> = {},
): Flow {
  requireSketch(steps, more);
  const [entry = ""] = Object.keys(steps);
  return {
    ir: 1,
    agent: "sketch",
    dialect: "gate",
    title: "Sketch",
    description: "",
    parameters: [],
    system: sketchPrompt("You are {uv-agent_name}."),
    entry,
    steps: Object.fromEntries(Object.entries(steps).map(([id, sketch]) => [id, toStep(id, sketch)])),
    checks: {},
    stop: { kind: "end" },
    limits: { visits: 20 },
    constants: {},
    criteria: "",
    settings: SETTINGS,
    ...more,
  };
}

const SKETCH: OptionKinds<StepSketch> = {
  kind: "text",
  prompt: "words",
  variables: "list",
  edges: "object",
  schema: "object",
  handoff: "list",
  guard: "object",
  alias: "object",
  fallback: "text",
  transcript: "text",
  tool: "text",
  turns: "whole number",
  free: "flag",
  answer: "object",
  tools: "list",
  limits: "object",
};

const OF_A_FLOW: OptionKinds<Omit<Flow, "steps">> = {
  ir: "whole number",
  agent: "text",
  dialect: "text",
  title: "words",
  description: "words",
  parameters: "list",
  openArguments: "flag",
  system: "object",
  entry: "text",
  checks: "object",
  stop: "object",
  stopGuard: "object",
  limits: "object",
  hooks: "object",
  sections: "object",
  constants: "object",
  criteria: "words",
  settings: "object",
};

/** What is misspelled would silently make another flow. */
function requireSketch(steps: unknown, more: unknown): void {
  if (typeof steps !== "object" || steps === null || Array.isArray(steps))
    throw new TypeError("sketchFlow takes an object of steps: { NAME: { edges: { LABEL: STEP } } }.");
  requireOptions("sketchFlow", more, OF_A_FLOW);
  for (const [id, sketch] of Object.entries(steps)) {
    const of = `step "${id}" of sketchFlow`;
    requireOptions(of, sketch, SKETCH, ["edges"]);
    for (const [label, to] of Object.entries((sketch as StepSketch).edges))
      if (to !== null && typeof to !== "string" && typeof to !== "object")
        throw new TypeError(
          `The edge "${label}" of ${of} must lead to a step, to null (the end) or be a move, but is ${typeof to}.`,
        );
  }
}

export function sketchCheck(name: string, command: string): CommandCheck {
  requireText("sketchCheck", "the name of the check", name);
  requireText("sketchCheck", "its command", command);
  return {
    kind: "command",
    name,
    command,
    env: {},
    success: { kind: "exit", code: 0 },
    pattern: `${name}-failed`,
    description: "",
    extract: {},
    timeoutMs: 60_000,
    maxOutputBytes: 65_536,
  };
}

export function sketchPrompt(content: string, variables: readonly string[] = []): Prompt {
  if (typeof content !== "string" || !Array.isArray(variables))
    throw new TypeError("A prompt is a text, and a list of the variables in it.");
  return { file: "inline.md", text: content, tried: [], variables };
}

/** The schema of an answer with the usual member `next_action.action`. */
export function actionSchema(labels: readonly Label[]): JsonSchema {
  if (!Array.isArray(labels)) throw new TypeError("actionSchema takes a list of labels.");
  return {
    type: "object",
    required: ["next_action"],
    properties: {
      stepId: { type: "string" },
      next_action: {
        type: "object",
        required: ["action"],
        properties: { action: { type: "string", enum: [...labels] } },
      },
    },
  };
}

function toStep(id: StepId, sketch: StepSketch): Step {
  const labels = Object.keys(sketch.edges);
  const edges: { [label: Label]: Move } = {
    abort: { kind: "end", outcome: "failed", code: "AGENT_ABORTED" },
  };
  for (const [label, to] of Object.entries(sketch.edges)) edges[label] = toMove(to);
  return {
    id,
    name: id,
    kind: sketch.kind ?? (id.startsWith("closure") ? "close" : "work"),
    by: { kind: "model" },
    prompt: sketchPrompt(sketch.prompt ?? `Do ${id}.`, sketch.variables ?? []),
    transcript: sketch.transcript ?? "shared",
    model: "opus",
    tools: { allow: sketch.tools ?? ["*"], mode: "acceptEdits" },
    answer: toAnswer(id, sketch, labels),
    decide: toDecider(sketch, labels),
    ...(sketch.guard === undefined ? {} : { guard: sketch.guard }),
    carry: (sketch.handoff ?? []).map((path) => ({ key: path.split(".").at(-1)!, path: parseDotPath(path) })),
    needs: [],
    edges,
    turns: sketch.turns ?? 50,
    ...(sketch.limits === undefined ? {} : { limits: sketch.limits }),
  };
}

function toMove(to: StepId | null | Move): Move {
  if (to === null) return { kind: "end", outcome: "completed" };
  return typeof to === "string" ? { kind: "goto", step: to } : to;
}

function toAnswer(id: StepId, sketch: StepSketch, labels: readonly Label[]): Answer {
  if (sketch.free) return { kind: "text" };
  return {
    kind: "object",
    schema: { kind: "schema", name: id, schema: sketch.schema ?? actionSchema(labels) },
    channel: sketch.tool === undefined ? { kind: "output" } : { kind: "tool", name: sketch.tool },
    correct: { field: "stepId", value: id },
    repairs: 1,
    miss: { kind: "fail", code: "FAILED_STEP_ROUTING", forgiveFirst: true },
    ...sketch.answer,
  };
}

function toDecider(sketch: StepSketch, labels: readonly Label[]): Decider {
  if (sketch.free) return { by: "const", label: "done" };
  return {
    by: "field",
    path: ["next_action", "action"],
    alias: sketch.alias ?? {},
    allow: labels,
    always: ["abort"],
    ...(sketch.fallback === undefined ? {} : { fallback: sketch.fallback }),
  };
}

const SETTINGS: Settings = {
  verdict: { type: "detect:graph", config: {} },
  boundaries: {
    allowedTools: ["*"],
    permissionMode: "acceptEdits",
    sandbox: {
      enabled: false,
      network: { mode: "none", trustedDomains: [] },
      filesystem: { allowedPaths: [] },
      excludedCommands: [],
      allowUnsandboxedCommands: false,
    },
  },
  github: {
    enabled: false,
    labels: {},
    completion: { add: [], remove: [] },
    defaultClosureAction: "close",
  },
  actions: { enabled: false, types: [], outputFormat: null, handlers: {} },
  worktree: { enabled: false, copy: [], root: ".worktrees" },
  finalize: { autoMerge: true, push: false, remote: "origin", createPr: false, prTarget: null },
  logging: { enabled: false, directory: "logs", format: "jsonl", maxFiles: null },
  inspectSchemas: false,
  autoResponse: "Decide for yourself.",
};

export type StageSketch = {
  readonly prompt?: string;
  readonly schema?: JsonSchema;
  readonly tools?: readonly string[];
  /** Where `ok` and `skip` lead; the end, unless said. */
  readonly next?: StepId | null | Move;
  readonly onFail?: StepId;
  readonly attempts?: number;
  readonly turns?: number;
  readonly assert?: readonly string[];
  readonly rules?: Partial<Lifecycle>;
  readonly limits?: StepLimits;
};

/** A machine of stages; each completes with `done`, and its payload is any object unless a schema is given. */
export function sketchMachine(
  stages: { readonly [id: StepId]: StageSketch },
  more: Partial<Omit<Flow, "steps">> = {},
): Flow {
  const steps = Object.entries(stages).map(([id, sketch]) => [id, toStage(id, sketch)] as const);
  return {
    ...sketchFlow({}, more),
    dialect: "stage",
    entry: more.entry ?? steps[0]?.[0] ?? "",
    steps: Object.fromEntries(steps),
  };
}

function toStage(id: StepId, sketch: StageSketch): Step {
  const { attempts = 2, turns = 5, assert = [] } = sketch;
  const next = toMove(sketch.next ?? null);
  const failed = (code: string): Move =>
    sketch.onFail === undefined
      ? { kind: "end", outcome: "failed", code }
      : { kind: "goto", step: sketch.onFail };
  const checks = assert.map((check) => ({
    check,
    edition: { file: null, text: "", tried: [], variables: [] },
  }));
  const guard = {
    on: "ok",
    checks,
    onFailure: "retry",
    maxFailures: attempts,
    back: { kind: "again" },
  } as const;
  return {
    id,
    name: id,
    kind: "work",
    by: { kind: "model" },
    prompt: { ...sketchPrompt(sketch.prompt ?? `Do ${id}.`), syntax: "stage" },
    transcript: "fresh",
    model: "opus",
    tools: { allow: sketch.tools ?? [], mode: "acceptEdits" },
    answer: {
      kind: "object",
      schema: { kind: "schema", name: id, schema: sketch.schema ?? { type: "object" } },
      channel: { kind: "tool", name: "done" },
      repairs: 0,
      miss: { kind: "label", label: "cap" },
    },
    decide: { by: "const", label: "ok" },
    ...(checks.length > 0 && { guard }),
    carry: [],
    needs: [],
    edges: { ok: next, skip: next, fail: failed("AGENT_VALIDATION_ABORT"), cap: failed("AGENT_TURN_LIMIT") },
    turns,
    ...(sketch.limits === undefined ? {} : { limits: sketch.limits }),
    stage: { attempts, backoff: "none", unresolved: "fail", output: [], ...sketch.rules },
  };
}
