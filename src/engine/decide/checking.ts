/**
 * What comes after an answer and before its effect: checks, of a label, of the stop rule, or of an attempt. A label that
 * fails is overturned and leads back to a step; an attempt that fails goes on in the same conversation.
 */
import type { CheckResult, Led } from "../../flow/event.ts";
import type { StepCommand, Say } from "../../flow/command.ts";
import type { Guard, Step, StepId } from "../../flow/flow.ts";
import { own, type Json, type JsonObject } from "../../flow/json.ts";
import type { Try } from "../../flow/lifecycle.ts";
import { lifecycleMessages, messages } from "../../flow/text/endings.ts";
import { follow, pendingAnswer, runChecks } from "./advance.ts";
import { afterPause, inPhase, judged, lastTry, lifeOf, readVerdict, runHook } from "./attempt.ts";
import { badHook, conclude } from "./leaving.ts";
import { route } from "./route.ts";
import type { Lane, Life, State } from "./state.ts";
import { checksRead, end, enter, fail, led, type Here } from "./visit.ts";

/** Of a label, of the stop rule or of an attempt. */
export function checked(here: Here, results: readonly CheckResult[]): State {
  const { flow, state, step } = here;
  const answer = pendingAnswer(here);
  const { label, payload, over } = answer;
  const notes = [...answer.notes, ...results.flatMap(({ note }) => note ?? [])];
  const guard = over === undefined ? step.guard : flow.stopGuard;
  if (guard === undefined) throw new Error(`Step "${step.id}" asked for no checks`);
  const isAttempt = guard.back.kind === "again";
  const passed = (by: Here, said: readonly string[]) => {
    if (over !== undefined) return end(by, by.state, led(by, label, null, said), null, over, step.id);
    return isAttempt ? conclude(by, "ok", "") : follow(by, label, payload, said);
  };
  const failed = results.find((result) => !result.ok);
  checksRead(here, over !== undefined ? "stop" : isAttempt ? "attempt" : "label", guard, results, failed);
  if (failed === undefined) return passed({ ...here, state: { ...state, failing: false } }, notes);
  if (guard.onFailure === "skip" && failed.unrecoverable === undefined) {
    return passed(here, [...notes, `check "${failed.name}" failed and was skipped: ${failed.summary}`]);
  }
  return overturn(here, guard, failed, notes);
}

/** The label does not take effect: the run goes on where the guard says, and the model hears what failed. */
function overturn(here: Here, guard: Guard, failed: CheckResult, notes: readonly string[]): State {
  const { deeds, lane, step } = here;
  const { label, over } = pendingAnswer(here);
  const { back } = guard;
  if (back.kind === "again") return failedAttempt(here, failed);
  const owner = over === undefined ? step.id : "*";
  const failures = (own(here.state.failures, owner) ?? 0) + 1;
  const state: State = {
    ...here.state,
    failing: true,
    failures: { ...here.state.failures, [owner]: failures },
  };
  const final = guard.onFailure === "abort" || failed.unrecoverable !== undefined;
  if (final || failures >= guard.maxFailures) {
    const why = final
      ? messages.checkAborts(step.id, failed.name, failed.summary)
      : messages.checksExhausted(step.id, failed.name, failures, failed.summary);
    deeds?.push({ kind: "overturned", step: lane.step, visit: lane.visit, failed, to: null });
    return fail({ ...here, state }, "AGENT_VALIDATION_ABORT", why, { label, notes, overturned: true });
  }
  const to = backFrom(here, back);
  deeds?.push({ kind: "overturned", step: lane.step, visit: lane.visit, failed, to });
  const settled: Led = { ...led(here, label, to, notes), overturned: true };
  return enter(here, state, {
    leaving: lane,
    settled,
    step: to,
    origin: to === step.id ? lane.origin : step.id,
    say: { kind: "failed-check", guard: over === undefined ? step.id : null, result: failed },
  });
}

