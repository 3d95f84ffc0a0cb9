/** Two runs beside each other: where they part, and everything in which they differ. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { count } from "../../../flow/text/figures.ts";
import type { VisitSeen } from "../../wire.ts";
import type { CompareDocument } from "../../wire-agents.ts";
import { useAsk } from "../ask.ts";
import { ScreenFrame } from "../frame.tsx";
import { go, PageLink } from "../go.tsx";
import { stepFocus, useKeys } from "../keys.ts";
import { CopyCommand } from "../parts/copy.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { FlowPicture } from "../parts/graph.tsx";
import { SideSigns, sidesLook } from "../parts/side-signs.tsx";
import { Await } from "../parts/status.tsx";
import { joinedOutline, sidesOfRuns } from "../sides.ts";
import { foldedRounds } from "../stand.ts";
import { ALL_RUNS, runAt, type Route } from "../route.ts";
import {
  differenceGroups,
  firstSentence,
  GROUP_NAMES,
  joinedWays,
  sideText,
  visitOf,
  type RunDifferenceSeen,
} from "./compare-model.ts";

type CompareRoute = Extract<Route, { readonly at: "compare" }>;

export function CompareScreen({ route }: { readonly route: CompareRoute }): JSX.Element {
  const { a, b } = route;
  const asked = useAsk<CompareDocument>(`compare/${encodeURIComponent(a)}/${encodeURIComponent(b)}`);
  const swap = () => go({ at: "compare", a: b, b: a }, { replace: true });
  useKeys("Compare", {
    s: { about: "Swap the runs", run: swap },
    n: { about: "Next difference", run: () => stepFocus("[data-difference]", 1) },
    p: { about: "Previous difference", run: () => stepFocus("[data-difference]", -1) },
  });
  return (
    <ScreenFrame crumbs={[{ text: "Runs", to: ALL_RUNS }, { text: "Compare" }]}>
      <div class="head">
        <div class="titles">
          <h1>Compare two runs</h1>
        </div>
        <div class="actions">
          <button type="button" class="btn" onClick={swap}>
            Swap <kbd aria-hidden="true">s</kbd>
          </button>
          <CopyCommand words={["diff", a, b]} isMain />
        </div>
      </div>
      <Await asked={asked} what="Comparing the runs">
        {(document) => <Compared document={document} />}
      </Await>
    </ScreenFrame>
  );
}

function Compared({ document }: { readonly document: CompareDocument }): JSX.Element {
  const { runs, same, differences } = document;
  const first = firstSentence(differences);
  return (
    <>
      <div class="columns">
        {runs.map((one, at) => (
          <section
            key={at}
            class={`card side-${at === 0 ? "a" : "b"}`}
            aria-label={at === 0 ? "Run A" : "Run B"}
          >
            <div class="card-head">
              <span class="side">{at === 0 ? "A" : "B"}</span>
              <h2 class="grow">
                <PageLink to={runAt(one.run)}>
                  <Foreign text={one.agent} most={50} />
                </PageLink>
              </h2>
              <span
                class={`chip ${one.outcome === "completed" ? "good" : one.outcome === "failed" ? "bad" : "warn"}`}
              >
                {one.outcome}
              </span>
            </div>
            <div class="card-body">
              <dl class="facts">
                <dt>Run</dt>
                <dd>
                  <Foreign text={one.run} most={60} mono />
                </dd>
                <dt>Flow</dt>
                <dd>
                  <Foreign text={one.digest.slice(0, 19)} mono />
                  {at === 1 && one.digest === runs[0].digest && <span class="soft"> (the same)</span>}
                </dd>
                <dt>Visits</dt>
                <dd>{one.iterations}</dd>
              </dl>
            </div>
          </section>
        ))}
      </div>
      {same || first === null ? (
        <p class="note good">
          They are the same: flow, arguments, answers, checks, path, handoff, verdict and usage.
        </p>
      ) : (
        <p class="note">
          <strong>First difference.</strong> <Foreign text={first} most={400} />
        </p>
      )}
      <Ways document={document} />
      <BothOnGraph document={document} />
      {differenceGroups(differences).map(({ about, rows }) => (
        <DifferenceTable key={about} about={about} rows={rows} runs={[runs[0].run, runs[1].run]} />
      ))}
    </>
  );
}

function Ways({ document }: { readonly document: CompareDocument }): JSX.Element {
  const [runA, runB] = [document.runs[0].run, document.runs[1].run];
  return (
    <section class="card">
      <div class="card-head">
        <h2>Both ways</h2>
      </div>
      <div class="card-body">
        {joinedWays(document.ways).map((part, at) =>
          part.kind === "shared" ? (
            <div key={at} class="stack tight">
              <h3 class="soft">Shared: {count(part.visits.length, "visit")}</h3>
              <Strip run={runA} visits={part.visits} />
            </div>
          ) : (
            <div key={at} class="columns apart">
              <div class="stack tight side-a">
                <h3>
                  <span class="side">A</span>{" "}
                  {part.a.length === 0 ? "ends here" : count(part.a.length, "visit")}
                </h3>
                <Strip run={runA} visits={part.a} />
              </div>
              <div class="stack tight side-b">
                <h3>
                  <span class="side">B</span>{" "}
                  {part.b.length === 0 ? "ends here" : count(part.b.length, "visit")}
                </h3>
                <Strip run={runB} visits={part.b} />
              </div>
            </div>
          ),
        )}
      </div>
    </section>
  );
}

function BothOnGraph({ document }: { readonly document: CompareDocument }): JSX.Element {
  const { outlines, taken, runs } = document;
  const outline = useMemo(() => joinedOutline(outlines), [outlines]);
  const sides = useMemo(() => sidesOfRuns(taken), [taken]);
  return (
    <FlowPicture
      outline={outline}
      look={sidesLook(sides)}
      to={(step) => runAt(runs[0].run, { step, visit: 1 })}
      rows={1}
      label="Both ways in the flow"
      tools={<SideSigns names={["only A", "only B"]} />}
    />
  );
}

const MOST_SHOWN = 60;

function Strip({
  run,
  visits,
}: {
  readonly run: string;
  readonly visits: readonly VisitSeen[];
}): JSX.Element {
  const parts = foldedRounds(visits, ({ step }) => step);
  return (
    <ol class="stops">
      {parts.slice(0, MOST_SHOWN).map(({ visits: round, times }, at) => (
        <li key={at}>
          {round.map((one) => (
            <PageLink key={`${one.step}@${one.visit}`} to={runAt(run, one)} class="stop">
              <Foreign text={one.step} most={40} mono />
              {times === 1 && one.visit > 1 && <span class="soft">@{one.visit}</span>}
            </PageLink>
          ))}
          {times > 1 && <strong>×{times}</strong>}
        </li>
      ))}
      {parts.length > MOST_SHOWN && <li class="soft">and {count(parts.length - MOST_SHOWN, "more")}</li>}
    </ol>
  );
}

type TableProps = {
  readonly about: RunDifferenceSeen["about"];
  readonly rows: readonly RunDifferenceSeen[];
  readonly runs: readonly [string, string];
};

function DifferenceTable({ about, rows, runs }: TableProps): JSX.Element {
  return (
    <section class="card">
      <div class="card-head">
        <h2>{GROUP_NAMES[about]}</h2>
        <span class="soft">{count(rows.length, "difference")}</span>
      </div>
      <div class="scroll" tabIndex={0} role="group" aria-label={`Differences: ${GROUP_NAMES[about]}`}>
        <table class="compared">
          <thead>
            <tr>
              <th scope="col">Where</th>
              <th scope="col">
                <span class="side side-a">A</span>
              </th>
              <th scope="col">
                <span class="side side-b">B</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, 200).map((row, at) => (
              <DifferenceRow key={at} row={row} runs={runs} />
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > 200 && (
        <p class="card-body soft">{rows.length - 200} more are in the document of the command.</p>
      )}
    </section>
  );
}

function DifferenceRow({
  row,
  runs,
}: {
  readonly row: RunDifferenceSeen;
  readonly runs: readonly [string, string];
}): JSX.Element {
  const visit = visitOf(row);
  return (
    <tr data-difference tabIndex={-1}>
      <th scope="row">
        <Foreign text={row.at} most={160} mono />
        {visit !== null && (
          <div class="row small">
            {row.a !== null && <PageLink to={runAt(runs[0], visit)}>open in A</PageLink>}
            {row.b !== null && <PageLink to={runAt(runs[1], visit)}>open in B</PageLink>}
            <PageLink to={{ at: "fork", run: runs[0], visit }}>fork A here</PageLink>
          </div>
        )}
      </th>
      {[row.a, row.b].map((value, side) => {
        const text = sideText(value);
        return (
          <td key={side}>
            {text === null ? <span class="soft">nothing</span> : <Foreign text={text} most={600} mono />}
          </td>
        );
      })}
    </tr>
  );
}
