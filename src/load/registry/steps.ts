/** The steps of a registry as steps of a flow. */
import type { Answer, Decider, Need, Prompt, SchemaSource, Step, StepId, StepKind } from "../../flow/flow.ts";
import { FORBIDDEN_NAMES, parseDotPath } from "../../flow/json.ts";
import { MODE_BY_KIND, type PermissionMode } from "../../flow/settings.ts";
import type { AgentSource } from "../agent/agent-shape.ts";
import { DEFAULTS } from "../agent/defaults.ts";
import { fallbackOf, type GateForm } from "./gate-forms.ts";
import { carryOf, COMPLETE, gatedEdges, ungatedMove, type FlowSteps } from "./moves.ts";
import { interruptedOf } from "../agent/people.ts";
import type { Prompts } from "./prompts.ts";
import type { GateSource, RegistrySource, StepSource } from "./registry-shape.ts";
import { fieldWords } from "../../flow/json-schema.ts";
import type { ResolveSchema } from "./schemas.ts";
import { stepLimitsOf } from "../../flow/spending.ts";
import type { StandIn } from "./stand-in.ts";
import { INPUT_TEXT } from "../../flow/text/template.ts";

/** Which entries of the registry are steps of the flow: those with a kind. */
export function flowSteps(registry: RegistrySource, form: GateForm): FlowSteps {
  const kinds = new Map<StepId, StepKind>();
  for (const id of registry.steps.keys()) {
    const kind = form.kindOf(id, registry.steps.get(id)!);
    if (kind !== null && !FORBIDDEN_NAMES.has(id)) kinds.set(id, kind);
  }
  return { kinds, ids: [...kinds.keys()] };
}

export type StepWorld = {
  readonly agent: AgentSource;
  readonly flow: FlowSteps;
  readonly prompts: Prompts;
  readonly standIn: StandIn;
  readonly schema: ResolveSchema;
  readonly form: GateForm;
};

export function buildStep(
  id: StepId,
  source: StepSource,
  kind: StepKind,
  world: StepWorld,
): Omit<Step, "guard"> {
  const { agent, flow, form } = world;
  const gate = source.runner === undefined ? source.structuredGate : undefined;
  const carry = carryOf(source.structuredGate?.handoffFields ?? []);
  const answer = answerOf(id, source, gate, world);
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
    prompt: source.runner === undefined ? promptOf(id, source, kind, world) : NO_PROMPT,
    transcript: "shared",
    model: source.model ?? agent.runner.flow.defaultModel ?? DEFAULTS.model,
    tools: { allow: agent.runner.boundaries.allowedTools, mode: modeOf(source.permissionMode, kind, agent) },
    answer,
    decide: gate === undefined ? { by: "const", label: "done" } : deciderOf(id, source, gate, form),
    carry,
    needs: needsOf(source),
    edges:
      gate !== undefined
        ? gatedEdges(id, source, gate, carry, jumpable(flow, gate, answer), form)
        : { done: source.runner !== undefined && kind === "close" ? COMPLETE : ungatedMove(id, flow) },
    turns: DEFAULTS.turns,
    ...stepLimitsOf(source.limits),
    ...interruptedOf(source.ifInterrupted, agent.runner.ifInterrupted),
  };
}

/** Variables by their bare names, whether or not they were written with `uv-`. A step that uses stdin declares its text. */
function variablesOf({ uvVariables, usesStdin }: StepSource): readonly string[] {
  const names = uvVariables.map((name) => (name.startsWith("uv-") ? name.slice(3) : name));
  return [...new Set(usesStdin ? [...names, INPUT_TEXT] : names)];
}

/** `stepId.key` → its parts; ids have dots, keys have none. */
export function parseInput(from: string): { readonly step: StepId; readonly key: string } {
  const dot = from.lastIndexOf(".");
  return { step: from.slice(0, Math.max(0, dot)), key: from.slice(dot + 1) };
}

/** From the strictest to the freest. */
const MODES: readonly PermissionMode[] = ["plan", "default", "acceptEdits", "bypassPermissions"];

const NO_PROMPT: Prompt = { file: null, text: "", tried: [], variables: [] };

