/** One thing that happened in a visit, with what led to it and what it led to, worked out again by the engine's own functions. */
import {
  laneIn,
  type AnswerRead,
  type ChecksRead,
  type Choice,
  type EdgeRead,
  type Naming,
  type PlainMove,
  type StopFacts,
} from "../flow/deed.ts";
import { fillIn } from "../flow/argv.ts";
import { readCarry, readReason } from "../engine/decide/gate.ts";
import type { Fork, Lane, State } from "../engine/decide/state.ts";
import { laneContext } from "../engine/decide/attempt.ts";
import { outsideOf, standing, type Standing } from "../engine/decide/stop.ts";
import type { CheckResult, Event, Led } from "../flow/event.ts";
import type { Say } from "../flow/command.ts";
import type { Flow, Guard, Label, Step, StopRule } from "../flow/flow.ts";
import { own, readPath, type Json, type JsonObject } from "../flow/json.ts";
import { placeholdersIn } from "../flow/text/placeholder.ts";
import { checksDone } from "../flow/rules.ts";
import type { Composed } from "../flow/scene.ts";
import { composer, editionOf } from "../prompts/compose.ts";
import { readsOf, stageSupplier, type VariableRead } from "../flow/reads.ts";
import { stageValue } from "../prompts/stage.ts";
import { explainMissing, supplied } from "../prompts/variables.ts";
import { deedsOf } from "../story/story.ts";
import type { Happened } from "../story/visits.ts";

export type WhyMoment = {
  readonly seq: number;
  readonly at: number;
  /** As it is recorded. */
  readonly event: Event;
  readonly asked?: WhyAsked;
  readonly read?: Read;
  readonly checked?: Checked;
  readonly followed?: WhyFollowed;
  readonly led?: Led;
};

/** What this is the answer to. `attempt` is above 1 where an earlier process may have asked the same. */
export type WhyAsked =
  | {
      readonly by: "model";
      readonly attempt: number;
      /** Messages that stood in the conversation before. */
      readonly heard: number;
      readonly told: readonly WhyTold[];
    }
  /** null: an argument had no value. */
  | { readonly by: "command"; readonly attempt: number; readonly argv: readonly string[] | null };

/** Something that was said to the model. */
export type WhyTold = {
  readonly say: Say;
  /** The file that the words are made from; null where they are our own. */
  readonly prompt: { readonly file: string | null; readonly tried: readonly string[] } | null;
  readonly variables: readonly SuppliedVariable[];
  /** null: results of tools, which are handed over as they are. */
  readonly words: Composed | null;
};

export type SuppliedVariable = VariableRead & {
  readonly value: string | null;
  /** Who ought to have supplied it, where nobody did. */
  readonly missing: string | null;
};

/** How an answer became a label, or why it did not. */
export type Read = {
  /** What was taken for the answer; null: there was nothing of the kind in it. */
  readonly payload: JsonObject | null;
  readonly corrected: { readonly field: string; readonly said: string; readonly value: string } | null;
  /** What stood where the label is decided. */
  readonly word: Json;
  readonly label: Label | null;
  /** `miss`: the label that stands for an answer which cannot be used. */
  readonly by: Naming | "miss" | null;
  readonly reason: string;
  readonly errors: readonly string[];
  readonly handoff: JsonObject;
  readonly missing: readonly string[];
};

export type Checked = {
  /** Of a stage: before its conversation, or after a try. */
  readonly stage?: "gate" | "assert";
  /** The label that the checks guard; null: the end by the stop rule. */
  readonly on: Label | null;
  readonly onFailure: Guard["onFailure"];
  readonly maxFailures: number;
  readonly results: readonly (CheckResult & { readonly attempt: number })[];
  /** Checks that came after the first failure. */
  readonly notRun: readonly string[];
  /** Failures of this guard so far. */
  readonly failures: number;
  readonly overturned: boolean;
};

/** The edge of a label. It is not taken where the stop rule says that the run is over. */
export type WhyFollowed = {
  readonly label: Label;
  readonly choices: readonly Choice[];
  readonly move: PlainMove | null;
  /** Why there is no way on. */
  readonly why: string | null;
  readonly fork: Fork | null;
  /** null: an edge that ends the run, or a flow without a stop rule. */
  readonly stop: Stand | null;
  readonly isTaken: boolean;
};

/** How a stop rule stands, part by part. `done` is how far one that counts has come. */
export type Stand = {
  readonly rule: StopRule;
  readonly standing: Standing;
  readonly done: number | null;
  readonly parts: readonly Stand[];
};

export function momentOf(happened: Happened): WhyMoment {
  const { flow, before } = happened;
  const { seq, at, event, led } = happened.entry;
  const plain = { seq, at, event, ...(led !== undefined && { led }) };
  const step = "step" in event ? own(flow.steps, event.step) : undefined;
  const lane = "step" in event ? laneIn(before, event) : undefined;
  if (step === undefined || lane === undefined) return plain;
  const isAnswer = event.type === "step.answered";
  const [read] = deedsOf(happened, "read");
  const [checked] = deedsOf(happened, "checked");
  const [followed] = deedsOf(happened, "followed");
  return {
    ...plain,
    ...(isAnswer && { asked: askedOf(flow, step, lane, happened) }),
    ...(read !== undefined && { read: readOf(step, read, happened) }),
    ...(checked !== undefined && { checked: checkedOf(step, checked, happened) }),
    ...(followed !== undefined && { followed: followedOf(flow, step, followed, happened) }),
  };
}

// What was asked.

