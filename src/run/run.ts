/** Starting and resuming runs: options become ports, the engine drives, a result document comes out. */
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { drive, fold, type Drive } from "../engine/drive.ts";
import {
  RunnerError,
  type Backend,
  type Clock,
  type Journal,
  type Person,
  type RunHandle,
} from "../engine/ports.ts";
import { addEntry, createReport } from "../engine/report.ts";
import { prepareSchemas, schemasOf } from "../engine/schema.ts";
import type { State } from "../engine/state.ts";
import type { Entry, Worktree } from "../flow/event.ts";
import type { Flow } from "../flow/flow.ts";
import type { Json } from "../flow/json.ts";
import { RESERVED_FIELDS } from "../flow/placeholder.ts";
import { hasErrors, type Problem } from "../flow/problem.ts";
import { exitCode } from "../flow/verdict.ts";
import { coerceParameters } from "../load/parameters.ts";
import { chooseBackend, recallBackend, type BackendOptions } from "./backend.ts";
import { openExistingJournal, openJournal } from "./journal.ts";
import { flowDigest, load, type Loaded } from "./load.ts";
import { placeOf, restorePlace, surroundings } from "./place.ts";
import { createPorts } from "./ports.ts";
import { findProject } from "./project.ts";
import { findRun, flowOf, show } from "./runs.ts";
import { toFailure, toResult, type Result } from "./result.ts";
import { requireTrust, type TrustOptions } from "./trust.ts";
import type { WorktreeOptions } from "./worktree.ts";

export type RunOptions = {
  readonly agent: string;
  /** Parameter values by name; text is turned into the declared type. */
  readonly args?: { readonly [name: string]: Json };
  /** What was piped in, for prompts that read `{input_text}`. */
  readonly input?: string;
  readonly strict?: boolean;
} & WorktreeOptions &
  DriveOptions;

export type ResumeOptions = {
  /** A run id, a unique prefix of one, `@last` or `@failed`. */
  readonly run: string;
} & DriveOptions;

export type DriveOptions = BackendOptions & {
  /** Where the run works; the project is found from here. */
  readonly cwd?: string;
  readonly stateDir?: string;
  /** Where runs are recorded; the project's own journal by default. It is not closed at the end. */
  readonly journal?: Journal;
  readonly clock?: Clock;
  readonly env?: NodeJS.ProcessEnv;
  readonly trust?: Pick<TrustOptions, "digest" | "confirm">;
  readonly signal?: AbortSignal;
  /** Asks the person at the terminal; absent when there is nobody. */
  readonly ask?: Person["choose"];
  /** What becomes of a tool call outside of a stage's list when nobody can be asked. */
  readonly onPermission?: Person["absent"];
  /** Hears of everything that is recorded, right after it is. */
  readonly observe?: (entry: Entry, state: State, flow: Flow) => void;
};

/**
 * Runs an agent to its end. Never throws for what the flow, the model or the environment does: the result tells.
 *
 * @example
 * const result = await run({ agent: "iterator", args: { issue: 12 }, script: replies });
 */
export async function run(options: RunOptions): Promise<Result> {
  return await reported(
    options.agent,
    async () => await runLoaded(await load(options.agent, options), options),
  );
}

