/** A run as it goes on: its entries with the states around them, from the journal alone. */
import { setTimeout as delay } from "node:timers/promises";
import type { Moment } from "../../tell/audit.ts";
import { decide } from "../../engine/decide/decide.ts";
import type { Journal } from "../../engine/ports.ts";
import { EMPTY_STATE } from "../../engine/decide/state.ts";
import type { Flow } from "../../flow/flow.ts";
import { findRun, flowOf, slicesOf } from "../records/runs.ts";

export { formatLine, LEVELS, type Level, type LogLine } from "../../tell/log-line.ts";
export { logLines } from "./log-lines.ts";
export { createTranscript, type Utterance } from "../../tell/transcript.ts";

export type Watched = { readonly run: string; readonly flow: Flow; readonly moments: AsyncGenerator<Moment> };

/** How often the journal is looked at while a run goes on, and how often whether anybody drives it. */
const POLL_MS = 80;
const ALIVE_EVERY = 12;

/**
 * Every entry of a run. `follow` waits for more, until the run has ended or nobody drives it any more, or the signal.
 *
 * @example
 * const { flow, moments } = await watchRun(journal, "@last", true, signal);
 * for await (const { entry, before, after } of moments) print(logLines(entry, before, after, flow));
 */
export async function watchRun(
  journal: Journal,
  ref: string,
  follow: boolean,
  signal: AbortSignal,
): Promise<Watched> {
  const row = await findRun(journal, ref);
  const flow = await flowOf(journal, row.id, row.digest);
  return { run: row.id, flow, moments: momentsOf(journal, row.id, flow, follow && row.owned, signal) };
}

async function* momentsOf(
  journal: Journal,
  run: string,
  began: Flow,
  isDrivenNow: boolean,
  signal: AbortSignal,
): AsyncGenerator<Moment> {
  let flow = began;
  let state = EMPTY_STATE;
  let seq = 0;
  let isDriven = isDrivenNow;
  let hasEnded = false;
  for (let round = 1; ; round++) {
    for await (const slice of slicesOf(journal, run, seq))
      for (const entry of slice) {
        const before = state;
        if (entry.event.type === "run.adopted") flow = await flowOf(journal, run, entry.event.flow);
        state = decide(flow, before, entry.event);
        ({ seq } = entry);
        hasEnded = entry.event.type === "run.ended";
        yield { entry, before, after: state, flow };
      }
    if (!isDriven || signal.aborted || hasEnded) return;
    // Once nobody drives it, whatever was written last is read, and that is all.
    if (round % ALIVE_EVERY === 0) isDriven = await hasDriver(journal, run);
    else await delay(POLL_MS, undefined, { signal }).catch(() => undefined);
  }
}

async function hasDriver(journal: Journal, run: string): Promise<boolean> {
  return (await journal.rows([run]))[0]?.owned ?? false;
}
