/** A run folded entry by entry while it is read: however long it is, only a slice of it is held. */
import { decide } from "../../engine/decide/decide.ts";
import type { Journal, RunRow } from "../../engine/ports.ts";
import { EMPTY_STATE, type State } from "../../engine/decide/state.ts";
import type { Entry } from "../../flow/event.ts";
import type { Flow } from "../../flow/flow.ts";
import { EntryDamaged } from "../../journal/errors.ts";
import { damageOf, flowOf, slicesOf, type Damage } from "./runs.ts";

/** Where a run stands, and by which flow. */
export type Folded = {
  readonly state: State;
  readonly flow: Flow;
  readonly digest: string;
  /** The newest entry that was read. */
  readonly last: Entry | null;
};

/** Hears of each entry in order, with the states around it and the flow that held. */
export type Hear = (entry: Entry, before: State, after: State, flow: Flow) => void;

export async function foldRun(journal: Journal, row: RunRow, hear?: Hear): Promise<Folded> {
  const { met, ...folded } = await foldUntil(journal, row, hear);
  if (met !== null) throw met;
  return folded;
}

/** The same as far as it can be read, for looking at it. Throws where nothing can. */
export async function foldPartly(
  journal: Journal,
  row: RunRow,
  hear?: Hear,
): Promise<Folded & { readonly damage: Damage | null }> {
  const { met, ...folded } = await foldUntil(journal, row, hear);
  if (met !== null && met.seq <= 1) throw met;
  return { ...folded, damage: damageOf(row, met) };
}

/** Ends at the first entry that is damaged. The flows that a run adopted are read when it comes to them. */
async function foldUntil(
  journal: Journal,
  { id, digest: began }: RunRow,
  hear?: Hear,
): Promise<Folded & { readonly met: EntryDamaged | null }> {
  let digest = began;
  let flow = await flowOf(journal, id, digest);
  let state = EMPTY_STATE;
  let last: Entry | null = null;
  try {
    for await (const slice of slicesOf(journal, id))
      for (const entry of slice) {
        const before = state;
        if (entry.event.type === "run.adopted") {
          digest = entry.event.flow;
          flow = await flowOf(journal, id, digest);
        }
        state = decide(flow, before, entry.event);
        last = entry;
        hear?.(entry, before, state, flow);
      }
  } catch (error) {
    if (!(error instanceof EntryDamaged)) throw error;
    return { state, flow, digest, last, met: error };
  }
  return { state, flow, digest, last, met: null };
}
