/** One thing that happened in a visit, with what led to it and what it led to, worked out again by the engine's own functions. */
import { fillIn } from "../../effects/process/shell.ts";
import { remember } from "../../engine/decide/decide.ts";
import { readAnswer, readCarry, readReason } from "../../engine/decide/gate.ts";
import { messages } from "../../engine/decide/messages.ts";
import { mayStop, takenSoFar } from "../../engine/decide/advance.ts";
import { route } from "../../engine/decide/route.ts";
import type { Fork, Lane, State } from "../../engine/decide/state.ts";
import { contextOf } from "../../engine/decide/stage-lane.ts";
import { outsideOf, standing, type Standing } from "../../engine/decide/stop.ts";
import type { Choice, Naming, PlainMove, StopFacts } from "../../flow/deed.ts";
import type { CheckResult, Event, Led, Reply, Say } from "../../flow/event.ts";
import type { Flow, Guard, Label, Step, StepId, StopRule } from "../../flow/flow.ts";
import { own, readPath, type Json, type JsonObject } from "../../flow/json.ts";
import { placeholdersIn } from "../../flow/text/placeholder.ts";
import { checksDone } from "../../flow/rules.ts";
import type { Composed } from "../../flow/scene.ts";
import { composer, editionOf } from "../../prompts/compose.ts";
import { stageSupplier, stageValue } from "../../prompts/stage.ts";
import { explainMissing, supplied } from "../../prompts/variables.ts";
import { variablesOf, type Variable } from "./explain.ts";
import { laneIn, type Happened } from "./why-trace.ts";

export type Moment = {
  readonly seq: number;
  readonly at: number;
  /** As it is recorded. */
  readonly event: Event;
  readonly asked?: Asked;
  readonly read?: Read;
  readonly checked?: Checked;
  readonly followed?: Followed;
  readonly led?: Led;
};

/** What this is the answer to. `attempt` is above 1 where an earlier process may have asked the same. */
export type Asked =
  | {
      readonly by: "model";
      readonly attempt: number;
      /** Messages that stood in the conversation before. */
      readonly heard: number;
      readonly told: readonly Told[];
    }
  /** null: an argument had no value. */
  | { readonly by: "command"; readonly attempt: number; readonly argv: readonly string[] | null };

/** Something that was said to the model. */
export type Told = {
  readonly say: Say;
  /** The file that the words are made from; null where they are our own. */
  readonly prompt: { readonly file: string | null; readonly tried: readonly string[] } | null;
  readonly variables: readonly SuppliedVariable[];
  /** null: results of tools, which are handed over as they are. */
  readonly words: Composed | null;
};

