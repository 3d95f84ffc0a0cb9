/** How windows share a stream: a browser holds few connections to one server, so some windows hear what another one reads. */
import type { StreamMessage } from "../wire.ts";
import type { ServerEvent } from "./events.ts";
import type { Live } from "./live.ts";

/** `asks`: whether a window reads for the others. `isNew`: it needs to know how things stand. */
type Shared =
  | { readonly kind: "asks"; readonly isNew: boolean }
  | { readonly kind: "reads"; readonly by: string; readonly events: readonly ServerEvent[] };

export type SharedStream = {
  /** Passes on what this window reads. */
  readonly tell: (events: readonly ServerEvent[]) => void;
  /** Asks whether another window reads. */
  readonly ask: (isNew: boolean) => void;
};

export type Sharing = {
  /** How things stand, where this window reads for the others; null: it does not. */
  readonly standing: () => readonly ServerEvent[] | null;
  /** What the window `by` has read. */
  readonly hear: (events: readonly ServerEvent[], by: string) => void;
};

export function shareStream({ standing, hear }: Sharing): SharedStream {
  const own = crypto.randomUUID();
  const channel = new BroadcastChannel("lockstep-stream");
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel reaches its own origin only
  const say = (shared: Shared) => channel.postMessage(shared);
  const tell = (events: readonly ServerEvent[]) => say({ kind: "reads", by: own, events });
  channel.addEventListener("message", ({ data }: MessageEvent<Shared>) => {
    if (data.kind === "reads") return hear(data.events, data.by);
    const now = standing();
    if (now !== null) tell(data.isNew ? now : []);
  });
  return { tell, ask: (isNew) => say({ kind: "asks", isNew }) };
}

/** The messages with which a stream would begin that brings somebody up to date. */
export function standingEvents({ began, cursor, problem, questions }: Live): readonly ServerEvent[] | null {
  if (began === null || cursor === null) return null;
  const { open, runs } = questions;
  const messages: readonly StreamMessage[] = [
    { type: "hello", cursor, began },
    ...(problem === null ? [] : [{ type: "journal", problem } as const]),
    { type: "questions", open, runs },
  ];
  return messages.map((message) => ({ id: cursor, data: JSON.stringify(message) }));
}
