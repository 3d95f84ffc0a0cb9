/** The stream of a window: opened when the page is seen, let go when it is hidden, or heard through another window. */
import { useEffect, useState } from "preact/hooks";
import type { StreamMessage } from "../wire.ts";
import { createEventReader, retryDelay, type ServerEvent } from "./events.ts";
import { askedAgain, hear, UNHEARD, type Live } from "./live.ts";
import { createStore, useStore } from "./store.ts";
import { shareStream, standingEvents, type SharedStream } from "./share.ts";
import { authorized } from "./token.ts";

export const live = createStore<Live>(UNHEARD);

export function useLive<P>(pick: (value: Live) => P): P {
  return useStore(live, pick);
}

type Hearing = (message: StreamMessage) => void;
const hearers = new Set<Hearing>();

/** What is looked at besides the list of runs: the server sends more of it. */
const looking: { run: string | null; agent: string | null } = { run: null, agent: null };

/** A browser has six connections for one server, which all windows share: some are left for documents. */
const MOST_STREAMS = 4;
/** The holder of this one reads for all windows that have none. */
const SHARED = 0;
/** How often a window without a stream looks whether another one reads for it, and asks for everything where none does. */
const CROWDED_MS = 3000;
/** The server says something every 15 seconds. */
const SILENT_FOR = 40_000;

let stop: AbortController | null = null;
/** The stream before this one is over: it has given its connection back. */
let ended: Promise<unknown> = Promise.resolve();
let failures = 0;
let timer: ReturnType<typeof setTimeout> | undefined;
let shared: SharedStream | null = null;
/** This window reads for the others. */
let isReader = false;
/** The window that reads for this one; null: none is known. `undefined`: this one does not listen to others. */
let reader: string | null | undefined;

/** Opens the stream, and keeps it open while somebody can see the page. */
export function keepListening(): void {
  // Only where the connection is to this machine, or encrypted, can windows agree on who reads.
  if (isSecureContext)
    shared = shareStream({ standing: () => (isReader ? standingEvents(live.get()) : null), hear: hearOther });
  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    // A window that nobody sees would take a connection from those that somebody looks at.
    if (document.hidden) return close();
    if (stop !== null) return;
    live.set(askedAgain);
    open();
  });
  open();
}

/** Looks at a run while the part is shown: its frames come with the stream. */
export function useFramesOf(run: string | null, hearing: Hearing): void {
  useEffect(() => {
    if (run === null) return;
    hearers.add(hearing);
    lookAt({ run });
    return () => {
      hearers.delete(hearing);
      if (looking.run === run) lookAt({ run: null });
    };
  }, [run]);
}

/** Watches the files of an agent while the part is shown; gives a number that grows with each change. */
export function useFilesOf(agent: string | null): number {
  useEffect(() => {
    if (agent === null) return;
    lookAt({ agent });
    return () => lookAt({ agent: null });
  }, [agent]);
  return useLive((now) => (agent === null ? 0 : (now.files.get(agent) ?? 0)));
}

/** The time, in steps of a second, while something on the screen depends on it. */
export function useSeconds(isNeeded = true): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!isNeeded) return;
    const clock = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(clock);
  }, [isNeeded]);
  return now;
}

function lookAt(change: Partial<typeof looking>): void {
  Object.assign(looking, change);
  clearTimeout(timer);
  // Leaving one screen and entering another is one change.
  timer = setTimeout(() => {
    close();
    open();
  }, 0);
}

function close(): void {
  stop?.abort();
  stop = null;
}

function open(): void {
  clearTimeout(timer);
  if (document.hidden) return;
  const own = new AbortController();
  stop = own;
  const reading = ended.then(() => (shared === null ? read(own) : inSlot(own, shared, SHARED)));
  ended = reading.catch(() => undefined);
  reading.then(
    () => lost(own, "lost"),
    (error: unknown) => lost(own, error instanceof RefusedStream ? "refused" : "lost"),
  );
}

class RefusedStream extends Error {}

/** Reads while this window has one of the streams, and otherwise hears what another one reads. */
async function inSlot(own: AbortController, others: SharedStream, place: number): Promise<void> {
  if (place === MOST_STREAMS) return await throughOther(own, others);
  const isTaken = await navigator.locks.request(slotName(place), { ifAvailable: true }, async (slot) => {
    if (slot !== null) await (place === SHARED ? readForAll(own) : read(own));
    return slot === null;
  });
  if (isTaken) await inSlot(own, others, place + 1);
}

function slotName(place: number): string {
  return `lockstep-stream-${place}`;
}

async function readForAll(own: AbortController): Promise<void> {
  isReader = true;
  try {
    await read(own);
  } finally {
    isReader = false;
  }
}

/** Until the window that reads for all gives its stream back: then it is the turn of this one. */
async function throughOther(own: AbortController, { ask }: SharedStream): Promise<void> {
  reader = null;
  let { heardAt } = live.get();
  live.set((now) => ({ ...now, isShared: true }));
  ask(true);
  const looks = setInterval(() => {
    // Nobody has answered since the look before.
    if (live.get().heardAt === heardAt) live.set((now) => askedAgain({ ...now, connection: "crowded" }));
    ({ heardAt } = live.get());
    ask(live.get().connection === "crowded");
  }, CROWDED_MS);
  const stopHearing = () => {
    clearInterval(looks);
    reader = undefined;
    live.set((now) => ({ ...now, isShared: false }));
  };
  try {
    await navigator.locks.request(slotName(SHARED), { signal: own.signal }, async () => {
      stopHearing();
      // What was said between the two streams was heard by nobody.
      live.set(askedAgain);
      await readForAll(own);
    });
  } finally {
    stopHearing();
  }
}

function hearOther(events: readonly ServerEvent[], by: string): void {
  if (reader === undefined) return;
  if (reader !== null && reader !== by) live.set(askedAgain);
  reader = by;
  take(events);
}

async function read(own: AbortController): Promise<void> {
  const given = new URLSearchParams();
  const { cursor } = live.get();
  if (cursor !== null) given.set("after", cursor);
  if (looking.run !== null) given.set("run", looking.run);
  if (looking.agent !== null) given.set("agent", looking.agent);
  const answer = await fetch(`/api/stream?${given}`, {
    headers: authorized(),
    signal: own.signal,
    cache: "no-store",
  });
  if (answer.status === 401 || answer.status === 403) throw new RefusedStream();
  if (!answer.ok || answer.body === null) throw new Error(`The stream was refused with ${answer.status}.`);
  const events = createEventReader();
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let silence = setTimeout(() => own.abort(), SILENT_FOR);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(silence);
      silence = setTimeout(() => own.abort(), SILENT_FOR);
      failures = 0;
      const heard = events(value);
      take(heard);
      if (isReader && heard.length > 0) shared?.tell(heard);
    }
  } finally {
    clearTimeout(silence);
  }
}

function take(events: readonly ServerEvent[]): void {
  const messages = events.map(({ data }) => JSON.parse(data) as StreamMessage);
  const cursor = events.findLast(({ id }) => id !== null)?.id ?? null;
  live.set((now) => {
    const next = messages.reduce(hear, now);
    return { ...next, connection: "live", heardAt: Date.now(), cursor: cursor ?? next.cursor };
  });
  for (const message of messages) for (const hearing of hearers) hearing(message);
}

function lost(own: AbortController, connection: "lost" | "refused"): void {
  // Another stream has taken its place, or the page is hidden.
  if (stop !== own) return;
  stop = null;
  live.set((now) => ({ ...now, connection }));
  if (connection === "refused") return;
  failures += 1;
  timer = setTimeout(open, retryDelay(failures));
}
