/** The documents of the screens that only look: the project, the runs, and everything about one run. */
import { platform } from "node:process";
import { basename } from "node:path";
import type { Budget, State } from "../engine/decide/state.ts";
import type { Journal, RunRow } from "../engine/ports.ts";
import { differences } from "../flow/difference.ts";
import type { Json } from "../flow/json.ts";
import { jsonLine } from "../flow/text/harmless.ts";
import { RunnerError } from "../run/errors.ts";
import { load } from "../run/load.ts";
import { openExport, textOf } from "../run/records/bundle.ts";
import { replayRow } from "../run/records/replay.ts";
import { whyPartly } from "../run/records/reports.ts";
import { findRun, shownOf } from "../run/records/runs.ts";
import { listWorktrees } from "../run/records/worktrees.ts";
import { stateStanding } from "../run/trust/state-folders.ts";
import { surveyModels } from "../run/world/model-survey.ts";
import { listAgents } from "../run/world/project.ts";
import { flowChanges } from "../story/changes.ts";
import { LEVELS, type Level } from "../tell/log-line.ts";
import { logLines } from "../tell/log.ts";
import { waitingQuestions } from "../tell/open-questions.ts";
import { outlineOf } from "../tell/outline.ts";
import { RequestRefusal } from "../serve/refusal.ts";
import {
  reply,
  queryNumber,
  journalFor,
  type StudioAnswer,
  type StudioRequest,
  type Studio,
} from "./route.ts";
import type { Reel } from "./reel.ts";
import type {
  BudgetSeen,
  EffectsDocument,
  FramesDocument,
  LogDocument,
  ModelSeen,
  MomentDocument,
  ProjectDocument,
  QuestionsDocument,
  ReplayDocument,
  RunDocument,
  RunsDocument,
  TalkDocument,
  VisitSeen,
  WhyDocument,
  WorktreesDocument,
} from "./wire.ts";
import { toWire } from "./news.ts";

const MOST_RUNS = 200;
/** The first frames of a long run are sent as soon as there are so many, and the rest as it is read. */
const LEAST_FRAMES = 2000;
const MOST_FRAMES = 10_000;
const MOST_LINES = 500;
const MOST_UTTERANCES = 200;
const MOST_ANSWERED = 50;
/** Runs that are looked through for what was answered. */
const RECENT_RUNS = 100;

export async function lookAtProject(_asked: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  const { project, version, readOnly, command, where, began } = studio;
  return reply({
    v: 1,
    name: basename(project.root),
    root: project.root,
    stateDir: project.stateDir,
    version,
    readOnly,
    command,
    where,
    began,
    agents: listAgents(project),
    models: modelsSeen(studio),
  } satisfies ProjectDocument);
}

/** A wrong config.json is reported where it is used; the rest of the page works without it. */
function modelsSeen({ env }: Studio): readonly ModelSeen[] {
  try {
    return surveyModels(env).rows.map(({ name, ref, provider, model, key, why }) => ({
      name,
      ref,
      provider,
      model,
      key,
      why,
    }));
  } catch (error) {
    if (error instanceof RunnerError) return [];
    throw error;
  }
}

export async function lookAtRuns({ query }: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  const journal = await studio.journal();
  if (journal === null)
    return reply({ v: 1, total: 0, runs: [], next: null, cursor: "" } satisfies RunsDocument);
  const limit = Math.min(queryNumber(query, "limit", MOST_RUNS), MOST_RUNS);
  const { cursor } = await journal.since();
  const which = {
    ...(query.before !== undefined && { before: query.before }),
    ...(query.agent !== undefined && { agent: query.agent }),
  };
  const page = limit === 0 ? [] : await journal.list({ ...which, limit });
  // Whatever page it is on, what is driven now is on the first one.
  const driven =
    query.before === undefined ? await journal.list({ ...which, owned: true, limit: MOST_RUNS }) : [];
  const others = driven.filter(({ id }) => page.every((row) => row.id !== id));
  return reply({
    v: 1,
    total: await journal.count(),
    runs: await studio.news.lines(journal, [...page, ...others]),
    next: page.length < limit || page.length === 0 ? null : page.at(-1)!.id,
    cursor: toWire(cursor),
  } satisfies RunsDocument);
}

type Found = { readonly journal: Journal; readonly row: RunRow };

async function runOf({ params }: StudioRequest, studio: Studio): Promise<Found> {
  const ref = params.run!;
  const journal = await journalFor(studio, ref);
  return { journal, row: await findRun(journal, ref) };
}