export type SuppliedVariable = Variable & {
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
export type Followed = {
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

export function momentOf(happened: Happened): Moment {
  const { flow } = happened;
  const { seq, at, event, led } = happened.entry;
  const plain: Moment = { seq, at, event, ...(led !== undefined && { led }) };
  if (!("step" in event)) return plain;
  const step = own(flow.steps, event.step);
  const lane = laneIn(happened.before, event);
  if (step === undefined || lane === undefined) return plain;
  switch (event.type) {
    case "step.answered": {
      const asked = askedOf(flow, step, lane, happened);
      const read = event.reply.kind === "said" ? readOf(step, event.reply, happened) : null;
      if (read === null) return { ...plain, asked };
      const leadsOn =
        step.stage === undefined ? read.label !== null && read.label !== step.guard?.on : settles(happened);
      if (!leadsOn) return { ...plain, asked, read };
      return { ...plain, asked, read, followed: followedOf(flow, step, lane, happened) };
    }
    case "step.checked": {
      const checked = checkedOf(flow, step, lane, happened);
      const isOpen = step.stage !== undefined && !settles(happened);
      if (isOpen || checked.overturned || lane.answer?.over !== undefined) return { ...plain, checked };
      return { ...plain, checked, followed: followedOf(flow, step, lane, happened) };
    }
    case "step.looked":
      return { ...plain, followed: followedOf(flow, step, lane, happened) };
    case "step.hooked":
      return settles(happened) ? { ...plain, followed: followedOf(flow, step, lane, happened) } : plain;
    case "step.called":
    case "step.waited":
    case "step.warned":
    case "step.asked":
    case "step.told":
    case "step.suspended":
    case "step.cut":
      return plain;
  }
}

/** Whether the visit of a stage ended here, by an edge. */
function settles({ entry: { led } }: Happened): boolean {
  return led !== undefined && led.label !== null;
}

// What was asked.

function askedOf(flow: Flow, step: Step, { command, say }: Lane, { before, heard }: Happened): Asked {
  const { attempt } = command;
  if (step.by.kind === "command") {
    const filled = fillIn(step.by, before.args);
    return { by: "command", attempt, argv: filled.kind === "resolved" ? filled.command : null };
  }
  return { by: "model", attempt, heard, told: say.map((one) => toldOf(flow, step, one, before)) };
}

/** What a lane is about to say, or has said. */
export function toldOf(flow: Flow, step: Step, say: Say, scene: State): Told {
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
function toldStage(step: Step, say: Say, state: State, flow: Flow): Told {
  const lane = state.lanes.find((other) => other.step === step.id);
  const ctx = lane === undefined ? {} : contextOf(state, lane);
  const { file, tried, text } = step.prompt;
  const placeholders = new Map(placeholdersIn(text).map((part) => [part.written, part]));
  const variables = [...placeholders.values()].map((part): SuppliedVariable => {
    const value = stageValue(step, part, ctx);
    const supplier = stageSupplier(flow, step, part);
    const missing = value === null ? "there is no such value in its context" : null;
    return { name: part.written, isDeclared: true, isUsed: true, supplier, value, missing };
  });
  return { say, prompt: { file, tried }, variables, words: composer.stage(step, ctx) };
}

function suppliedVariables(flow: Flow, step: Step, scene: State): readonly SuppliedVariable[] {
  return variablesOf(flow, step).map(({ name, isDeclared, isUsed, supplier }) => {
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

function readOf(step: Step, reply: Reply & { kind: "said" }, { before, after }: Happened): Read | null {
  const { answer, decide } = step;
  const payload = offered(step, reply);
  if (payload === null && reply.calls.length > 0) return null;
  if (payload === null && answer.kind === "object" && answer.channel.kind === "tool") return null;
  // Whenever a label is given, the newest answer is remembered with it.
  const given = after.last === before.last ? null : after.last;
  const reading = answer.kind === "object" && payload !== null ? readAnswer(step, answer, payload) : null;
  const carry = given === null ? { data: {}, missing: [] } : readCarry(step, given.payload);
  const by = reading?.kind === "label" ? reading.by : answer.kind === "text" ? "const" : "miss";
  return {
    payload,
    corrected: payload === null ? null : correctionOf(step, payload),
    word: decide.by === "field" && payload !== null ? (readPath(payload, decide.path) ?? null) : null,
    label: given?.label ?? null,
    by: given === null ? null : by,
    reason: given === null ? "" : readReason(step, given.payload),
    errors: errorsOf(step, payload, reading),
    handoff: carry.data,
    missing: carry.missing,
  };
}

/** The payload of a response, if it is one that answers. */
function offered({ answer }: Step, { calls, output }: Reply & { kind: "said" }): JsonObject | null {
  if (answer.kind === "object" && answer.channel.kind === "tool" && output === undefined) {
    const tool = answer.channel.name;
    return calls.length === 1 && calls[0]?.name === tool ? calls[0].input : null;
  }
  return calls.length === 0 ? (output ?? null) : null;
}

function correctionOf({ answer }: Step, payload: JsonObject): Read["corrected"] {
  if (answer.kind !== "object" || answer.correct === undefined) return null;
  const { field, value } = answer.correct;
  const said = own(payload, field);
  return typeof said === "string" && said !== value ? { field, said, value } : null;
}

function errorsOf(
  { answer }: Step,
  payload: JsonObject | null,
  reading: ReturnType<typeof readAnswer> | null,
): readonly string[] {
  if (reading?.kind === "misfit") return reading.errors;
  if (reading?.kind === "no-label") return [`${reading.found} is no label that this step may give`];
  return payload === null && answer.kind === "object" ? [messages.noObject] : [];
}

// What came of it.

function checkedOf(flow: Flow, step: Step, { answer, stage }: Lane, happened: Happened): Checked {
  const isGate = stage !== null && stage.phase !== "assert";
  const { entry, after, attempts } = happened;
  const results = entry.event.type === "step.checked" ? entry.event.results : [];
  const isStop = answer?.over !== undefined;
  const guard = isStop ? flow.stopGuard : isGate ? undefined : step.guard;
  return {
    ...(step.stage !== undefined && { stage: isGate ? ("gate" as const) : ("assert" as const) }),
    on: isStop ? null : isGate ? "act" : (step.guard?.on ?? null),
    onFailure: guard?.onFailure ?? "retry",
    maxFailures: guard?.maxFailures ?? 0,
    results: results.map((result, place) => ({ ...result, attempt: attempts[place] ?? 1 })),
    notRun: (guard?.checks ?? []).slice(results.length).map(({ check }) => check),
    failures: own(after.failures, isStop ? "*" : step.id) ?? 0,
    overturned: after.settled?.overturned ?? false,
  };
}

function followedOf(flow: Flow, step: Step, lane: Lane, { entry, before, after }: Happened): Followed {
  const { event } = entry;
  const isAnswer = event.type === "step.answered" && event.reply.kind === "said";
  const { label, payload } = labelled(
    step,
    isAnswer || step.stage !== undefined ? after.last : lane.answer,
    entry.led,
  );
  const said = isAnswer ? remember(lane.said, event.reply.text) : lane.said;
  const carried = own(after.handoff, step.id) ?? {};
  const { times } = takenSoFar(before, step, label);
  const routed = route(step, label, payload, carried, before.iterations, times);
  const move = routed.kind === "move" ? routed.move : null;
  // What follows a label changes neither what is being mended nor the counts that the stop rule looks at.
  const state: State = { ...before, mending: after.mending };
  const sights = event.type === "step.looked" ? event.sights : null;
  const asksRule = move !== null && move.kind !== "end" && mayStop({ flow, state, step });
  const stop = asksRule ? standOf(flow, flow.stop, { state, said, payload, sights }) : null;
  return {
    label,
    choices: routed.choices,
    move,
    why: routed.kind === "none" ? routed.why : null,
    fork: before.fork === null ? null : { ...before.fork, done: [...before.fork.done, ...endOf(step, move)] },
    stop,
    isTaken: move !== null && (stop === null || stop.standing.kind === "going"),
  };
}

/** A stage is left by the label that its verdict has, and may have none of the answer's. */
function labelled(
  step: Step,
  given: { readonly label: Label; readonly payload: JsonObject } | null,
  led: Led | undefined,
): { readonly label: Label; readonly payload: JsonObject } {
  if (step.stage === undefined || led === undefined) return given!;
  return { label: led.label ?? "", payload: given?.payload ?? {} };
}

function endOf({ id }: Step, move: PlainMove | null): readonly StepId[] {
  return move?.kind === "end" && move.outcome === "completed" ? [id] : [];
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
