/** One way to open a run, whether it begins, goes on or forks another: the same acts in the same order, on one stack. */
import { randomBytes } from "node:crypto";
import { createRedactor, type Redactor } from "../boundaries/redact/redact.ts";
import type { Budget } from "../engine/decide/state.ts";
import { RunnerError, type Backend, type Journal, type RunHandle } from "../engine/ports.ts";
import { prepare, type Prepared, type PreparedFlows } from "../engine/schema/prepared.ts";
import type { BackendSpec, Entry, Worktree } from "../flow/event.ts";
import type { Flow, Granted } from "../flow/flow.ts";
import { defined, type Json, type JsonObject } from "../flow/json.ts";
import type { Mail } from "../flow/mail.ts";
import { hasErrors, type Problem } from "../flow/problem.ts";
import { RESERVED_FIELDS } from "../flow/text/placeholder.ts";
import { coerceParameters } from "../load/parameters.ts";
import { driveRun, type OpenedRecord } from "./drive-run.ts";
import { flowDigest, load, type Loaded } from "./load.ts";
import type { DriveOptions, RunOptions } from "./options.ts";
import { mailOf } from "./people/mail.ts";
import { openJournal } from "./records/journal.ts";
import { toFailure, type Result } from "../tell/result.ts";
import { requireTrust, trusting } from "./trust/trust.ts";
import { chooseBackend } from "./world/backend.ts";
import { turnToBegin } from "./world/begin-in-turn.ts";
import { systemClock } from "./world/clock.ts";
import { readConfig, type UserConfig } from "./world/config.ts";
import { pinRepository, toRecord, type Pinned } from "./world/github.ts";
import { grantedAtStart, grantedOnResume, requireMetered } from "./world/limits.ts";
import { inThisTurn } from "./world/read-once-a-turn.ts";
import { mayGrant, openGround, settleGround, warnAtOnce } from "./world/process-starter.ts";
import { recordPlace, type Project } from "./world/project.ts";
import { discreetSpec } from "../boundaries/redact/redacted-ports.ts";
import type { Settled } from "./world/sandbox.ts";
import { secretsOf, type SecretSource } from "./world/secrets.ts";
import { placeOf, startFolder } from "./world/workplace.ts";

/**
 * Runs an agent to its end. Never throws for what the flow, the model or the environment does: the result reports it.
 *
 * @example
 * const result = await run({ agent: "iterator", args: { issue: 12 }, script: replies });
 */
export function run(options: RunOptions): Promise<Result> {
  const { agent } = options;
  return withStack({ agent }, options, async () => runLoaded(await load(agent, options), options));
}

/** A run of a batch: its id was recorded before it begins. */
export type PlannedRun = { readonly run: string; readonly batch: string };

/** Runs an agent that was loaded before. */
export function runLoaded(
  loaded: Loaded,
  options: Omit<RunOptions, "agent">,
  inBatch?: PlannedRun,
): Promise<Result> {
  // What is not awaited here is not held: of a thousand runs that wait for their models, each holds a few frames only.
  return withStack({ agent: loaded.agent }, options, async (stack, known) => {
    const later = turnToBegin();
    if (later !== null) await later;
    const { agent, flow, problems } = loaded;
    if (flow === null || hasErrors(problems)) return invalid(loaded);
    known.flow = flow;
    const { args, fault } = argumentsOf(flow, options.args ?? {});
    if (fault !== null) return toFailure(agent, "PARAMETERS_INVALID", fault);
    return openRun(newRun(loaded, await prepare(flow), args, options, inBatch), options, stack);
  });
}

// Opening.

/** What is known of a run before anything is opened for it. */
export type Opening = {
  readonly project: Project;
  readonly flow: Prepared;
  readonly digest: string;
  /** The flow that the run began with, and all it adopted: their action blocks may still be due. */
  readonly began: Prepared;
  readonly adopted: PreparedFlows;
  readonly problems: readonly Problem[];
  /** Where it works; a new run may move to a worktree from there. */
  readonly cwd: string;
  /** null: it is new. */
  readonly past: Past | null;
  /** Enters the place where the run works, once nothing can refuse it any more. */
  readonly enter: (admitted: Admitted, stack: AsyncDisposableStack) => Promise<Entered>;
};

/** A run that goes on: which model it asked, how far that had come, how its commands were confined, what it spent. */
export type Past = {
  readonly spec: BackendSpec;
  readonly marks: readonly Json[];
  readonly wasConfined: boolean;
  /** A model was asked, so something that was granted may be left to do. */
  readonly isAsked: boolean;
  readonly budget: () => Budget | null;
};

/** A run that nothing refuses. */
export type Admitted = {
  readonly config: UserConfig;
  readonly backend: Backend;
  /** Closes the backend, once; null: there is nothing to close. */
  readonly close: (() => Promise<void>) | null;
  readonly ground: Settled;
  readonly spending: { readonly spending?: Granted };
  readonly redactor: Redactor;
  /** What was reported to the user on the way. */
  readonly said: readonly string[];
};

