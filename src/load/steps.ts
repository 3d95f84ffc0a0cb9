/** The steps of a registry as steps of a flow. */
import type { Answer, Decider, Need, Prompt, SchemaSource, Step, StepId, StepKind } from "../flow/flow.ts";
import { FORBIDDEN_NAMES, parseDotPath } from "../flow/json.ts";
import type { PermissionMode } from "../flow/settings.ts";
import type { AgentSource } from "./agent-shape.ts";
import { DEFAULTS, MODE_BY_KIND } from "./defaults.ts";
import { carryOf, COMPLETE, gatedEdges, ungatedMove, type FlowSteps } from "./moves.ts";
import type { Prompts } from "./prompts.ts";
import type { GateSource, RegistrySource, StepSource } from "./registry-shape.ts";
import type { ResolveSchema } from "./schemas.ts";

/** Which entries of the registry are steps of the flow: those with a kind, written or told by c2. */
export function flowSteps(registry: RegistrySource): FlowSteps {
  const kinds = new Map<StepId, StepKind>();
  for (const [id, source] of registry.steps) {
    const kind = kindOf(id, source);
    if (kind !== null && !FORBIDDEN_NAMES.has(id)) kinds.set(id, kind);
  }
  return { kinds, ids: [...kinds.keys()] };
}

export type StepWorld = {
  readonly agent: AgentSource;
  readonly flow: FlowSteps;
  readonly prompts: Prompts;
  readonly schema: ResolveSchema;
};

export function buildStep(
  id: StepId,
  source: StepSource,
  kind: StepKind,
  world: StepWorld,
): Omit<Step, "guard"> {
  const { agent, flow } = world;
  const gate = source.runner === undefined ? source.structuredGate : undefined;
  const carry = carryOf(source.structuredGate?.handoffFields ?? []);
  return {
    id,
    name: source.name ?? id,
    kind,
    by:
      source.runner?.command === undefined
        ? { kind: "model" }
        : {
            kind: "command",
            command: source.runner.command,
            args: source.runner.args,
            timeoutMs: source.runner.timeout,
          },
    prompt: source.runner === undefined ? promptOf(source, kind, world) : NO_PROMPT,
    transcript: "shared",
    model: source.model ?? agent.runner.flow.defaultModel ?? DEFAULTS.model,
    tools: { allow: agent.runner.boundaries.allowedTools, mode: modeOf(source, kind, agent) },
    answer: answerOf(id, source, gate, world.schema),
    decide: gate === undefined ? { by: "const", label: "done" } : deciderOf(gate),
    carry,
    needs: needsOf(source),
    edges:
      gate !== undefined
        ? gatedEdges(id, source, gate, carry, flow)
        : { done: source.runner !== undefined && kind === "close" ? COMPLETE : ungatedMove(id, flow) },
    turns: DEFAULTS.turns,
  };
}

/** Variables by their bare names, whether or not they were written with `uv-`. */
export function variablesOf(source: StepSource): readonly string[] {
  return [...new Set(source.uvVariables.map((name) => (name.startsWith("uv-") ? name.slice(3) : name)))];
}

/** `stepId.key` → its parts; ids have dots, keys have none. */
export function parseInput(from: string): { readonly step: StepId; readonly key: string } {
  const dot = from.lastIndexOf(".");
  return { step: from.slice(0, Math.max(0, dot)), key: from.slice(dot + 1) };
}

/** From the strictest to the freest. */
const MODES: readonly PermissionMode[] = ["plan", "default", "acceptEdits", "bypassPermissions"];

const KINDS: { readonly [kind in NonNullable<StepSource["stepKind"]>]: StepKind } = {
  work: "work",
  verification: "verify",
  closure: "close",
};
const KIND_BY_C2: ReadonlyMap<string, StepKind> = new Map([
  ["initial", "work"],
  ["continuation", "work"],
  ["verification", "verify"],
  ["closure", "close"],
]);

