/** What a run is before anybody drives it: loaded, checked, trusted and pinned by the one who asks for it. */
import { RunnerError, type NewRun } from "../engine/ports.ts";
import { prepare } from "../engine/schema/prepared.ts";
import type { BackendSpec, Entry } from "../flow/event.ts";
import type { Flow } from "../flow/flow.ts";
import { defined } from "../flow/json.ts";
import { hasErrors } from "../flow/problem.ts";
import { discreetSpec } from "../boundaries/redact/redacted-ports.ts";
import { flowDigest, load, type Loaded } from "./load.ts";
import { argumentsOf, invalid, newRunId, redactorOf } from "./open.ts";
import type { RunOptions } from "./options.ts";
import type { FoundSource } from "./source.ts";
import { requireTrust, trusting, trustState } from "./trust/trust.ts";
import { ANY_BACKEND, chooseBackend } from "./world/backend.ts";
import { BACKENDS } from "./world/backend-table.ts";
import { systemClock } from "./world/clock.ts";
import { readConfig, type UserConfig } from "./world/config.ts";
import { pinRepository, toRecord } from "./world/github.ts";
import { grantedAtStart } from "./world/limits.ts";
import type { Project } from "./world/project.ts";
import { placeOf, startFolder } from "./world/workplace.ts";

export type PrepareOptions = Omit<RunOptions, "agent"> & {
  /** Where its files come from on any machine. Absent: it is driven on this one, in this folder. */
  readonly found?: FoundSource;
};

/** A run that can be recorded as it is. */
export type PreparedRun = {
  readonly run: NewRun;
  /** Its `run.started`, which says that nobody drives it yet. */
  readonly entries: readonly Entry[];
  readonly warnings: readonly string[];
};

/** Records nothing. A RunnerError says what cannot run, and why. */
export async function prepareRun(options: PrepareOptions & Pick<RunOptions, "agent">): Promise<PreparedRun> {
  return await prepareLoaded(await load(options.agent, options), options);
}

/** The same for an agent that was loaded before. */
export async function prepareLoaded(loaded: Loaded, options: PrepareOptions): Promise<PreparedRun> {
  const { agent, flow: read, problems, project } = loaded;
  if (read === null || hasErrors(problems)) throw new RunnerError("FLOW_INVALID", invalid(loaded).reason);
  const flow = await prepare(read);
  const { args, fault } = argumentsOf(flow, options.args ?? {});
  if (fault !== null) throw new RunnerError("PARAMETERS_INVALID", fault);
  const { env = process.env, clock = systemClock } = options;
  const config = readConfig(env);
  const redactor = redactorOf({ ...options, config }, flow);
  const backend = await specOf(flow, options, { env, config, project });
  const spending = grantedAtStart(flow, config.limits, options.spending);
  const trusted = await trustedDigest(flow, project, options);
  const run = newRunId();
  const place = await placeFor(flow, options, run);
  const here = { ...place, cwd: startFolder(options) };
  const repository = await pinRepository([flow], options.found === undefined ? place : here, options);
  const at = clock.now();
  const digest = flowDigest(flow);
  const begin: Entry = {
    seq: 1,
    at,
    event: {
      type: "run.started",
      run,
      agent: flow.agent,
      flow: digest,
      args,
      input: redactor.text(options.input ?? ""),
      ...place,
      ...toRecord(repository),
      backend: discreetSpec({ spec: backend }, redactor),
      ...spending,
      ...(trusted !== null && { trusted }),
      ...(options.dryRun === true && { dryRun: true }),
      queued: true,
      ...peopleIn(options),
    },
  };
  const warnings = problems.filter(({ severity }) => severity === "warning").map(({ message }) => message);
  return { run: { id: run, agent, at, digest, flow }, entries: [begin], warnings };
}

function peopleIn({ onPermission, expireMs }: PrepareOptions) {
  const people = defined({ onPermission, expireMs });
  return Object.keys(people).length > 0 && { people };
}

/** A folder of this machine and a worktree that is made when the run begins; or the same within files that travel. */
async function placeFor(flow: Flow, options: PrepareOptions, run: string) {
  const { found } = options;
  if (found !== undefined) {
    const { travellingPlace } = await import("./source.ts");
    return { ...travellingPlace(flow, options, found, run), source: found.source };
  }
  const { cwd, planned } = await placeOf(flow, options, run);
  return planned === undefined ? { cwd } : { cwd, worktree: planned.worktree };
}

/** What was asked for. Keys and programs are those of the process that drives the run, so nothing is opened here. */
async function specOf(
  flow: Flow,
  options: PrepareOptions,
  { env, config, project }: { env: NodeJS.ProcessEnv; config: UserConfig; project: Project },
): Promise<BackendSpec> {
  const { backend, script, use, model } = options;
  if (backend !== undefined || script !== undefined)
    return (await chooseBackend(options, flow, { env, config, ...project })).spec;
  if (use !== undefined && !Object.hasOwn(BACKENDS, use))
    throw new RunnerError(
      "NO_BACKEND",
      `Unknown backend "${use}". Use one of: ${Object.keys(BACKENDS).join(", ")}.`,
    );
  return { id: use ?? ANY_BACKEND, options: model === undefined ? {} : { model, models: { "*": model } } };
}

/**
 * Asked for as it would run without a sandbox: which one a worker has is not known here, and a yes to that covers the
 * same in a sandbox. null: nothing needs trust.
 */
async function trustedDigest(flow: Flow, { root }: Project, options: PrepareOptions): Promise<string | null> {
  const isTravelling = options.found !== undefined;
  const about = trusting(root, false, options);
  if (isTravelling) await requireTrust(flow, about);
  const { state, digest } = await trustState(flow, about);
  return isTravelling && state !== "nothing" ? digest : null;
}
