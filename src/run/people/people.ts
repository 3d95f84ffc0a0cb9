/** Asking people while a run is under way: the person at the terminal, and those who answer from elsewhere. */
import { setTimeout as pause } from "node:timers/promises";
import type { AskedQuestion, Clock, Person, Told } from "../../engine/ports.ts";
import type { Mail } from "../../flow/mail.ts";
import { lookFor } from "./mailbox.ts";
import type { Ask } from "../options.ts";

export type People = {
  readonly mail: Mail;
  readonly run: string;
  readonly clock: Clock;
  /** The terminal; absent: there is none. */
  readonly ask?: Ask;
  /** Waits until somebody answers from elsewhere. */
  readonly wait: boolean;
  /** Hears of answers that cannot be used. */
  readonly notify: (text: string) => void;
};

export function createAsking(people: People): Person["ask"] {
  const { mail, run, clock, wait, notify } = people;
  const terminal = people.ask === undefined ? null : oneByOne(people.ask);
  const complained = new Set<string>();

  /** A question that needs no person any more: it was answered from elsewhere, or its time is up. */
  async function settled(question: AskedQuestion): Promise<Told | null> {
    const { expiresAt = Infinity } = question;
    const found = await lookFor(mail, run, question);
    if (found?.kind === "letter" && found.at <= expiresAt) return { answer: found.answer, by: found.by };
    if (found?.kind === "bad" && !complained.has(found.why)) {
      complained.add(found.why);
      notify(found.why);
    }
    return clock.now() >= expiresAt ? { answer: null, by: "expired" } : null;
  }

  return async (question, signal) => {
    const { text, choices, free = false, live } = question;
    if (live === true) {
      const said = (await terminal?.(text, choices, signal, free)) ?? null;
      return said === null ? null : { answer: said, by: "terminal" };
    }
    const before = await settled(question);
    if (before !== null || (terminal === null && !wait)) return before;
    const over = new AbortController();
    const both = AbortSignal.any([signal, over.signal]);
    let saying = terminal?.(text, choices, both, free) ?? never();
    try {
      while (!signal.aborted) {
        const said = await Promise.race([saying, tick(mail.lagMs, both)]);
        if (typeof said === "string") return { answer: said, by: "terminal" };
        const found = await settled(question);
        if (found !== null || (said === null && !wait)) return found;
        // The terminal is closed.
        if (said === null) saying = never();
      }
      return null;
    } finally {
      over.abort();
    }
  };
}

function never(): Promise<string | null> {
  return new Promise(() => undefined);
}

/** So long an answer from elsewhere lies unread at most. */
async function tick(lagMs: number, signal: AbortSignal): Promise<undefined> {
  await pause(lagMs, undefined, { signal }).catch(() => undefined);
}

/** Siblings may have questions at the same time; a person has one at a time. */
export function oneByOne(ask: Ask): Ask {
  let before: Promise<unknown> = Promise.resolve();
  return (question, choices, signal, free) => {
    const asked = before.then(async () =>
      signal.aborted ? null : await ask(question, choices, signal, free),
    );
    before = asked.catch(() => undefined);
    return asked;
  };
}