export async function lookAtRun(asked: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  const { journal, row } = await runOf(asked, studio);
  const { fold, damage } = await studio.shelf.look("reel", journal, row);
  const { args, input, cwd, backend } = fold.started();
  const [line] = await studio.news.lines(journal, [row]);
  const shown = shownOf(fold.standing(row, damage, studio.now()));
  // A long run has a long path, and the head of its screen needs the newest visits at most.
  const most = queryNumber(asked.query, "path", shown.path.length);
  return reply({
    v: 1,
    row: line!,
    shown: { ...shown, path: shown.path.slice(Math.max(0, shown.path.length - most)) },
    outline: outlineOf(fold.flow()),
    startedAt: row.createdAt,
    args,
    input,
    cwd,
    dryRun: fold.dryRun(),
    backend,
    budget: budgetSeen(fold.state()),
    changes: await changesOf(row, fold, studio),
    damage,
  } satisfies RunDocument);
}

/** null: the agent of the run cannot be loaded any more. */
async function changesOf(row: RunRow, fold: Reel, { project, cwd }: Studio): Promise<RunDocument["changes"]> {
  if (!listAgents(project).includes(row.agent)) return null;
  const { flow } = await load(row.agent, { cwd, stateDir: project.stateDir });
  return flow === null ? null : flowChanges(fold.flow(), flow);
}

function budgetSeen({ budget, usage }: State): BudgetSeen | null {
  if (budget === null) return null;
  const { limits, steps, reached }: Budget = budget;
  const spent = {
    turns: usage.turns,
    tokens: usage.inputTokens + usage.outputTokens,
    costUsd: usage.costUsd ?? 0,
  };
  return { limits, steps, spent, ...(reached !== undefined && { reached }) };
}

export async function lookAtFrames(asked: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  const { journal, row } = await runOf(asked, studio);
  const after = queryNumber(asked.query, "after", 0);
  const { fold, damage, isWhole } = await studio.shelf.look("reel", journal, row, after + LEAST_FRAMES);
  const count = fold.frames.count();
  const to = Math.min(count, after + MOST_FRAMES);
  const document = {
    v: 1,
    run: row.id,
    after,
    frames: [],
    events: Math.max(row.events, count),
    isAll: isWhole && to >= count,
    damage,
  } satisfies FramesDocument;
  // Ids of runs have no quotes, so that this is the member.
  const [before, behind] = jsonLine(studio.redact(document)).split('"frames":[', 2) as [string, string];
  const parts = [Buffer.from(`${before}"frames":[`), ...fold.frames.bytes(after, to), Buffer.from(behind)];
  return { kind: "json", body: Buffer.concat(parts) };
}

export async function lookAtMoment(asked: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  const { journal, row } = await runOf(asked, studio);
  if (!/^\d{1,15}$/.test(asked.params.seq!))
    throw new RequestRefusal(400, "USAGE", "An entry is named by its number.");
  const { fold } = await studio.shelf.look("reel", journal, row);
  const moment = await fold.at(journal, row, Number(asked.params.seq));
  const { before, after, entry } = moment;
  const handed = ({ handoff, ctx }: State): Json => ({ handoff, ctx });
  return reply({
    v: 1,
    run: row.id,
    seq: entry.seq,
    at: entry.at,
    lanes: fold.lanesAt(entry.seq),
    iterations: after.iterations,
    visits: after.visits,
    handoff: after.handoff,
    ctx: after.ctx,
    changed: differences(handed(before), handed(after)).map(({ pointer }) => pointer),
    turns: after.usage.turns,
    inputTokens: after.usage.inputTokens,
    outputTokens: after.usage.outputTokens,
    costUsd: after.usage.costUsd,
    budget: budgetSeen(after),
    questions: waitingQuestions(row.id, after),
    log: logLines(moment),
  } satisfies MomentDocument);
}

export async function lookAtWhy(asked: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  const { journal, row } = await runOf(asked, studio);
  const why = await whyPartly(journal, row.id, asked.params.target);
  const { fold } = await studio.shelf.look("reel", journal, row);
  const shownStep = studio.redact(why.step);
  const visits: VisitSeen[] = [];
  for await (const seen of fold.visits()) if (seen.step === shownStep) visits.push(seen);
  return reply({ ...why, visits } satisfies WhyDocument);
}

export async function lookAtTalk(asked: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  const { journal, row } = await runOf(asked, studio);
  const { fold, damage } = await studio.shelf.look("talk", journal, row);
  const groups = Map.groupBy(fold, ({ of }) => of);
  const conversations = [...groups].map(([of, said]) => ({ of, count: said.length }));
  const of = asked.query.of ?? conversations[0]?.of ?? "shared";
  const find = asked.query.find?.toLowerCase();
  const all = groups.get(of) ?? [];
  const fitting =
    find === undefined ? all : all.filter((said) => JSON.stringify(said).toLowerCase().includes(find));
  const from = queryNumber(asked.query, "from", 0);
  return reply({
    v: 1,
    run: row.id,
    conversations,
    of,
    from,
    total: fitting.length,
    utterances: fitting.slice(from, from + MOST_UTTERANCES),
    damage,
  } satisfies TalkDocument);
}

