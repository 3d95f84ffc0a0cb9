/** Going on with a run where its journal ends. */
import { join } from "node:path";
import { restBefore } from "../engine/drive/rest.ts";
import { stateAfter } from "../engine/decide/decide.ts";
import { openQuestions } from "../engine/decide/people.ts";
import { RunnerError, type Journal, type RunHandle, type RunRow } from "../engine/ports.ts";
import { RecordDamaged } from "../journal/errors.ts";
import type { BackendSpec, Entry } from "../flow/event.ts";
import type { Flow } from "../flow/flow.ts";
import { defined } from "../flow/json.ts";
import type { Mail } from "../flow/mail.ts";
import { shownInLine } from "../flow/text/harmless.ts";
import { flowsOf, openRun, releaseOn, withStack, type Known, type Opening } from "./open.ts";
import type { DriveOptions, ResumeOptions } from "./options.ts";
import { mailOf } from "./people/mail.ts";
import { openOwnJournal, requireRecord } from "./records/journal.ts";
import { readPast, type RecordedPast } from "./records/past.ts";
import { peopleSaid, recall } from "./records/recall.ts";
import { findRun, readRow, readRun } from "./records/runs.ts";
import type { Result } from "../tell/result.ts";
import { acceptImported } from "./trust/foreign-state.ts";
import { ANY_BACKEND, watcherMs } from "./world/backend.ts";
import { systemClock } from "./world/clock.ts";
import { readConfig } from "./world/config.ts";
import { pinRepository } from "./world/github.ts";
import { requireFolder } from "./world/folder-gone.ts";
import type { RunAt } from "./world/process-starter.ts";
import { findProject, recordPlace, type Project } from "./world/project.ts";
import { discreetSpec } from "../boundaries/redact/redacted-ports.ts";
import type { OpenPlace, StretchPlace } from "./stretch.ts";
import type { SubmittedTrust } from "./trust/trust.ts";
import { requirePlace, restorePlace } from "./world/workplace.ts";

/** Goes on with a run where its journal ends, with the flow it was started with unless it adopts another. */
export async function resume(options: ResumeOptions): Promise<Result> {
  return await withStack({ agent: "" }, options, async (stack, known) => {
    const project = findProject(options.cwd ?? process.cwd(), options.stateDir);
    const journal = await resumedRecord(project, options, stack);
    const row = await findRun(journal, options.run);
    known.run = row.id;
    const place = await travelsHere(journal, row.id, options);
    return await resumeFrom({ journal, project, row, place }, options, stack, known);
  });
}

/** A run whose files travel works where this machine keeps those of runs; null: where its record says. */
export async function travelsHere(
  journal: Journal,
  run: string,
  { env = process.env, signal = new AbortController().signal }: DriveOptions,
): Promise<OpenPlace | null> {
  const { blobs } = journal;
  const [first] = blobs === undefined ? [] : await journal.read(run, 0, 1);
  if (blobs === undefined || first?.event.type !== "run.started" || first.event.source === undefined)
    return null;
  const { travelling } = await import("./source-place.ts");
  const { workFolder } = await import("./work-folder.ts");
  const { fleet } = readConfig(env);
  const work = workFolder(fleet.work, env);
  return travelling({ work, blobs, env, signal, ...defined({ repositories: fleet.repositories }) });
}

/** The record that holds the run. A foreign one is not accepted where the run could not go on from here. */
export async function resumedRecord(
  project: Project,
  options: DriveOptions & Pick<ResumeOptions, "run" | "adopt">,
  stack: AsyncDisposableStack,
): Promise<Journal> {
  if (options.journal !== undefined) return options.journal;
  const clock = options.clock ?? systemClock;
  const found = await openOwnJournal(recordPlace(project), clock, options, options.run, async (foreign) => {
    const { row, entries, current } = await readRun(foreign, options.run);
    if (options.adopt !== true) requirePlace(project.root, recall(entries), current, row.id);
  });
  const journal = requireRecord(found, options.run, project.stateDir);
  stack.defer(journal.close);
  return journal;
}

export type ToResume = {
  readonly journal: Journal;
  readonly project: Project;
  readonly row: RunRow;
  /** Where its files are on this machine, as the record has them; null: where the record says, and they are made there. */
  readonly place?: StretchPlace | OpenPlace | null;
  /** Whose trust counts for a run that was submitted; absent: that of the user here. */
  readonly accepts?: SubmittedTrust["accepts"];
  /** A fork is recorded when it is first written to: this records it before its worktree is made. */
  readonly beforeWorktree?: () => Promise<void>;
  readonly warnings?: readonly string[];
};

