/** What a worker does with a job: puts the files of its run on this machine, and drives it for a stretch. */
import { RunnerError, type Journal } from "../engine/ports.ts";
import { errorText } from "../flow/text/harmless.ts";
import { stateIn, travelling, type TravelPlace } from "../run/source-place.ts";
import { driveStretch, type StretchOptions } from "../run/stretch.ts";
import type { FleetConfig } from "../run/world/config.ts";
import type { Ended } from "./life.ts";
import type { Meter } from "./meter.ts";
import type { StretchOfJob } from "./worker.ts";

export type JobDriverOptions = {
  readonly journal: Journal;
  readonly meter: Meter;
  /** The folder of this worker for mirrors and for the files of runs. */
  readonly work: string;
  readonly fleet: FleetConfig;
  readonly env: NodeJS.ProcessEnv;
  /** How runs are driven here, as the line of the worker says. */
  readonly how: Pick<StretchOptions, "script" | "sandbox" | "network" | "notify" | "clock">;
};

/** A wait that is longer holds no slot. */
const PARK_MS = 30_000;

export function createJobDriver(options: JobDriverOptions): (stretch: StretchOfJob) => Promise<Ended> {
  return async (stretch) => {
    try {
      return await driven(options, stretch);
    } catch (error) {
      if (stretch.stopSignal.aborted) return { kind: "yielded" };
      const code = error instanceof RunnerError ? error.code : "INTERNAL";
      return { kind: "unavailable", code, reason: errorText(error) };
    }
  };
}

async function driven(
  { journal, meter, work, fleet, env, how }: JobDriverOptions,
  { job, group, takeOver, yieldSignal, stopSignal, progressed }: StretchOfJob,
): Promise<Ended> {
  if ((await meter.spent(group)) !== null) return { kind: "budget" };
  const { blobs } = journal;
  if (blobs === undefined)
    throw new RunnerError("JOURNAL_UNAVAILABLE", "The journal keeps no files of runs.");
  let place: TravelPlace | null = null;
  const open = travelling({
    work,
    blobs,
    env,
    signal: stopSignal,
    ...(fleet.repositories !== undefined && { repositories: fleet.repositories }),
    onPlace: (opened) => (place = opened),
  });
  const end = await driveStretch({
    ...how,
    journal,
    run: job.run,
    place: open,
    ...(fleet.trust !== undefined && { accepts: fleet.trust }),
    stateDir: stateIn(work, job.run),
    takeOver,
    yieldSignal,
    stopSignal,
    parkMs: PARK_MS,
    env,
    meter: meter.metered(group),
    observe: (_entry, _state, _flow, deeds) => {
      if (deeds.some(({ kind }) => kind === "settled")) progressed();
    },
  });
  if (end.kind === "ended") (place as TravelPlace | null)?.remove();
  return end;
}
