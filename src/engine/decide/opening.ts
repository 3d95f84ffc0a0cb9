/** What comes before a conversation: the project's setup, and the gate, which may wait, ask a person or skip the visit. */
import type { CheckResult } from "../../flow/event.ts";
import type { StepCommand } from "../../flow/command.ts";
import { isObject, own, type Json } from "../../flow/json.ts";
import { lifecycleEndings, lifecycleMessages } from "../../flow/text/endings.ts";
import { RESERVED_FIELDS } from "../../flow/text/placeholder.ts";
import { questionId } from "../../flow/question.ts";
import { afterPause, hookCommand, inPhase, laneContext, lifeOf, readVerdict, runHook } from "./attempt.ts";
import { badHook, breakOff, conclude } from "./leaving.ts";
import type { State } from "./state.ts";
import { askAgain, checksRead, doNext, suspend, type Here } from "./visit.ts";

/** `value` is the context as the setup hook left it. */
export function afterSetup(here: Here, value: Json | undefined): State {
  if (value === undefined) return runHook(inPhase(here, "gate"), "checkGate", declaredGate);
  if (!isObject(value)) return badHook(here, "setup", "it must leave an object as its context");
  const before = laneContext(here.state, here.lane) ?? {};
  const stolen = [...RESERVED_FIELDS].find((name) => !sameMember(own(before, name), own(value, name)));
  if (stolen !== undefined) return breakOff(here, lifecycleEndings.context(here.step.id, stolen));
  const ctx = Object.fromEntries(Object.entries(value).filter(([name]) => !RESERVED_FIELDS.has(name)));
  return runHook(inPhase(here, "gate", { ctx }), "checkGate", declaredGate);
}

export function hookedGate(here: Here, value: Json): State {
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

export function declaredGate(here: Here): State {
  const { gate } = lifeOf(here).rules;
  return gate === undefined ? act(here) : doNext(inPhase(here, "gate"), gateCheck(here, gate));
}

/** A check as a gate: what fails now may pass later. */
export function gateChecked(here: Here, results: readonly CheckResult[]): State {
  const failed = results.find((result) => !result.ok);
  checksRead(here, "gate", null, results, failed);
  if (failed === undefined) return act(here);
  return unresolved(here, failed.unrecoverable === undefined ? "defer" : "block", failed.summary);
}

function unresolved(here: Here, outcome: "defer" | "block", reason: string): State {
  const { life, rules } = lifeOf(here);
  const { step, visit } = here.lane;
  const why = lifecycleMessages.gateSays(step, outcome, reason);
  switch (rules.unresolved) {
    case "fail":
      return breakOff(here, lifecycleEndings.gate(why));
    case "skip":
      return conclude(here, "skip", why);
    case "ask": {
      const question = {
        id: questionId(step, visit, "gate"),
        about: "gate",
        text: lifecycleMessages.gateQuestion(why),
        choices: ["proceed", "skip", "fail"],
      } as const;
      return doNext(inPhase(here, "gate"), {
        type: "question",
        step,
        visit,
        attempt: 1,
        question,
        asked: false,
      });
    }
    case "retry-later": {
      const deferred = life.deferred + 1;
      const command = regate(here);
      if (outcome === "defer" && deferred < rules.attempts)
        return afterPause(inPhase(here, "gate", { deferred }), deferred, command);
      const { lane } = inPhase(here, "gate", { deferred: 0 });
      const ending = lifecycleEndings.gate(`${why}. Resume the run when that has changed.`);
      return suspend({ ...here, lane: { ...lane, command } }, ending.code, ending.why);
    }
  }
}

export function told(here: Here, answer: string | null): State {
  if (answer === "proceed") return act(here);
  const why = answer === null ? "there was nobody to ask" : "a person said so";
  if (answer === "skip") return conclude(here, "skip", why);
  return breakOff(here, lifecycleEndings.gateUnresolved(here.step.id, why));
}

function regate(here: Here): StepCommand {
  const { gate } = lifeOf(here).rules;
  return here.flow.hooks === undefined && gate !== undefined
    ? gateCheck(here, gate)
    : hookCommand(here, "checkGate");
}

function gateCheck({ lane: { step, visit } }: Here, gate: string): StepCommand {
  return { type: "check", step, visit, attempt: 1, checks: [gate] };
}

function act(here: Here): State {
  const { state, lane } = inPhase(here, "act");
  return askAgain(state, lane);
}

function sameMember(a: Json | undefined, b: Json | undefined): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
