/** Reports that read a recorded run through, entry by entry: why, compare, audit, logs. */
import { RunnerError, type Journal } from "../../engine/ports.ts";
import { createTrace } from "../../story/visits.ts";
import { auditRecords, type AuditRecord } from "../../tell/audit.ts";
import { comparisonOf, createComparable, type Comparison } from "../../tell/compare.ts";
import type { LogLine } from "../../tell/log-line.ts";
import { logLines } from "../../tell/log.ts";
import { asDriven, whyIn, type Why } from "../../tell/why.ts";
import { momentsOf } from "../watch/follow.ts";
import { systemClock } from "../world/clock.ts";
import { foldPartly, foldRun } from "./fold.ts";
import { findRun, flowOf, type Damage } from "./runs.ts";

/** Why a visit of a run went the way it did, from its journal alone; `target` is `STEP` or `STEP@VISIT`. */
export async function why(journal: Journal, ref: string, target?: string): Promise<Why> {
  const { damage, ...one } = await whyPartly(journal, ref, target);
  if (damage !== null) throw new RunnerError("JOURNAL_UNAVAILABLE", damage.why);
  return one;
}

/** The same as far as the run can be read. What it did not come to before the damage, it may have come to later. */
export async function whyPartly(
  journal: Journal,
  ref: string,
  target?: string,
): Promise<Why & { readonly damage: Damage | null }> {
  const row = await findRun(journal, ref);
  const { add, traced } = createTrace(target ?? null);
  const { flow, damage } = await foldPartly(journal, row, add);
  try {
    return { ...asDriven(whyIn(traced(flow), target), row.owned), damage };
  } catch (error) {
    if (damage === null || target === undefined || !(error instanceof RunnerError)) throw error;
    const until = damage.seq === null ? "" : `, which ends before entry ${damage.seq}`;
    const what = `"${target}" is not in what can be read of the run${until}. ${damage.why}`;
    throw new RunnerError("JOURNAL_UNAVAILABLE", what, { cause: error });
  }
}

/** Where two runs part ways; each by id, prefix, `@last` or `@failed`. */
export async function compareRuns(journal: Journal, a: string, b: string): Promise<Comparison> {
  const read = async (ref: string) => {
    const row = await findRun(journal, ref);
    const { add, end } = createComparable();
    const { state, flow, digest } = await foldRun(journal, row, add);
    return end({ run: row.id, agent: row.agent, digest }, flow, state);
  };
  return comparisonOf(await read(a), await read(b));
}

/** The record of a run in the words of the life of its stages. NO_STAGES when the run is not of a stage machine. */
export async function auditRun(journal: Journal, ref: string): Promise<readonly AuditRecord[]> {
  const row = await findRun(journal, ref);
  if ((await flowOf(journal, row.id, row.digest)).dialect !== "stage")
    throw new RunnerError(
      "NO_STAGES",
      `Run ${row.id} of "${row.agent}" has no stages, and so no audit of them.`,
    );
  const records: AuditRecord[] = [];
  await foldRun(journal, row, (moment) => void records.push(...auditRecords(moment)));
  return records;
}

/**
 * The log of a run, from its journal alone. `follow` waits for more until the run has ended, or no process drives it.
 *
 * @example
 * for await (const { level, message } of logs(journal, "@last")) console.log(level, message);
 */
export async function* logs(
  journal: Journal,
  ref: string,
  { follow = false, signal = new AbortController().signal }: LogOptions = {},
): AsyncGenerator<LogLine> {
  const following = follow ? { clock: systemClock, signal } : null;
  for await (const moments of momentsOf(journal, await findRun(journal, ref), following))
    for (const moment of moments) yield* logLines(moment);
}

type LogOptions = { readonly follow?: boolean; readonly signal?: AbortSignal };
