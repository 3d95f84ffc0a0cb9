/** Replaying a run, and how fast that went. */
import type { Journal } from "../engine/ports.ts";
import { replay, type Replayed } from "../engine/replay.ts";
import { prepareSchemas, schemaFault, schemasOf } from "../engine/schema.ts";
import type { Entry } from "../flow/event.ts";
import type { Flow, Flows } from "../flow/flow.ts";
import { readRun } from "./runs.ts";

export type TimedReplay = Replayed & { readonly ms: number };

export async function replayRun(journal: Journal, ref: string): Promise<TimedReplay> {
  const { flow, entries, adopted } = await readRun(journal, ref);
  return await timedReplay(flow, entries, adopted);
}

/** The time is that of the decisions alone: everything they need is made ready before. */
export async function timedReplay(
  flow: Flow,
  entries: readonly Entry[],
  adopted: Flows,
): Promise<TimedReplay> {
  for (const one of [flow, ...Object.values(adopted)]) {
    await prepareSchemas(schemasOf(one));
    for (const schema of schemasOf(one)) schemaFault(schema);
  }
  const from = performance.now();
  const replayed = replay(flow, entries, adopted);
  return { ...replayed, ms: performance.now() - from };
}
