/** The server that a verb of the fleet is about. */
import { findProject } from "../../run/world/project.ts";
import { UsageError } from "../args.ts";
import type { CommandCall } from "../call.ts";

export function fleetAddress(call: CommandCall): string {
  const { recordedAt } = findProject(call.cwd, call.stateDir, call.host.env);
  if (recordedAt !== undefined) return recordedAt;
  throw new UsageError(
    `${call.command.name} needs the address of a server. Give it with --state postgres://HOST/DATABASE, or in LOCKSTEP_STATE.`,
  );
}
