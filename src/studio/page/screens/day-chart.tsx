/** Runs per day as stacked columns, and the same as a table. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { count } from "../../../flow/text/figures.ts";
import type { FiguresDocument } from "../../wire-agents.ts";
import { useKeys } from "../keys.ts";
import { dayColumns, type DayColumn } from "./figures-model.ts";
import type { OpenRuns } from "./runs-behind.tsx";

type ChartProps = { readonly days: FiguresDocument["days"]; readonly open: OpenRuns };

export function DayChart({ days, open }: ChartProps): JSX.Element {
  const [isTable, setTable] = useState(false);
  useKeys("Figures", { t: { about: "Chart as a table", run: () => setTable(!isTable) } });
  const columns = dayColumns(days);
  return (
    <section class="card">
      <div class="card-head">
        <h2 class="grow">Runs per day</h2>
        <button
          type="button"
          class="btn quiet small"
          aria-pressed={isTable}
          onClick={() => setTable(!isTable)}
        >
          Table
        </button>
      </div>
      {isTable ? <DayTable columns={columns} open={open} /> : <Columns columns={columns} />}
    </section>
  );
}

const HEIGHT = 140;
const STATES = {
  completed: "good",
  failed: "bad",
  damaged: "bad",
  poisoned: "bad",
  waiting: "warn",
  interrupted: "warn",
  paused: "calm",
  queued: "calm",
  running: "live",
} as const;

function Columns({ columns }: { readonly columns: readonly DayColumn[] }): JSX.Element {
  const most = Math.max(1, ...columns.map(({ total }) => total));
  const said = columns
    .filter(({ total }) => total > 0)
    .map(
      ({ day, parts }) => `${day}: ${parts.map(({ state, runs }) => `${runs.length} ${state}`).join(", ")}`,
    )
    .join("; ");
  return (
    <div class="card-body">
      <div class="day-chart" role="img" aria-label={`Runs per day. ${said}`}>
        {columns.map(({ day, total, parts }) => (
          <div key={day} class="day" title={`${day}: ${count(total, "run")}`}>
            {parts.toReversed().map(({ state, runs }) => (
              <i
                key={state}
                class={STATES[state]}
                style={{ height: `${Math.max(3, (runs.length / most) * HEIGHT)}px` }}
              />
            ))}
          </div>
        ))}
      </div>
      <div class="row small soft">
        <span>{columns[0]?.day}</span>
        <span class="grow" />
        {columns.length > 1 && <span>{columns.at(-1)?.day}</span>}
      </div>
    </div>
  );
}

function DayTable({
  columns,
  open,
}: {
  readonly columns: readonly DayColumn[];
  readonly open: OpenRuns;
}): JSX.Element {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Day</th>
          <th scope="col">State</th>
          <th scope="col" class="num">
            Runs
          </th>
        </tr>
      </thead>
      <tbody>
        {columns.toReversed().flatMap(({ day, parts }) =>
          parts.map(({ state, runs }) => (
            <tr key={`${day} ${state}`}>
              <th scope="row">{day}</th>
              <td>{state}</td>
              <td class="num">
                <button type="button" class="number" onClick={() => open(`${day}, ${state}`, runs)}>
                  {runs.length}
                </button>
              </td>
            </tr>
          )),
        )}
      </tbody>
    </table>
  );
}
