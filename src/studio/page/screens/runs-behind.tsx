/** The runs behind a number. */
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { count } from "../../../flow/text/figures.ts";
import { PageLink } from "../go.tsx";
import { useLive } from "../listen.ts";
import { Foreign } from "../parts/foreign.tsx";
import { StateChip } from "../parts/state.tsx";
import { runAt } from "../route.ts";

export type Behind = { readonly what: string; readonly runs: readonly string[] };

/** Opens the runs that a number counts, by their places in the document. */
export type OpenRuns = (what: string, places: readonly number[]) => void;

const MOST_SHOWN = 100;

export function RunsBehind({
  behind,
  close,
}: {
  readonly behind: Behind;
  readonly close: () => void;
}): JSX.Element {
  const known = useLive((now) => now.runs);
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    title.current?.focus();
    title.current?.scrollIntoView({ block: "center" });
  }, [behind]);
  return (
    <section class="card behind" aria-label="Runs behind the number">
      <div class="card-head">
        <h2 ref={title} tabIndex={-1} class="grow">
          <Foreign text={behind.what} most={100} />: {count(behind.runs.length, "run")}
        </h2>
        <button type="button" class="btn small" onClick={close}>
          Close
        </button>
      </div>
      <ul class="card-body listed">
        {behind.runs.slice(0, MOST_SHOWN).map((run) => {
          const row = known.get(run);
          return (
            <li key={run} class="row">
              <PageLink to={runAt(run)}>
                <Foreign text={run} most={40} mono />
              </PageLink>
              {row !== undefined && <StateChip state={row.state} />}
              {row !== undefined && (
                <span class="soft">
                  <Foreign text={`${row.agent} ${row.facts?.about ?? ""}`} most={80} />
                </span>
              )}
            </li>
          );
        })}
        {behind.runs.length > MOST_SHOWN && <li class="soft">and {behind.runs.length - MOST_SHOWN} more</li>}
      </ul>
    </section>
  );
}