export async function lookAtLog(asked: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  const { journal, row } = await runOf(asked, studio);
  const level = LEVELS.findIndex((name: Level) => name === (asked.query.level ?? "info"));
  if (level === -1) throw new RequestRefusal(400, "USAGE", `"level" is one of ${LEVELS.join(", ")}.`);
  const { fold, damage } = await studio.shelf.look("log", journal, row);
  const lines = fold.filter((line) => LEVELS.indexOf(line.level) >= level);
  const from = queryNumber(asked.query, "from", 0);
  return reply({
    v: 1,
    run: row.id,
    from,
    total: lines.length,
    lines: lines.slice(from, from + MOST_LINES),
    damage,
  } satisfies LogDocument);
}

export async function lookAtEffects(asked: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  const { journal, row } = await runOf(asked, studio);
  const { fold, damage } = await studio.shelf.look("reel", journal, row);
  const { result } = fold.standing(row, damage, studio.now());
  return reply({
    v: 1,
    dryRun: fold.dryRun(),
    effects: effectsOf(row, fold),
    worktree: result.worktree,
    damage,
  } satisfies EffectsDocument);
}

function effectsOf({ id, agent }: RunRow, fold: Reel): EffectsDocument["effects"] {
  const seen = ({ of, ...effect }: ReturnType<Reel["effects"]>[number]) => {
    const at = typeof of === "string" ? { step: null, visit: null } : { step: of.step, visit: of.visit };
    return { ...effect, run: id, agent, ...at };
  };
  return fold.effects().map(seen);
}

/** Of the newest runs. */
export async function lookAtAllEffects(_asked: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  const journal = await studio.journal();
  const effects: EffectsDocument["effects"][number][] = [];
  for (const row of (await journal?.list({ limit: RECENT_RUNS })) ?? []) {
    const looked = await readable(studio.shelf.look("reel", journal!, row));
    if (looked !== null) effects.push(...effectsOf(row, looked.fold));
  }
  return reply({ v: 1, dryRun: false, effects, worktree: null, damage: null } satisfies EffectsDocument);
}

/** null: it is damaged. One such run must not hide the others. */
async function readable<T>(look: Promise<T>): Promise<T | null> {
  return await look.catch((error: unknown) => {
    if (error instanceof RunnerError) return null;
    throw error;
  });
}

export async function lookAtExport(asked: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  const { journal, row } = await runOf(asked, studio);
  const meta = { lockstep: studio.version, node: process.version, platform };
  const exporting = await openExport(journal, row.id, { redact: asked.query.redact !== undefined, meta });
  return { kind: "file", type: "application/json; charset=utf-8", pieces: textOf(exporting) };
}

export async function lookAtReplay(asked: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  const { journal, row } = await runOf(asked, studio);
  const { events, ms, difference } = await replayRow(journal, row);
  return reply({ v: 1, run: row.id, events, ms, difference } satisfies ReplayDocument);
}

export async function lookAtQuestions(_asked: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  const journal = await studio.journal();
  if (journal === null) return reply({ v: 1, open: [], answered: [] } satisfies QuestionsDocument);
  const asking = await studio.news.asking(journal);
  const open: QuestionsDocument["open"][number][] = [];
  for (const row of await journal.rows([...asking.keys()])) {
    const looked = await readable(studio.shelf.look("line", journal, row));
    if (looked !== null) open.push(...looked.fold.questions(row));
  }
  const answered: QuestionsDocument["answered"][number][] = [];
  for (const row of await journal.list({ limit: RECENT_RUNS })) {
    const looked = await readable(studio.shelf.look("line", journal, row));
    if (looked !== null) answered.push(...looked.fold.answered(row));
  }
  return reply({
    v: 1,
    open: open.toSorted((a, b) => deadline(a) - deadline(b) || a.askedAt - b.askedAt),
    answered: answered.toSorted((a, b) => b.at - a.at).slice(0, MOST_ANSWERED),
  } satisfies QuestionsDocument);
}

function deadline({ expiresAt }: QuestionsDocument["open"][number]): number {
  return expiresAt === null ? Number.MAX_SAFE_INTEGER : Date.parse(expiresAt);
}

export async function lookAtWorktrees({ signal }: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  const { project, env } = studio;
  const journal = await studio.journal();
  const isOurs = stateStanding(project.stateDir, env).kind !== "foreign";
  const around = { env, signal, root: project.root, isOurs };
  const worktrees = journal === null ? [] : await listWorktrees(journal, around);
  return reply({ v: 1, worktrees } satisfies WorktreesDocument);
}
