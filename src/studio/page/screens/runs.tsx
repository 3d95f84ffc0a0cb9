/** All runs of the project: what runs now on top, and everything that was recorded below it. */
import type { JSX } from "preact";
import { px } from "../figures.ts";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { count, DOING, duration } from "../../../flow/text/figures.ts";
import type { RunLine, RunsDocument } from "../../wire.ts";
import { ask, refusedOf, type RefusedRequest } from "../ask.ts";
import { dollars, shortCount } from "../figures.ts";
import { ScreenFrame } from "../frame.tsx";
import { go, PageLink } from "../go.tsx";
import { useKeys } from "../keys.ts";
import { live, useLive, useSeconds } from "../listen.ts";
import { withPage } from "../live.ts";
import { CopyCommand } from "../parts/copy.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { Sparkline } from "../parts/sparkline.tsx";
import { StateChip } from "../parts/state.tsx";
import { Blank, Failed, Loading } from "../parts/status.tsx";
import { Ago } from "../parts/time.tsx";
import { useNarrow, useWindow } from "../parts/window.tsx";
import { ALL_RUNS, runAt, visitText, type Route } from "../route.ts";
import { countStates, isLiving, listedRuns, RUN_STATES, type RunSort } from "../run-list.ts";

type RunsRoute = Extract<Route, { readonly at: "runs" }>;

const PAGE_OF_RUNS = 200;
const ROW = 56;
const NARROW_ROW = 92;

export function RunsScreen({ route }: { readonly route: RunsRoute }): JSX.Element {
  const { error, isLoading, again } = useRunPages();
  const runs = useLive((now) => now.runs);
  const total = useLive((now) => now.total);
  const [sort, setSort] = useState<{ readonly by: RunSort; readonly isUp: boolean }>({
    by: "newest",
    isUp: false,
  });
  const all = useMemo(() => [...runs.values()], [runs]);
  const rows = useMemo(() => listedRuns(all, route, sort.by, sort.isUp), [all, route, sort]);
  const agents = useMemo(() => [...new Set(all.map(({ agent }) => agent))].toSorted(), [all]);
  const [selected, setSelected] = useState<string | null>(null);
  const move = (by: number) => {
    const at = rows.findIndex(({ run }) => run === selected);
    const next = rows[Math.max(0, Math.min(rows.length - 1, at + by))];
    if (next === undefined) return;
    setSelected(next.run);
    document.getElementById(`run-${next.run}`)?.focus();
  };
  const states = ["", ...RUN_STATES];
  useKeys("Runs", {
    j: { about: "Next run", run: () => move(1) },
    k: { about: "Previous run", run: () => move(-1) },
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
            <RunTable
              rows={rows}
              sort={sort.by}
              isUp={sort.isUp}
              selected={selected}
              onSelect={setSelected}
              onSort={(by) => setSort((now) => ({ by, isUp: now.by === by && !now.isUp }))}
            />
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
  const epoch = useLive((now) => now.epoch);
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
    };
    load().catch((cause: unknown) => {
      if (stop.signal.aborted) return;
      setError(refusedOf(cause));
      setLoading(false);
    });
    return () => stop.abort();
  }, [epoch, round]);
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

type RunTableProps = {
  readonly rows: readonly RunLine[];
  readonly sort: RunSort;
  readonly isUp: boolean;
  readonly selected: string | null;
  readonly onSelect: (run: string) => void;
  readonly onSort: (by: RunSort) => void;
};

