/** The clock of the server, by which the workers of a fleet agree: those of their machines may be wrong by hours. */
import type { Clock } from "../engine/ports.ts";
import type { Postgres } from "../journal/postgres/connection.ts";
import { systemClock } from "../run/world/clock.ts";

export type ServerClock = {
  readonly clock: Clock;
  /** Looks at the clock of the server again: it may have been set, and a machine that slept has lost the time. */
  readonly set: () => Promise<void>;
};

/** Less than that can be the way of the answer. */
const NOTICED_MS = 500;

export async function openServerClock(postgres: Postgres): Promise<ServerClock> {
  /** What is added to the steady clock of this process. */
  let ahead = Number.NaN;
  const set = async (): Promise<void> => {
    const text = "SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now";
    const sent = performance.now();
    const [row] = await postgres.send({ name: "clock", text });
    const found = (row!.now as number) - (sent + performance.now()) / 2;
    if (!(Math.abs(found - ahead) < NOTICED_MS)) ahead = found;
  };
  await set();
  return { clock: { ...systemClock, now: () => Math.round(performance.now() + ahead) }, set };
}
