/** Drives an open run from where its journal ends as far as it goes, and summarises it as a result document. */
import { mayAct } from "../engine/decide/due.ts";
import { drive, type Drive } from "../engine/drive/drive.ts";
import { RunnerError, type Backend, type Clock, type Person, type RunHandle } from "../engine/ports.ts";
import { addEntry, createReport, type Report } from "../story/report.ts";
import type { State } from "../engine/decide/state.ts";
import { addToTally, createTally, tallied } from "../story/tally.ts";
import type { Entry } from "../flow/event.ts";
import { exitCode } from "../flow/verdict.ts";
import type { Admitted, Entered, Opening } from "./open.ts";
import type { RecordedPast } from "./records/past.ts";
import type { StarterContext } from "./world/process-starter.ts";
import type { Listener } from "./watch/listen.ts";
import type { DriveOptions } from "./options.ts";
import type { Acting } from "./act.ts";
import { surroundings } from "./world/workplace.ts";
import type { WorktreeSurroundings } from "./world/worktree.ts";
import { createPorts } from "./world/ports.ts";
import { toResult, type Result } from "../tell/result.ts";
import { hearWishes } from "./people/pause-and-stop.ts";

/** A run as its journal has it now: what comes first when it is driven, and what was recorded before. */
export type OpenedRecord = {
  readonly handle: RunHandle;
  readonly begin: Drive["begin"];
  /** What was written since it was read. */
  readonly past: readonly Entry[];
  /** Absent: the run is new. */
  readonly recorded?: RecordedPast;
};

/** A run that is open: nothing refuses it, its place is there, and its beginning is recorded. */
export type Driven = Omit<Opening, "enter" | "past" | "cwd"> &
  Omit<Admitted, "spending" | "said" | "ground"> &
  Omit<Entered, "record" | "warnings"> &
  OpenedRecord & {
    readonly options: DriveOptions;
    readonly clock: Clock;
    readonly around: StarterContext;
  };

export async function driveRun(driven: Driven, stack: AsyncDisposableStack): Promise<Result> {
  const { options, flow, began, adopted, digest, project, cwd, run } = driven;
  const { clock, backend, redactor, around, handle, begin, past, recorded, problems, repository } = driven;
  const { root, stateDir } = project;
  // Here once more: it is closed before what it was given, such as servers and the sandbox.
  if (driven.close !== null) stack.defer(driven.close);
  const { report, tally } = recorded ?? { report: createReport(), tally: createTally() };
  const listener = isHeard(driven) ? await listenerOf(driven) : null;
  if (listener !== null) stack.defer(async () => void (await listener.close()));
  const noted = new Set<string>();
  const summarise = async (state: State, left: readonly string[]) => {
    const warnings = [...around.warnings, ...noted, ...left, ...((await listener?.close()) ?? [])];
    const steps = tallied(tally);
    const summary = { state, report, steps, problems, warnings: redactor.value(warnings) };
    return toResult({ run, flow, digest, ...summary });
  };
  const { env, signal: given } = surroundings(options);
  const isSteered = options.steered ?? options.journal === undefined;
  const wishes = isSteered ? hearWishes(driven.mail, run) : null;
  if (wishes !== null) stack.defer(wishes.close);
  const signal = wishes === null ? given : eitherOf(given, wishes.stop, stack);
  const acting = mayActOutside(driven) ? await actingOf(driven, { env, signal }, report) : null;
  if (acting !== null) stack.defer(acting.close);
  let newest: State | null = null;
  const onWarning = (text: string) => void noted.add(text);
  const person = personOf(driven, onWarning);
  const about = { flow, clock, root, cwd, stateDir, repository, redactor, person, ground: around, onWarning };
  const watched = backend.run === undefined ? backend : await watchedOver(driven);
  const opened = createPorts({ ...options, ...about, signal, backend: watched });
  const { snapshot } = options;
  const ports = {
    ...opened,
    ...(acting !== null && { act: acting.act }),
    ...(snapshot !== undefined && { snapshot }),
  };
  if (ports.hooks !== undefined) stack.defer(ports.hooks.close);
  if (ports.watch.close !== undefined) stack.defer(ports.watch.close);
  if (options.onPrepared !== undefined && flow.settings.place?.prepare !== undefined) {
    await (await import("./world/prepare-place.ts")).preparePlace(flow, ports.shell, signal);
    options.onPrepared();
  }
  if (listener !== null && recorded !== undefined) await listener.catchUp(recorded);
  try {
    const state = await drive({
      flow: began,
      adopted,
      ports,
      handle,
      past,
      ...(recorded !== undefined && { folded: recorded.folded() }),
      begin,
      signal,
      wishes: { ...wishes, ...(options.yielding !== undefined && { yield: options.yielding }) },
      ...(options.parkMs !== undefined && { parkMs: options.parkMs }),
      wantsDeeds: listener !== null || options.observe !== undefined,
      recall: (entry, after, deeds) => {
        addEntry(report, entry);
        addToTally(tally, entry, after);
        listener?.recall(entry, after, deeds);
      },
      observe: (entry, after, deeds) => {
        newest = after;
        addEntry(report, entry);
        addToTally(tally, entry, after);
        listener?.hear(entry, after, deeds);
        if (entry.event.type === "step.told" && entry.event.id !== undefined)
          waitFor(driven.mail.discard(run, entry.event.id), stack);
        options.observe?.(entry, after, flow, deeds);
      },
    });
    const left = isDone(state) ? (backend.leftovers?.() ?? []) : [];
    return await summarise(state, redactor.value(left));
  } catch (error) {
    // The journal or a port broke: what was committed stays, and the run can be resumed from there.
    if (!(error instanceof RunnerError) || newest === null) throw error;
    return broken(await summarise(newest, []), error, redactor.text(error.message));
  }
}