function RunTable({ rows, sort, isUp, selected, onSelect, onSort }: RunTableProps): JSX.Element {
  const body = useRef<HTMLTableSectionElement>(null);
  const isNarrow = useNarrow();
  const { first, end, above, below } = useWindow(body, rows.length, isNarrow ? NARROW_ROW : ROW);
  const column = (by: RunSort, name: string, kind = "") => (
    <th class={kind} scope="col" aria-sort={sort === by ? (isUp ? "ascending" : "descending") : "none"}>
      <button type="button" onClick={() => onSort(by)}>
        {name}
      </button>
    </th>
  );
  return (
    <div class="card runs">
      <table>
        <thead>
          <tr>
            {column("agent", "Run")}
            <th scope="col" class="wide">
              State
            </th>
            <th scope="col" class="wide">
              Where
            </th>
            {column("visits", "Visits", "num wide")}
            {column("tokens", "Tokens", "num wide")}
            {column("cost", "Cost", "num wide")}
            {column("time", "Time", "num wide")}
            {column("newest", "Started", "num wide")}
          </tr>
        </thead>
        <tbody ref={body}>
          {above > 0 && <tr aria-hidden="true" style={{ height: px(above) }} />}
          {rows.slice(first, end).map((row) => (
            <RunRowOf key={row.run} row={row} isSelected={row.run === selected} onSelect={onSelect} />
          ))}
          {below > 0 && <tr aria-hidden="true" style={{ height: px(below) }} />}
        </tbody>
      </table>
    </div>
  );
}

function RunRowOf({
  row,
  isSelected,
  onSelect,
}: {
  readonly row: RunLine;
  readonly isSelected: boolean;
  readonly onSelect: (run: string) => void;
}): JSX.Element {
  const { run, agent, state, code, createdAt, facts } = row;
  return (
    <tr class={isSelected ? "link picked" : "link"}>
      <td class="what">
        <div class="lines">
          <div class="row">
            <PageLink to={runAt(run)} id={`run-${run}`} class="name">
              <span onFocusCapture={() => onSelect(run)}>
                <Foreign text={agent} most={40} />
              </span>
            </PageLink>
            <span class="mono soft">
              <Foreign text={run} most={40} />
            </span>
            {facts?.forkedFrom != null && <span class="soft small">fork</span>}
          </div>
          <div class="soft about">
            <Foreign text={facts?.about ?? ""} most={120} />
          </div>
          <div class="narrow row">
            <StateChip state={state} />
            <span class="soft small">
              <Ago at={createdAt} />
              {facts !== null && ` · ${count(facts.visits, "visit")} · ${dollars(facts.costUsd)}`}
            </span>
          </div>
        </div>
      </td>
      <td class="wide">
        <StateChip state={state} />
        {code !== null && (
          <div class="soft mono code">
            <Foreign text={code} most={30} />
          </div>
        )}
      </td>
      <td class="wide where">
        <Where row={row} />
      </td>
      <td class="num wide">{facts?.visits ?? ""}</td>
      <td class="num wide">{facts === null ? "" : shortCount(facts.tokens)}</td>
      <td class="num wide">{facts === null ? "" : dollars(facts.costUsd)}</td>
      <td class="num wide">
        {facts === null ? "" : duration(facts.drivenMs)}
        {facts !== null && facts.pace.length > 1 && (
          <Sparkline values={facts.pace} about="Entries per minute" />
        )}
      </td>
      <td class="num wide soft">
        <Ago at={createdAt} />
      </td>
    </tr>
  );
}

/** The step that it is at, and for how long it has been doing what it does. */
function Where({ row }: { readonly row: RunLine }): JSX.Element {
  const { step, facts, state } = row;
  const isMoving = state === "running";
  const now = useSeconds(isMoving);
  const [lane, ...others] = isLiving(row) ? (facts?.lanes ?? []) : [];
  if (lane === undefined)
    return <span class="soft mono">{step !== null && <Foreign text={step} most={40} />}</span>;
  return (
    <div class="lines">
      <span class="mono">
        <Foreign text={visitText(lane)} most={40} />
        {others.length > 0 && ` +${others.length}`}
      </span>
      <span class="soft small">
        {isMoving || state === "waiting" ? DOING[lane.doing] : state}
        {isMoving && `, ${duration(now - lane.since)}`}
      </span>
    </div>
  );
}
