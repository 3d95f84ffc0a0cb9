/**
 * Flows with check prompts: every step is followed by a question about its work, and the answer decides where the run goes on. A
 * check prompt becomes a second step beside the one it asks about, so that nothing below this room knows of it.
 */
import type { Files, FindPrompt } from "../../flow/files.ts";
import type { Move, Prompt, SchemaSource, Step, StepId, StepKind } from "../../flow/flow.ts";
import { FORBIDDEN_NAMES, isObject, type Json } from "../../flow/json.ts";
import type { AgentSource } from "../agent/agent-shape.ts";
import { DEFAULTS } from "../agent/defaults.ts";
import { escapesProject, joinPath } from "../text/paths.ts";
import { foldersNamed, readPromptFile } from "../registry/prompts.ts";
import type { CheckedStep, CheckRegistry, Onward, PromptPlace, CheckPrompt } from "./questions-shape.ts";
import { stepLimitsOf } from "../../flow/spending.ts";
import { findEntry, type Graph, type Sources } from "../registry/registry.ts";
import { modeOf } from "../registry/steps.ts";

export type PromptWorld = {
  readonly folder: string;
  readonly agent: AgentSource;
  readonly files: Files;
  readonly findPrompt: FindPrompt;
};

/** The steps of the flow, each before the question about it. `flow` holds those of the file only. */
export function buildQuestions(sources: Sources, registry: CheckRegistry, world: PromptWorld): Graph {
  const steps = new Map<StepId, Step>();
  const kinds = new Map<StepId, StepKind>();
  for (const [id, source] of registry.steps) {
    if (FORBIDDEN_NAMES.has(id)) continue;
    const work = buildWork(id, source, registry, world);
    kinds.set(id, work.kind);
    steps.set(id, work);
    if (source.check !== undefined) {
      steps.set(questionOf(id), buildQuestion(work, source, source.check, registry, world));
    }
  }
  const flow = { kinds, ids: [...kinds.keys()] };
  return {
    entry: findEntry(sources),
    flow,
    steps,
    checks: new Map(),
    sections: [],
    judged: new Map(),
    stop: null,
  };
}

/** The id of the question about a step. No step of a file may be called so. */
export function questionOf(id: StepId): StepId {
  return `${id}#check`;
}

/** Where a transition leads, by what it says first: complete, next, fallback, retry. null: it says nothing. */
export function onwardKey(onward: Onward): "complete" | "next" | "fallback" | "retry" | null {
  if (onward.complete) return "complete";
  if (onward.next !== undefined) return "next";
  if (onward.fallback !== undefined) return "fallback";
  return onward.retry ? "retry" : null;
}

function buildWork(id: StepId, source: CheckedStep, registry: CheckRegistry, world: PromptWorld): Step {
  const { agent } = world;
  return {
    id,
    name: source.name ?? id,
    kind: "work",
    by: { kind: "model" },
    prompt: promptOf(source.prompt, registry, world),
    transcript: "shared",
    model: source.model ?? agent.runner.flow.defaultModel ?? DEFAULTS.model,
    tools: {
      allow: agent.runner.boundaries.allowedTools,
      mode: modeOf(source.permissionMode, "work", agent),
    },
    answer: { kind: "text" },
    decide: { by: "const", label: "done" },
    carry: [],
    needs: [],
    edges:
      source.check === undefined
        ? {}
        : { done: times(source.iterations.min - 1, again(id), { kind: "goto", step: questionOf(id) }) },
    turns: DEFAULTS.turns,
    ...stepLimitsOf(source.limits),
  };
}

/** What may be used for the work may be used to look at it: the question often is whether the tests pass. */
function buildQuestion(
  work: Step,
  source: CheckedStep,
  check: CheckPrompt,
  registry: CheckRegistry,
  world: PromptWorld,
): Step {
  const { id } = work;
  const pass = check.onPass === undefined ? null : onwardMove(id, check.onPass);
  const fail = check.onFail === undefined ? whileAllowed(id, source) : onwardMove(id, check.onFail);
  return {
    ...work,
    id: questionOf(id),
    name: `Check of ${work.name}`,
    kind: "verify",
    prompt: promptOf(check.prompt, registry, world),
    answer: {
      kind: "object",
      schema: schemaOf(check.responseFormat),
      channel: { kind: "output" },
      repairs: 0,
      miss: { kind: "label", label: "fail" },
    },
    decide: {
      by: "field",
      path: ["result"],
      alias: { ok: "pass", pass: "pass", true: "pass", ng: "fail", fail: "fail", false: "fail" },
      allow: ["pass", "fail"],
      always: [],
      fallback: "fail",
    },
    edges: { ...(pass !== null && { pass }), ...(fail !== null && { fail }) },
    aside: id,
  };
}

