/** The table of runs: only the rows that can be seen are drawn. */
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { count, DOING, duration } from "../../../flow/text/figures.ts";
import type { RunLine } from "../../wire.ts";
import { dollars, px, shortCount } from "../figures.ts";
import { PageLink } from "../go.tsx";
import { useSeconds } from "../listen.ts";
import { runAt, visitText } from "../route.ts";
import { isLiving, type RunSort } from "../run-list.ts";
import { Foreign } from "./foreign.tsx";
import { Sparkline } from "./sparkline.tsx";
import { StateChip } from "./state.tsx";
import { Ago } from "./time.tsx";
import { useNarrow, useWindow } from "./window.tsx";

const ROW = 56;
const NARROW_ROW = 84;

type RunTableProps = {
  readonly rows: readonly RunLine[];
  readonly sort: RunSort;
  readonly isUp: boolean;
  readonly selected: string | null;
  readonly picked: readonly string[];
  readonly onSelect: (run: string) => void;
  readonly onPick: (run: string) => void;
  readonly onSort: (by: RunSort) => void;
};

export function RunTable(props: RunTableProps): JSX.Element {
  const { rows, sort, isUp, selected, picked, onSelect, onPick, onSort } = props;
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
            <th scope="col" class="pick wide">
              <span class="hidden">Pick</span>
            </th>
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
            <RunRowOf
              key={row.run}
              row={row}
              isSelected={row.run === selected}
              isPicked={picked.includes(row.run)}
              onSelect={onSelect}
              onPick={onPick}
            />
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
  isPicked,
  onSelect,
  onPick,
}: {
  readonly row: RunLine;
  readonly isSelected: boolean;
  readonly isPicked: boolean;
  readonly onSelect: (run: string) => void;
  readonly onPick: (run: string) => void;
}): JSX.Element {
  const { run, agent, state, code, createdAt, facts } = row;
  return (
    <tr class={isSelected ? "link picked" : "link"} onFocusCapture={() => onSelect(run)}>
      <td class="pick wide">
        <input
          type="checkbox"
          checked={isPicked}
          aria-label={`Pick ${run} for a comparison`}
          onChange={() => onPick(run)}
        />
      </td>
      <td class="what">
        <div class="lines">
          <div class="row">
            <PageLink to={runAt(run)} id={`run-${run}`} class="name">
              <Foreign text={agent} most={40} />
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