/** Claims the run, and opens it where anything is left of it to do. */
export async function resumeFrom(
  { journal, project, row, place = null, accepts, beforeWorktree, warnings = [] }: ToResume,
  options: ResumeOptions,
  stack: AsyncDisposableStack,
  known: Known,
): Promise<Result> {
  const { stateDir } = project;
  known.agent = row.agent;
  options.onRun?.(row.id, true);
  const handle = await journal.claim(row.id, { takeOver: options.takeOver ?? false });
  releaseOn(stack, handle);
  const over = await resultIfOver(journal, row.id, (options.clock ?? systemClock).now());
  if (over !== null && handle.abandoned !== true) return endedBefore(over, row.id, options);
  const recorded = await readPast(journal, row);
  const { recalled } = recorded;
  const strays =
    handle.abandoned === true ? await endAll({ stateDir, run: row.id }, recalled.spec, options) : [];
  if (over !== null) return endedBefore(over, row.id, options);
  const accepted =
    recalled.isImported && (await acceptImported(await readRow(journal, row), stateDir, options));
  const mail = mailOf(journal, stateDir);
  await requireUnpaused(recorded, mail, options);
  // A question that stays open was meant to: only an answer, or a flag that says so, settles it.
  const isHeld =
    recalled.isAsked && openQuestions(recorded.folded().state).some(({ question }) => question.held);
  const held = isHeld && { onPermission: "halt" as const };
  const asking = { ...peopleSaid(journal, recalled.started), ...held, ...options };
  const here = typeof place === "function" ? await place(recorded) : place;
  const found =
    here === null ? project : { ...project, root: here.root, agentsDir: join(here.root, ".agent") };
  const { snapshot, onPrepared } = here ?? {};
  const submitted = accepts !== undefined && { digest: recalled.started.trusted ?? null, accepts };
  const trust = submitted && { trust: { submitted } };
  const driving = { ...asking, ...trust, ...defined({ snapshot, onPrepared }) };
  const at = { project: found, agents: project.root, place: here };
  const about = { ...at, recorded, handle, mail, strays, accepted };
  const resuming = { ...about, warnings, ...defined({ beforeWorktree }) };
  return await openRun(await recordedRun(resuming, driving, known), driving, stack);
}

/** A recorded run that was claimed. */
type Resuming = Pick<ToResume, "beforeWorktree"> & {
  readonly project: Project;
  /** Where the user keeps the agent, which may be elsewhere than the files of the run. */
  readonly agents: string;
  readonly place: StretchPlace | null;
  readonly recorded: RecordedPast;
  readonly handle: RunHandle;
  readonly mail: Mail;
  /** Names of processes of it that were ended. */
  readonly strays: readonly string[];
  readonly accepted: boolean;
  readonly warnings: readonly string[];
};

