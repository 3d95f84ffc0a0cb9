/** Going on with a run where its journal ends. */
import { fold } from "../engine/drive/drive.ts";
import { openQuestions } from "../engine/decide/people.ts";
import { RunnerError, type Journal, type RunHandle } from "../engine/ports.ts";
import type { State } from "../engine/decide/state.ts";
import { adoptions } from "../flow/adopted.ts";
import type { BackendSpec, Entry } from "../flow/event.ts";
import type { Flow } from "../flow/flow.ts";
import { shownInLine } from "../flow/text/harmless.ts";
import { chooseBackend, recallBackend, watcherMs } from "./world/backend.ts";
import { systemClock } from "./world/clock.ts";
import { readConfig } from "./world/config.ts";
import { discreetSpec } from "./world/redacted-ports.ts";
import { acceptImported } from "./trust/foreign.ts";
import { pinRepository } from "./world/github.ts";
import { mayGrant, settleGround, tellLoudly, withGround, type RunAt } from "./world/process-starter.ts";
import { openOwnJournal } from "./records/journal.ts";
import { grantedOnResume, requireMetered } from "./world/limits.ts";
import type { ResumeOptions } from "./options.ts";
import { requireFolder } from "./world/present.ts";
import { requirePlace, restorePlace, surroundings } from "./world/workplace.ts";
import { findProject, type Project } from "./world/project.ts";
import type { Result } from "./result.ts";
import { findRun, readRow, readRun, type RecordedRun } from "./records/runs.ts";
import { closingOf, driveTo, held, redactorOf, reported, requireToolCalling } from "./stretch.ts";
import { requireTrust, trusting } from "./trust/trust.ts";
import { forgetWish, wishFor } from "./people/wishes.ts";

/** Goes on with a run where its journal ends, with the flow it was started with unless it adopts another. */
export async function resume(options: ResumeOptions): Promise<Result> {
  return await reported("", options, async (known) => {
    const project = findProject(options.cwd ?? process.cwd(), options.stateDir);
    if (options.journal !== undefined) return await resumeFrom(options.journal, project, options, known);
    const { stateDir } = project;
    const clock = options.clock ?? systemClock;
    const journal = await openOwnJournal(stateDir, clock, options, options.run, async (foreign) => {
      const { row, entries, current } = await readRun(foreign, options.run);
      if (options.adopt !== true) requirePlace(project.root, recallBackend(entries), current, row.id);
    });
    if (journal === null) {
      throw new RunnerError(
        "RUN_UNKNOWN",
        `There is no run "${options.run}": none is recorded in ${project.stateDir}.`,
      );
    }
    try {
      return await resumeFrom(journal, project, options, known);
    } finally {
      await journal.close();
    }
  });
}

