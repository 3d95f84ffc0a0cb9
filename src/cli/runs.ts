/** `lockstep runs` */
import { listRuns, type RunSummary } from "../run/index.ts";
import { UsageError } from "./args.ts";
import type { Call } from "./call.ts";
import { withJournal } from "./journal.ts";
import { age, shownInLine, table, type Paint } from "./text.ts";

const USUAL_LIMIT = 20;

export async function listRecorded(call: Call): Promise<number> {
  const { screen } = call;
  const limit = limitOf(call.text("limit"));
  const { runs, stateDir } = await withJournal(call, async (journal, stateDir) => ({
    runs: journal === null ? [] : await listRuns(journal),
    stateDir,
  }));
  const newest = runs.slice(0, limit);
  if (call.on("json")) screen.document({ v: 1, runs: newest, total: runs.length });
  else if (newest.length === 0) screen.tell(`No runs are recorded in ${stateDir}.`);
  else screen.print(runTable(newest, Date.now(), screen.out));
  if (newest.length < runs.length)
    screen.tell(`${runs.length - newest.length} more; see them with --limit ${runs.length}`);
  return 0;
}

function runTable(runs: readonly RunSummary[], now: number, paint: Paint): string {
  const rows = runs.map(({ run, agent, state, code, step, updatedAt, events }) => [
    run,
    shownInLine(agent, 40),
    code === null ? state : `${state} ${code}`,
    shownInLine(step ?? "-", 60),
    age(now - Date.parse(updatedAt)),
    String(events),
  ]);
  const [head = "", ...lines] = table([["RUN", "AGENT", "STATE", "STEP", "AGE", "EVENTS"], ...rows]);
  return [paint("dim", head), ...lines].join("\n");
}

function limitOf(text: string | undefined): number {
  if (text === undefined) return USUAL_LIMIT;
  const limit = /^\d+$/.test(text) ? Number(text) : 0;
  if (limit < 1) throw new UsageError(`--limit is "${text}"; it must be a whole number above 0.`);
  return limit;
}