function askedOf(flow: Flow, step: Step, { command, say }: Lane, { before, heard }: Happened): WhyAsked {
  const { attempt } = command;
  if (step.by.kind === "command") {
    const filled = fillIn(step.by, before.args);
    return { by: "command", attempt, argv: filled.kind === "resolved" ? filled.command : null };
  }
  return { by: "model", attempt, heard, told: say.map((one) => toldOf(flow, step, one, before)) };
}

/** What a lane is about to say, or has said. */
export function toldOf(flow: Flow, step: Step, say: Say, scene: State): WhyTold {
  if (say.kind === "results") return { say, prompt: null, variables: [], words: null };
  if (say.kind === "prompt" && step.stage !== undefined) return toldStage(step, say, scene, flow);
  const words = composer.say(flow, step, say, scene);
  const prompt =
    say.kind === "prompt"
      ? step.prompt
      : say.kind === "failed-check"
        ? (editionOf(flow, say.guard, say.result.name) ?? null)
        : null;
  return {
    say,
    prompt: prompt === null ? null : { file: prompt.file, tried: prompt.tried },
    variables: say.kind === "prompt" ? suppliedVariables(flow, step, scene) : [],
    words,
  };
}

/** The prompt of a stage is its system prompt: what stands in it, and who put it there. */
function toldStage(step: Step, say: Say, state: State, flow: Flow): WhyTold {
  const lane = state.lanes.find((other) => other.step === step.id);
  const ctx = (lane && laneContext(state, lane)) ?? {};
  const { file, tried, text } = step.prompt;
  const placeholders = new Map(placeholdersIn(text).map((part) => [part.written, part]));
  const variables = [...placeholders.values()].map((part): SuppliedVariable => {
    const value = stageValue(step, part, ctx);
    const supplier = stageSupplier(flow, step, part);
    const missing = value === null ? "its context has no such value" : null;
    return { name: part.written, isDeclared: true, isUsed: true, supplier, value, missing };
  });
  return { say, prompt: { file, tried }, variables, words: composer.ownSystem(step, ctx) };
}

function suppliedVariables(flow: Flow, step: Step, scene: State): readonly SuppliedVariable[] {
  return readsOf(flow, step).map(({ name, isDeclared, isUsed, supplier }) => {
    const found = supplied(flow, step, scene, name);
    return {
      name,
      isDeclared,
      isUsed,
      supplier: found?.supplier ?? supplier,
      value: found?.value ?? null,
      missing: found === null ? explainMissing(flow, step, name) : null,
    };
  });
}

// How the answer was read.

function readOf(step: Step, { payload, by, errors, found }: AnswerRead, { before, after }: Happened): Read {
  const { decide } = step;
  // Whenever a label is given, the newest answer is remembered with it; that of a stage, once it is left.
  const given = after.last === before.last ? null : after.last;
  const carry = given === null ? { data: {}, missing: [] } : readCarry(step, given.payload);
  return {
    payload,
    corrected: payload === null ? null : correctionOf(step, payload),
    word: decide.by === "field" && payload !== null ? (readPath(payload, decide.path) ?? null) : null,
    label: given?.label ?? null,
    by: given === null ? null : (by ?? "miss"),
    reason: given === null ? "" : readReason(step, given.payload),
    errors: found === undefined ? errors : [`${found} is not a label that this step may give`],
    handoff: carry.data,
    missing: carry.missing,
  };
}

function correctionOf({ answer }: Step, payload: JsonObject): Read["corrected"] {
  if (answer.kind !== "object" || answer.correct === undefined) return null;
  const { field, value } = answer.correct;
  const said = own(payload, field);
  return typeof said === "string" && said !== value ? { field, said, value } : null;
}

// What came of it.

function checkedOf(
  step: Step,
  { of, guard, results }: ChecksRead,
  { after, attempts, deeds }: Happened,
): Checked {
  const stage = of === "gate" ? "gate" : of === "attempt" ? "assert" : undefined;
  return {
    ...(stage !== undefined && { stage }),
    on: of === "stop" ? null : of === "gate" ? "act" : (step.guard?.on ?? null),
    onFailure: guard?.onFailure ?? "retry",
    maxFailures: guard?.maxFailures ?? 0,
    results: results.map((result, place) => ({ ...result, attempt: attempts[place] ?? 1 })),
    notRun: (guard?.checks ?? []).slice(results.length).map(({ check }) => check),
    failures: own(after.failures, of === "stop" ? "*" : step.id) ?? 0,
    overturned: deeds.some(({ kind }) => kind === "overturned"),
  };
}

function followedOf(flow: Flow, step: Step, edge: EdgeRead, { before: { fork } }: Happened): WhyFollowed {
  const { label, choices, move, why } = edge;
  const stop = edge.stop === null ? null : standOf(flow, flow.stop, edge.stop);
  const isDone = move?.kind === "end" && move.outcome === "completed";
  return {
    label,
    choices,
    move,
    why,
    fork: fork === null ? null : { ...fork, done: isDone ? [...fork.done, step.id] : fork.done },
    stop,
    isTaken: move !== null && (stop === null || stop.standing.kind === "going"),
  };
}

/** Each part with the sights that are its own: a rule names what is outside in the order of its parts. */
function standOf(flow: Flow, rule: StopRule, facts: StopFacts): Stand {
  const parts: Stand[] = [];
  let from = 0;
  for (const part of rule.kind === "all" || rule.kind === "any" ? rule.of : []) {
    const to = from + outsideOf(part).length;
    parts.push(standOf(flow, part, { ...facts, sights: facts.sights?.slice(from, to) ?? null }));
    from = to;
  }
  return {
    rule,
    standing: standing({ ...flow, stop: rule }, facts),
    done:
      rule.kind === "visits"
        ? facts.state.iterations
        : rule.kind === "checks"
          ? checksDone(flow, facts.state)
          : null,
    parts,
  };
}
