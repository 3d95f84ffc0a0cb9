/**
 * The life of a stage: Setup → Init → CheckGate → Act → Assert → Exit → Next.
 *
 * Pure, like `decide`, of which it is the part for stages. Setup, CheckGate, Assert, Exit and Next may be code of the
 * project (commands of type `hook`); where there is none, what the stage file declares holds. Init, the rendering of
 * the prompt, is done by whoever performs the first command.
 */
import type {
  Call,
  CheckResult,
  StepCommand,
  HookName,
  HookResult,
  Question,
  Say,
} from "../../flow/event.ts";
import type { Label, Step } from "../../flow/flow.ts";
import { isObject, own, type Json, type JsonObject } from "../../flow/json.ts";
import { RESERVED_FIELDS } from "../../flow/text/placeholder.ts";
import { questionId } from "../../flow/question.ts";
import { pendingAnswer } from "./advance.ts";
import { afterExit, breakOff, conclude, depart, hookedNext } from "./stage-exit.ts";
import { at, contextOf, hookCommand, inPhase, judged, lastTry, runHook } from "./stage-lane.ts";
import type { Lane, StageLane, State, Try } from "./state.ts";
import { askAgain, checksRead, doNext, suspend, type Here } from "./visit.ts";

// Setup and CheckGate.

/** What the project's code said; where it has nothing to say, what is declared holds. */
export function hooked(here: Here, hook: HookName, result: HookResult): State {
  // Not what the run began with, so it was not run: whoever changed it can put it back.
  if (result.kind === "threw" && result.code === "MODULE_CHANGED")
    return suspend(here, result.code, `${result.message} Put it back, and resume the run.`);
  if (result.kind === "threw")
    return breakOff(here, hookCode(result.code), hookFailed(here.step, hook, result.message));
  const value = result.kind === "gave" && result.value !== null ? result.value : undefined;
  switch (hook) {
    case "setup":
      return afterSetup(here, value);
    case "checkGate":
      return value === undefined ? declaredGate(here) : hookedGate(here, value);
    case "assert":
      return value === undefined ? declaredAssert(here) : hookedAssert(here, value);
    case "exit":
      return afterExit(here, value);
    case "next":
      return value === undefined ? depart(here) : hookedNext(here, value);
  }
}

/** `value` is the context as the hook left it. */
function afterSetup(here: Here, value: Json | undefined): State {
  if (value === undefined) return runHook(inPhase(here, "gate"), "checkGate", declaredGate);
  if (!isObject(value)) return badHook(here, "setup", "it must leave an object as its context");
  const before = contextOf(here.state, here.lane);
  const stolen = [...RESERVED_FIELDS].find((name) => !sameMember(own(before, name), own(value, name)));
  if (stolen !== undefined) {
    const why = `setup of stage "${here.step.id}" writes ctx.${stolen}, which belongs to the run. Use another name.`;
    return breakOff(here, "ContextMutationForbidden", why);
  }
  const ctx = Object.fromEntries(Object.entries(value).filter(([name]) => !RESERVED_FIELDS.has(name)));
  return runHook(inPhase(here, "gate", { ctx }), "checkGate", declaredGate);
}

function hookedGate(here: Here, value: Json): State {
  const { outcome, reason } = readVerdict(value);
  switch (outcome) {
    case "proceed":
    case "ok":
      return act(here);
    case "skip":
      return conclude(here, "skip", reason || "the gate said skip");
    case "defer":
    case "retry":
      return unresolved(here, "defer", reason);
    case "block":
      return unresolved(here, "block", reason);
    default:
      return badHook(here, "checkGate", 'it must give "proceed", "skip", "defer" or "block"');
  }
}

function declaredGate(here: Here): State {
  const { gate } = at(here).rules;
  if (gate === undefined) return act(here);
  return doNext(inPhase(here, "gate"), gateCheck(here, gate));
}

/** A check as a gate: what fails now may pass later. */
export function gateChecked(here: Here, results: readonly CheckResult[]): State {
  const failed = results.find((result) => !result.ok);
  checksRead(here, "gate", null, results, failed);
  if (failed === undefined) return act(here);
  return unresolved(here, failed.unrecoverable === undefined ? "defer" : "block", failed.summary);
}

