/** The sign of life of a process that holds runs: others may claim them once it is older than the lease. */
import type { Postgres } from "./connection.ts";

export type Beat = {
  /** Makes the sign before the first run is held. */
  readonly begin: () => Promise<void>;
  /** Lets go of every run, and takes the sign away. */
  readonly end: () => Promise<void>;
};

type About = {
  readonly ownerId: string;
  readonly host: string;
  readonly pid: number;
  readonly leaseMs: number;
};

export function createBeat(postgres: Postgres, { ownerId, host, pid, leaseMs }: About): Beat {
  const { schema } = postgres;
  let begun: Promise<void> | null = null;
  let timer: NodeJS.Timeout | null = null;

  const enter = async (): Promise<void> => {
    const text = `INSERT INTO ${schema}.owner (id, host, pid, since, beat, lease)
      VALUES ($1, $2, $3, clock_timestamp(), clock_timestamp(), make_interval(secs => $4))
      ON CONFLICT (id) DO UPDATE SET beat = clock_timestamp()`;
    await postgres.send({ name: "enter", text }, [ownerId, host, pid, leaseMs / 1000]);
    timer = setInterval(() => {
      const again = `UPDATE ${schema}.owner SET beat = clock_timestamp() WHERE id = $1`;
      // A beat that fails is followed by another one; the lease decides.
      postgres.send({ name: "beat", text: again }, [ownerId]).catch(() => undefined);
    }, leaseMs / 3);
    timer.unref();
  };

  return {
    begin: () => (begun ??= enter()),
    async end() {
      if (begun === null) return;
      await begun.catch(() => undefined);
      if (timer !== null) clearInterval(timer);
      const free = `UPDATE ${schema}.run SET owner = NULL WHERE owner = $1`;
      await postgres.send({ name: "free", text: free }, [ownerId]);
      await postgres.send({ name: "leave", text: `DELETE FROM ${schema}.owner WHERE id = $1` }, [ownerId]);
    },
  };
}
