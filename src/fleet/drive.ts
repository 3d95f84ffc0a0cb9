/** What a worker does with a job: fetches the files of its run to this machine, and drives it for a stretch. */
import { RunnerError, type Journal } from "../engine/ports.ts";
import { errorText } from "../flow/text/harmless.ts";
import type { FleetConfig } from "../run/world/config.ts";
import { stateIn, travelling, type TravelPlace } from "../run/source-place.ts";
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
  const { blobs } = journal;
  if (blobs === undefined)
    throw new RunnerError(
      "JOURNAL_UNAVAILABLE",
      "This journal keeps no files of runs: it is not one of a fleet.",
    );
  const { repositories, trust } = fleet;
  let placed: TravelPlace | null = null;
  const end = await driveStretch({
    ...how,
    journal,
    run,
    takeOver,
    yieldSignal,
    stopSignal,
    parkMs: PARK_MS,
    env,
    observe: (_entry, _state, _flow, deeds) => {
      if (deeds.some(({ kind }) => kind === "settled")) progressed();
    },
    ...(trust !== undefined && { accepts: trust }),
    place: travelling({
      work,
      blobs,
      ...(repositories !== undefined && { repositories }),
      env,
      signal: stopSignal,
      onPlace: (place) => void (placed = place),
    }),
    stateDir: stateIn(work, run),
  });
  if (end.kind === "ended") (placed as TravelPlace | null)?.remove();
  return end;
}