async function resumeFrom(
  journal: Journal,
  project: Project,
  options: ResumeOptions,
  known: { flow?: Flow },
): Promise<Result> {
  const row = await findRun(journal, options.run);
  const { takeOver = false } = options;
  options.onRun?.(row.id, true);
  return await held(await journal.claim(row.id, { takeOver }), async (handle) => {
    const { root, stateDir } = project;
    const over = await resultIfOver(journal, row.id, (options.clock ?? systemClock).now());
    if (over !== null && handle.abandoned !== true) return toldOver(over, row.id, options);
    const recorded = await readRow(journal, row);
    const { flow: began, entries } = recorded;
    const { cwd, worktree, spec, marks } = recallBackend(entries);
    const strays = handle.abandoned === true ? await endAll({ stateDir, run: row.id }, spec, options) : [];
    if (over !== null) return toldOver(over, row.id, options);
    const accepted = await acceptImported(recorded, stateDir, options);
    requireUnpaused(recorded, stateDir, options);
    // The drive folds the journal too: this is for what has to be known before, and not made where nothing has.
    let folded: State | null = null;
    const standing = () => (folded ??= fold(began, entries, recorded.adopted));
    const isCompared = options.adopt === true || options.onChange !== undefined;
    const wanted = isCompared
      ? await (await import("./adopt.ts")).flowToAdopt(recorded, { cwd: root }, options)
      : null;
    const flow = wanted?.flow ?? recorded.current;
    known.flow = flow;
    if (options.journal === undefined) requirePlace(root, { cwd, worktree }, flow, row.id);
    requireFolder(worktree?.home ?? cwd);
    const redactor = redactorOf(options, flow);
    const env = options.env ?? process.env;
    const backend = await chooseBackend(options, flow, { env, stateDir, root }, { spec, marks });
    await using closing = closingOf(backend);
    requireToolCalling(flow, backend);
    const config = readConfig(env);
    const isAsked = entries.some(({ event }) => event.type === "step.asked");
    // What was granted before it stopped may be left to do.
    const granting = isAsked || mayGrant(options);
    const setting = {
      flows: [flow, began, ...Object.values(recorded.adopted)],
      granting,
      began: wasConfined(entries),
    };
    await using ground = await settleGround({ ...setting, backend, project, cwd, config }, options);
    const isMetered =
      isGiven(options.spending) || isGiven(config.limits.unmetered) || isGiven(backend.unpriced);
    const spent = isMetered ? standing().budget : null;
    const spending = grantedOnResume(spent, flow, config.limits, options.spending);
    requireMetered(flow, backend, spending, options, spent);
    await requireTrust(flow, trusting(root, !ground.isFree, options));
    tellLoudly(ground, options);
    options.onBegin?.();
    const renewed = [options.script, options.backend, options.use, options.model].some(isGiven);
    const begin = {
      type: "run.resumed",
      epoch: handle.epoch,
      ...(isFresh(entries) && { fresh: true as const }),
      ...(accepted && { accepted }),
      ...(strays.length > 0 && { strays: strays.map(redactor.text) }),
      ...(renewed ? { backend: discreetSpec(backend, redactor) } : {}),
      ...spending,
      sandbox: ground.held,
    } as const;
    const clock = options.clock ?? systemClock;
    // A question that stays open was meant to: only who says so settles it without anybody.
    const isHeld = isAsked && openQuestions(standing()).some(({ question }) => question.held);
    const asking = isHeld ? { onPermission: "halt" as const, ...options } : options;
    const adopted =
      wanted === null ? recorded.adopted : { ...recorded.adopted, [wanted.digest]: wanted.flow };
    const place = worktree === undefined ? { cwd } : { cwd, worktree };
    const warnings =
      worktree === undefined
        ? []
        : await restorePlace(
            flow,
            { run: row.id, worktree, cwd, isBegun: hasWorked(entries) },
            standing(),
            options,
          );
    return await withGround(flow, { stateDir, run: row.id }, cwd, options, config, ground, async (around) => {
      const past =
        wanted === null
          ? entries
          : [...entries, await adopt(handle, entries.length + 1, clock.now(), wanted)];
      if (wanted !== null) options.observe?.(past.at(-1)!, fold(began, past, adopted), flow);
      const digest = wanted?.digest ?? adoptions(entries).at(-1) ?? row.digest;
      const flows = { began, adopted, flow, digest };
      const started = entries[0]?.event;
      const named = started?.type === "run.started" ? started.repository : undefined;
      const isProposed = worktree?.finalize.createPr === true;
      const github = { ...surroundings(options), cwd: worktree?.home ?? cwd, isProposed };
      const repository = await pinRepository([flow, began, ...Object.values(adopted)], github, named);
      const left = strays.length === 0 ? [] : [straysText(strays)];
      const told = { ...around, warnings: [...left, ...warnings, ...around.warnings] };
      const where = { root, stateDir, ...place };
      const asked = { backend, closing, redactor };
      const about = { options: asking, ...flows, ...where, repository, clock, ...asked, handle, begin, past };
      return await driveTo({ ...about, around: told, problems: [] });
    });
  });
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
  return `Processes of the run were still running although the process that owned it was gone. They were ended: ${names.join(", ")}.`;
}

/** Somebody wanted it to rest: only who says so goes on. A stop that nobody heeded is past. */
function requireUnpaused({ row, entries }: RecordedRun, stateDir: string, { unpause }: ResumeOptions): void {
  const ended = entries.at(-1)?.event;
  const wish = wishFor(stateDir, row.id);
  const isPaused =
    wish === "pause" ||
    ended?.type === "run.paused" ||
    (ended?.type === "run.ended" && ended.verdict.code === "PAUSED");
  if (isPaused && unpause !== true) {
    const why = `Run ${row.id} of "${row.agent}" is paused. Go on with: lockstep continue ${row.id}`;
    throw new RunnerError("RUN_PAUSED", why);
  }
  if (wish !== null) forgetWish(stateDir, row.id);
}

/** How its commands were held when it was last driven; false where an earlier version recorded it. */
function wasConfined(entries: readonly Entry[]): boolean {
  const driven = entries.findLast(
    ({ event }) => event.type === "run.started" || event.type === "run.resumed",
  );
  const { event } = driven ?? {};
  return (event?.type === "run.started" || event?.type === "run.resumed") && event.sandbox?.confined === true;
}

/** Whether any step of it was begun: its worktree was whole then. */
function hasWorked(entries: readonly Entry[]): boolean {
  return entries.some(({ event }) => event.type.startsWith("step."));
}

/** A fork that nobody has driven yet. */
function isFresh(entries: readonly Entry[]): boolean {
  const started = entries[0]?.event;
  if (started?.type !== "run.started" || started.forkedFrom === undefined) return false;
  const { seq } = started.forkedFrom;
  return !entries.slice(seq).some(({ event }) => event.type === "run.resumed");
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

function isGiven(value: unknown): boolean {
  return value !== undefined;
}

/** Of a run that ended by the flow's own doing, so that nothing is left to go on with; null: something is. */
export async function resultIfOver(journal: Journal, id: string, now: number): Promise<Result | null> {
  // Asked again: it may have gone on until it was claimed.
  const [row] = await journal.rows([id]);
  if (row?.last?.event.type !== "run.ended") return null;
  const { standingOf } = await import("./records/standing.ts");
  const { result, state, damage } = await standingOf(journal, { ...row, owned: false }, now);
  if (damage !== null) throw new RunnerError("JOURNAL_UNAVAILABLE", damage.why);
  return state.halted.length > 0 ? null : result;
}

function toldOver(result: Result, id: string, { notify }: ResumeOptions): Result {
  const text = `Run ${id} had ended before (${result.outcome}): nothing was resumed, and this is its result.`;
  notify?.(text);
  return { ...result, warnings: [...result.warnings, text] };
}
