/** All runs of the project: what runs now on top, and everything that was recorded below it. */
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { count } from "../../../flow/text/figures.ts";
import type { RunLine, RunsDocument } from "../../wire.ts";
import { ask, refusedOf, type RefusedRequest } from "../ask.ts";
import { ScreenFrame } from "../frame.tsx";
import { go, PageLink } from "../go.tsx";
import { useKeys } from "../keys.ts";
import { live, useLive } from "../listen.ts";
import { withoutDoubtful, withPage } from "../live.ts";
import { CopyCommand } from "../parts/copy.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { RunTable } from "../parts/run-table.tsx";
import { Blank, Failed, Loading } from "../parts/status.tsx";
import { ALL_RUNS, type Route } from "../route.ts";
import { countStates, heldRows, listedRuns, pickedRuns, RUN_STATES, type RunSort } from "../run-list.ts";

type RunsRoute = Extract<Route, { readonly at: "runs" }>;

const PAGE_OF_RUNS = 200;

export function RunsScreen({ route }: { readonly route: RunsRoute }): JSX.Element {
  const { error, isLoading, again } = useRunPages();
  const runs = useLive((now) => now.runs);
  const total = useLive((now) => now.total);
  const [sort, setSort] = useState<{ readonly by: RunSort; readonly isUp: boolean }>({
    by: "newest",
    isUp: false,
  });
  const all = useMemo(() => [...runs.values()], [runs]);
  const fitting = useMemo(() => listedRuns(all, route, sort.by, sort.isUp), [all, route, sort]);
  const agents = useMemo(() => [...new Set(all.map(({ agent }) => agent))].toSorted(), [all]);
  const [selected, setSelected] = useState<string | null>(null);
  const [picked, setPicked] = useState<readonly string[]>([]);
  // No row moves under the pointer: what came meanwhile waits above the list.
  const [held, setHeld] = useState<readonly string[] | null>(null);
  useEffect(() => setHeld(null), [route, sort]);
  const { rows, news } = heldRows(fitting, held);
  const move = (by: number) => {
    const at = rows.findIndex(({ run }) => run === selected);
    const next = rows[Math.max(0, Math.min(rows.length - 1, at + by))];
    if (next === undefined) return;
    setSelected(next.run);
    document.getElementById(`run-${next.run}`)?.focus();
  };
  const compare = () => {
    const [a, b] = picked;
    if (a !== undefined && b !== undefined) go({ at: "compare", a, b });
  };
  const states = ["", ...RUN_STATES];
  useKeys("Runs", {
    j: { about: "Next run", run: () => move(1) },
    k: { about: "Previous run", run: () => move(-1) },
    x: { about: "Pick the run", run: () => selected !== null && setPicked(pickedRuns(picked, selected)) },
    c: { about: "Compare the two picked runs", run: compare },
    a: {
      about: "Next state",
      run: () =>
        go(
          { ...route, state: states[(states.indexOf(route.state) + 1) % states.length]! },
          { replace: true },
        ),
    },
  });
  const isFiltered = route.state !== "" || route.agent !== "" || route.q !== "";
  return (
    <ScreenFrame crumbs={[{ text: "Runs" }]}>
      <div class="head">
        <div class="titles">
          <h1>Runs</h1>
          <p class="soft">{total === 0 ? "Nothing is recorded yet." : `${count(total, "run")} recorded.`}</p>
        </div>
        <CopyCommand words={["runs"]} isMain />
      </div>
      {error !== null && <Failed error={error} again={again} />}
      {all.length === 0 && error === null ? (
        isLoading ? (
          <Loading what="Loading the runs" />
        ) : (
          <div class="card">
            <Blank title="No runs are recorded yet." command={["init", "hello"]}>
              <p>Make an agent, and run it. The run appears here by itself.</p>
            </Blank>
          </div>
        )
      ) : (
        <>
          <Filters route={route} runs={all} agents={agents} />
          {rows.length === 0 ? (
            <div class="card">
              <Blank title={`None of ${count(all.length, "run")} matches.`}>
                <PageLink to={ALL_RUNS} class="btn">
                  Clear the filter
                </PageLink>
              </Blank>
            </div>
          ) : (
            <>
              {(news > 0 || picked.length > 0) && (
                <div class="row">
                  {news > 0 && (
                    <button type="button" class="btn small" onClick={() => setHeld(null)}>
                      {news} new
                    </button>
                  )}
                  {picked.length > 0 && (
                    <>
                      <span class="soft small">Picked:</span>
                      {picked.map((run) => (
                        <span key={run} class="chip mono">
                          <Foreign text={run} most={40} />
                        </span>
                      ))}
                      <button type="button" class="btn small" disabled={picked.length < 2} onClick={compare}>
                        Compare
                      </button>
                      <button type="button" class="btn quiet small" onClick={() => setPicked([])}>
                        Clear
                      </button>
                    </>
                  )}
                </div>
              )}
              <div
                onPointerEnter={() => setHeld(rows.map(({ run }) => run))}
                onPointerLeave={() => setHeld(null)}
              >
                <RunTable
                  rows={rows}
                  sort={sort.by}
                  isUp={sort.isUp}
                  selected={selected}
                  picked={picked}
                  onSelect={setSelected}
                  onPick={(run) => setPicked(pickedRuns(picked, run))}
                  onSort={(by) => setSort((now) => ({ by, isUp: now.by === by && !now.isUp }))}
                />
              </div>
            </>
          )}
          {isFiltered && rows.length > 0 && (
            <p class="soft small">{`${rows.length} of ${count(all.length, "run")} shown.`}</p>
          )}
        </>
      )}
    </ScreenFrame>
  );
}