function unresolved(here: Here, outcome: "defer" | "block", reason: string): State {
  const { stage, rules } = at(here);
  const { id } = here.step;
  const why = `The gate of stage "${id}" says ${outcome}${reason === "" ? "" : `: ${reason}`}`;
  switch (rules.unresolved) {
    case "fail":
      return breakOff(here, "StageGateUnresolved", why);
    case "skip":
      return conclude(here, "skip", why);
    case "ask": {
      const { step, visit } = here.lane;
      const asking: Question = {
        id: questionId(step, visit, "gate"),
        about: "gate",
        text: `${why}\nGo on with the stage all the same, skip it, or let the run fail?`,
        choices: ["proceed", "skip", "fail"],
      };
      const command: StepCommand = {
        type: "question",
        step,
        visit,
        attempt: 1,
        question: asking,
        asked: false,
      };
      return doNext(inPhase(here, "gate"), command);
    }
    case "retry-later": {
      const deferred = stage.deferred + 1;
      const again = regate(here);
      if (outcome === "block" || deferred >= rules.attempts) {
        const lane: Lane = { ...here.lane, stage: { ...stage, phase: "gate", deferred: 0 }, command: again };
        return suspend(
          { ...here, lane },
          "StageGateUnresolved",
          `${why}. Resume the run when that has changed.`,
        );
      }
      const waiting = {
        ...here,
        lane: { ...here.lane, stage: { ...stage, phase: "gate", deferred } as const },
      };
      return afterPause(waiting, deferred, again);
    }
  }
}

export function told(here: Here, answer: string | null): State {
  if (answer === "proceed") return act(here);
  const why = answer === null ? "there was nobody to ask" : "a person said so";
  if (answer === "skip") return conclude(here, "skip", why);
  return breakOff(
    here,
    "StageGateUnresolved",
    `The gate of stage "${here.step.id}" is not resolved: ${why}.`,
  );
}

function regate(here: Here): StepCommand {
  const { gate } = at(here).rules;
  return here.flow.hooks === undefined && gate !== undefined
    ? gateCheck(here, gate)
    : hookCommand(here, "checkGate");
}

function gateCheck({ lane: { step, visit } }: Here, gate: string): StepCommand {
  return { type: "check", step, visit, attempt: 1, checks: [gate] };
}

// Act: the conversation. It ends with a completion that fits its schema, or with the cap.

function act(here: Here): State {
  const { state, lane } = inPhase(here, "act");
  return askAgain(state, lane);
}

/** One more response, unless this try has had all of its own. */
export function askOn(here: Here, say: readonly Say[]): State {
  const { stage } = at(here);
  const { state, lane, step } = here;
  if (lane.turn - stage.since < step.turns) return askAgain(state, { ...lane, turn: lane.turn + 1, say });
  return assertOf({ ...here, lane: { ...here.lane, say } }, { label: "cap", payload: {}, completion: null });
}

/** The payload does not fit: the model is told in the place of a tool result. */
export function misfit(here: Here, call: Call | null, errors: readonly string[]): State {
  const { stage } = at(here);
  const tries = lastTry(stage, { parseError: errors.join("; ") });
  const noted: Here = { ...here, lane: { ...here.lane, stage: { ...stage, tries } } };
  if (call === null) return askOn(noted, [{ kind: "repair", errors }]);
  const { id, name } = call;
  const content = [
    `${name} was not accepted; the payload does not fit its schema:`,
    ...errors.map((error) => `- ${error}`),
    `Call ${name} again with a payload that fits.`,
  ].join("\n");
  return askOn(noted, [{ kind: "results", results: [{ id, name, ok: false, content }] }]);
}

export function completed(here: Here, payload: JsonObject, completion: StageLane["completion"]): State {
  return assertOf(here, { label: "ok", payload, completion });
}

// Assert: code first, then the declared checks; both must be content.

function assertOf(
  here: Here,
  ended: {
    readonly label: Label;
    readonly payload: JsonObject;
    readonly completion: StageLane["completion"];
  },
): State {
  const { stage } = at(here);
  const { label, payload, completion } = ended;
  const tries = lastTry(stage, { turns: here.lane.turn - stage.since, capHit: label === "cap" });
  const lane: Lane = { ...here.lane, answer: { label, payload, notes: [] } };
  return runHook(inPhase({ ...here, lane }, "assert", { completion, tries }), "assert", declaredAssert);
}

function hookedAssert(here: Here, value: Json): State {
  const { outcome, reason } = readVerdict(value);
  switch (outcome) {
    case "ok":
      return declaredAssert(here, true);
    case "retry":
      return retry(here, reason || "The stage is not done yet.", {
        kind: "retry",
        reason: reason || NOT_DONE,
      });
    case "skip":
      return conclude(here, "skip", reason);
    case "fail":
      return conclude(here, "fail", reason || "the assertion failed");
    default:
      return badHook(here, "assert", 'it must give "ok", "retry", "skip" or "fail"');
  }
}

const NOT_DONE =
  "The stage is not done yet. Look at it again, mend what is missing, and complete it once more.";