/** Runs an agent that was loaded before. */
export async function runLoaded(loaded: Loaded, options: Omit<RunOptions, "agent">): Promise<Result> {
  return await reported(loaded.agent, async () => {
    const { flow, problems } = loaded;
    if (flow === null || hasErrors(problems)) return invalid(loaded);
    const digest = flowDigest(flow);
    const { args, problems: misgiven } = coerceParameters(
      flow.parameters,
      options.args ?? {},
      flow.openArguments ?? false,
    );
    if (misgiven.length > 0)
      return toFailure(
        flow.agent,
        "PARAMETERS_INVALID",
        misgiven.map(({ message, fix }) => `${message} ${fix}`).join("\n"),
      );
    const reserved =
      flow.dialect === "stage" ? Object.keys(args).find((name) => RESERVED_FIELDS.has(name)) : undefined;
    if (reserved !== undefined)
      return toFailure(
        flow.agent,
        "PARAMETERS_INVALID",
        `"${reserved}" belongs to the runtime and cannot be given. Use another name.`,
      );
    await prepareSchemas(schemasOf(flow));
    const backend = await chooseBackend(options, flow.agent, []);
    requireToolCalling(flow, backend);
    await requireTrust(flow, {
      root: loaded.project.root,
      env: options.env ?? process.env,
      ...options.trust,
    });
    return await withJournal(loaded.project.stateDir, options, async (journal, clock) => {
      const id = newRunId();
      const { cwd, worktree, warnings, undo } = await placeOf(flow, options, id);
      const at = clock.now();
      const { agent } = flow;
      const input = options.input ?? "";
      const place = worktree === undefined ? { cwd } : { cwd, worktree };
      const started = { run: id, agent, flow: digest, args, input, ...place, backend: backend.spec };
      const begin: Entry = { seq: 1, at, event: { type: "run.started", ...started } };
      const created = await journal.create({ id, agent, at, digest, flow }, [begin]).catch(async (error) => {
        await undo?.();
        throw error;
      });
      const { root } = loaded.project;
      const about = {
        options,
        flow,
        digest,
        root,
        ...place,
        clock,
        backend,
        begin,
        past: [],
        problems,
        warnings,
      };
      return await held(created, async (handle) => driveTo({ ...about, handle }));
    });
  });
}

/** Goes on with a run where its journal ends, with the flow it was started with. */
export async function resume(options: ResumeOptions): Promise<Result> {
  return await reported("", async () => {
    const { root, stateDir } = findProject(options.cwd ?? process.cwd(), options.stateDir);
    if (options.journal !== undefined) return await resumeFrom(options.journal, root, options);
    const journal = await openExistingJournal(stateDir, options.clock ?? systemClock);
    if (journal === null) {
      throw new RunnerError(
        "RUN_UNKNOWN",
        `There is no run "${options.run}": none is recorded in ${stateDir}.`,
      );
    }
    try {
      return await resumeFrom(journal, root, options);
    } finally {
      await journal.close();
    }
  });
}

async function resumeFrom(journal: Journal, root: string, options: ResumeOptions): Promise<Result> {
  const row = await findRun(journal, options.run);
  const { id, digest } = row;
  const flow = await flowOf(journal, row);
  return await held(await journal.claim(id), async (handle) => {
    const past = await journal.read(id);
    if (isOver(flow, past)) return await showOver(journal, id);
    const { cwd, worktree, spec, marks } = recallBackend(past);
    const backend = await chooseBackend(options, flow.agent, marks, spec);
    requireToolCalling(flow, backend);
    await requireTrust(flow, { root, env: options.env ?? process.env, ...options.trust });
    const renewed = options.script !== undefined || options.backend !== undefined;
    const begin = {
      type: "run.resumed",
      epoch: handle.epoch,
      ...(renewed ? { backend: backend.spec } : {}),
    } as const;
    const clock = options.clock ?? systemClock;
    const warnings = worktree === undefined ? [] : await restorePlace(flow, worktree, cwd, past, options);
    return await driveTo({
      options,
      flow,
      digest,
      root,
      cwd,
      ...(worktree === undefined ? {} : { worktree }),
      clock,
      backend,
      handle,
      begin,
      past,
      problems: [],
      warnings,
    });
  });
}

/** A stage ends with a call of its completion tool: a model that cannot call tools could never end one. */
function requireToolCalling(flow: Flow, { spec, toolCalling }: Backend): void {
  if (toolCalling !== false) return;
  const stage = Object.values(flow.steps).find(
    ({ answer }) => answer.kind === "object" && answer.channel.kind === "tool",
  );
  if (stage === undefined) return;
  throw new RunnerError(
    "MissingCapability",
    `ProviderCapability/MissingCapability: toolCalling. Stage "${stage.id}" is completed by calling a tool, and the ` +
      `model behind "${spec.id}" cannot call tools. Choose another model.`,
  );
}

/** Lets the run go at the end, however that comes. */
async function held(handle: RunHandle, use: (handle: RunHandle) => Promise<Result>): Promise<Result> {
  try {
    return await use(handle);
  } finally {
    // A journal that broke cannot be told of the release either; its owner's death frees the run just as well.
    await handle.release().catch(() => undefined);
  }
}

