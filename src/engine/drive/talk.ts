/** The conversations of a run: one that steps share, and one for each visit that starts fresh. */
import { laneIn } from "../../flow/deed.ts";
import type { Event, Reply } from "../../flow/event.ts";
import type { Say } from "../../flow/command.ts";
import type { Flow, Step } from "../../flow/flow.ts";
import { own } from "../../flow/json.ts";
import type { Message, Ports } from "../ports.ts";
import type { State } from "../decide/state.ts";

/** `system`: of a visit with a lifecycle, where it is rendered once for the whole visit. */
export type Conversation = { readonly messages: Message[]; session?: string; system?: string };

export type Talk = {
  readonly open: (step: Step, visit: number) => Conversation;
  /** Tells of an answer that came in this process: what was asked is in the conversation already. */
  readonly heard: (flow: Flow, event: Event) => void;
  /** Tells of an event from the journal: the question is put back in before the answer. */
  readonly recall: (flow: Flow, state: State, event: Event) => void;
  /** The same conversations, which go on apart from now on. */
  readonly copy: () => Talk;
};

export function createTalk(
  ports: Pick<Ports, "compose">,
  shared: Conversation = { messages: [] },
  fresh: Map<string, Conversation> = new Map(),
): Talk {
  function open(step: Step, visit: number): Conversation {
    if (step.transcript === "shared") return shared;
    const key = `${step.id}@${visit}`;
    const known = fresh.get(key);
    if (known !== undefined) return known;
    const conversation: Conversation = { messages: [] };
    fresh.set(key, conversation);
    return conversation;
  }

  function heard(flow: Flow, event: Event): void {
    if (event.type !== "step.answered" || event.reply.kind !== "said") return;
    const step = flow.steps[event.step];
    if (step?.by.kind === "model") add(open(step, event.visit), event.reply);
  }

  function recall(flow: Flow, state: State, event: Event): void {
    if (event.type !== "step.answered" || event.reply.kind !== "said") return;
    const lane = laneIn(state, event);
    // By the name in the state: one that was just read is slow as a key, and this is done for every entry of a run.
    const step = lane === undefined ? undefined : own(flow.steps, lane.step);
    if (lane === undefined || step?.by.kind !== "model") return;
    const conversation = open(step, lane.visit);
    const said = sayAll(flow, state, step, lane.say, ports);
    if (said.kind === "messages") for (const message of said.messages) conversation.messages.push(message);
    add(conversation, event.reply);
  }

  function copy(): Talk {
    return createTalk(ports, copied(shared), new Map(Array.from(fresh, ([key, one]) => [key, copied(one)])));
  }

  return { open, heard, recall, copy };
}

function add(conversation: Conversation, { text, calls, output, session }: Reply & { kind: "said" }): void {
  const wordless = output !== undefined && text === "";
  conversation.messages.push(
    wordless ? { role: "assistant", text, calls, output } : { role: "assistant", text, calls },
  );
  if (session !== undefined) conversation.session = session;
}

function copied(conversation: Conversation): Conversation {
  return { ...conversation, messages: conversation.messages.slice() };
}

/** What is to be said, as messages; unaskable when a prompt cannot be rendered. */
export function sayAll(
  flow: Flow,
  state: State,
  step: Step,
  says: readonly Say[],
  ports: Pick<Ports, "compose">,
): { readonly kind: "messages"; readonly messages: readonly Message[] } | (Reply & { kind: "unaskable" }) {
  let messages: readonly Message[] = NOTHING;
  for (const say of says) {
    let message: Message;
    if (say.kind === "results") message = { role: "tool", results: say.results };
    else {
      const composed = ports.compose.say(flow, step, say, state);
      if (composed.kind === "unaskable") return composed;
      message = { role: "user", text: composed.text };
    }
    // Nearly always there is one, and a list that grows has room for many.
    messages = messages.length === 0 ? [message] : [...messages, message];
  }
  return { kind: "messages", messages };
}

const NOTHING: readonly Message[] = [];
