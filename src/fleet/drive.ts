/** What a worker does with a job: fetches the files of its run to this machine, and drives it for a stretch. */
import { RunnerError, type Journal } from "../engine/ports.ts";
import { errorText } from "../flow/text/harmless.ts";
import type { FleetConfig } from "../run/world/config.ts";
import { newestTree } from "../run/tree.ts";
import { openTravelPlace } from "../run/source-place.ts";
import { driveStretch, type StretchOptions } from "../run/stretch.ts";
import type { Ended } from "./life.ts";
import type { StretchOfJob } from "./worker.ts";

export type JobDriverOptions = {
  readonly journal: Journal;
  /** The folder of this worker for mirrors and for the files of runs. */
  readonly work: string;
  readonly fleet: FleetConfig;
  readonly env: NodeJS.ProcessEnv;
  /** How runs are driven here, as the line of the worker says. */
  readonly how: Pick<StretchOptions, "script" | "sandbox" | "network" | "notify">;
};

/** A wait that is longer holds no slot. */
const PARK_MS = 30_000;

export function createJobDriver(options: JobDriverOptions): (stretch: StretchOfJob) => Promise<Ended> {
  return async (stretch) => {
    try {
      return await driven(options, stretch);
    } catch (error) {
      if (error instanceof RunnerError && error.code === "RUN_OWNED_ELSEWHERE") return { kind: "lost" };
      if (stretch.stopSignal.aborted) return { kind: "yielded" };
      const code = error instanceof RunnerError ? error.code : "INTERNAL";
      return { kind: "unavailable", code, reason: errorText(error) };
    }
  };
}

async function driven(
  { journal, work, fleet, env, how }: JobDriverOptions,
  { job, takeOver, yieldSignal, stopSignal, progressed }: StretchOfJob,
): Promise<Ended> {
  const { run } = job;
  // From here on the worker before writes nothing more: what is read now is all there is.
  if (takeOver) await journal.claim(run, { takeOver });
  const { started, newest } = await read(journal, run);
  const { source } = started;
  const common = {
    ...how,
    journal,
    run,
    takeOver,
    yieldSignal,
    stopSignal,
    parkMs: PARK_MS,
    env,
    observe: ((_entry, _state, _flow, deeds) => {
      if (deeds.some(({ kind }) => kind === "settled")) progressed();
    }) satisfies StretchOptions["observe"],
  };
  if (source === undefined)
    throw new RunnerError(
      "PLACE_GONE",
      `Run ${run} works in a folder of the machine that it was started on: ${started.cwd}. Resume it there with --here.`,
    );
  const flow = await journal.flow(started.flow);
  if (flow === null || journal.blobs === undefined)
    throw new RunnerError("JOURNAL_UNAVAILABLE", `The record of run ${run} lacks its flow.`);
  const place = await openTravelPlace({
    work,
    started,
    newest,
    flow,
    blobs: journal.blobs,
    ...(fleet.repositories !== undefined && { repositories: fleet.repositories }),
    env,
    signal: stopSignal,
  });
  const { root, cwd, stateDir, worktree, snapshot } = place;
  const end = await driveStretch({
    ...common,
    place: { root, cwd, ...(worktree !== undefined && { worktree }) },
    stateDir,
    snapshot,
  });
  if (end.kind === "ended") place.remove();
  return end;
}

const SLICE = 500;

/** In slices: a run can be longer than memory is large. */
async function read(journal: Journal, run: string) {
  const [first] = await journal.read(run, 0, 1);
  if (first?.event.type !== "run.started")
    throw new RunnerError("JOURNAL_UNAVAILABLE", `The record of run ${run} does not begin with its start.`);
  let newest = newestTree([first]);
  for (let seq = 1; ;) {
    const entries = await journal.read(run, seq, SLICE);
    newest = newestTree(entries) ?? newest;
    if (entries.length < SLICE) return { started: first.event, newest };
    seq = entries.at(-1)!.seq;
  }
}
