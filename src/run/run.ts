/** Starting and resuming runs: options become ports, the engine drives, a result document comes out. */
import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { ServedTool } from "../boundaries/toolbox.ts";
import { createRedactor, secretsIn, type Redactor } from "../boundaries/redact.ts";
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
import { addToTally, createTally, tallied } from "../engine/tally.ts";
import { adoptions } from "../flow/adopted.ts";
import type { Entry, Worktree } from "../flow/event.ts";
import type { Flow, Flows, Spending } from "../flow/flow.ts";
import type { Json } from "../flow/json.ts";
import { RESERVED_FIELDS } from "../flow/placeholder.ts";
import { variablesIn } from "../flow/mcp.ts";
import { hasErrors, type Problem } from "../flow/problem.ts";
import { exitCode } from "../flow/verdict.ts";
import { coerceParameters } from "../load/parameters.ts";
import { spendingOf } from "../load/spending.ts";
import type { AdoptOptions } from "./adopt.ts";
import { chooseBackend, recallBackend, type BackendOptions } from "./backend.ts";
import { readConfig, type SandboxWish, type UserConfig } from "./config.ts";
import { discreetSpec } from "./discreet.ts";
import { openExistingJournal, openJournal } from "./journal.ts";
import { flowDigest, load, type Loaded } from "./load.ts";
import { placeOf, restorePlace, surroundings } from "./place.ts";
import { createPorts } from "./ports.ts";
import { findProject, type Project } from "./project.ts";
import type { Listener } from "./listen.ts";
import { findRun, readRow, show, type RecordedRun } from "./runs.ts";
import { toFailure, toResult, type Result } from "./result.ts";
import { decideSandbox, openGround, placesOf, type Ground } from "./sandbox.ts";
import { isTraced } from "./traced.ts";
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
} & AdoptOptions &
  DriveOptions;

export type DriveOptions = BackendOptions & {
  /** Where the run works; the project is found from here. */
  readonly cwd?: string;
  readonly stateDir?: string;
  /** Where runs are recorded; the project's own journal by default. It is not closed at the end. */
  readonly journal?: Journal;
  readonly clock?: Clock;
  readonly env?: NodeJS.ProcessEnv;
  readonly trust?: Pick<TrustOptions, "digest" | "confirm">;
  /** Whether commands are confined; the user's own settings decide where this does not. */
  readonly sandbox?: SandboxWish;
  /** Values that must not be recorded, besides those that the environment holds. */
  readonly secrets?: readonly string[];
  readonly signal?: AbortSignal;
  /** Asks the person at the terminal, one question at a time; absent when there is nobody. */
  readonly ask?: Person["choose"];
  /** What the run may spend at the most, over what its files say; `resume` raises it. */
  readonly spending?: Spending;
  /** What becomes of a tool call outside of a stage's list when nobody can be asked. */
  readonly onPermission?: Person["absent"];
  /** Hears what the model says while it says it, where the backend can tell. Must not throw. */
  readonly onText?: (step: string, delta: string) => void;
  /** How long a hook of the project may take; half a minute unless said. */
  readonly hookTimeoutMs?: number;
  /** Writes a log file below this folder, also where the agent asks for none. */
  readonly log?: string;
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
    options,
    async () => await runLoaded(await load(options.agent, options), options),
  );
}

/** Runs an agent that was loaded before. */
export async function runLoaded(loaded: Loaded, options: Omit<RunOptions, "agent">): Promise<Result> {
  return await reported(loaded.agent, options, async () => {
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
    const redactor = redactorOf(options, flow);
    const env = options.env ?? process.env;
    const { project } = loaded;
    const backend = await chooseBackend(options, flow, { env, stateDir: project.stateDir });
    requireToolCalling(flow, backend);
    await requireTrust(flow, { root: project.root, env, ...options.trust });
    await requireGround(flow, project, options);
    return await withJournal(project.stateDir, options, async (journal, clock) => {
      const id = newRunId();
      const { cwd, worktree, warnings, undo } = await placeOf(flow, options, id);
      const place = worktree === undefined ? { cwd } : { cwd, worktree };
      let begun = false;
      return await withGround(flow, project, cwd, options, async (around) => {
        const at = clock.now();
        const { agent } = flow;
        const input = redactor.text(options.input ?? "");
        const spending = options.spending && {
          spending: { ...spendingOf(flow.limits), ...options.spending },
        };
        const spec = discreetSpec(backend, redactor);
        const started = { run: id, agent, flow: digest, args, input, ...place, backend: spec, ...spending };
        const begin: Entry = { seq: 1, at, event: { type: "run.started", ...started } };
        const created = await journal.create({ id, agent, at, digest, flow }, [begin]);
        begun = true;
        const { root } = project;
        const about = { options, flow, digest, root, ...place, clock, backend, redactor, begin, problems };
        const told = { ...around, warnings: [...warnings, ...around.warnings] };
        return await held(created, async (handle) => driveTo({ ...about, around: told, handle, past: [] }));
      }).catch(async (error: unknown) => {
        if (!begun) await undo?.();
        throw error;
      });
    });
  });
}