/** Other words for an intent that models use. */
const ALIASES: Extract<Decider, { by: "field" }>["alias"] = {
  continue: "next",
  retry: "repeat",
  wait: "repeat",
  done: "closing",
  finished: "closing",
  pass: "next",
  fail: "repeat",
};

const NO_PROMPT: Prompt = { file: null, text: "", tried: [], variables: [] };

function kindOf(id: StepId, source: StepSource): StepKind | null {
  if (source.stepKind !== undefined) return KINDS[source.stepKind];
  if (id.startsWith("section.")) return null;
  return KIND_BY_C2.get(source.c2 ?? "") ?? null;
}

/** A closure that only changes labels has a prompt of its own, which the closing action names. */
function promptOf(source: StepSource, kind: StepKind, world: StepWorld): Prompt {
  const { enabled, defaultClosureAction: action } = world.agent.runner.integrations.github;
  const adapted = kind === "close" && enabled && action !== "close" ? action : null;
  return world.prompts.ofStep(
    { c2: source.c2 ?? "", c3: source.c3 ?? "" },
    source.edition,
    adapted ?? source.adaptation ?? null,
    variablesOf(source),
  );
}

/** The step's own mode; otherwise the stricter of the agent's, if it is written, and the kind's. */
function modeOf(source: StepSource, kind: StepKind, agent: AgentSource): PermissionMode {
  if (source.permissionMode !== undefined) return source.permissionMode;
  const byKind = MODE_BY_KIND[kind];
  const byAgent = agent.runner.boundaries.permissionMode ?? byKind;
  return MODES.indexOf(byAgent) < MODES.indexOf(byKind) ? byAgent : byKind;
}

function answerOf(
  id: StepId,
  source: StepSource,
  gate: GateSource | undefined,
  resolveSchema: ResolveSchema,
): Answer {
  const schema = schemaOf(source, resolveSchema);
  if (gate === undefined && schema.kind === "any") return { kind: "text" };
  return {
    kind: "object",
    schema,
    channel: { kind: "output" },
    correct: { field: "stepId", value: id },
    repairs: DEFAULTS.repairs,
    miss: { kind: "fail", code: "FAILED_STEP_ROUTING", forgiveFirst: true },
  };
}

function schemaOf(source: StepSource, resolveSchema: ResolveSchema): SchemaSource {
  const ref = source.outputSchemaRef;
  if (ref?.file === undefined || ref.schema === undefined) return { kind: "any" };
  const { file: _file, ...schema } = resolveSchema({ file: ref.file, schema: ref.schema });
  return schema;
}

function deciderOf(gate: GateSource): Decider {
  const allow = (gate.allowedIntents ?? []).filter((intent) => intent !== "abort");
  const fallback = gate.failFast ? undefined : fallbackOf(gate, allow);
  return {
    by: "field",
    path: parseDotPath(gate.intentField ?? DEFAULTS.intentField),
    alias: ALIASES,
    allow,
    always: ["abort"],
    ...(fallback !== undefined && { fallback }),
  };
}

function fallbackOf(gate: GateSource, allow: readonly string[]): string | undefined {
  const wanted = gate.fallbackIntent;
  if (wanted !== undefined && (wanted === "abort" || allow.includes(wanted))) return wanted;
  return allow.includes("next") ? "next" : allow[0];
}

/** An input is there under the author's own name for it and under the name of its source, `step_id_key`. */
function needsOf(source: StepSource): readonly Need[] {
  return [...source.inputs].flatMap(([variable, input]) => {
    if (input.from === undefined) return [];
    const from = parseInput(input.from);
    const bySource = `${from.step.replaceAll(".", "_")}_${from.key}`;
    const required = input.required ?? input.default === undefined;
    const fallback = input.default === undefined ? {} : { default: input.default };
    const need = { from, required, ...fallback };
    return variable === bySource
      ? [{ variable, ...need }]
      : [
          { variable, ...need },
          { variable: bySource, ...need },
        ];
  });
}
