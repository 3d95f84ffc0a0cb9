/** Replaying a run, and how fast that went. */
import type { Journal, RunRow } from "../../engine/ports.ts";
import { createReplay, replay, type Replayed } from "../../story/replay.ts";
import { prepare, prepareAll, type Prepared } from "../../engine/schema/prepared.ts";
import { schemaFault, schemasOf } from "../../engine/schema/schema.ts";
import type { Entry } from "../../flow/event.ts";
import type { Flow, Flows } from "../../flow/flow.ts";
import { findRun, flowOf, slicesOf } from "./runs.ts";

export type TimedReplay = Replayed & { readonly ms: number };

/** Works out every decision of a run again; `difference` is the first one that differs from the record. */
export async function replayRun(journal: Journal, ref: string): Promise<TimedReplay> {
  return await replayRow(journal, await findRun(journal, ref));
}

/** Slice by slice. */
export async function replayRow(journal: Journal, { id, digest }: RunRow): Promise<TimedReplay> {
  let flow = await readyFlow(journal, id, digest);
  const { add, replayed } = createReplay(() => flow);
  let ms = 0;
  for await (const slice of slicesOf(journal, id)) {
    let isSame = true;
    let from = performance.now();
    for (const entry of slice) {
      if (entry.event.type === "run.adopted") {
        ms += performance.now() - from;
        flow = await readyFlow(journal, id, entry.event.flow);
        from = performance.now();
      }
      isSame = add(entry);
      if (!isSame) break;
    }
    ms += performance.now() - from;
    if (!isSame) break;
  }
  return { ...replayed(), ms };
}

async function readyFlow(journal: Journal, run: string, digest: string): Promise<Prepared> {
  const flow = await flowOf(journal, run, digest);
  for (const schema of schemasOf(flow)) schemaFault(schema);
  return flow;
}

/** The time is that of the decisions alone: everything they need is made ready before. */
export async function timedReplay(
  flow: Flow,
  entries: readonly Entry[],
  adopted: Flows,
): Promise<TimedReplay> {
  const ready = await prepareAll(adopted);
  const began = await prepare(flow);
  for (const one of [began, ...Object.values(ready)])
    for (const schema of schemasOf(one)) schemaFault(schema);
  const from = performance.now();
  const replayed = replay(began, entries, ready);
  return { ...replayed, ms: performance.now() - from };
}
