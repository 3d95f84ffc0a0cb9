/** Runs generated tests. Those with the same beginning share the run of it: ways through a large flow are mostly beginnings. */
import type { Prepared } from "../engine/schema/prepared.ts";
import type { FlowTest } from "../flow/flow-test.ts";
import type { Flow } from "../flow/flow.ts";
import type { WayDraft } from "../proof/suite.ts";
import { runInMemory, type HeldRun, type Ran } from "./ground.ts";

/** A test that is to be run, without its course: those of a large flow take more memory than everything else. */
export type DraftPlan = {
  readonly test: FlowTest;
  /** How many choices it shares with the next one. */
  readonly common: number;
  /** After how many entries its run is held for later ones. */
  readonly holds: ReadonlySet<number>;
};

/** In the order in which most is shared. */
export function planRuns(flow: Flow, drafts: readonly WayDraft[]): readonly DraftPlan[] {
  const ordered = canShare(flow) ? inTreeOrder(drafts) : drafts;
  const common = ordered.map(({ course }, at) => {
    const next = ordered[at + 1]?.course;
    return next === undefined || !canShare(flow) ? 0 : commonLength(course, next);
  });
  const places = placesToHold(common);
  return ordered.map(({ test }, at) => ({ test, common: common[at]!, holds: places[at]! }));
}

/** `shared`: how many moments of the run are those of an earlier one. */
export type DraftRun = { readonly test: FlowTest; readonly ran: Ran; readonly shared: number };

export async function* runDrafts(flow: Prepared, planned: readonly DraftPlan[]): AsyncGenerator<DraftRun> {
  const held = new Map<number, HeldRun>();
  for (const [at, { test, common, holds }] of planned.entries()) {
    const from = at === 0 ? undefined : held.get(planned[at - 1]!.common + 1);
    const past = from?.moments.map(({ entry }) => entry);
    const ran = await runInMemory(flow, test, past, {
      ...(from !== undefined && { from }),
      at: holds,
      held,
    });
    for (const place of held.keys()) if (place > common + 1) held.delete(place);
    yield { test, ran, shared: from?.moments.length ?? 0 };
    // An interruption is heard, and what signals hold is let go of, only between two turns of the loop.
    await new Promise(setImmediate);
  }
}

/** Time and hooks belong to one run. */
function canShare({ hooks, limits, steps }: Flow): boolean {
  const isTimed = Object.values(steps).some(
    (step) => step.limits?.wallMs !== undefined || step.limits?.perAttempt?.wallMs !== undefined,
  );
  return hooks === undefined && limits.wallMs === undefined && !isTimed;
}

/** Those with the same beginning next to each other. */
function inTreeOrder(drafts: readonly WayDraft[]): readonly WayDraft[] {
  return drafts.toSorted(({ course: a }, { course: b }) => {
    const at = commonLength(a, b);
    return (a[at] ?? -1) - (b[at] ?? -1);
  });
}

function commonLength(a: Uint32Array, b: Uint32Array): number {
  let at = 0;
  while (at < a.length && at < b.length && a[at] === b[at]) at += 1;
  return at;
}

/** For each run, after how many entries it is held for later ones. `common`: the choices it shares with the next. */
function placesToHold(common: readonly number[]): readonly ReadonlySet<number>[] {
  const places = common.map(() => new Set<number>());
  for (let at = common.length - 1; at >= 0; at--) {
    const length = common[at]!;
    if (length >= LEAST_SHARED) places[at]!.add(length + 1);
    const before = common[at - 1];
    if (before === undefined) continue;
    for (const place of places[at]!)
      if (place <= before + 1) {
        places[at]!.delete(place);
        places[at - 1]!.add(place);
      }
  }
  return places;
}

/** A shorter beginning is run faster than it is kept. */
const LEAST_SHARED = 8;
