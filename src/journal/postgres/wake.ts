/** Runs that a fleet is to drive: the mark on the row of a run by which it asks for a worker. */
import type { Postgres } from "./connection.ts";

/**
 * Asks for a stretch of this run. It is marked under the lock of its row, in the transaction that writes what it is woken
 * for: who drives it now is done before the mark is looked at, so that none is lost. Nothing happens to a run that is
 * not in a queue, or is held. Give the letter and this to `postgres.together`.
 */
export async function wakeWithin(send: Postgres["send"], schema: string, run: string): Promise<void> {
  await send({ name: "wake", text: wakeText(schema) }, [run]);
}

/** `due` is when a job is wanted; null: none is. */
function wakeText(schema: string): string {
  return `UPDATE ${schema}.run SET wakes = wakes + 1, due = least(coalesce(due, 'infinity'), clock_timestamp())
    WHERE id = $1 AND queue IS NOT NULL AND held IS NULL`;
}