/** A closure that only changes labels has a prompt of its own, which the closing action names. */
function promptOf(id: StepId, source: StepSource, kind: StepKind, world: StepWorld): Prompt {
  const { enabled, defaultClosureAction: action } = world.agent.runner.integrations.github;
  const adapted = kind === "close" && enabled && action !== "close" ? action : null;
  const prompt = promptAt(source, adapted, world.prompts);
  return prompt.file === null ? world.standIn(id, source, kind, prompt) : prompt;
}

/** The prompt at the coordinates of an entry; `adapted` takes the place of its own adaptation. */
export function promptAt(source: StepSource, adapted: string | null, prompts: Prompts): Prompt {
  return prompts.ofStep(
    { c2: source.c2 ?? "", c3: source.c3 ?? "" },
    source.edition,
    adapted ?? source.adaptation ?? null,
    variablesOf(source),
  );
}

/** The step's own mode; otherwise the stricter of the agent's, if it is written, and the kind's. */
export function modeOf(own: PermissionMode | undefined, kind: StepKind, agent: AgentSource): PermissionMode {
  if (own !== undefined) return own;
  const byKind = MODE_BY_KIND[kind];
  const byAgent = agent.runner.boundaries.permissionMode ?? byKind;
  return MODES.indexOf(byAgent) < MODES.indexOf(byKind) ? byAgent : byKind;
}

function answerOf(
  id: StepId,
  source: StepSource,
  gate: GateSource | undefined,
  { schema: resolveSchema, form }: StepWorld,
): Answer {
  const schema = schemaOf(source, resolveSchema);
  if (gate === undefined && schema.kind === "any") return { kind: "text" };
  return {
    kind: "object",
    schema,
    channel: { kind: "output" },
    ...(!form.strict && { correct: { field: "stepId", value: id } }),
    repairs: DEFAULTS.repairs,
    miss: { kind: "fail", code: "FAILED_STEP_ROUTING", forgiveFirst: true },
  };
}

/** A jump leads to the steps that the schema lets the model name; without such a list, to any. */
function jumpable(flow: FlowSteps, gate: GateSource, answer: Answer): FlowSteps {
  if (gate.targetField === undefined || answer.kind !== "object" || answer.schema.kind !== "schema")
    return flow;
  const words = fieldWords(answer.schema.schema, parseDotPath(gate.targetField));
  return words === null ? flow : { ...flow, ids: words.filter((word) => flow.kinds.has(word)) };
}

function schemaOf(source: StepSource, resolveSchema: ResolveSchema): SchemaSource {
  const ref = source.outputSchemaRef;
  if (ref?.file === undefined || ref.schema === undefined) return { kind: "any" };
  const found = resolveSchema({ file: ref.file, schema: ref.schema });
  return found.kind === "schema"
    ? { kind: found.kind, name: found.name, schema: found.schema }
    : { kind: found.kind, name: found.name, code: found.code, why: found.why };
}

function deciderOf(id: StepId, source: StepSource, gate: GateSource, form: GateForm): Decider {
  // Whatever ends the flow is one label, so that the checks before the end have one place to stand at.
  const meant = (intent: string) =>
    form.ends(id, intent, source.transitions.get(intent)) ? form.ending : intent;
  const intents = (gate.allowedIntents ?? []).filter((intent) => intent !== "abort");
  // Where no more is implied than what is written, another intent may end the flow.
  const renamed = form.strict ? intents.filter((intent) => meant(intent) !== intent) : [];
  const isUsual = gate.aliases.size === 0 && renamed.length === 0;
  const words: { readonly [word: string]: string } = isUsual
    ? form.aliases
    : {
        ...form.aliases,
        ...lowered(gate.aliases),
        ...Object.fromEntries(renamed.map((intent) => [intent, intent])),
      };
  const isAsMeant = !form.strict || Object.values(words).every((intent) => meant(intent) === intent);
  const fallback = fallbackOf(gate, intents, form);
  return {
    by: "field",
    path: parseDotPath(gate.intentField ?? DEFAULTS.intentField),
    alias: isAsMeant
      ? words
      : Object.fromEntries(Object.entries(words).map(([word, intent]) => [word, meant(intent)])),
    allow: [...new Set(intents.map(meant))],
    always: ["abort"],
    ...(fallback !== undefined && { fallback: meant(fallback) }),
  };
}

/** Words are compared without regard to case. */
function lowered(aliases: ReadonlyMap<string, string>): { readonly [word: string]: string } {
  return Object.fromEntries([...aliases].map(([word, intent]) => [word.toLowerCase(), intent]));
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
