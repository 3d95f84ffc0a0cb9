/** `lockstep fleet init`: makes the tables on a PostgreSQL server that records runs. */
import { makeFleetTables } from "../../fleet/open.ts";
import { EXIT } from "../../flow/verdict.ts";
import type { CallOf } from "../commands.ts";
import { fleetAddress } from "./address.ts";

export async function fleetInit(call: CallOf<"fleet init">): Promise<number> {
  const { name, withoutQueue } = await makeFleetTables(fleetAddress(call), call.host.env);
  if (call.flags.json) call.screen.document({ v: 1, database: name, queue: withoutQueue === null });
  else call.screen.print(`The tables of ${name} are ready.`);
  if (withoutQueue !== null)
    call.screen.tell(`Runs can be recorded, but workers cannot take them: ${withoutQueue}`);
  return EXIT.completed;
}
