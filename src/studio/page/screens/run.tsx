/** One run: how it stands, the way it went, and everything that is known of any of its entries. */
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { count, DOING, duration } from "../../../flow/text/figures.ts";
import type { RunDocument } from "../../wire.ts";
import { useAsk } from "../ask.ts";
import { useFilm, type Film } from "../film.ts";
import { ScreenFrame } from "../frame.tsx";
import { go } from "../go.tsx";
import { announce, useKeys } from "../keys.ts";
import { useLive, useSeconds } from "../listen.ts";
import { CopyButton, CopyCommand } from "../parts/copy.tsx";
import { FlowPicture, type GraphLook } from "../parts/graph.tsx";
import { Inspector } from "../parts/inspector.tsx";
import { JsonTree } from "../parts/json.tsx";
import { MomentData } from "../parts/moment-data.tsx";
import { MomentSlider } from "../parts/moment.tsx";
import { RunHead, RunTabs } from "../parts/run-head.tsx";
import { Await, Blank, Failed, Loading } from "../parts/status.tsx";
import { VisitStrip } from "../parts/strip.tsx";
import { Times } from "../parts/timeline.tsx";
import { ALL_RUNS, runAt, visitText, type Route, type VisitName } from "../route.ts";
import { standAt, visitsIn, type RunStand, type VisitRun } from "../stand.ts";
import { EffectsOf } from "./effects.tsx";
import { LogOf } from "./log.tsx";

type RunRoute = Extract<Route, { readonly at: "run" }>;

export function RunScreen({ route }: { readonly route: RunRoute }): JSX.Element {
  const { run } = route;
  // Both are asked for at once: the frames come while the rest of a long run is read.
  const film = useFilm(route.tab === "way" ? run : null);
  const row = useLive((now) => now.runs.get(run) ?? null);
  const isGone = useLive((now) => now.gone.has(run));
  // The head of a living run is asked for again when its state changes, not with each of its entries.
  const document = useAsk<RunDocument>(
    `runs/${encodeURIComponent(run)}?path=1`,
    row === null || row.state === "running" ? row?.state : `${row.state} ${row.events}`,
  );
  const state = row?.state ?? document.value?.row.state;
  const isLiving = state === "running";
  useEffect(() => {
    if (state === "completed" || state === "failed" || state === "waiting") announce(`The run is ${state}.`);
  }, [state]);
  const found = document.value?.row.run;
  useEffect(() => {
    // `@last`, `@failed` and the beginning of an id lead to the run itself.
    if (found !== undefined && found !== run) go({ ...route, run: found }, { replace: true });
  }, [found, run]);
  const agent = document.value?.row.agent ?? row?.agent ?? null;
  return (
    <ScreenFrame
      crumbs={[{ text: "Runs", to: ALL_RUNS }, { text: agent === null ? run : `${agent} ${run}` }]}
    >
      {(isGone || document.value === null) && <h1 class="hidden">Run</h1>}
      {isGone ? (
        <Blank title="This run was removed." command={["runs"]} />
      ) : (
        <Await asked={document} what="Loading the run">
          {(value) => (
            <>
              <RunHead document={value} row={row ?? value.row} />
              <RunTabs run={run} tab={route.tab} />
              <Tab
                route={route}
                document={value}
                film={film}
                isLiving={isLiving}
                events={(row ?? value.row).events}
              />
            </>
          )}
        </Await>
      )}
    </ScreenFrame>
  );
}

function Tab({
  route,
  document,
  film,
  isLiving,
  events,
}: {
  readonly route: RunRoute;
  readonly document: RunDocument;
  readonly film: Film;
  readonly isLiving: boolean;
  readonly events: number;
}): JSX.Element {
  const { run } = route;
  switch (route.tab) {
    case "way":
      return <WayOf key={run} route={route} document={document} film={film} isLiving={isLiving} />;
    case "effects":
      return <EffectsOf run={run} />;
    case "log":
      return <LogOf run={run} version={events} />;
    case "document":
      return <DocumentOf run={run} version={isLiving ? 0 : events} />;
  }
}

/** All of it, the whole path included. */
function DocumentOf({ run, version }: { readonly run: string; readonly version: number }): JSX.Element {
  const asked = useAsk<RunDocument>(`runs/${encodeURIComponent(run)}`, version);
  return (
    <Await asked={asked} what="Loading the document">
      {({ shown }) => (
        <section class="card" aria-label="Document">
          <div class="card-head">
            <h2 class="grow">Document</h2>
            <CopyButton text={() => JSON.stringify(shown, null, 2)}>Copy as JSON</CopyButton>
            <CopyCommand words={["show", run, "--json"]} isMain />
          </div>
          <div class="card-body">
            <JsonTree value={shown} open={1} />
          </div>
        </section>
      )}
    </Await>
  );
}

