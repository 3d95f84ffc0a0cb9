/** One stretch of a run: from where its journal ends, driven as far as it goes, and summarised as a result document. */
import { createRedactor, type Redactor } from "../boundaries/redact/redact.ts";
import { drive, type Drive } from "../engine/drive/drive.ts";
import { RunnerError, type Backend, type Clock, type Person, type RunHandle } from "../engine/ports.ts";
import { addEntry, createReport, type Report } from "../story/report.ts";
import type { State } from "../engine/decide/state.ts";
import { addToTally, createTally, tallied } from "../story/tally.ts";
import type { Entry, Worktree } from "../flow/event.ts";
import type { Flow, Flows } from "../flow/flow.ts";
import type { Problem } from "../flow/problem.ts";
import { exitCode } from "../flow/verdict.ts";
import type { Acting } from "./actions.ts";
import type { Pinned } from "./world/github.ts";
import type { Around } from "./world/process-starter.ts";
import type { Listener } from "./watch/listen.ts";
import type { DriveOptions } from "./options.ts";
import type { Outward } from "./outward.ts";
import { surroundings } from "./world/workplace.ts";
import { createPorts } from "./world/ports.ts";
import { toFailure, toResult, type Result } from "./result.ts";
import { isTraced } from "./watch/traced.ts";
import { secretsFor } from "./world/secrets.ts";
import { hearWishes } from "./people/wishes.ts";

export type Driven = {
  readonly options: DriveOptions;
  readonly flow: Flow;
  /** Where that is not the flow which the run began with: that one, and all it adopted. */
  readonly began?: Flow;
  readonly adopted?: Flows;
  readonly digest: string;
  readonly root: string;
  readonly stateDir: string;
  readonly cwd: string;
  readonly worktree?: Worktree;
  readonly repository: Pinned;
  readonly clock: Clock;
  readonly backend: Backend;
  readonly closing: Closing;
  readonly redactor: Redactor;
  readonly around: Around;
  readonly handle: RunHandle;
  readonly begin: Drive["begin"];
  readonly past: readonly Entry[];
  readonly problems: readonly Problem[];
};

export async function driveTo(driven: Driven): Promise<Result> {
  const { options, flow, digest, root, cwd, worktree, clock, backend, redactor, around } = driven;
  const { handle, begin, past, problems, repository } = driven;
  const { began = flow, adopted = {} } = driven;
  const report = createReport();
  const tally = createTally();
  const listener = await listenerOf(driven);
  const noted = new Set<string>();
  const tell = async (state: State, left: readonly string[]) => {
    const warnings = [...around.warnings, ...noted, ...left, ...((await listener?.close()) ?? [])];
    const steps = tallied(tally);
    const told = { state, report, steps, problems, warnings: redactor.value(warnings) };
    return toResult({ run: handle.run, flow, digest, ...told });
  };
  const { env, signal: given } = surroundings(options);
  const isSteered = options.steered ?? options.journal === undefined;
  const wishes = isSteered ? hearWishes(driven.stateDir, handle.run) : null;
  const signal = wishes === null ? given : AbortSignal.any([given, wishes.stop]);
  const { github } = flow.settings;
  const isOutward = worktree !== undefined || (github.enabled && github.asked === true);
  const acting = await actingOf(driven, report);
  const outward = isOutward
    ? (await import("./outward.ts")).outward({
        ...driven,
        ...gitIn(driven),
        run: handle.run,
        report,
        env,
        signal,
        notify: (text) => options.notify?.(text),
      })
    : undefined;
  let newest: State | null = null;
  const taken: Promise<void>[] = [];
  const onWarning = (text: string) => void noted.add(text);
  const person = personOf(driven, onWarning);
  const { stateDir } = driven;
  const place = { root, cwd, stateDir, repository };
  const about = { flow, clock, ...place, redactor, person, ground: around, onWarning };
  const ports = createPorts({ ...options, ...about, signal, backend: await watchedOver(driven) });
  try {
    const state = await drive({
      flow: began,
      adopted,
      ports,
      handle,
      past,
      begin,
      signal,
      ...(wishes !== null && { wishes }),
      ...attending(acting?.attend, outward, acting?.attendLast),
      recall: (entry, after) => {
        addEntry(report, entry);
        addToTally(tally, entry, after);
        acting?.hear(entry, after);
        listener?.recall(entry, after);
      },
      observe: (entry, after) => {
        newest = after;
        addEntry(report, entry);
        addToTally(tally, entry, after);
        acting?.hear(entry, after);
        listener?.hear(entry, after);
        if (entry.event.type === "step.told" && entry.event.id !== undefined)
          taken.push(discard(driven, entry.event.id));
        options.observe?.(entry, after, flow);
      },
    });
    const left = isDone(state) ? (backend.leftovers?.() ?? []) : [];
    return await tell(state, redactor.value(left));
  } catch (error) {
    // The journal or a port broke: what was committed stays, and the run can be resumed from there.
    if (!(error instanceof RunnerError) || newest === null) throw error;
    return broken(await tell(newest, []), error, redactor.text(error.message));
  } finally {
    wishes?.close();
    await Promise.all(taken);
    await listener?.close();
    await ports.watch.close?.();
    await ports.hooks?.close();
    await acting?.close();
    await driven.closing.close();
  }
}

/** Whether what the model has left will never be used: a run that waits needs it when it goes on, and so does a script that does not fit. */
function isDone({ verdict }: State): boolean {
  return verdict !== null && verdict.outcome !== "waiting" && verdict.code !== "SCRIPT_MISMATCH";
}

/** The run's own trees are git's to look at where the run's commands were: in its sandbox. */
function gitIn({ worktree, around }: Driven): Pick<Outward, "inside"> {
  if (worktree === undefined || around.git === undefined) return {};
  return { inside: around.git([worktree.path, worktree.home]) };
}

