/** The conversations of a run as they were: everything that was said to a model and by it, worked out from the journal. */
import { laneContext } from "../engine/decide/attempt.ts";
import type { Lane, State } from "../engine/decide/state.ts";
import { sayAll } from "../engine/drive/talk.ts";
import type { Call, CallResult, Entry, Reply } from "../flow/event.ts";
import type { Flow, Step } from "../flow/flow.ts";
import { own, type JsonObject } from "../flow/json.ts";
import type { Moment } from "../story/story.ts";
import { composer } from "../prompts/compose.ts";

export type Utterance = {
  readonly timestamp: string;
  readonly step: string;
  readonly visit: number;
  readonly turn: number;
} & Said;

export type Said =
  | { readonly role: "system" | "user"; readonly text: string }
  | {
      readonly role: "assistant";
      readonly text: string;
      readonly calls: readonly Call[];
      /** The payload it answered with, where that is not in the text. */
      readonly output?: JsonObject;
    }
  | { readonly role: "tool"; readonly results: readonly CallResult[] }
  /** Nothing came back, and why. */
  | { readonly role: "error"; readonly text: string };

/** Gives what each entry adds; they come in order. */
export function createTranscript(): (moment: Moment) => readonly Utterance[] {
  const asked = new Set<string>();
  const introduced = new Set<string>();

  /** What a lane is about to say, once: a question that is put again is the same question. */
  function* questions({ entry, flow, after: state }: Moment): Generator<Utterance> {
    for (const lane of state.lanes) {
      const step = own(flow.steps, lane.step);
      const { command, visit, turn } = lane;
      const key = `${lane.step}@${visit}/${turn}`;
      if (command.type !== "ask" || step === undefined || step.by.kind !== "model" || asked.has(key))
        continue;
      asked.add(key);
      const at = { ...timeOf(entry), step: lane.step, visit, turn };
      const place = step.transcript === "shared" ? "shared" : `${lane.step}@${visit}`;
      const { system, messages } = requestOf(flow, step, lane, state);
      if (!introduced.has(place) && system !== "") yield { ...at, role: "system", text: system };
      introduced.add(place);
      // What tools gave is told when they give it: the conversation may end there.
      const news =
        entry.event.type === "step.called" ? messages.filter(({ role }) => role !== "tool") : messages;
      for (const message of news) yield { ...at, ...message };
    }
  }

  return (moment) => {
    const { entry } = moment;
    const { event } = entry;
    const told: Utterance[] = [];
    if (event.type === "step.answered") {
      const { step, visit, turn, reply } = event;
      told.push({ ...timeOf(entry), step, visit, turn, ...answerOf(reply) });
    }
    if (event.type === "step.called") {
      const { step, visit, turn, results } = event;
      told.push({ ...timeOf(entry), step, visit, turn, role: "tool", results });
    }
    return [...told, ...questions(moment)];
  };
}

/** What a model is told at this point, besides what it has heard before. */
export function requestOf(
  flow: Flow,
  step: Step,
  lane: Lane,
  state: State,
): { readonly system: string; readonly messages: readonly Said[] } {
  const said = sayAll(flow, state, step, lane.say, { compose: composer });
  const messages: readonly Said[] =
    said.kind === "messages" ? said.messages : [{ role: "error", text: said.why }];
  const ctx = laneContext(state, lane);
  if (ctx === undefined) return { system: composer.system(flow), messages };
  const composed = composer.ownSystem(step, ctx);
  return { system: composed.kind === "text" ? composed.text : "", messages };
}

export function answerOf(reply: Reply): Said {
  switch (reply.kind) {
    case "said": {
      const { text, calls, output } = reply;
      const isApart = output !== undefined && text === "";
      return { role: "assistant", text, calls, ...(isApart && { output }) };
    }
    case "fault":
      return { role: "error", text: reply.fault.message };
    case "oversized":
    case "unaskable":
      return { role: "error", text: reply.why };
  }
}

function timeOf({ at }: Entry): { readonly timestamp: string } {
  return { timestamp: new Date(at).toISOString() };
}