/** The newest page first, and the others behind it. */
function useRunPages(): {
  readonly error: RefusedRequest | null;
  readonly isLoading: boolean;
  readonly again: () => void;
} {
  const everything = useLive((now) => now.round);
  const [round, setRound] = useState(0);
  const [error, setError] = useState<RefusedRequest | null>(null);
  const [isLoading, setLoading] = useState(true);
  useEffect(() => {
    const stop = new AbortController();
    const load = async () => {
      let before = "";
      do {
        const page = await ask<RunsDocument>(`runs?limit=${PAGE_OF_RUNS}${before}`, stop.signal);
        live.set((now) => withPage(now, page));
        setError(null);
        setLoading(false);
        before = page.next === null ? "" : `&before=${encodeURIComponent(page.next)}`;
      } while (before !== "");
      live.set(withoutDoubtful);
    };
    load().catch((cause: unknown) => {
      if (stop.signal.aborted) return;
      setError(refusedOf(cause));
      setLoading(false);
    });
    return () => stop.abort();
  }, [everything, round]);
  return { error, isLoading, again: () => setRound(round + 1) };
}

function Filters({
  route,
  runs,
  agents,
}: {
  readonly route: RunsRoute;
  readonly runs: readonly RunLine[];
  readonly agents: readonly string[];
}): JSX.Element {
  const change = (part: Partial<RunsRoute>) => go({ ...route, ...part }, { replace: true });
  const counts = countStates(runs).filter(({ state, count: many }) => many > 0 || state === route.state);
  return (
    <div class="filters">
      <div class="row" role="group" aria-label="State">
        <button
          type="button"
          class="btn small"
          aria-pressed={route.state === ""}
          onClick={() => change({ state: "" })}
        >
          all
        </button>
        {counts.map(({ state, count: many }) => (
          <button
            key={state}
            type="button"
            class="btn small"
            aria-pressed={route.state === state}
            onClick={() => change({ state })}
          >
            {state} <span class="soft num">{many}</span>
          </button>
        ))}
      </div>
      <span class="grow" />
      {agents.length > 1 && (
        <select
          aria-label="Agent"
          value={route.agent}
          onChange={(event) => change({ agent: event.currentTarget.value })}
        >
          <option value="">All agents</option>
          {agents.map((agent) => (
            <option key={agent} value={agent}>
              {agent}
            </option>
          ))}
        </select>
      )}
      <input
        type="search"
        placeholder="Filter by text"
        aria-label="Filter by text"
        value={route.q}
        onInput={(event) => change({ q: event.currentTarget.value })}
      />
    </div>
  );
}