/** What answers ask for comes first: the files they write are part of the work. */
function attending(...all: readonly Drive["attend"][]): Pick<Drive, "attend"> {
  const given = all.filter((attend) => attend !== undefined);
  if (given.length === 0) return {};
  return {
    attend: async (state, record) => {
      for (const attend of given) if (!(await attend(state, record))) return false;
      return true;
    },
  };
}

/** Loaded only where answers may ask for anything. */
async function actingOf(driven: Driven, report: Report): Promise<Acting | null> {
  const { options, flow, began = flow, adopted = {}, root, cwd, worktree, clock, redactor, handle } = driven;
  const { around } = driven;
  if (![began, ...Object.values(adopted)].some(({ settings }) => settings.actions.enabled)) return null;
  const { createActing } = await import("./actions.ts");
  const { hookTimeoutMs } = options;
  const { stateDir } = driven;
  const place = { run: handle.run, root, cwd, stateDir, home: worktree?.home ?? cwd };
  const timing = hookTimeoutMs === undefined ? {} : { hookTimeoutMs };
  return createActing({
    ...surroundings(options),
    ...place,
    ...timing,
    began,
    adopted,
    report,
    clock,
    repository: driven.repository,
    redactor,
    confine: around.child,
  });
}

/** An agent with a loop of its own is watched; a model has a patience of its own. */
async function watchedOver({ backend, flow }: Driven): Promise<Backend> {
  if (backend.run === undefined) return backend;
  return (await import("./world/watchdog.ts")).watchOver(backend, flow.settings.watch?.inactivityMs);
}

/** Most runs ask nobody, so what asks is loaded when somebody is. */
function personOf(
  { options, flow, stateDir, handle, clock }: Driven,
  onWarning: (text: string) => void,
): Person {
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
      stateDir,
      run: handle.run,
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

/** It is in the journal now. */
async function discard({ stateDir, handle }: Driven, question: string): Promise<void> {
  const { createMailbox } = await import("./people/mailbox.ts");
  await createMailbox(stateDir, handle.run).discard(question);
}

const loadListening = () => import("./watch/listen.ts");
let listening: ReturnType<typeof loadListening> | null = null;

/** The log file and the traces of the run; loaded only where there are any. */
async function listenerOf({ options, flow, root, handle, begin, past }: Driven): Promise<Listener | null> {
  const { log, env = process.env } = options;
  if (log === undefined && !flow.settings.logging.enabled && !isTraced(env)) return null;
  const first = past[0] ?? ("at" in begin ? begin : null);
  const { listen } = await (listening ??= loadListening());
  const isResumed = past.length > 0;
  return await listen({ flow, run: handle.run, startedAt: first?.at ?? 0, isResumed, root, env, log });
}

function broken(result: Result, error: RunnerError, message: string): Result {
  // Another process goes on with a run that was taken over.
  const resumable = error.code !== "RUN_OWNED_ELSEWHERE";
  const onward = ` What was committed is kept; go on with: lockstep resume ${result.run}`;
  const reason = resumable ? message + onward : message;
  const verdict = { outcome: "failed", code: error.code } as const;
  const told = {
    success: false,
    reason,
    completionReason: reason,
    exitCode: exitCode(verdict),
    resumable,
  };
  return { ...result, ...verdict, ...told };
}

/** Closes a backend once: at the end of its stretch, or when the run is refused before there is one. */
export function closingOf(backend: Backend): Closing {
  let closed: Promise<void> | null = null;
  const close = () => (closed ??= backend.close?.() ?? Promise.resolve());
  return { close, [Symbol.asyncDispose]: close };
}

export type Closing = AsyncDisposable & { readonly close: () => Promise<void> };

/** Lets the run go at the end, however that comes. */
export async function held(handle: RunHandle, use: (handle: RunHandle) => Promise<Result>): Promise<Result> {
  try {
    return await use(handle);
  } finally {
    // A journal that broke cannot be told of the release either; its owner's death frees the run just as well.
    await handle.release().catch(() => undefined);
  }
}

/** A stage ends with a call of its completion tool: a model that cannot call tools could never end one. */
export function requireToolCalling(flow: Flow, { spec, toolCalling = true }: Backend): void {
  const can = typeof toolCalling === "function" ? toolCalling : () => toolCalling;
  const stage = Object.values(flow.steps).find(
    ({ answer, model }) => answer.kind === "object" && answer.channel.kind === "tool" && !can(model),
  );
  if (stage === undefined) return;
  throw new RunnerError(
    "MissingCapability",
    `ProviderCapability/MissingCapability: toolCalling. Stage "${stage.id}" is completed by calling a tool, and the ` +
      `model "${stage.model}" behind "${spec.id}" cannot call tools. Choose another model.`,
  );
}

/** What stops a run from outside becomes a result like any other. Anything else is a bug and is thrown. */
export async function reported(
  agent: string,
  options: Pick<DriveOptions, "env" | "cwd" | "secrets">,
  work: (known: { flow?: Flow }) => Promise<Result>,
): Promise<Result> {
  /** The flow, once it is known: it names variables that hold secrets. */
  const known: { flow?: Flow } = {};
  try {
    return await work(known);
  } catch (error) {
    if (!(error instanceof RunnerError)) throw error;
    return toFailure(agent, error.code, redactorOf(options, known.flow).text(error.message));
  }
}

/** The environment is looked through when there is a text to look for its secrets in. */
export function redactorOf(options: Pick<DriveOptions, "env" | "cwd" | "secrets">, flow?: Flow): Redactor {
  return createRedactor(secretsFor(options, flow));
}
