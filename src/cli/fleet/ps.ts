/** `lockstep fleet ps`: the workers of a fleet. */
import { hostname } from "node:os";
import { withFleet } from "../../fleet/open.ts";
import { workersOf, type WorkerRow } from "../../fleet/status.ts";
import { EXIT } from "../../flow/verdict.ts";
import type { CallOf } from "../commands.ts";
import { age, duration, headed, shownInLine, type Paint } from "../text/text.ts";
import { fleetAddress } from "./address.ts";

export async function fleetPs(call: CallOf<"fleet ps">): Promise<number> {
  const { screen } = call;
  const all = await withFleet(fleetAddress(call), call.host.env, workersOf);
  const workers = call.flags.self ? all.filter(({ host }) => host === hostname()) : all;
  if (call.flags.json) screen.document({ v: 1, workers: workers.map(documentOf) });
  else if (workers.length === 0)
    screen.tell(call.typed("No worker is known. Start one: lockstep fleet worker"));
  else screen.print(workerTable(workers, screen.out));
  const isWell = !call.flags.self || workers.some(({ alive }) => alive);
  return isWell ? EXIT.completed : EXIT.failed;
}

function documentOf({ beatMs, upMs, drainMs, ...worker }: WorkerRow): object {
  return { ...worker, upMs: Math.round(upMs), beatMs: Math.round(beatMs), draining: drainMs !== null };
}

/** What the row of a worker does not say. */
const UNKNOWN = "?";

function workerTable(workers: readonly WorkerRow[], paint: Paint): string {
  const rows = workers.map(({ name, host, pid, version, offers, runs, beatMs, upMs, alive, drainMs }) => [
    shownInLine(name, 40),
    `${shownInLine(host, 40)} (${pid})`,
    version === "" ? UNKNOWN : shownInLine(version, 20),
    offers === null ? UNKNOWN : shownInLine(offers.queues.join(","), 40),
    `${runs}/${offers?.slots ?? UNKNOWN}`,
    offers === null ? UNKNOWN : offers.sandbox === null ? "no" : "yes",
    age(upMs),
    `${age(Math.max(0, beatMs))}${alive ? "" : ": gone"}`,
    drainMs === null ? "" : drainMs > 0 ? `within ${duration(drainMs)}` : "now",
  ]);
  const head = ["WORKER", "HOST", "VERSION", "QUEUES", "RUNS", "SANDBOX", "UP", "LAST SIGN", "DRAINING"];
  return headed(paint, [head, ...rows])
    .map((line) => line.trimEnd())
    .join("\n");
}
