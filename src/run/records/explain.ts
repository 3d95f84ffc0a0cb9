/** What holds for an agent and for each of its steps, and where that comes from: written in a file, or a default. */
import { offeredIn } from "../../boundaries/tools/toolbox.ts";
import { answersOf, budgetOf, responsesOf, type AnswerBudget } from "../../tell/budget.ts";
import type {
  Check,
  Flow,
  Label,
  Limits,
  Parameter,
  Prompt,
  Lifecycle,
  Step,
  StepGuard,
  StepId,
} from "../../flow/flow.ts";
import { handlerOf } from "../../flow/handlers.ts";
import { isObject, own, sameJson, type Json, type Path } from "../../flow/json.ts";
import { fieldPathText, placeholdersIn } from "../../flow/text/placeholder.ts";
import { outlineOf, type Edge, type OutlineNode } from "../../tell/outline.ts";
import type { Problem } from "../../flow/problem.ts";
import { maxIterationsOf } from "../../flow/rules.ts";
import { MODE_BY_KIND } from "../../flow/settings.ts";
import { reachFrom } from "../../flow/graph.ts";
import type { ValueOrigin, OriginOf, SettingValue, Written } from "../../load/index.ts";
import { fieldWords } from "../../flow/json-schema.ts";
import { effectiveLimits } from "../../flow/spending.ts";
import { readsOf, stageSupplier, type VariableRead, type Supplier } from "../../flow/reads.ts";
import { flowDigest, type LoadedAgent } from "../load.ts";

/** A value that holds, and why. */
export type Sourced<T = Json> = { readonly value: T; readonly origin: ValueOrigin };
type LimitRow = Sourced & { readonly key: string };

export type AgentExplained = {
  readonly v: 1;
  readonly agent: string;
  readonly title: string;
  readonly description: string;
  readonly dialect: string;
  readonly digest: string;
  readonly registry: string;
  readonly entry: Sourced<StepId>;
  /** When the work counts as done, and what must pass before the verdict ends a run. */
  readonly ends: { readonly criteria: string; readonly checks: readonly string[] };
  readonly system: PromptExplained;
  /** Code of the project that takes part. */
  readonly hooks: string | null;
  readonly parameters: readonly (Parameter & { readonly origin: ValueOrigin })[];
  readonly settings: readonly (Sourced & { readonly key: string })[];
  readonly steps: readonly OutlineNode[];
  readonly budget: AnswerBudget;
  readonly problems: readonly Problem[];
};

export type PromptExplained = {
  readonly file: string | null;
  readonly tried: readonly string[];
  /** The words themselves, where they stand in no file: `file` is then `built-in:<name>`. */
  readonly builtIn: string | null;
};

export type StepExplained = {
  readonly v: 1;
  readonly agent: string;
  readonly step: StepId;
  readonly name: string;
  readonly kind: Step["kind"];
  readonly by: Step["by"];
  readonly aside: StepId | null;
  readonly origin: ValueOrigin;
  /** The shortest way here from the entry; empty: there is none. */
  readonly way: readonly StepId[];
  readonly prompt: PromptExplained | null;
  readonly variables: readonly VariableRead[];
  readonly answer:
    | { readonly kind: "text" }
    | {
        readonly kind: "object";
        readonly schema: string | null;
        readonly channel: string;
        readonly miss: string;
      };
  readonly gate: ExplainedGate | null;
  readonly contract: readonly ContractRow[];
  readonly handoff: readonly { readonly key: string; readonly path: string }[];
  readonly model: Sourced<string>;
  readonly mode: Sourced<string> & { readonly by: "step" | "agent" | "kind" };
  readonly tools: Sourced<readonly string[]> & { readonly offered: readonly string[] };
  readonly guard:
    | (Omit<StepGuard, "checks"> & {
        readonly origin: ValueOrigin;
        readonly checks: readonly ExplainedCheck[];
      })
    | null;
  /** What happens around the conversation of a stage. */
  readonly stage: StageExplained | null;
  readonly limits: {
    readonly answers: number;
    readonly repairs: number;
    readonly responses: number;
    readonly spending: readonly LimitRow[];
  };
  /** What becomes of it when its process goes away meanwhile. */
  readonly ifInterrupted: Interrupted;
  readonly problems: readonly Problem[];
};

export type Interrupted = Sourced<"retry" | "ask" | "fail">;

export type StageExplained = Pick<Lifecycle, "attempts" | "backoff" | "unresolved"> & {
  readonly turnCap: number;
  readonly gate: string | null;
  /** The tools it may call, and the one that ends it. */
  readonly envelope: readonly string[];
  readonly completionTool: string | null;
  readonly inputsSchema: string | null;
  readonly output: readonly { readonly key: string; readonly path: string }[];
  /** The placeholders of its body, as written. */
  readonly placeholders: readonly { readonly written: string; readonly supplier: Supplier | null }[];
};

