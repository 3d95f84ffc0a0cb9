/** `lockstep fleet status`: the runs that wait for workers, and what is wrong. */
import { withFleet } from "../../fleet/open.ts";
import { backlogOf, faultsOf, workersOf, type BacklogRow } from "../../fleet/status.ts";
import { EXIT } from "../../flow/verdict.ts";
import type { CallOf } from "../commands.ts";
import { count, duration, headed, shownInLine, type Paint } from "../text/text.ts";
import { fleetAddress } from "./address.ts";

export async function fleetStatus(call: CallOf<"fleet status">): Promise<number> {
  const { screen } = call;
  const { workers, backlog } = await withFleet(fleetAddress(call), call.host.env, async (postgres) => ({
    workers: await workersOf(postgres),
    backlog: await backlogOf(postgres),
  }));
  const faults = faultsOf(workers, backlog);
  const alive = workers.filter((worker) => worker.alive);
  const slots = alive.reduce((sum, { offers }) => sum + (offers?.slots ?? 0), 0);
  const driven = alive.reduce((sum, { runs }) => sum + runs, 0);
  if (call.flags.json)
    screen.document({
      v: 1,
      workers: alive.length,
      slots,
      driven,
      backlog: backlog.map((row) => ({ ...row, oldestMs: Math.round(row.oldestMs) })),
      faults,
    });
  else {
    screen.print(`${count(alive.length, "worker")}, ${driven} of ${count(slots, "slot")} taken`);
    if (backlog.length > 0) screen.print(backlogTable(backlog, screen.out));
    for (const fault of faults) screen.complain(call.typed(shownInLine(fault, 300)));
  }
  return call.flags.check && faults.length > 0 ? EXIT.failed : EXIT.completed;
}

function backlogTable(backlog: readonly BacklogRow[], paint: Paint): string {
  const rows = backlog.map(({ queue, group, ready, later, running, waiting, poisoned, oldestMs }) => [
    shownInLine(queue, 40),
    shownInLine(group, 60),
    ...[ready, later, running, waiting, poisoned].map(String),
    ready === 0 ? "" : duration(oldestMs),
  ]);
  const head = ["QUEUE", "GROUP", "READY", "LATER", "RUNNING", "WAITING", "POISONED", "OLDEST"];
  return headed(paint, [head, ...rows])
    .map((line) => line.trimEnd())
    .join("\n");
}
