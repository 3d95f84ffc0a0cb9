/** What holds for an agent, and where that comes from: written in a file, or a default. */
import { budgetOf, type AnswerBudget } from "./budget.ts";
import type { Flow, Limits, Parameter, Prompt, StepId } from "../flow/flow.ts";
import { handlerOf } from "../flow/handlers.ts";
import { own, sameJson, type Json } from "../flow/json.ts";
import { outlineOf, type OutlineNode } from "./outline.ts";
import type { Problem } from "../flow/problem.ts";
import { maxIterationsOf } from "../flow/rules.ts";
import type { LoadResult, OriginOf, SettingValue, ValueOrigin, Written } from "../load/index.ts";
import { effectiveLimits } from "../flow/spending.ts";

/** A value that holds, and why. */
export type Sourced<T = Json> = { readonly value: T; readonly origin: ValueOrigin };
export type LimitRow = Sourced & { readonly key: string };

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
  readonly settings: readonly LimitRow[];
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

/** An agent as it was loaded, with a flow. */
export type Explainable = Pick<LoadResult, "origin" | "stepsIn" | "settings" | "problems"> & {
  readonly agent: string;
  readonly flow: Flow;
};

/** What the user's settings allow any run, and the file that says so. */
export type UserLimits = { readonly limits: Limits; readonly file: string | null };

const NO_LIMITS: UserLimits = { limits: {}, file: null };

/** The agent as a whole. */
export function agentExplained(
  { flow, origin, stepsIn, settings, agent, problems }: Explainable,
  digest: string,
  ofUser: UserLimits = NO_LIMITS,
): AgentExplained {
  return {
    v: 1,
    agent,
    title: flow.title,
    description: flow.description,
    dialect: flow.dialect,
    digest,
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

/** The origin of a value that holds, given what was written for it. */
export function originOf(written: Written | null, value: Json): ValueOrigin {
  if (written === null || written.origin.kind !== "written") return NOT_WRITTEN;
  return sameJson(written.value, value) ? written.origin : { ...written.origin, kind: "overruled" };
}

export const NOT_WRITTEN: ValueOrigin = { kind: "default" };

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

export function promptOf({ file, tried, text, builtIn }: Prompt): PromptExplained {
  return { file, tried, builtIn: builtIn === undefined ? null : text };
}
