/** What many runs add up to: how they ended, which checks fail, what steps cost, and whether "done" can be believed. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { duration } from "../../../flow/text/figures.ts";
import type { FiguresDocument } from "../../wire-agents.ts";
import { useAskInParts } from "../ask.ts";
import { dollars, percentOf } from "../figures.ts";
import { ScreenFrame } from "../frame.tsx";
import { go } from "../go.tsx";
import { useLive } from "../listen.ts";
import { CopyButton } from "../parts/copy.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { Await, Blank, SoFar } from "../parts/status.tsx";
import { useProject } from "../project.ts";
import type { Route } from "../route.ts";
import { DayChart } from "./day-chart.tsx";
import { figuresCsv, figuresPath, PERIODS, stateTotals } from "./figures-model.ts";
import {
  CheckTable,
  GateTable,
  OtherTables,
  PatternTable,
  RetryTable,
  StepTable,
} from "./figures-tables.tsx";
import { RunsBehind, type Behind, type OpenRuns } from "./runs-behind.tsx";

type FiguresRoute = Extract<Route, { readonly at: "figures" }>;

export function FiguresScreen({ route }: { readonly route: FiguresRoute }): JSX.Element {
  const epoch = useLive((now) => now.epoch);
  const total = useLive((now) => now.total);
  const { agent, since, flow } = route;
  // The time is taken once: a later one would ask for the same figures again and again.
  const path = useMemo(() => figuresPath(agent, since, flow, Date.now()), [agent, since, flow]);
  const asked = useAskInParts<FiguresDocument>(path, `${epoch} ${total}`);
  return (
    <ScreenFrame crumbs={[{ text: "Figures" }]}>
      <div class="head">
        <div class="titles">
          <h1>Figures</h1>
          <p class="soft">What the recorded runs add up to. Every number opens the runs that it counts.</p>
        </div>
        {asked.value !== null && (
          <div class="actions">
            <CopyButton text={() => JSON.stringify(asked.value, null, 2)} label="Copy JSON">
              Copy JSON
            </CopyButton>
            <CopyButton text={() => (asked.value === null ? "" : figuresCsv(asked.value))} label="Copy CSV">
              Copy CSV
            </CopyButton>
          </div>
        )}
      </div>
      <FigureFilters route={route} flows={asked.value?.flows ?? []} />
      <Await asked={asked} what="Adding up the runs">
        {(document) =>
          document.ids.length === 0 && document.isAll ? (
            <div class="card">
              <Blank
                title="Figures begin with the first run."
                command={["run", agent === "" ? "NAME" : agent]}
              >
                {(since !== "" || flow !== "" || agent !== "") && <p>No recorded run matches the filter.</p>}
              </Blank>
            </div>
          ) : (
            <>
              <SoFar document={document} done={document.ids.length} />
              {document.ids.length > 0 && <Figures document={document} />}
            </>
          )
        }
      </Await>
    </ScreenFrame>
  );
}

type FilterProps = { readonly route: FiguresRoute; readonly flows: FiguresDocument["flows"] };

function FigureFilters({ route, flows }: FilterProps): JSX.Element {
  const { project } = useProject();
  const change = (part: Partial<FiguresRoute>) => go({ ...route, ...part }, { replace: true });
  return (
    <div class="filters">
      <select
        aria-label="Agent"
        value={route.agent}
        onChange={(event) => change({ agent: event.currentTarget.value, flow: "" })}
      >
        <option value="">All agents</option>
        {(project?.agents ?? []).map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      <select
        aria-label="Period"
        value={route.since}
        onChange={(event) => change({ since: event.currentTarget.value })}
      >
        {Object.entries(PERIODS).map(([period, name]) => (
          <option key={period} value={period}>
            {name}
          </option>
        ))}
      </select>
      {(flows.length > 1 || route.flow !== "") && (
        <select
          aria-label="Version of the flow"
          value={route.flow}
          onChange={(event) => change({ flow: event.currentTarget.value })}
        >
          <option value="">All versions of the flow</option>
          {flows.map(({ agent, flow, since }) => (
            <option key={`${agent} ${flow}`} value={flow}>
              {agent} {flow.slice(0, 8)} since {since}
            </option>
          ))}
        </select>
      )}
    </div>
  );
}

function Figures({ document }: { readonly document: FiguresDocument }): JSX.Element {
  const [behind, setBehind] = useState<Behind | null>(null);
  const open = (what: string, places: readonly number[]) =>
    setBehind({ what, runs: places.map((place) => document.ids[place]!) });
  return (
    <>
      {document.damaged.length > 0 && (
        <p class="note warn">
          {document.damaged.length === 1 ? "One run" : `${document.damaged.length} runs`} cannot be read to
          the end: <Foreign text={document.damaged.join(", ")} most={200} mono />
        </p>
      )}
      <Tiles document={document} open={open} />
      {behind !== null && <RunsBehind behind={behind} close={() => setBehind(null)} />}
      <div class="columns">
        <DayChart days={document.days} open={open} />
        <Codes document={document} open={open} />
      </div>
      <PatternTable rows={document.patterns} open={open} />
      <GateTable rows={document.gates} open={open} />
      <CheckTable rows={document.checks} open={open} />
      <StepTable rows={document.steps} open={open} />
      <RetryTable rows={document.retries} open={open} />
      <OtherTables document={document} open={open} />
    </>
  );
}

type WholeProps = { readonly document: FiguresDocument; readonly open: OpenRuns };

function Tiles({ document, open }: WholeProps): JSX.Element {
  const { ids, time, cost, visits, honesty } = document;
  const all = ids.map((_, place) => place);
  const states = stateTotals(document.days);
  const completed = states.find(({ state }) => state === "completed")?.runs ?? [];
  const claims = honesty.claims;
  const stood = claims - honesty.falseDone.count;
  return (
    <section class="card" aria-label="Totals">
      <div class="card-body">
        <dl class="figures tiles">
          <div>
            <dt>Runs</dt>
            <dd>
              <button type="button" class="number" onClick={() => open("All runs", all)}>
                {ids.length}
              </button>
            </dd>
          </div>
          <div>
            <dt>Completed</dt>
            <dd>
              <button type="button" class="number" onClick={() => open("Completed runs", completed)}>
                {percentOf(completed.length, ids.length)} %
              </button>
            </dd>
          </div>
          <div>
            <dt>"Done" was true</dt>
            <dd>
              {claims === 0 ? "–" : `${percentOf(stood, claims)} %`}
              {claims > 0 && (
                <small>
                  {" "}
                  {stood} of {claims}
                </small>
              )}
            </dd>
          </div>
          <div>
            <dt>Time, median</dt>
            <dd>
              {time === null ? "–" : duration(time.median)}
              {time !== null && <small> p90 {duration(time.p90)}</small>}
            </dd>
          </div>
          <div>
            <dt>Cost, median</dt>
            <dd>
              {dollars(cost?.median ?? null)}
              {cost !== null && <small> p90 {dollars(cost.p90)}</small>}
            </dd>
          </div>
          <div>
            <dt>Visits, median</dt>
            <dd>
              {visits?.median ?? "–"}
              {visits !== null && <small> p90 {visits.p90}</small>}
            </dd>
          </div>
        </dl>
      </div>
    </section>
  );
}

function Codes({ document, open }: WholeProps): JSX.Element {
  const states = stateTotals(document.days);
  return (
    <section class="card">
      <div class="card-head">
        <h2>How they ended</h2>
      </div>
      <table>
        <thead>
          <tr>
            <th scope="col">State or code</th>
            <th scope="col" class="num">
              Runs
            </th>
          </tr>
        </thead>
        <tbody>
          {states.map(({ state, runs }) => (
            <tr key={state}>
              <th scope="row">{state}</th>
              <td class="num">
                <button type="button" class="number" onClick={() => open(`Runs that are ${state}`, runs)}>
                  {runs.length}
                </button>
              </td>
            </tr>
          ))}
          {document.codes.map(({ code, in: places }) => (
            <tr key={code}>
              <th scope="row" class="mono">
                <Foreign text={code} most={60} />
              </th>
              <td class="num">
                <button type="button" class="number" onClick={() => open(code, places)}>
                  {places.length}
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
