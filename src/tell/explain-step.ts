/** What holds for one step of an agent, and where that comes from: written in a file, or a default. */
import { answersOf, responsesOf } from "./budget.ts";
import {
  NOT_WRITTEN,
  originOf,
  promptOf,
  type Explainable,
  type LimitRow,
  type PromptExplained,
  type Sourced,
} from "./explain.ts";
import type { Check, Flow, Label, Lifecycle, Limits, Step, StepGuard, StepId } from "../flow/flow.ts";
import { isObject, own, type Path } from "../flow/json.ts";
import { fieldPathText, placeholdersIn } from "../flow/text/placeholder.ts";
import { outlineOf, type Edge } from "./outline.ts";
import type { Problem } from "../flow/problem.ts";
import { MODE_BY_KIND } from "../flow/settings.ts";
import { reachFrom } from "../flow/graph.ts";
import type { ValueOrigin, OriginOf, Written } from "../load/index.ts";
import { fieldWords } from "../flow/json-schema.ts";
import { readsOf, stageSupplier, type VariableRead, type Supplier } from "../flow/reads.ts";

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

/** `offered`: the names of the tools that the step is offered. */
export function stepExplained(
  { flow, origin, agent, problems }: Explainable,
  step: Step,
  offered: readonly string[],
): StepExplained {
  const { id } = step;
  const written = (...part: Path) => origin(["steps", id, ...part]);
  const { answer } = step;
  const fromAgent = origin(["settings", "runner", "flow", "defaultModel"]);
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
      offered,
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
  const byAgent = originOf(origin(["settings", "runner", "boundaries", "permissionMode"]), mode);
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
