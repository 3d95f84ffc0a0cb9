/** Runs generated tests. Those with the same beginning share the run of it: ways through a large flow are mostly beginnings. */
import type { Prepared } from "../engine/schema/prepared.ts";
import type { FlowTest } from "../flow/flow-test.ts";
import type { Flow } from "../flow/flow.ts";
import type { Course } from "../proof/search.ts";
import { runInMemory, type HeldRun, type Ran } from "./ground.ts";

type Draft = { readonly test: FlowTest; readonly course: Course };

/** `shared`: how many moments of the run are those of an earlier one. */
export type DraftRun = { readonly test: FlowTest; readonly ran: Ran; readonly shared: number };

/** In another order than they were given. */
export async function* runDrafts(flow: Prepared, drafts: readonly Draft[]): AsyncGenerator<DraftRun> {
  const ordered = canShare(flow) ? inTreeOrder(drafts) : drafts;
  const common = ordered.map(({ course }, at) => {
    const next = ordered[at + 1]?.course;
    return next === undefined || !canShare(flow) ? 0 : commonLength(course, next);
  });
  const places = placesToHold(common);
  const held = new Map<number, HeldRun>();
  for (const [at, { test }] of ordered.entries()) {
    const from = at === 0 ? undefined : held.get(common[at - 1]! + 1);
    const past = from?.moments.map(({ entry }) => entry);
    const ran = await runInMemory(flow, test, past, {
      ...(from !== undefined && { from }),
      at: places[at]!,
      held,
    });
    for (const place of held.keys()) if (place > common[at]! + 1) held.delete(place);
    yield { test, ran, shared: from?.moments.length ?? 0 };
    // An interruption is heard, and what signals hold is let go of, only between two turns of the loop.
    if (at % BREATH === BREATH - 1) await new Promise(setImmediate);
  }
}

const BREATH = 16;

/** Time and hooks belong to one run. */
function canShare({ hooks, limits, steps }: Flow): boolean {
  const isTimed = Object.values(steps).some(
    (step) => step.limits?.wallMs !== undefined || step.limits?.perAttempt?.wallMs !== undefined,
  );
  return hooks === undefined && limits.wallMs === undefined && !isTimed;
}

/** Those with the same beginning next to each other. */
function inTreeOrder(drafts: readonly Draft[]): readonly Draft[] {
  const numbers = new Map<unknown, number>();
  const numberOf = (choice: unknown) => {
    const known = numbers.get(choice) ?? numbers.size;
    numbers.set(choice, known);
    return known;
  };
  const rows = drafts.map((draft) => ({ draft, row: Uint32Array.from(draft.course, numberOf) }));
  rows.sort(({ row: a }, { row: b }) => {
    const at = commonLength(a, b);
    return (a[at] ?? -1) - (b[at] ?? -1);
  });
  return rows.map(({ draft }) => draft);
}

function commonLength(a: ArrayLike<unknown>, b: ArrayLike<unknown>): number {
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
