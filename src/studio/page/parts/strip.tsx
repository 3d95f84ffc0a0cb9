/** The visits of a run in the order in which they ran, with rounds that were repeated folded. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { PageLink } from "../go.tsx";
import { runAt, visitText, type VisitName } from "../route.ts";
import { foldedVisits, type VisitRun } from "../stand.ts";
import { Foreign } from "./foreign.tsx";

type StripProps = {
  readonly run: string;
  readonly visits: readonly VisitRun[];
  readonly seq: number | null;
  readonly selected: VisitName | null;
};

/** More than this are folded away at the beginning. */
const MOST_PARTS = 40;

export function VisitStrip({ run, visits, seq, selected }: StripProps): JSX.Element | null {
  const [isFolded, setFolded] = useState(true);
  const [isAll, setAll] = useState(false);
  const parts = useMemo(
    () => (isFolded ? foldedVisits(visits) : visits.map((visit) => ({ visits: [visit], times: 1 }))),
    [visits, isFolded],
  );
  const shown = isAll ? parts : parts.slice(-MOST_PARTS);
  const hasRounds = useMemo(() => foldedVisits(visits).some(({ times }) => times > 1), [visits]);
  if (visits.length === 0) return null;
  return (
    <section class="strip" aria-label="Visits as they ran">
      <ol>
        {shown.length < parts.length && (
          <li>
            <button type="button" class="btn small" onClick={() => setAll(true)}>
              {parts.length - shown.length} earlier
            </button>
          </li>
        )}
        {shown.map(({ visits: round, times }) => (
          <li key={`${round[0]!.step}@${round[0]!.visit}`} class={times > 1 ? "round" : undefined}>
            {round.map((visit) => (
              <StripVisit
                key={visit.seq}
                run={run}
                visit={visit}
                seq={seq}
                isSelected={
                  selected !== null && visit.step === selected.step && visit.visit === selected.visit
                }
              />
            ))}
            {times > 1 && <span class="times">×{times}</span>}
          </li>
        ))}
      </ol>
      {hasRounds && visits.length <= 500 && (
        <button type="button" class="btn quiet small" onClick={() => setFolded(!isFolded)}>
          {isFolded ? "Unfold" : "Fold"}
        </button>
      )}
    </section>
  );
}

function StripVisit({
  run,
  visit,
  seq,
  isSelected,
}: {
  readonly run: string;
  readonly visit: VisitRun;
  readonly seq: number | null;
  readonly isSelected: boolean;
}): JSX.Element {
  const { label, overturned = false, step, visit: number } = visit;
  const isOpen = label === undefined;
  return (
    <span class={`visit${isSelected ? " selected" : ""}${overturned ? " bad" : isOpen ? " live" : ""}`}>
      <PageLink to={runAt(run, { step, visit: number }, seq)} replace title={visitText(visit)}>
        <Foreign text={step} most={32} />
        <span class="soft">@{number}</span>
      </PageLink>
      <span class="label">
        {isOpen ? (
          "…"
        ) : overturned ? (
          <span class="bad">✗ {label !== null && <Foreign text={label} most={24} />}</span>
        ) : label === null ? (
          "–"
        ) : (
          <Foreign text={label} most={24} />
        )}
      </span>
    </span>
  );
}