function backFrom(here: Here, back: Exclude<Guard["back"], { kind: "again" }>): StepId {
  const { flow, state, lane, step } = here;
  switch (back.kind) {
    case "goto":
      return back.step;
    case "caller": {
      const caller = lane.origin === null ? undefined : own(flow.steps, lane.origin);
      return caller?.kind === "work" ? caller.id : step.id;
    }
    case "onward": {
      const { label, payload } = pendingAnswer(here);
      const routed = route(step, label, payload, own(state.handoff, step.id) ?? {}, state.iterations, 0);
      return routed.kind === "move" && routed.move.kind === "goto" ? routed.move.step : step.id;
    }
  }
}

// Attempts.

/** An attempt is over: with a payload, or at its cap. Code is asked first, then the declared checks; both must pass. */
export function attempted(
  here: Here,
  label: "ok" | "cap",
  payload: JsonObject,
  completion: Life["completion"],
): State {
  const { life } = lifeOf(here);
  const tries = lastTry(life, { turns: here.lane.turn - life.since, capHit: label === "cap" });
  const lane: Lane = { ...here.lane, answer: { label, payload, notes: [] } };
  return runHook(inPhase({ ...here, lane }, "assert", { completion, tries }), "assert", declaredAssert);
}

export function hookedAssert(here: Here, value: Json): State {
  const { outcome, reason } = readVerdict(value);
  switch (outcome) {
    case "ok":
      return declaredAssert(here, true);
    case "retry":
      return retry(here, reason || lifecycleMessages.notDone, {
        kind: "retry",
        reason: reason || lifecycleMessages.lookAgain,
      });
    case "skip":
      return conclude(here, "skip", reason);
    case "fail":
      return conclude(here, "fail", reason || "the assertion failed");
    default:
      return badHook(here, "assert", 'it must give "ok", "retry", "skip" or "fail"');
  }
}

/** `approved`: code has accepted the try, even if it ran into its cap. */
export function declaredAssert(here: Here, approved = false): State {
  const { step } = here;
  const capped = pendingAnswer(here).label === "cap";
  if (capped && !approved) {
    const reason = lifecycleMessages.capped(step.turns, completionName(step));
    return retry(here, "the turn cap was reached", { kind: "retry", reason });
  }
  const { guard } = step;
  return guard === undefined || guard.checks.length === 0 ? conclude(here, "ok", "") : runChecks(here, guard);
}

function failedAttempt(here: Here, failed: CheckResult): State {
  const why = `check "${failed.name}" failed: ${failed.summary}`;
  if (failed.unrecoverable !== undefined) return conclude(here, "fail", why);
  return retry(here, why, { kind: "failed-check", guard: here.step.id, result: failed });
}

/** Another try in the same conversation, which begins by hearing why; when there is none left, the visit has failed. */
function retry(here: Here, why: string, say: Say): State {
  const { life, rules } = lifeOf(here);
  const { label } = pendingAnswer(here);
  const tries = lastTry(life, { verdict: "retry", reason: why });
  if (tries.length >= rules.attempts) {
    const lane: Lane = { ...here.lane, life: { ...life, tries } };
    const reason = `retryExhausted after ${tries.length} of ${rules.attempts}: ${why}`;
    return conclude({ ...here, lane }, "fail", reason);
  }
  const next: Try = { index: tries.length + 1, turns: 0, capHit: false };
  // At the cap the results of the last calls were not sent yet; a completion has to be answered like any call.
  const unsent = label === "cap" ? here.lane.say : answerTo(life.completion);
  const turn = here.lane.turn + 1;
  const says = [...unsent, say];
  judged(here, "retry", why, label === "cap");
  const lane: Lane = { ...here.lane, turn, say: says, answer: null };
  const change = { since: turn - 1, tries: [...tries, next], completion: null };
  const { step, visit } = lane;
  const again: StepCommand = { type: "ask", step, visit, turn, attempt: 1, say: says };
  return afterPause(inPhase({ ...here, lane }, "act", change), tries.length, again);
}

function answerTo(completion: Life["completion"]): readonly Say[] {
  if (completion === null) return [];
  const { id, name } = completion;
  return [{ kind: "results", results: [{ id, name, ok: true, content: "Received; it was looked at." }] }];
}

function completionName({ answer }: Step): string {
  return answer.kind === "object" && answer.channel.kind === "tool"
    ? answer.channel.name
    : "the completion tool";
}
