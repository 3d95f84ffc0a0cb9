/** Starting runs: options become ports, the engine drives, a result document comes out. */
import { randomBytes } from "node:crypto";
import type { Clock, Journal } from "../engine/ports.ts";
import { prepareSchemas, schemasOf } from "../engine/schema/schema.ts";
import type { Entry } from "../flow/event.ts";
import { RESERVED_FIELDS } from "../flow/text/placeholder.ts";
import { hasErrors } from "../flow/problem.ts";
import { coerceParameters } from "../load/agent/parameters.ts";
import { chooseBackend } from "./world/backend.ts";
import { systemClock } from "./world/clock.ts";
import { discreetSpec } from "./world/redacted-ports.ts";
import { pinRepository, toRecord } from "./world/github.ts";
import { settleStart, tellLoudly, withGround } from "./world/process-starter.ts";
import { openJournal } from "./records/journal.ts";
import { grantedAtStart, requireMetered } from "./world/limits.ts";
import { flowDigest, load, type Loaded } from "./load.ts";
import type { DriveOptions, RunOptions } from "./options.ts";
import { placeOf, surroundings } from "./world/workplace.ts";
import { toFailure, type Result } from "./result.ts";
import { closingOf, driveTo, held, redactorOf, reported, requireToolCalling } from "./stretch.ts";
import { requireTrust, trusting } from "./trust/trust.ts";

/**
 * Runs an agent to its end. Never throws for what the flow, the model or the environment does: the result tells.
 *
 * @example
 * const result = await run({ agent: "iterator", args: { issue: 12 }, script: replies });
 */
export function run(options: RunOptions): Promise<Result> {
  return reported(options.agent, options, async () => runLoaded(await load(options.agent, options), options));
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
  return reported(loaded.agent, options, async (known) => {
    const { flow, problems } = loaded;
    if (flow === null || hasErrors(problems)) return invalid(loaded);
    known.flow = flow;
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
    const backend = await chooseBackend(options, flow, {
      env,
      stateDir: project.stateDir,
      root: project.root,
    });
    await using closing = closingOf(backend);
    requireToolCalling(flow, backend);
    const { config, settled } = await settleStart(flow, backend, project, options);
    await using ground = settled;
    const spending = grantedAtStart(flow, config.limits, options.spending);
    requireMetered(flow, backend, spending, options);
    const isOpen = options.journal === undefined && options.trustJournal !== true;
    const state = isOpen ? project.stateDir : undefined;
    await requireTrust(flow, trusting(project.root, !ground.isFree, options, state));
    tellLoudly(ground, options);
    options.onBegin?.();
    // Awaited here, so that the way to the network stays open as long as the run.
    return await withJournal(project.stateDir, options, async (journal, clock) => {
      const id = inBatch?.run ?? newRunId();
      const { cwd, planned } = await placeOf(flow, options, id);
      const worktree = planned?.worktree;
      const home = worktree?.home ?? cwd;
      const isProposed = worktree?.finalize.createPr === true;
      const where = { ...surroundings(options), cwd: home, isProposed };
      const dry = options.dryRun === true && { dryRun: true as const };
      const place = worktree === undefined ? { cwd } : { cwd, worktree };
      const repository = await pinRepository([flow], where);
      const create = async () => {
        const at = clock.now();
        const { agent } = flow;
        const started = {
          run: id,
          agent,
          flow: digest,
          args,
          input: redactor.text(options.input ?? ""),
          ...place,
          ...toRecord(repository),
          backend: discreetSpec(backend, redactor),
          ...spending,
          ...dry,
          ...(inBatch !== undefined && { batch: inBatch.batch }),
          sandbox: ground.held,
        };
        const begin: Entry = { seq: 1, at, event: { type: "run.started", ...started } };
        options.onRun?.(id, false);
        return { begin, handle: await journal.create({ id, agent, at, digest, flow }, [begin]) };
      };
      // A worktree that no record knows would be nobody's if the process died now.
      const created = planned === undefined ? null : await create();
      let isDriven = false;
      try {
        const warnings = planned === undefined ? [] : await planned.make();
        return await withGround(
          flow,
          { stateDir: project.stateDir, run: id },
          cwd,
          options,
          config,
          ground,
          async (around) => {
            const { begin, handle } = created ?? (await create());
            isDriven = true;
            const { root, stateDir } = project;
            const about = {
              options,
              flow,
              digest,
              root,
              stateDir,
              ...place,
              repository,
              clock,
              backend,
              closing,
              redactor,
              begin,
              problems,
            };
            const told = { ...around, warnings: [...warnings, ...around.warnings] };
            return held(handle, (mine) => driveTo({ ...about, around: told, handle: mine, past: [] }));
          },
        );
      } catch (error) {
        // There turned out to be no run.
        if (!isDriven && planned !== undefined && created !== null) {
          const isGone = await planned.undo();
          await created.handle.release();
          if (isGone) await journal.remove(id);
        }
        throw error;
      }
    });
  });
}

export async function withJournal<T>(
  stateDir: string,
  options: Pick<DriveOptions, "journal" | "clock" | "env" | "trustJournal" | "notify">,
  use: (journal: Journal, clock: Clock) => Promise<T>,
): Promise<T> {
  const clock = options.clock ?? systemClock;
  if (options.journal !== undefined) return use(options.journal, clock);
  const journal = await openJournal(stateDir, clock, options);
  try {
    return await use(journal, clock);
  } finally {
    await journal.close();
  }
}

function invalid({ agent, problems }: Loaded): Result {
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
