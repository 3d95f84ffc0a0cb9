/** `lockstep fleet init`: makes the tables on a PostgreSQL server that records runs. */
import { EXIT } from "../../flow/verdict.ts";
import { makeFleetTables } from "../../run/records/postgres-journal.ts";
import { findProject } from "../../run/world/project.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";

export async function fleetInit(call: CallOf<"fleet init">): Promise<number> {
  const { recordedAt } = findProject(call.cwd, call.stateDir, call.host.env);
  if (recordedAt === undefined)
    throw new UsageError(
      "fleet init needs the address of a server. Give it with --state postgres://HOST/DATABASE, or in LOCKSTEP_STATE.",
    );
  const { name } = await makeFleetTables(recordedAt, call.host.env);
  if (call.flags.json) call.screen.document({ v: 1, database: name });
  else call.screen.print(`The tables of ${name} are ready.`);
  return EXIT.completed;
}
