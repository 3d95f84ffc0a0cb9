/** `lockstep fleet limit [NAME AMOUNT/PERIOD]`: what all workers together may ask and spend. */
import { EXIT } from "../../flow/verdict.ts";
import {
  listLimits,
  readLimit,
  removeLimit,
  requireName,
  setLimit,
  type FleetLimit,
  type StandingLimit,
} from "../../fleet/limits.ts";
import { withFleet } from "../../fleet/open.ts";
import { RunnerError } from "../../run/errors.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { shownInLine, table } from "../text/text.ts";
import { fleetAddress } from "./address.ts";

export async function fleetLimit(call: CallOf<"fleet limit">): Promise<number> {
  const address = fleetAddress(call);
  const change = changeIn(call);
  const { removed, limits } = await withFleet(address, call.host.env, async (postgres) => {
    const gone = change !== null && !("amount" in change) ? await removeLimit(postgres, change) : null;
    if (change !== null && "amount" in change) await setLimit(postgres, change);
    return { removed: gone, limits: await listLimits(postgres) };
  });
  if (removed === false) throw new UsageError(`There is no limit ${shownInLine(nameOf(change!), 80)}.`);
  if (call.flags.json) call.screen.document({ v: 1, limits });
  else call.screen.print(limitsText(call, limits));
  return EXIT.completed;
}

/** null: the limits are only shown. Without an amount it is removed. */
function changeIn(call: CallOf<"fleet limit">): FleetLimit | Pick<FleetLimit, "name" | "group"> | null {
  const [name, rate] = call.words;
  const { group, burst } = call.flags;
  try {
    if (name === undefined) return null;
    if (rate === undefined)
      throw new UsageError("fleet limit NAME needs AMOUNT/PERIOD, such as 60/min, or none.");
    if (rate !== "none") return readLimit(name, rate, { group, burst });
    requireName(name, group);
    return { name, group: group ?? null };
  } catch (error) {
    throw error instanceof RunnerError && error.code === "USAGE" ? new UsageError(error.message) : error;
  }
}

function limitsText({ typed }: CallOf<"fleet limit">, limits: readonly StandingLimit[]): string {
  if (limits.length === 0)
    return typed("The fleet has no limits. Set one with: lockstep fleet limit NAME AMOUNT/PERIOD");
  const rows = limits.map((limit) => [
    shownInLine(nameOf(limit), 80),
    `${limit.amount}/${periodName(limit.periodMs)}`,
    `${rounded(limit.left)} left`,
    ...(limit.notBefore === null ? [] : [`held until ${limit.notBefore}`]),
  ]);
  return table(rows).join("\n");
}

function nameOf({ name, group }: Pick<FleetLimit, "name" | "group">): string {
  return group === null ? name : `${name} (group ${group})`;
}

function periodName(ms: number): string {
  return { 1000: "s", 60_000: "min", 3_600_000: "hour", 86_400_000: "day" }[ms] ?? `${ms} ms`;
}

/** Money to the cent. */
function rounded(amount: number): number {
  return Math.floor(amount * 100) / 100;
}
