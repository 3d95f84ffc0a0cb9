/** Handing prepared runs to a fleet: their files are stored first, then all of them are recorded at once, or none. */
import { SPEECH, type Source } from "../flow/event.ts";
import type { Flow } from "../flow/flow.ts";
import { storeBlob } from "../journal/postgres/blobs.ts";
import type { Postgres } from "../journal/postgres/connection.ts";
import { ALIVE } from "../journal/postgres/writes.ts";
import { readRepositoryAddress } from "../run/source-address.ts";
import { modelNames } from "../run/world/models.ts";
import type { PreparedRun } from "../run/submit.ts";
import { offerRuns } from "./offer.ts";
import { readOffers } from "./presence.ts";

export type Submission = {
  /** For people: what it is about. */
  readonly name: string;
  readonly prepared: PreparedRun;
  readonly key?: string;
};

export type SubmitOptions = {
  readonly queue: string;
  readonly group: string;
  readonly priority: number;
  /** Epoch milliseconds. */
  readonly notBefore?: number;
  /** What the sources of the runs need to be stored. */
  readonly bundle: Uint8Array | null;
};

/** `isNew`: false where its key had been submitted before, and then it is the run of that time. */
export type Submitted = {
  readonly name: string;
  readonly run: string;
  readonly queue: string;
  readonly isNew: boolean;
};

export async function submitRuns(
  postgres: Postgres,
  submissions: readonly Submission[],
  { queue, group, priority, notBefore, bundle }: SubmitOptions,
): Promise<readonly Submitted[]> {
  const blobs = bundle === null ? [] : [await storeBlob(postgres, bundle)];
  const offers = submissions.map(({ prepared: { run, entries }, key }) => ({
    run,
    entries,
    queue,
    group,
    priority,
    blobs,
    ...(notBefore !== undefined && { notBefore }),
    ...(key !== undefined && { key }),
  }));
  const offered = await offerRuns(postgres, offers, SPEECH);
  return offered.map(({ run, isNew }, place) => ({ name: submissions[place]!.name, run, queue, isNew }));
}

/** Runs of one repository share its slots, unless they are told to share others. */
export function groupOf(source: Source): string {
  if (source.kind === "none" || source.remote === undefined) return "default";
  const address = readRepositoryAddress(source.remote.url);
  if ("fault" in address) return "default";
  return address.plain.replace(/^\w+:\/\/(?:[^@/]*@)?/, "") || "default";
}

/** Why the run may wait for long: what no living worker offers. */
export async function lackingWorkers(
  postgres: Postgres,
  flow: Flow,
  queue: string,
): Promise<readonly string[]> {
  const text = `SELECT offers FROM ${postgres.schema}.owner o WHERE o.worker IS NOT NULL AND o.draining IS NULL AND ${ALIVE}`;
  const rows = await postgres.send({ name: "offers", text });
  const workers = rows.flatMap(({ offers }) => readOffers(offers) ?? []);
  const fitting = workers.filter(({ queues }) => queues.includes(queue));
  if (fitting.length === 0)
    return [`No worker takes runs from the queue "${queue}" now: it waits until one is started.`];
  if (fitting.every(({ speech }) => speech < SPEECH))
    return ["All workers run an older version of Lockstep, and leave the run to a newer one."];
  const named = modelNames(flow).filter((name) => name.includes("/"));
  const missing = named.filter((name) =>
    fitting.every(({ models }) => models.length > 0 && !models.includes(name)),
  );
  return missing.map((name) => `No worker offers the model ${name}.`);
}
