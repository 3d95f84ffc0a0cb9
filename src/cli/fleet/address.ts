/** The server that a verb of the fleet is about, and the names that its flags take. */
import { LONGEST_GROUP, QUEUE_NAME } from "../../fleet/dispatch.ts";
import { shownInLine } from "../text/text.ts";
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

export function requireQueue(queue: string): void {
  if (QUEUE_NAME.test(queue)) return;
  throw new UsageError(
    `--queue needs a name of 1 to 60 letters, digits, _ and -, not "${shownInLine(queue, 80)}".`,
  );
}

/** A flag that takes any text needs some. */
export function requireNamed(flag: string, text: string | undefined): void {
  if (text !== undefined && (text.trim() === "" || text.length > LONGEST_GROUP))
    throw new UsageError(`--${flag} needs a text of 1 to ${LONGEST_GROUP} characters.`);
}