/** Goes on with a run where its journal ends, with the flow it was started with unless it adopts another. */
export async function resume(options: ResumeOptions): Promise<Result> {
  return await reported("", options, async () => {
    const project = findProject(options.cwd ?? process.cwd(), options.stateDir);
    if (options.journal !== undefined) return await resumeFrom(options.journal, project, options);
    const journal = await openExistingJournal(project.stateDir, options.clock ?? systemClock);
    if (journal === null) {
      throw new RunnerError(
        "RUN_UNKNOWN",
        `There is no run "${options.run}": none is recorded in ${project.stateDir}.`,
      );
    }
    try {
      return await resumeFrom(journal, project, options);
    } finally {
      await journal.close();
    }
  });
}

async function resumeFrom(journal: Journal, project: Project, options: ResumeOptions): Promise<Result> {
  const row = await findRun(journal, options.run);
  return await held(await journal.claim(row.id), async (handle) => {
    const { root, stateDir } = project;
    const recorded = await readRow(journal, row);
    const { flow: began, entries } = recorded;
    if (isOver(recorded)) return await showOver(journal, row.id);
    const isCompared = options.adopt === true || options.onChange !== undefined;
    const wanted = isCompared
      ? await (await import("./adopt.ts")).flowToAdopt(recorded, { cwd: root }, options)
      : null;
    const flow = wanted?.flow ?? recorded.current;
    const { cwd, worktree, spec, marks } = recallBackend(entries);
    const redactor = redactorOf(options, flow);
    const env = options.env ?? process.env;
    const backend = await chooseBackend(options, flow, { env, stateDir }, { spec, marks });
    requireToolCalling(flow, backend);
    await requireTrust(flow, { root, env, ...options.trust });
    const renewed = [options.script, options.backend, options.use, options.model].some(isGiven);
    const begin = {
      type: "run.resumed",
      epoch: handle.epoch,
      ...(renewed ? { backend: discreetSpec(backend, redactor) } : {}),
      ...(options.spending && { spending: { ...spentSoFar(recorded), ...options.spending } }),
    } as const;
    const clock = options.clock ?? systemClock;
    const adopted =
      wanted === null ? recorded.adopted : { ...recorded.adopted, [wanted.digest]: wanted.flow };
    const place = worktree === undefined ? { cwd } : { cwd, worktree };
    const warnings =
      worktree === undefined
        ? []
        : await restorePlace(flow, worktree, cwd, fold(began, entries, recorded.adopted), options);
    return await withGround(flow, project, cwd, options, async (around) => {
      const past =
        wanted === null
          ? entries
          : [...entries, await adopt(handle, entries.length + 1, clock.now(), wanted)];
      if (wanted !== null) options.observe?.(past.at(-1)!, fold(began, past, adopted), flow);
      const digest = wanted?.digest ?? adoptions(entries).at(-1) ?? row.digest;
      const flows = { began, adopted, flow, digest };
      const told = { ...around, warnings: [...warnings, ...around.warnings] };
      const about = { options, ...flows, root, ...place, clock, backend, redactor, handle, begin, past };
      return await driveTo({ ...about, around: told, problems: [] });
    });
  });
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

/** What the machine offers a run: how commands are started, and what they see of the environment. */
type Around = Pick<Ground, "exec"> & {
  readonly allow: UserConfig["env"];
  readonly served: readonly ServedTool[];
  readonly warnings: readonly string[];
};

/** Before anything is made or recorded: that the user's settings can be read, and that a sandbox is there if one is wanted. */
async function requireGround(flow: Flow, project: Project, options: DriveOptions): Promise<void> {
  const { env = process.env, sandbox } = options;
  const decision = decideSandbox(flow.settings.boundaries.sandbox, sandbox ?? readConfig(env).sandbox);
  if (!decision.confined) return;
  const ground = await openGround(
    decision,
    placesOf(project, resolve(options.cwd ?? process.cwd()), env),
    env,
  );
  await ground.close();
}

/** Opens the sandbox where one is wanted, and closes it at the end, however that comes. */
async function withGround(
  flow: Flow,
  project: Project,
  cwd: string,
  { env = process.env, sandbox, ...options }: DriveOptions,
  use: (around: Around) => Promise<Result>,
): Promise<Result> {
  const config = readConfig(env);
  const decision = decideSandbox(flow.settings.boundaries.sandbox, sandbox ?? config.sandbox);
  const ground = await openGround(decision, placesOf(project, cwd, env), env);
  const warnings = decision.confined || decision.warning === null ? [] : [decision.warning];
  const { exec, inside } = ground;
  const allow = config.env;
  try {
    if (flow.settings.mcpServers === undefined) return await use({ exec, allow, served: [], warnings });
    const { openServers } = await import("./mcp.ts");
    const { signal } = surroundings(options);
    const servers = await openServers(flow, { cwd, env, allow, inside, signal });
    try {
      return await use({ exec, allow, served: servers.tools, warnings: [...warnings, ...servers.warnings] });
    } finally {
      await servers.close();
    }
  } finally {
    await ground.close();
  }
}

/** The environment is looked through when there is a text to look for its secrets in. */
function redactorOf({ env = process.env, secrets = [] }: DriveOptions, flow?: Flow): Redactor {
  return createRedactor(() => [...secretsIn(env), ...secrets, ...givenToServers(flow, env)]);
}

/** Whatever it is called: what is handed to a server of tools by name is not for others to read. */
function givenToServers(flow: Flow | undefined, env: NodeJS.ProcessEnv): readonly string[] {
  const servers = Object.values(flow?.settings.mcpServers ?? {});
  const names = servers.flatMap((server) =>
    variablesIn(server.kind === "http" ? server.headers : server.env),
  );
  return names.flatMap((name) => env[name] ?? []);
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

/** What the run was allowed before it was resumed. */
function spentSoFar({ flow, entries, adopted, current }: RecordedRun): Spending {
  return fold(flow, entries, adopted).spending ?? spendingOf(current.limits);
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
  /** Where that is not the flow which the run began with: that one, and all it adopted. */
  readonly began?: Flow;
  readonly adopted?: Flows;
  readonly digest: string;
  readonly root: string;
  readonly cwd: string;
  readonly worktree?: Worktree;
  readonly clock: Clock;
  readonly backend: Backend;
  readonly redactor: Redactor;
  readonly around: Around;
  readonly handle: RunHandle;
  readonly begin: Drive["begin"];
  readonly past: readonly Entry[];
  readonly problems: readonly Problem[];
};

async function driveTo(driven: Driven): Promise<Result> {
  const { options, flow, digest, root, cwd, worktree, clock, backend, redactor, around } = driven;
  const { handle, begin, past, problems } = driven;
  const { began = flow, adopted = {} } = driven;
  const report = createReport();
  const tally = createTally();
  const listener = await listenerOf(driven);
  const tell = async (state: State, left: readonly string[]) => {
    const warnings = [...around.warnings, ...left, ...((await listener?.close()) ?? [])];
    const steps = tallied(tally);
    return toResult({ run: handle.run, flow, digest, state, report, steps, problems, warnings });
  };
  const { env, signal } = surroundings(options);
  const concluding = async (tree: Worktree) =>
    (await import("./worktree.ts")).conclusionOf(flow, tree, handle.run, report.effects, { env, signal });
  let newest: State | null = null;
  const ports = createPorts({ ...options, flow, backend, clock, root, cwd, redactor, ground: around });
  try {
    const state = await drive({
      flow: began,
      adopted,
      ports,
      handle,
      past,
      begin,
      signal,
      ...(worktree !== undefined && { conclude: await concluding(worktree) }),
      recall: (entry, after) => {
        addEntry(report, entry);
        addToTally(tally, entry, after);
        listener?.recall(entry, after);
      },
      observe: (entry, after) => {
        newest = after;
        addEntry(report, entry);
        addToTally(tally, entry, after);
        listener?.hear(entry, after);
        options.observe?.(entry, after, flow);
      },
    });
    return await tell(state, state.verdict === null ? [] : redactor.value(backend.leftovers?.() ?? []));
  } catch (error) {
    // The journal or a port broke: what was committed stays, and the run can be resumed from there.
    if (!(error instanceof RunnerError) || newest === null) throw error;
    return broken(await tell(newest, []), error);
  } finally {
    await listener?.close();
    await ports.watch.close?.();
    await ports.hooks?.close();
    await backend.close?.();
  }
}

/** Whoever hears of the run besides; loaded only where somebody does. */
async function listenerOf({ options, flow, root, handle, begin, past }: Driven): Promise<Listener | null> {
  const { log, env = process.env } = options;
  if (log === undefined && !flow.settings.logging.enabled && !isTraced(env)) return null;
  const first = past[0] ?? ("at" in begin ? begin : null);
  const { listen } = await import("./listen.ts");
  return await listen({ flow, run: handle.run, startedAt: first?.at ?? 0, root, env, log });
}

/** Whether the run ended by the flow's own doing, so that nothing is left to go on with. */
function isOver({ flow, entries, adopted }: RecordedRun): boolean {
  if (entries.at(-1)?.event.type !== "run.ended") return false;
  return fold(flow, entries, adopted).halted.length === 0;
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
async function reported(agent: string, options: DriveOptions, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof RunnerError)) throw error;
    return toFailure(agent, error.code, redactorOf(options).text(error.message));
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
export function newRunId(): string {
  const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";
  return Array.from(randomBytes(10), (byte) => alphabet[byte % 32]).join("");
}

export const systemClock: Clock = {
  now: () => Date.now(),
  // A timer that is set for longer than it can count fires at once; in parts it can be set for any time.
  sleep: async (ms, signal) => {
    for (let left = ms; left > 0 && !signal.aborted; left -= LONGEST_TIMER_MS) {
      await delay(Math.min(left, LONGEST_TIMER_MS), undefined, { signal }).catch(() => undefined);
    }
  },
};

const LONGEST_TIMER_MS = 2 ** 31 - 1;