export type ExplainedGate = {
  readonly field: Sourced<string>;
  readonly fallback: Label | null;
  readonly aliases: { readonly [word: string]: Label };
};

/** One label, and what each part of the contract says of it. */
export type ContractRow = {
  readonly label: Label;
  /** The words of the schema that mean it; null where the schema does not list words. */
  readonly schema: readonly string[] | null;
  readonly allowed: boolean;
  readonly transition: ValueOrigin | null;
  readonly leads: readonly Edge[];
  readonly mismatches: readonly string[];
};

export type ExplainedCheck = Check & {
  readonly edition: string | null;
  readonly tried: readonly string[];
};

type Explainable = Pick<LoadedAgent, "agent" | "flow" | "origin" | "stepsIn" | "settings" | "problems">;

/** What the user's settings allow any run, and the file that says so. */
export type UserLimits = { readonly limits: Limits; readonly file: string | null };

const NO_LIMITS: UserLimits = { limits: {}, file: null };

/** The agent as a whole; null when its files give no flow. */
export function explainAgent(
  { flow, origin, stepsIn, settings, agent, problems }: Explainable,
  ofUser: UserLimits = NO_LIMITS,
): AgentExplained | null {
  if (flow === null) return null;
  return {
    v: 1,
    agent,
    title: flow.title,
    description: flow.description,
    dialect: flow.dialect,
    digest: flowDigest(flow),
    registry: stepsIn,
    entry: { value: flow.entry, origin: originOf(origin(["entry"]), flow.entry) },
    ends: { criteria: flow.criteria, checks: flow.stopGuard?.checks.map(({ check }) => check) ?? [] },
    system: promptOf(flow.system),
    hooks: flow.hooks?.file ?? null,
    parameters: flow.parameters.map((parameter) => ({
      ...parameter,
      origin: origin(["parameters", parameter.name])?.origin ?? NOT_WRITTEN,
    })),
    settings: [...settingsOf(flow, origin, settings), ...limitRows(flow, origin, ofUser)],
    steps: outlineOf(flow, problems).nodes,
    budget: budgetOf(flow),
    problems,
  };
}

/** One step; null when the flow has none of that id. */
export function explainStep(
  { flow, origin, agent, problems }: Explainable,
  id: StepId,
): StepExplained | null {
  const step = flow === null ? undefined : own(flow.steps, id);
  if (flow === null || step === undefined) return null;
  const written = (...part: Path) => origin(["steps", id, ...part]);
  const { answer } = step;
  const fromAgent = origin(DEFAULT_MODEL);
  return {
    v: 1,
    agent,
    step: id,
    name: step.name,
    kind: step.kind,
    by: step.by,
    aside: step.aside ?? null,
    origin: written()?.origin ?? NOT_WRITTEN,
    way: reachFrom(flow.entry, new Map(Object.entries(flow.steps))).pathTo(id),
    prompt: step.by.kind === "command" ? null : promptOf(step.prompt),
    variables: readsOf(flow, step),
    answer:
      answer.kind === "text"
        ? { kind: "text" }
        : {
            kind: "object",
            schema: answer.schema.kind === "any" ? null : answer.schema.name,
            channel: answer.channel.kind === "tool" ? answer.channel.name : "output",
            miss: answer.miss.kind === "label" ? answer.miss.label : answer.miss.code,
          },
    gate: gateOf(step, origin),
    contract: contractOf(flow, step, origin),
    handoff: step.carry.map(({ key, path }) => ({ key, path: path.join(".") })),
    model: { value: step.model, origin: originOf(written("model") ?? fromAgent, step.model) },
    mode: modeOf(step, origin),
    tools: {
      value: step.tools.allow,
      origin: originOf(
        written("tools", "allow") ?? origin(["settings", "runner", "boundaries", "allowedTools"]),
        step.tools.allow,
      ),
      offered: step.by.kind === "command" ? [] : offeredIn(flow, step).map((spec) => spec.name),
    },
    guard: guardOf(flow, step, origin),
    stage: stageOf(flow, step),
    limits: {
      answers: answersOf(step),
      repairs: answer.kind === "text" ? 0 : answer.repairs,
      responses: responsesOf(step),
      spending: stepLimitRows(step, written),
    },
    ifInterrupted: interruptedOf(
      step,
      written("ifInterrupted") ?? origin(["settings", "runner", "ifInterrupted"]),
    ),
    problems: problems.filter((problem) => problem.step === id),
  };
}

function interruptedOf({ ifInterrupted }: Step, written: Written | null): Interrupted {
  const value = ifInterrupted ?? "retry";
  return { value, origin: originOf(written, value) };
}