/** Nothing is closed before it is done. */
function waitFor(work: Promise<void>, stack: AsyncDisposableStack): void {
  stack.defer(() => work);
}

/** Whether what the model has left will never be used: a run that waits needs it when it goes on, and so does a script that does not fit. */
function isDone({ verdict }: State): boolean {
  return verdict !== null && verdict.outcome !== "waiting" && verdict.code !== "SCRIPT_MISMATCH";
}

/** Whether anything can become due outside. */
function mayActOutside({ began, adopted, worktree }: Driven): boolean {
  return worktree !== undefined || mayAct(began) || Object.values(adopted).some(mayAct);
}

async function actingOf(driven: Driven, around: WorktreeSurroundings, report: Report): Promise<Acting> {
  return (await import("./act.ts")).createActing({ ...driven, ...around, report });
}

/** An agent with a loop of its own is watched; a model has a patience of its own. */
async function watchedOver({ backend, flow }: Driven): Promise<Backend> {
  return (await import("./world/watchdog.ts")).watchOver(backend, flow.settings.watch?.inactivityMs);
}

/** Every step looks at it several times, and each look at a signal of `AbortSignal.any` looks at its sources again. */
function eitherOf(one: AbortSignal, other: AbortSignal, stack: AsyncDisposableStack): AbortSignal {
  const both = new AbortController();
  for (const signal of [one, other]) {
    const abort = () => both.abort(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort);
    stack.defer(() => signal.removeEventListener("abort", abort));
  }
  return both.signal;
}

/** Most runs ask no person, so what asks is loaded when one does. */
function personOf({ options, flow, mail, run, clock }: Driven, onWarning: (text: string) => void): Person {
  const { ask, wait = false, onPermission = "deny" } = options;
  const expireMs = options.expireMs ?? flow.settings.questions?.expireMs;
  const absent = wait ? "halt" : onPermission;
  let asking: Promise<Person["ask"]> | null = null;
  const open = async () => {
    const notify = (text: string) => {
      onWarning(text);
      options.notify?.(text);
    };
    const { createAsking } = await import("./people/people.ts");
    return createAsking({
      mail,
      run,
      clock,
      wait,
      notify,
      ...(ask !== undefined && { ask }),
    });
  };
  return {
    absent,
    isReachable: ask !== undefined || absent === "halt",
    ...(expireMs !== undefined && { expireMs }),
    ask: async (question, signal) => await (await (asking ??= open()))(question, signal),
  };
}

const loadListening = () => import("./watch/listen.ts");
let listening: ReturnType<typeof loadListening> | null = null;

/** Whether the run has a log file, traces or notices. */
function isHeard({ options: { log, env = process.env }, flow, config: { notify } }: Driven): boolean {
  const isLogged = log !== undefined || flow.settings.logging.enabled;
  return isLogged || isTraced(env) || Object.keys(notify).length > 0;
}

async function listenerOf(driven: Driven): Promise<Listener> {
  const { options, flow, project, run, begin, recorded } = driven;
  const { log, env = process.env } = options;
  const traced = isTraced(env);
  const { notify } = driven.config;
  const { listen } = await (listening ??= loadListening());
  return await listen({
    flow,
    run,
    startedAt: recorded?.recalled.startedAt ?? ("at" in begin ? begin.at : 0),
    isResumed: recorded !== undefined,
    root: project.root,
    env,
    traced,
    notify,
    log,
  });
}

/** Whether the environment asks for traces. */
function isTraced(env: NodeJS.ProcessEnv): boolean {
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === "true" || env.OTEL_TRACES_EXPORTER === "none") return false;
  return Boolean(env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT) || Boolean(env.OTEL_EXPORTER_OTLP_ENDPOINT);
}

function broken(result: Result, error: RunnerError, message: string): Result {
  // Another process goes on with a run that was taken over.
  const resumable = error.code !== "RUN_OWNED_ELSEWHERE";
  const onward = ` Completed work is kept; continue with: lockstep resume ${result.run}`;
  const reason = resumable ? message + onward : message;
  const verdict = { outcome: "failed", code: error.code } as const;
  const stopped = {
    success: false,
    reason,
    completionReason: reason,
    exitCode: exitCode(verdict),
    resumable,
  };
  return { ...result, ...verdict, ...stopped };
}
