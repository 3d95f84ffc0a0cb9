/** Recorded runs against the files as they are now: which would go another way, grouped by the place where they part. */
import type { RunWhatIf } from "../../../tell/what-if.ts";

export type WhatIfGroup = {
  /** `STEP@VISIT`; null: nothing parts, or no place is known. */
  readonly at: string | null;
  readonly kind: "changed" | "stuck";
  readonly runs: readonly RunWhatIf[];
};

/** The largest group first; runs that go the same way are in none. */
export function whatIfGroups(runs: readonly RunWhatIf[]): readonly WhatIfGroup[] {
  const found = Map.groupBy(
    runs.filter(({ kind }) => kind !== "same"),
    (run) => JSON.stringify([kindOf(run), partingPlace(run)]),
  );
  return [...found.values()]
    .map((all) => ({ at: partingPlace(all[0]!), kind: kindOf(all[0]!), runs: all }))
    .toSorted((a, b) => b.runs.length - a.runs.length);
}

function kindOf({ kind }: RunWhatIf): WhatIfGroup["kind"] {
  return kind === "stuck" ? "stuck" : "changed";
}

export function partingPlace(run: RunWhatIf): string | null {
  const visit = partingVisit(run);
  return visit === null ? null : `${visit.step}@${visit.visit}`;
}

/** The visit at which it leaves what is recorded. */
export function partingVisit({
  at,
  stuck,
}: RunWhatIf): { readonly step: string; readonly visit: number } | null {
  const led = at?.recorded ?? at?.derived ?? stuck;
  return led === null || led === undefined ? null : { step: led.step, visit: led.visit };
}

/** Where it went, and where it would go: `next → review`, or how it ended. */
export function wayWords(run: RunWhatIf): { readonly was: string; readonly now: string } {
  const { at, recorded, derived, stuck, damaged } = run;
  if (damaged !== undefined) return { was: "", now: damaged };
  if (at !== null && (at.recorded !== null || at.derived !== null))
    return {
      was: ledWords(at.recorded),
      now: at.derived === null && stuck !== null ? stuck.why : ledWords(at.derived),
    };
  if (stuck !== null) return { was: verdictWords(recorded), now: stuck.why };
  return { was: verdictWords(recorded), now: verdictWords(derived) };
}

function ledWords(led: { readonly label: string | null; readonly to: string | null } | null): string {
  if (led === null) return "nothing";
  return `${led.label ?? "no label"} → ${led.to ?? "end"}`;
}

function verdictWords(verdict: { readonly outcome: string; readonly code: string | null } | null): string {
  if (verdict === null) return "not ended";
  return verdict.code === null ? verdict.outcome : `${verdict.outcome} (${verdict.code})`;
}