function onwardMove(id: StepId, onward: Onward): Move | null {
  switch (onwardKey(onward)) {
    case "complete":
      return { kind: "end", outcome: "completed", as: "complete" };
    case "next":
      return { kind: "goto", step: onward.next!, as: "next" };
    case "fallback":
      return { kind: "goto", step: onward.fallback!, as: "fallback" };
    case "retry": {
      const { maxRetries } = onward;
      if (maxRetries === 0) return again(id);
      const reason = `The check of step "${id}" did not pass, and its ${count(maxRetries, "retry", "retries")} ${maxRetries === 1 ? "is" : "are"} used up. Raise maxRetries in its onFail, or give it a fallback.`;
      return times(maxRetries, again(id), {
        kind: "end",
        outcome: "failed",
        code: "RETRIES_EXHAUSTED",
        reason,
      });
    }
    case null:
      return null;
  }
}

/** Without onFail the step is done again as long as its iterations last. */
function whileAllowed(id: StepId, { iterations }: CheckedStep): Move {
  const max = iterations.max ?? iterations.min;
  const reason = `The check of step "${id}" did not pass in ${count(max, "iteration", "iterations")}, and it has no onFail. Raise iterations.max, or add onFail.`;
  return times(max - iterations.min, again(id), {
    kind: "end",
    outcome: "failed",
    code: "ITERATIONS_EXHAUSTED",
    reason,
  });
}

function again(id: StepId): Move {
  return { kind: "goto", step: id, as: "retry" };
}

function times(max: number, move: Move, after: Move): Move {
  return max <= 0 ? after : { kind: "times", max, move, after };
}

function count(number: number, one: string, many: string): string {
  return `${number} ${number === 1 ? one : many}`;
}

/** The format tells the model what is asked for; it never refuses an answer that the form takes. */
function schemaOf(format: Json | undefined): SchemaSource {
  if (!isObject(format)) return { kind: "any" };
  const properties = Object.entries(format).map(([key, words]) => {
    const description = typeof words === "string" ? words : JSON.stringify(words);
    return [key, { description }] as const;
  });
  const schema = { type: "object", properties: Object.fromEntries(properties) };
  return { kind: "schema", name: "responseFormat", schema };
}

function promptOf(
  place: PromptPlace | undefined,
  registry: CheckRegistry,
  { folder, agent, files, findPrompt }: PromptWorld,
): Prompt {
  if (place === undefined) return { file: null, text: "", tried: [], variables: [], syntax: "lenient" };
  const bases = promptFolders(registry, folder, agent);
  const { c1, c2, c3, edition, adaptation } = place;
  const file = (path: string) =>
    readPromptFile(
      files,
      bases.map((base) => joinPath(base, path)),
    );
  const found =
    place.path !== undefined
      ? file(place.path)
      : findPrompt({
          c1: c1 ?? "",
          c2: c2 ?? "",
          c3: c3 ?? "",
          edition,
          adaptation: adaptation ?? null,
          template: DEFAULTS.pathTemplate,
          templateNoAdaptation: DEFAULTS.pathTemplateNoAdaptation,
          bases,
          variables: [],
        });
  if (found.file !== null || place.fallback === undefined) return { ...found, syntax: "lenient" };
  const other = file(place.fallback);
  return { ...other, tried: [...found.tried, ...other.tried], syntax: "lenient" };
}

function promptFolders(registry: CheckRegistry, folder: string, agent: AgentSource): readonly string[] {
  const own = foldersNamed(registry.basePath, folder).slice(0, 1);
  const fallback = joinPath(folder, agent.runner.flow.prompts.fallbackDir);
  return [...new Set([...own, fallback])].filter((base) => !escapesProject(base));
}
