/** Routes that look at many runs: two runs compared, all runs under the files as they are now, figures. */
import type { Journal } from "../engine/ports.ts";
import { decisionIn } from "../flow/event.ts";
import { addUp } from "../proof/added-figures.ts";
import { hitsOfEdge } from "../proof/outline-hits.ts";
import { foldRun } from "../run/records/fold.ts";
import { compareRuns } from "../run/records/reports.ts";
import { findRun, flowOf } from "../run/records/runs.ts";
import { whatIfPartly } from "../run/records/whatif.ts";
import { flowChanges } from "../story/changes.ts";
import { waysIn } from "../tell/frames.ts";
import { outlineOf, type Outline } from "../tell/outline.ts";
import { hitsTogether, flowIn } from "./agents.ts";
import {
  reply,
  queryNumber,
  journalFor,
  type StudioAnswer,
  type StudioRequest,
  type Studio,
} from "./route.ts";
import type { VisitSeen } from "./wire.ts";
import type { CompareDocument, FiguresDocument, TakenTimes, WhatIfDocument } from "./wire-agents.ts";

export async function lookAtComparison({ params }: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  const { a = "", b = "" } = params;
  const journal = await journalFor(studio, a);
  const compared = await compareRuns(journal, a, b);
  const [one, other] = [await wayOf(journal, a), await wayOf(journal, b)];
  return reply({
    ...compared,
    outlines: [one.outline, other.outline],
    ways: [one.way, other.way],
    taken: [one.taken, other.taken],
  } satisfies CompareDocument);
}

type WayOfRun = {
  readonly outline: Outline;
  readonly way: readonly VisitSeen[];
  readonly taken: readonly TakenTimes[];
};

/** The decisions of a run in order, the edges that it took, and its flow as it held in the end. */
async function wayOf(journal: Journal, ref: string): Promise<WayOfRun> {
  const way: VisitSeen[] = [];
  const taken = new Map<string, TakenTimes>();
  const { flow } = await foldRun(journal, await findRun(journal, ref), (moment) => {
    const { entry } = moment;
    const led = decisionIn(entry);
    if (led !== undefined) way.push({ step: led.step, visit: led.visit, seq: entry.seq });
    for (const one of waysIn(moment)) {
      const key = JSON.stringify(one);
      taken.set(key, [one, (taken.get(key)?.[1] ?? 0) + 1]);
    }
  });
  return { outline: outlineOf(flow), way, taken: [...taken.values()] };
}

/** What takes longer than the client waits is left for its next request. */
function patienceOf({ query }: StudioRequest): () => boolean {
  const until = performance.now() + queryNumber(query, "within", Infinity);
  return () => performance.now() >= until;
}

export async function lookAtWhatIf(asked: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  const { params, signal } = asked;
  const { name = "" } = params;
  const loaded = await studio.desk.agents.load(name);
  const flow = flowIn(loaded);
  const journal = await journalFor(studio, name);
  // Nobody waits for an answer that the client no longer takes.
  const found = await whatIfPartly(journal, loaded, [], () => signal.throwIfAborted(), {
    known: studio.desk.whatIfs,
    isEnough: patienceOf(asked),
  });
  const [newest] = await journal.list({ agent: name, limit: 1 });
  const changes =
    newest === undefined ? [] : flowChanges(await flowOf(journal, newest.id, newest.digest), flow);
  return reply({
    ...found,
    recorded: await journal.count(),
    changes,
    outline: outlineOf(flow),
  } satisfies WhatIfDocument);
}

export async function lookAtFigures(asked: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  const { query, signal } = asked;
  const { agent, flow: digest } = query;
  const since = queryNumber(query, "since", 0);
  const journal = await studio.journal();
  const flow = agent === undefined ? null : (await studio.desk.agents.load(agent)).flow;
  const figures = await studio.desk.figures();
  const which = {
    since,
    signal,
    isEnough: patienceOf(asked),
    ...(agent !== undefined && { agent }),
    ...(digest !== undefined && { flow: digest }),
  };
  const nothing = { runs: [], damaged: [], isAll: true };
  const { runs, damaged, isAll } = journal === null ? nothing : await figures(journal, which);
  const hits = hitsTogether(runs.map((run) => run.figures.hits));
  const ways = flow === null ? null : outlineOf(flow).edges.filter(({ isTacit }) => !isTacit);
  return reply({
    v: 1,
    isAll,
    recorded: (await journal?.count()) ?? 0,
    damaged,
    ...addUp(runs, Object.keys(flow?.checks ?? {})),
    ways:
      ways?.map((edge) => {
        const { from, label, kind, to } = edge;
        return { from, label, kind, to, taken: hitsOfEdge(edge, hits) ?? 0 };
      }) ?? null,
  } satisfies FiguresDocument);
}
