/** Waits for something to come about, and fails where it never does: a test must not hang the whole suite. */
import { setTimeout as delay } from "node:timers/promises";

/** Far more than a loaded machine needs. A condition that is met ends the wait at once. */
const PATIENCE_MS = 180_000;

export async function until(holds: () => unknown, what: string): Promise<void> {
  const end = performance.now() + PATIENCE_MS;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`${what}: not within ${PATIENCE_MS / 1000} s`);
    await delay(5);
  }
}