function WayOf({
  route,
  document,
  film,
  isLiving,
}: {
  readonly route: RunRoute;
  readonly document: RunDocument;
  readonly film: Film;
  readonly isLiving: boolean;
}): JSX.Element {
  const { run, seq } = route;
  const { frames } = film;
  const stand = useMemo(() => standAt(frames, seq), [frames, seq]);
  const visits = useMemo(() => visitsIn(frames, seq), [frames, seq]);
  const selected = route.visit ?? selectedOf(stand, visits);
  const look = useLook(stand, document, selected, isLiving && seq === null);
  const select = (visit: VisitName | null, at: number | null) => go(runAt(run, visit, at), { replace: true });
  useKeys("Run", {
    ...Object.fromEntries(
      (["way", "talk", "effects", "log", "document"] as const).map((tab, place) => [
        String(place + 1),
        {
          about: `Show ${tab === "talk" ? "the conversation" : `the ${tab}`}`,
          run: () =>
            go(tab === "talk" ? { at: "talk", run, of: null } : { at: "run", run, tab, visit: null, seq }),
        },
      ]),
    ),
    w: { about: "Open why", run: () => selected !== null && go({ at: "why", run, visit: selected }) },
  });
  if (film.error !== null && frames.length === 0) return <Failed error={film.error} />;
  if (frames.length === 0) return <Loading what="Loading the entries" />;
  const lastVisitOf = (step: string): VisitName => ({
    step,
    visit: Math.max(1, stand.steps.get(step)?.visits ?? 1),
  });
  return (
    <>
      {film.damage !== null && (
        <p class="note bad">
          {film.damage.seq === null
            ? "The record is damaged."
            : `The record is damaged from entry ${film.damage.seq} on. What is shown is what comes before it.`}
        </p>
      )}
      <VisitStrip run={run} visits={visits} seq={seq} selected={selected} />
      <div class="run-way">
        <FlowPicture
          outline={document.outline}
          look={look}
          label="Flow"
          to={(step) => runAt(run, lastVisitOf(step), seq)}
        />
        {selected === null ? (
          <Blank title="No step has been visited yet." />
        ) : (
          <Inspector
            run={run}
            visit={selected}
            version={isLiving ? versionOf(visits, selected, frames.length) : 0}
            isNever={!stand.steps.has(selected.step)}
          />
        )}
      </div>
      <Times
        run={run}
        frames={frames}
        seq={seq}
        visit={selected}
        startedAt={isLiving ? document.startedAt : null}
      />
      <MomentData run={run} seq={stand.seq} />
      <MomentSlider
        frames={frames}
        seq={seq}
        isLiving={isLiving}
        onMove={(next) => select(route.visit, next)}
      />
    </>
  );
}

/** What is under way, else what was visited last. */
function selectedOf({ lanes }: RunStand, visits: readonly VisitRun[]): VisitName | null {
  const [lane] = lanes;
  if (lane !== undefined) return { step: lane[0], visit: lane[1] };
  const last = visits.at(-1);
  return last === undefined ? null : { step: last.step, visit: last.visit };
}

/** A visit that is settled does not change any more. */
function versionOf(visits: readonly VisitRun[], selected: VisitName, entries: number): number {
  const found = visits.find(({ step, visit }) => step === selected.step && visit === selected.visit);
  return found?.label === undefined ? entries : 0;
}

/** How the graph looks at this moment. */
function useLook(
  stand: RunStand,
  document: RunDocument,
  selected: VisitName | null,
  isLive: boolean,
): GraphLook {
  const now = useSeconds(isLive);
  const lastAt = document.startedAt + stand.ms;
  const total = stand.total.costUsd;
  return {
    taken: (ways) => ways.reduce((sum, key) => sum + (stand.ways.get(key) ?? 0), 0),
    step: (id) => {
      const known = stand.steps.get(id);
      const lane = stand.lanes.find(([step]) => step === id);
      const isSelected = selected?.step === id;
      if (lane !== undefined) {
        const [, visit, doing, halted] = lane;
        const since = isLive ? `, ${duration(Math.max(0, now - lastAt))}` : "";
        const words = halted === undefined ? `${DOING[doing]}${since}` : "halted";
        return {
          note: `${visitText({ step: "", visit })} ${words}`,
          tone: doing === "question" || halted !== undefined ? "warn" : "live",
          isSelected,
        };
      }
      if (known === undefined) return { isSelected, isFaint: true };
      const share =
        total !== null && total > 0 && known.costUsd !== null
          ? ` · ${Math.round((known.costUsd / total) * 100)}% of cost`
          : "";
      const failed = [...known.failed.values()].reduce((sum, one) => sum + one, 0);
      const note = `${count(known.visits, "visit")}${failed > 0 ? ` · ✗ ${failed}` : share}`;
      return { note, tone: failed > 0 ? "bad" : "good", isSelected };
    },
  };
}