/** `approved`: code has accepted the try, even if it ran into its cap. */
function declaredAssert(here: Here, approved = false): State {
  const { step, lane } = here;
  const capped = pendingAnswer(here).label === "cap";
  if (capped && !approved) {
    const reason = `The ${step.turns} responses of a try are used up, and ${completionName(step)} was not called.`;
    return retry(here, "the turn cap was reached", {
      kind: "retry",
      reason: `${reason} Complete the stage now.`,
    });
  }
  const checks = (step.guard?.checks ?? []).map(({ check }) => check);
  if (checks.length === 0) return conclude(here, "ok", "");
  return doNext(here, { type: "check", step: step.id, visit: lane.visit, attempt: 1, checks });
}

export function asserted(here: Here, results: readonly CheckResult[]): State {
  const { step } = here;
  const failed = results.find((result) => !result.ok);
  checksRead(here, "attempt", step.guard ?? null, results, failed);
  if (failed === undefined) return conclude(here, "ok", "");
  const why = `check "${failed.name}" failed: ${failed.summary}`;
  if (failed.unrecoverable !== undefined) return conclude(here, "fail", why);
  return retry(here, why, { kind: "failed-check", guard: step.id, result: failed });
}

/** Another try in the same conversation, which begins by hearing why; when there is none left, the stage has failed. */
function retry(here: Here, why: string, say: Say): State {
  const { stage, rules } = at(here);
  const { label } = pendingAnswer(here);
  const tries = lastTry(stage, { verdict: "retry", reason: why });
  if (tries.length >= rules.attempts) {
    const lane: Lane = { ...here.lane, stage: { ...stage, tries } };
    return conclude(
      { ...here, lane },
      "fail",
      `retryExhausted after ${tries.length} of ${rules.attempts}: ${why}`,
    );
  }
  const next: Try = { index: tries.length + 1, turns: 0, capHit: false };
  // At the cap the results of the last calls were not sent yet; a completion has to be answered like any call.
  const unsent = label === "cap" ? here.lane.say : answerTo(stage.completion);
  const turn = here.lane.turn + 1;
  const says = [...unsent, say];
  judged(here, "retry", why, label === "cap");
  const lane: Lane = { ...here.lane, turn, say: says, answer: null };
  const change = { since: turn - 1, tries: [...tries, next], completion: null };
  const { step, visit } = lane;
  const again: StepCommand = { type: "ask", step, visit, turn, attempt: 1, say: says };
  return afterPause(inPhase({ ...here, lane }, "act", change), tries.length, again);
}

function answerTo(completion: StageLane["completion"]): readonly Say[] {
  if (completion === null) return [];
  const { id, name } = completion;
  return [{ kind: "results", results: [{ id, name, ok: true, content: "Received; it was looked at." }] }];
}

// Small things.

function afterPause(here: Here, nth: number, next: StepCommand): State {
  const ms = pauseBefore(at(here).rules.backoff, nth);
  const { step, visit } = here.lane;
  return doNext(here, ms === 0 ? next : { type: "wait", step, visit, attempt: 1, ms, next });
}

/** Without chance in it, so that a run replays as it was. */
function pauseBefore(backoff: "none" | "linear" | "exponential", nth: number): number {
  if (backoff === "none") return 0;
  const ms = backoff === "linear" ? BASE_PAUSE_MS * nth : BASE_PAUSE_MS * 2 ** (nth - 1);
  return Math.min(ms, LONGEST_PAUSE_MS);
}

const BASE_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 30_000;

/** `"ok"`, or `{ verdict: "retry", reason }`. */
function readVerdict(value: Json): { readonly outcome: string; readonly reason: string } {
  const member = (name: string) => (isObject(value) ? own(value, name) : undefined);
  const outcome = typeof value === "string" ? value : (member("verdict") ?? member("outcome"));
  const reason = member("reason");
  return {
    outcome: typeof outcome === "string" ? outcome : "",
    reason: typeof reason === "string" ? reason : "",
  };
}

function badHook(here: Here, hook: HookName, what: string): State {
  return breakOff(
    here,
    "LifecycleFailure",
    `The ${hook} hook of stage "${here.step.id}" gave something else: ${what}.`,
  );
}

function hookFailed(step: Step, hook: HookName, message: string): string {
  return `The ${hook} hook of stage "${step.id}" failed: ${message}`;
}

function hookCode(code: string): string {
  return code === "ContextMutationForbidden" ? code : "LifecycleFailure";
}

function completionName({ answer }: Step): string {
  return answer.kind === "object" && answer.channel.kind === "tool"
    ? answer.channel.name
    : "the completion tool";
}

function sameMember(a: Json | undefined, b: Json | undefined): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
