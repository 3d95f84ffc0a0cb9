/**
 * Going round without getting anywhere: the same tool calls with the same results within a visit, or visit after visit
 * of a step that gives the same answer. The model is told once; if it goes on like that, the run stops where it stands.
 */
import { laneIn } from "../../flow/deed.ts";
import type { Event } from "../../flow/event.ts";
import { canonicalJson, own } from "../../flow/json.ts";
import { questionId } from "../../flow/question.ts";
import type { State } from "./state.ts";
import { haltAll, sayBesides, type Deciding } from "./visit.ts";

/** Only for flows that say after how many repeats. */
export function watched(deciding: Deciding, most: number, before: State, event: Event, after: State): State {
  if (event.type === "run.resumed") return { ...after, repeated: {} };
  const done = doneIn(before, event, after);
  if (done === null || after.verdict !== null) return after;
  const { step, what, key } = done;
  const last = own(before.repeated ?? {}, step);
  const times = last?.key === key ? last.times + 1 : 1;
  const state: State = { ...after, repeated: { ...before.repeated, [step]: { key, times } } };
  if (times > most) {
    deciding.deeds?.push({ kind: "stuck", step, times });
    return haltAll(deciding, state, "STUCK", `Step "${step}" ${what} ${times} times in a row. ${REMEDY}`);
  }
  if (times < most) return state;
  const text = `You ${what.replace("its", "your")} ${times} times in a row, and nothing has changed. Do something else, or come to an end.`;
  return sayBesides(state, (lane) => lane.step === step, { kind: "budget", text });
}

const REMEDY = "Look at its prompt, its tools or the model; `resume` goes on where it stands.";

type Done = { readonly step: string; readonly what: string; readonly key: string };

function doneIn(before: State, event: Event, { settled }: State): Done | null {
  if (event.type === "step.called") {
    const { step, visit, results } = event;
    const lane = laneIn(before, event);
    const calls = lane?.command.type === "call" ? lane.command.calls : [];
    const made = calls.map(({ name, input }) => [name, input]);
    const came = results.map(({ ok, content }) => [ok, content]);
    return { step, what: "made the same tool calls with the same results", key: digest(visit, made, came) };
  }
  if (event.type !== "step.answered" || event.reply.kind !== "said" || settled === null) return null;
  if (settled.to !== settled.step) return null;
  const { output = {}, text } = event.reply;
  const said = Object.keys(output).length === 0 ? text : output;
  return { step: settled.step, what: "gave the same answer", key: digest(0, said, settled.label) };
}

function digest(...parts: Parameters<typeof canonicalJson>[0][]): string {
  return questionId(canonicalJson(parts));
}