async function recordedRun(resuming: Resuming, options: ResumeOptions, known: Known): Promise<Opening> {
  const { project, place: here, recorded, handle, mail, strays, accepted } = resuming;
  const { row, flow: began, recalled, folded } = recorded;
  const { spec, marks, isAsked, wasConfined, started } = recalled;
  const { cwd, worktree } = here ?? recalled;
  const isCompared = options.adopt === true || options.onChange !== undefined;
  const wanted = isCompared
    ? await (await import("./adopt.ts")).flowToAdopt(recorded, { cwd: resuming.agents }, options)
    : null;
  const flow = wanted?.flow ?? recorded.current;
  known.flow = flow;
  if (options.journal === undefined && here === null)
    requirePlace(project.root, { cwd, worktree }, flow, row.id);
  requireFolder(worktree?.home ?? cwd);
  const adopted = wanted === null ? recorded.adopted : { ...recorded.adopted, [wanted.digest]: wanted.flow };
  const place = worktree === undefined ? { cwd } : { cwd, worktree };
  return {
    project,
    flow,
    digest: wanted?.digest ?? recorded.digest,
    began,
    adopted,
    problems: [],
    cwd,
    past: {
      spec,
      marks,
      wasConfined,
      isAsked,
      budget: () => folded().state.budget,
    },
    enter: async ({ backend, spending, ground, redactor }) => {
      const flows = flowsOf({ flow, began, adopted });
      const repository = await pinRepository(flows, place, options, started.repository);
      const about = { run: row.id, cwd, isBegun: !recalled.isUndriven && recalled.hasWorked };
      if (worktree !== undefined) await resuming.beforeWorktree?.();
      const restored =
        worktree === undefined || here !== null
          ? []
          : await restorePlace(flow, { ...about, worktree }, folded().state, options);
      const isChosen = spec.id === ANY_BACKEND;
      const renewed = [options.script, options.backend, options.use, options.model].some(
        (given) => given !== undefined,
      );
      const begin = {
        type: "run.resumed",
        epoch: handle.epoch,
        ...restBefore(recalled, flow, () => folded().state, (options.clock ?? systemClock).now()),
        ...(accepted && { accepted }),
        ...(strays.length > 0 && { strays: strays.map(redactor.text) }),
        ...(renewed || isChosen ? { backend: discreetSpec(backend, redactor) } : {}),
        ...spending,
        sandbox: ground.held,
      } as const;
      return {
        run: row.id,
        ...place,
        repository,
        mail,
        warnings: [...(strays.length === 0 ? [] : [straysText(strays)]), ...resuming.warnings, ...restored],
        record: async () => {
          const before = folded();
          if (wanted === null) return { handle, begin, past: [], recorded };
          const at = (options.clock ?? systemClock).now();
          const entry = await adopt(handle, (before.last?.seq ?? 0) + 1, at, wanted);
          options.observe?.(entry, stateAfter(flow, before.state, entry.event), flow, []);
          return { handle, begin, past: [entry], recorded };
        },
      };
    },
  };
}

/** Ends what outlived the process that owned the run: it would go on beside the same, begun again. Gives the names. */
async function endAll(
  { stateDir, run }: RunAt,
  spec: BackendSpec,
  { notify }: ResumeOptions,
): Promise<readonly string[]> {
  const { endStrays, markOfRun } = await import("../effects/process/strays.ts");
  const all = await endStrays(markOfRun(stateDir, run), watcherMs(spec));
  const names = [...new Set(all)].slice(0, MOST_NAMED).map((name) => shownInLine(name, 40));
  if (names.length > 0) notify?.(straysText(names));
  return names;
}

const MOST_NAMED = 10;

function straysText(names: readonly string[]): string {
  return `Processes of the run were still running after the process that owned it had died. They were ended: ${names.join(", ")}.`;
}

/** RUN_PAUSED unless `unpause` is given, or was left as a wish. A request to stop that was not handled is dropped. */
async function requireUnpaused(
  { row, recalled: { last: ended } }: RecordedPast,
  mail: Mail,
  { unpause }: ResumeOptions,
): Promise<void> {
  const wish = await mail.wishFor(row.id);
  const isPaused =
    wish === "pause" ||
    ended.type === "run.paused" ||
    (ended.type === "run.ended" && ended.verdict.code === "PAUSED");
  if (isPaused && unpause !== true && wish !== "continue") throw pausedError(row);
  if (wish !== null) await mail.forgetWish(row.id, wish);
}

export function pausedError({ id, agent }: Pick<RunRow, "id" | "agent">): RunnerError {
  return new RunnerError(
    "RUN_PAUSED",
    `Run ${id} of "${agent}" is paused. Continue with: lockstep continue ${id}`,
  );
}

async function adopt(
  handle: RunHandle,
  seq: number,
  at: number,
  { flow, digest }: { readonly flow: Flow; readonly digest: string },
): Promise<Entry> {
  const entry: Entry = { seq, at, event: { type: "run.adopted", flow: digest } };
  await handle.append([entry], { [digest]: flow });
  return entry;
}

/** Of a run that ended by the flow's own doing, so that nothing is left to go on with; null: something is. */
export async function resultIfOver(journal: Journal, id: string, now: number): Promise<Result | null> {
  // Asked again: it may have gone on until it was claimed.
  const [row] = await journal.rows([id]);
  if (row?.last?.event.type !== "run.ended") return null;
  const { standingOf } = await import("./records/standing.ts");
  const { result, state, damage } = await standingOf(journal, { ...row, owned: false }, now);
  if (damage !== null) throw new RecordDamaged(damage.why);
  return state.halted.length > 0 ? null : result;
}

function endedBefore(result: Result, id: string, { notify }: ResumeOptions): Result {
  const text = `Run ${id} had already ended (${result.outcome}): nothing was resumed, and this is its result.`;
  notify?.(text);
  return { ...result, warnings: [...result.warnings, text] };
}