export type Entered = {
  readonly run: string;
  readonly cwd: string;
  readonly worktree?: Worktree;
  readonly repository: Pinned;
  readonly mail: Mail;
  readonly warnings: readonly string[];
  /** Records that the run begins, or goes on; it is driven from here on. */
  readonly record: () => Promise<OpenedRecord>;
};

/** Opens a run and drives it as far as it goes. Whatever is opened on the way is closed with the stack. */
export async function openRun(
  opening: Opening,
  options: DriveOptions,
  stack: AsyncDisposableStack,
): Promise<Result> {
  const admitted = await admit(opening, options, stack);
  options.onBegin?.();
  const { record, warnings, mail, ...place } = await opening.enter(admitted, stack);
  const { flow, project } = opening;
  const around = await openGround(flow, { ...place, stateDir: project.stateDir }, options, admitted, stack);
  const ground = { ...around, warnings: [...warnings, ...around.warnings] };
  const clock = options.clock ?? systemClock;
  const recorded = await record();
  // Not awaited here: while the run is driven, this holds nothing of it any more.
  return driveRun(
    { ...opening, ...admitted, ...place, ...recorded, mail, options, clock, around: ground },
    stack,
  );
}

/** Whatever can refuse a run, in this order: its model, its sandbox, its limits, the user's trust. */
export async function admit(
  { project, flow, began, adopted, cwd, past }: Omit<Opening, "enter">,
  options: Omit<DriveOptions, "observe">,
  stack: AsyncDisposableStack,
): Promise<Admitted> {
  const { env = process.env } = options;
  const { root, stateDir } = project;
  const config = inThisTurn(["config", env, flow, project], () => readConfig(env));
  const redactor = redactorOf({ ...options, config }, flow);
  const around = { env, config, stateDir, root, ...defined({ blobs: options.journal?.blobs }) };
  const chosen = options.backend ?? (await chooseBackend(options, flow, around, past ?? undefined));
  const backend = options.meter?.(chosen) ?? chosen;
  const close = backend.close === undefined ? null : once(async () => await backend.close?.());
  if (close !== null) stack.defer(close);
  requireToolCalling(flow, backend);
  const flows = flowsOf({ flow, began, adopted });
  const granting = past?.isAsked === true || mayGrant(options);
  const setting = { flows, backend, project, cwd, config, granting, began: past?.wasConfined === true };
  const ground = stack.use(await settleGround(setting, options));
  const { limits } = config;
  const isLimited = [options.spending, limits.unmetered, backend.unpriced].some((one) => one !== undefined);
  const spent = isLimited ? (past?.budget() ?? null) : null;
  const spending =
    past === null
      ? grantedAtStart(flow, limits, options.spending)
      : grantedOnResume(spent, flow, limits, options.spending);
  const unmetered = requireMetered(flow, backend, spending, options, spent);
  // A foreign state folder is named in the same refusal. One that holds a run which goes on was accepted before.
  const isOpen = past === null && options.journal === undefined && options.trustJournal !== true;
  await requireTrust(flow, trusting(root, !ground.isFree, options, isOpen ? stateDir : undefined));
  const said = [...unmetered, ...warnAtOnce(ground, options)];
  return { config, backend, close, ground, spending, redactor, said };
}

/** All that a run may still carry out something of. */
export function flowsOf({ flow, began, adopted }: Pick<Opening, "flow" | "began" | "adopted">) {
  return [...new Set([flow, began, ...Object.values(adopted)])];
}