type Driven = {
  readonly options: DriveOptions;
  readonly flow: Flow;
  readonly digest: string;
  readonly root: string;
  readonly cwd: string;
  readonly worktree?: Worktree;
  readonly clock: Clock;
  readonly backend: Backend;
  readonly handle: RunHandle;
  readonly begin: Drive["begin"];
  readonly past: readonly Entry[];
  readonly problems: readonly Problem[];
  readonly warnings: readonly string[];
};

async function driveTo(driven: Driven): Promise<Result> {
  const { options, flow, digest, root, cwd, worktree, clock, backend, handle, begin, past, problems } =
    driven;
  const report = createReport();
  for (const entry of past) addEntry(report, entry);
  const tell = (state: State, warnings: readonly string[]) =>
    toResult({
      run: handle.run,
      flow,
      digest,
      state,
      report,
      problems,
      warnings: [...driven.warnings, ...warnings],
    });
  const { env, signal } = surroundings(options);
  const concluding = async (tree: Worktree) =>
    (await import("./worktree.ts")).conclusionOf(flow, tree, handle.run, report.effects, { env, signal });
  let newest: State | null = null;
  const ports = createPorts({ ...options, flow, backend, clock, root, cwd });
  try {
    const state = await drive({
      flow,
      ports,
      handle,
      past,
      begin,
      signal,
      ...(worktree !== undefined && { conclude: await concluding(worktree) }),
      observe: (entry, after) => {
        newest = after;
        addEntry(report, entry);
        options.observe?.(entry, after, flow);
      },
    });
    return tell(state, state.verdict === null ? [] : (backend.leftovers?.() ?? []));
  } catch (error) {
    // The journal or a port broke: what was committed stays, and the run can be resumed from there.
    if (!(error instanceof RunnerError) || newest === null) throw error;
    return broken(tell(newest, []), error);
  } finally {
    await ports.watch.close?.();
    await ports.hooks?.close();
    await backend.close?.();
  }
}

/** Whether the run ended by the flow's own doing, so that nothing is left to go on with. */
function isOver(flow: Flow, past: readonly Entry[]): boolean {
  if (past.at(-1)?.event.type !== "run.ended") return false;
  return fold(flow, past).halted.length === 0;
}

async function showOver(journal: Journal, id: string): Promise<Result> {
  const result = await show(journal, id);
  return {
    ...result,
    warnings: [...result.warnings, `run ${id} had ended before; there was nothing to resume`],
  };
}

async function withJournal(
  stateDir: string,
  options: DriveOptions,
  use: (journal: Journal, clock: Clock) => Promise<Result>,
): Promise<Result> {
  const clock = options.clock ?? systemClock;
  if (options.journal !== undefined) return await use(options.journal, clock);
  const journal = await openJournal(stateDir, clock);
  try {
    return await use(journal, clock);
  } finally {
    await journal.close();
  }
}

/** What stops a run from outside becomes a result like any other. Anything else is a bug and is thrown. */
async function reported(agent: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof RunnerError)) throw error;
    return toFailure(agent, error.code, error.message);
  }
}

function broken(result: Result, error: RunnerError): Result {
  const reason = `${error.message} What was committed is kept; go on with: lockstep resume ${result.run}`;
  const verdict = { outcome: "failed", code: error.code } as const;
  const told = {
    success: false,
    reason,
    completionReason: reason,
    exitCode: exitCode(verdict),
    resumable: true,
  };
  return { ...result, ...verdict, ...told };
}

function invalid({ agent, problems }: Loaded): Result {
  const errors = problems.filter((problem) => problem.severity === "error");
  const reason = `Agent "${agent}" cannot run: ${errors.length} problem${errors.length === 1 ? "" : "s"} found before it started.`;
  return toFailure(agent, "FLOW_INVALID", reason, problems);
}

/** Ten letters and digits: short to type, and a few of them are enough as a prefix. */
function newRunId(): string {
  const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";
  return Array.from(randomBytes(10), (byte) => alphabet[byte % 32]).join("");
}

const systemClock: Clock = {
  now: () => Date.now(),
  sleep: (ms, signal) => delay(ms, undefined, { signal }).catch(() => undefined),
};