/** The origin of a value that holds, given what was written for it. */
export function originOf(written: Written | null, value: Json): ValueOrigin {
  if (written === null || written.origin.kind !== "written") return { kind: "default" };
  return sameJson(written.value, value) ? written.origin : { ...written.origin, kind: "overruled" };
}

const NOT_WRITTEN: ValueOrigin = { kind: "default" };
const DEFAULT_MODEL: Path = ["settings", "runner", "flow", "defaultModel"];
const PERMISSION_MODE: Path = ["settings", "runner", "boundaries", "permissionMode"];

/** Every setting of agent.json, in the order of its declaration, with the value that holds. */
function settingsOf(
  flow: Flow,
  origin: OriginOf,
  settings: readonly SettingValue[],
): AgentExplained["settings"] {
  const isStages = flow.dialect === "stage";
  const rows = settings.flatMap(({ path, value }): readonly Row[] => {
    const key = path.join(".");
    if (!key.startsWith("runner.") || ELSEWHERE.test(key) || (isStages && BESIDE_STEPS.test(key))) return [];
    return own(SPREAD, key)?.(flow, value, key) ?? [[key, value]];
  });
  const visits: readonly Row[] = isStages ? [["limits.visits", flow.limits.visits]] : [];
  return [...visits, ...rows].map(([key, value]) => {
    const path = key.split(".");
    const written = origin(path[0] === "runner" ? ["settings", ...path] : path);
    // An older word for the same type is written, and holds.
    const isType = key === "runner.verdict.type" && written !== null;
    return { key, value, origin: isType ? written.origin : originOf(written, value) };
  });
}

type Row = readonly [key: string, value: Json];

/** What is explained in its own place: limits, servers of tools, the configuration of the verdict. */
const ELSEWHERE = /^runner\.(?:limits|mcpServers|verdict\.config)\b/;
/** What an agent made of stages has no use for. */
const BESIDE_STEPS = /^runner\.(?:verdict|flow\.(?:systemPromptPath|prompts|schemas\.base))\b/;

/** Settings that are told by several rows. */
const SPREAD: { readonly [key: string]: (flow: Flow, value: Json, key: string) => readonly Row[] } = {
  "runner.verdict.type": (flow, value, key) => {
    const { maxIterations: _, ...config } = flow.settings.verdict.config;
    return [
      [key, value],
      ["runner.verdict.config.maxIterations", maxIterationsOf(flow)],
      ...Object.entries(config).map(([name, said]): Row => [`runner.verdict.config.${name}`, said]),
    ];
  },
  "runner.integrations.github.labels.completion.add": ({ settings }, value, key) => [
    ...Object.entries(settings.github.labels).map(([name, label]): Row => [
      `runner.integrations.github.labels.${name}`,
      label,
    ]),
    [key, value],
  ],
  "runner.actions.handlers": ({ settings: { actions } }, _value, key) =>
    actions.types.map((type): Row => [`${key}.${type}`, handlerOf(actions, type)]),
};

/** What a run may spend: of two limits the lesser holds. */
function limitRows(flow: Flow, origin: OriginOf, ofUser: UserLimits): readonly LimitRow[] {
  const { visits: _, ...written } = flow.limits;
  const where = flow.dialect === "stage" ? ["limits"] : ["runner", "limits"];
  return Object.entries(effectiveLimits(written, ofUser.limits)).map(([name, value]) => {
    const said = origin(["limits", name]);
    const isUsers = ofUser.file !== null && value !== said?.value;
    const place = { file: ofUser.file ?? "", line: 1, column: 1, pointer: `/limits/${name}` };
    const holds: ValueOrigin = isUsers ? { kind: "written", ...place } : originOf(said, value);
    return { key: [...where, name].join("."), value, origin: holds };
  });
}

/** `turns` and the like of a step, and `perAttempt.turns` of its attempts. */
function stepLimitRows({ limits }: Step, written: (...path: Path) => Written | null): readonly LimitRow[] {
  const { perAttempt = {}, ...all } = limits ?? {};
  const rows = (values: Limits, path: Path) =>
    Object.entries(values).map(([name, value]) => ({
      key: [...path, name].join("."),
      value: value,
      origin: originOf(written("limits", ...path, name), value),
    }));
  return [...rows(all, []), ...rows(perAttempt, ["perAttempt"])];
}