/** A stage ends with a call of its completion tool: a model that cannot call tools could never end one. */
function requireToolCalling(flow: Flow, { spec, toolCalling = true }: Backend): void {
  if (toolCalling === true) return;
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

// A new run.

function newRun(
  { project, problems }: Loaded,
  flow: Prepared,
  args: JsonObject,
  options: Omit<RunOptions, "agent">,
  inBatch?: PlannedRun,
): Opening {
  const digest = flowDigest(flow);
  const clock = options.clock ?? systemClock;
  const run = inBatch?.run ?? newRunId();
  return {
    project,
    flow,
    digest,
    began: flow,
    adopted: {},
    problems,
    cwd: startFolder(options),
    past: null,
    enter: async ({ backend, ground, spending, redactor }, stack) => {
      const journal = options.journal ?? (await journalOn(stack, project, options));
      const { cwd, planned } = await placeOf(flow, options, run);
      const place = planned === undefined ? { cwd } : { cwd, worktree: planned.worktree };
      const repository = await pinRepository([flow], place, options);
      const entered = { run, ...place, repository, mail: mailOf(journal, project.stateDir) };
      const create = async (isReleased: boolean): Promise<OpenedRecord> => {
        const at = clock.now();
        const { agent } = flow;
        const started = {
          run,
          agent,
          flow: digest,
          args,
          input: redactor.text(options.input ?? ""),
          ...place,
          ...toRecord(repository),
          backend: discreetSpec(backend, redactor),
          ...spending,
          ...(options.dryRun === true && { dryRun: true as const }),
          ...(inBatch !== undefined && { batch: inBatch.batch }),
          sandbox: ground.held,
        };
        const begin: Entry = { seq: 1, at, event: { type: "run.started", ...started } };
        options.onRun?.(run, false);
        const handle = await journal.create({ id: run, agent, at, digest, flow }, [begin]);
        if (isReleased) releaseOn(stack, handle);
        return { begin, past: [], handle };
      };
      if (planned === undefined) return { ...entered, warnings: [], record: () => create(true) };
      // Recorded before it is made: if the process died now, a worktree without a record would never be removed.
      const recorded = await create(false);
      let isDriven = false;
      stack.defer(async () => {
        const isGone = !isDriven && (await planned.undo());
        await recorded.handle.release().catch(() => undefined);
        if (isGone) await journal.remove(run);
      });
      const warnings = await planned.make();
      return {
        ...entered,
        warnings,
        record: () => {
          isDriven = true;
          return Promise.resolve(recorded);
        },
      };
    },
  };
}

/** What a flow is started with, in the types that it declares; `fault`: what does not fit. */
export function argumentsOf(
  flow: Flow,
  given: NonNullable<RunOptions["args"]>,
): { readonly args: JsonObject; readonly fault: string | null } {
  const { args, problems } = coerceParameters(flow.parameters, given, flow.openArguments ?? false);
  if (problems.length > 0)
    return { args, fault: problems.map(({ message, fix }) => `${message} ${fix}`).join("\n") };
  const reserved =
    flow.dialect === "stage" ? Object.keys(args).find((name) => RESERVED_FIELDS.has(name)) : undefined;
  if (reserved === undefined) return { args, fault: null };
  return { args, fault: `"${reserved}" belongs to the runtime and cannot be given. Use another name.` };
}

export function invalid({ agent, problems }: Loaded): Result {
  const errors = problems.filter((problem) => problem.severity === "error");
  const reason = `Agent "${agent}" cannot run: ${errors.length} problem${errors.length === 1 ? "" : "s"} found before it started.`;
  return toFailure(agent, "FLOW_INVALID", reason, problems);
}

/** Ten letters and digits: short to type, and a few of them are enough as a prefix. */
export function newRunId(): string {
  if (chance.length < ID_LETTERS) chance = randomBytes(ID_LETTERS * 64);
  const bytes = chance.subarray(0, ID_LETTERS);
  chance = chance.subarray(ID_LETTERS);
  let id = "";
  for (const byte of bytes) id += ALPHABET[byte % 32];
  return id;
}

const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
const ID_LETTERS = 10;
/** For some ids to come: asking for it costs more than the rest of an id. */
let chance = Buffer.alloc(0);

// The stack.

/** What is known of a run so far: it goes into the result when something refuses the run. */
export type Known = {
  agent: string;
  run?: string;
  /** It names variables that hold secrets. */
  flow?: Flow;
};

/** Closes all that was opened at the end. What stops a run from outside becomes a result like any other. */
export async function withStack(
  known: Known,
  options: SecretSource,
  work: (stack: AsyncDisposableStack, known: Known) => Promise<Result>,
): Promise<Result> {
  try {
    await using stack = new AsyncDisposableStack();
    return await work(stack, known);
  } catch (thrown) {
    const error = firstOf(thrown);
    if (!(error instanceof RunnerError)) throw error;
    const reason = redactorOf(options, known.flow).text(error.message);
    return { ...toFailure(known.agent, error.code, reason), run: known.run ?? null };
  }
}

/** The cause: what went wrong while things were closed after it is a consequence. */
function firstOf(thrown: unknown): unknown {
  return thrown instanceof SuppressedError ? firstOf(thrown.suppressed) : thrown;
}

/** The journal of the project, closed with the stack. */
export async function journalOn(
  stack: AsyncDisposableStack,
  project: Project,
  options: Pick<DriveOptions, "clock" | "env" | "trustJournal" | "notify">,
): Promise<Journal> {
  const journal = await openJournal(recordPlace(project), options.clock ?? systemClock, options);
  stack.defer(journal.close);
  return journal;
}

/** A journal that broke cannot record the release either; the death of its owner frees the run just as well. */
export function releaseOn(stack: AsyncDisposableStack, handle: RunHandle): void {
  stack.defer(async () => await handle.release().catch(() => undefined));
}

function once(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | null = null;
  return () => (done ??= work());
}

/**
 * The environment is searched for secrets when there is a text to take them out of. Runs that all began before that
 * share it: the environment may be changed before the next one begins.
 */
export function redactorOf(source: SecretSource, flow?: Flow): Redactor {
  const { env = process.env, cwd = process.cwd(), secrets = NONE, config } = source;
  const newest = inThisTurn(["redactor", env, cwd, secrets, config, flow], (): Shared => ({
    redactor: null,
  }));
  return (newest.redactor ??= createRedactor(() => {
    newest.redactor = null;
    return secretsOf(source, flow);
  }));
}

const NONE: readonly string[] = [];

/** null: it has read its secrets already. */
type Shared = { redactor: Redactor | null };