function stageOf(flow: Flow, step: Step): StageExplained | null {
  const { stage, tools, answer, turns, prompt } = step;
  if (stage === undefined) return null;
  const placeholders = new Map(placeholdersIn(prompt.text).map((part) => [part.written, part]));
  return {
    attempts: stage.attempts,
    backoff: stage.backoff,
    turnCap: turns,
    gate: stage.gate ?? null,
    unresolved: stage.unresolved,
    envelope: tools.allow,
    completionTool: answer.kind === "object" && answer.channel.kind === "tool" ? answer.channel.name : null,
    inputsSchema: stage.inputs === undefined || stage.inputs.kind === "any" ? null : stage.inputs.name,
    output: stage.output.map(({ key, path }) => ({ key, path: fieldPathText(path) })),
    placeholders: [...placeholders.values()].map((part) => ({
      written: part.written,
      supplier: stageSupplier(flow, step, part),
    })),
  };
}

function promptOf({ file, tried, text, builtIn }: Prompt): PromptExplained {
  return { file, tried, builtIn: builtIn === undefined ? null : text };
}

function gateOf({ id, decide }: Step, origin: OriginOf): ExplainedGate | null {
  if (decide.by === "const") return null;
  const field = decide.path.join(".");
  const labels = new Set([...decide.allow, ...decide.always]);
  const written = origin(["steps", id, "decide", "path"]);
  return {
    field: { value: field, origin: originOf(written, field) },
    fallback: decide.fallback ?? null,
    aliases: Object.fromEntries(Object.entries(decide.alias).filter(([, label]) => labels.has(label))),
  };
}

function contractOf(flow: Flow, step: Step, origin: OriginOf): readonly ContractRow[] {
  const { id, decide, answer } = step;
  const words =
    decide.by === "field" && answer.kind === "object" && answer.schema.kind === "schema"
      ? fieldWords(answer.schema.schema, decide.path)
      : null;
  const allow = decide.by === "field" ? decide.allow : [decide.label];
  const transitions = origin(["steps", id, "edges"])?.value;
  const edges = outlineOf(flow).edges.filter((edge) => edge.from === id);
  // Whatever becomes of a stage is a label of its own.
  const taken = step.stage === undefined ? Object.keys(step.edges) : edges.map((edge) => edge.label);
  const always = decide.by === "field" ? decide.always : step.stage === undefined ? [] : taken;
  const alias = decide.by === "field" ? decide.alias : {};
  const meant = (word: string) => {
    const label = own(alias, word.toLowerCase());
    const isLabel = allow.includes(word) || always.includes(word) || label === undefined;
    return isLabel || !(allow.includes(label) || always.includes(label)) ? word : label;
  };
  const labels = new Set([
    ...allow,
    ...(words ?? []).map(meant),
    ...(isObject(transitions) ? Object.keys(transitions) : []),
    ...taken,
  ]);
  return [...labels].map((label): ContractRow => {
    const isAllowed = allow.includes(label) || always.includes(label);
    const schema = words === null ? null : words.filter((word) => meant(word) === label);
    const isSpoken = schema === null ? null : schema.length > 0;
    const written = origin(["steps", id, "edges", label])?.origin;
    const leads = edges.filter((edge) => edge.label === label);
    const isTacit = always.includes(label) && !allow.includes(label);
    return {
      label,
      schema,
      allowed: isAllowed,
      transition: written ?? (leads.length === 0 ? null : NOT_WRITTEN),
      leads,
      mismatches: [
        ...(isAllowed && !isTacit && isSpoken === false ? ["the schema does not let the model say it"] : []),
        ...(isSpoken === true && !isAllowed ? ["the schema offers it, but it is not allowed"] : []),
        ...(!isAllowed && isSpoken !== true ? ["it has a transition, but is not allowed"] : []),
        ...(isAllowed && leads.length === 0 ? ["it leads nowhere"] : []),
        ...leads
          .filter(({ to }) => to.kind === "missing")
          .map(() => "it leads to a step that does not exist"),
      ],
    };
  });
}

function modeOf({ id, kind, tools }: Step, origin: OriginOf): StepExplained["mode"] {
  const { mode } = tools;
  const byStep = originOf(origin(["steps", id, "tools", "mode"]), mode);
  if (byStep.kind === "written") return { value: mode, origin: byStep, by: "step" };
  const byAgent = originOf(origin(PERMISSION_MODE), mode);
  if (byAgent.kind === "written" && mode !== MODE_BY_KIND[kind])
    return { value: mode, origin: byAgent, by: "agent" };
  return { value: mode, origin: NOT_WRITTEN, by: "kind" };
}

function guardOf(flow: Flow, { id, guard }: Step, origin: OriginOf): StepExplained["guard"] {
  if (guard === undefined) return null;
  return {
    ...guard,
    origin: origin(["steps", id, "guard"])?.origin ?? NOT_WRITTEN,
    checks: guard.checks.flatMap(({ check: name, edition }) => {
      const check = own(flow.checks, name);
      if (check === undefined) return [];
      return [{ ...check, edition: edition.file, tried: edition.tried }];
    }),
  };
}
