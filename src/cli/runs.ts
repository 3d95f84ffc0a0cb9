/** `lockstep runs` */
import { listRuns, type Journal, type RunSummary } from "../run/index.ts";
import { sizeOfRun } from "../run/prune.ts";
import { UsageError } from "./args.ts";
import type { Call } from "./call.ts";
import { withJournal, withOwnJournal } from "./journal.ts";
import { age, fit, shownInLine, size, table, widthOf, type Paint } from "./text.ts";

const USUAL_LIMIT = 20;

export async function listRecorded(call: Call): Promise<number> {
  const { screen } = call;
  const limit = limitOf(call.text("limit"));
  requirePrune(call);
  if (call.on("prune") && !call.on("dry-run"))
    return await withOwnJournal(call, null, async (journal, stateDir) => {
      return await (await import("./prune.ts")).pruneRuns(call, journal, stateDir);
    });
  return await withJournal(call, async (journal, stateDir) => {
    if (call.on("prune")) return await (await import("./prune.ts")).pruneRuns(call, journal, stateDir);
    if (call.on("watch")) return await watchRuns(call, journal, stateDir, limit);
    const runs = journal === null ? [] : await listRuns(journal);
    const newest = journal === null ? [] : await sized(journal, runs.slice(0, limit), stateDir);
    if (call.on("json")) screen.document({ v: 1, runs: newest, total: runs.length });
    else if (newest.length === 0) screen.tell(`No runs are recorded in ${stateDir}.`);
    else screen.print(runTable(newest, Date.now(), screen.out));
    if (newest.length < runs.length)
      screen.tell(`${runs.length - newest.length} more; see them with --limit ${runs.length}`);
    return 0;
  });
}

async function watchRuns(
  call: Call,
  journal: Journal | null,
  stateDir: string,
  limit: number,
): Promise<number> {
  const { screen, host } = call;
  if (call.on("json"))
    throw new UsageError("--watch goes on and on, and --json is one document; use one of them.");
  if (journal === null)
    throw new UsageError(`No runs are recorded in ${stateDir}, so there is nothing to watch.`);
  const { followRuns } = await import("../run/tail.ts");
  const { systemClock } = await import("../run/clock.ts");
  const tell = host.stdout.isTTY === true ? drawer(call, journal, stateDir) : printer(call);
  screen.tell("Watching the runs; Ctrl-C ends.");
  for await (const runs of followRuns(journal, systemClock, host.interruption()))
    await tell(runs.slice(0, limit));
  return 0;
}

/** On a terminal the table is drawn over itself. */
function drawer(
  { screen, host }: Call,
  journal: Journal,
  stateDir: string,
): (runs: readonly RunSummary[]) => Promise<void> {
  let before = "";
  return async (runs) => {
    const drawn = runTable(await sized(journal, runs, stateDir), Date.now(), screen.out, host.stdout.columns);
    if (drawn === before) return;
    const back = before === "" ? "" : `\u001b[${before.split("\n").length}A\u001b[J`;
    before = drawn;
    host.stdout.write(`${back}${drawn}\n`);
  };
}

/** Elsewhere a line is printed for every run that changed. */
function printer({ screen }: Call): (runs: readonly RunSummary[]) => Promise<void> {
  let known = new Map<string, string>();
  return (runs) => {
    const now = new Map(runs.map((run) => [run.run, stateText(run)]));
    for (const [run, text] of now) if (known.get(run) !== text) screen.print(text);
    known = now;
    return Promise.resolve();
  };
}

function stateText({ run, agent, state, code, step, events }: RunSummary): string {
  return [
    run,
    shownInLine(agent, 40),
    code === null ? state : `${state} ${code}`,
    shownInLine(step ?? "-", 60),
    events,
  ].join("  ");
}

type Sized = RunSummary & { readonly bytes: number };

async function sized(
  journal: Journal,
  runs: readonly RunSummary[],
  stateDir: string,
): Promise<readonly Sized[]> {
  return await Promise.all(
    runs.map(async (run) => ({ ...run, bytes: await sizeOfRun(journal, run.run, stateDir) })),
  );
}

/** `width`: longer lines are cut. */
function runTable(runs: readonly Sized[], now: number, paint: Paint, width = Infinity): string {
  const rows = runs.map(({ run, agent, state, code, step, updatedAt, events, bytes }) => [
    run,
    shownInLine(agent, 40),
    code === null ? state : `${state} ${code}`,
    shownInLine(step ?? "-", 60),
    age(now - Date.parse(updatedAt)),
    String(events),
    size(bytes),
  ]);
  const [head = "", ...lines] = table([["RUN", "AGENT", "STATE", "STEP", "AGE", "EVENTS", "SIZE"], ...rows]);
  const cut = (line: string) => (widthOf(line) > width ? fit(line, width) : line);
  return [paint("dim", cut(head)), ...lines.map(cut)].join("\n");
}

function requirePrune(call: Call): void {
  if (call.on("prune")) return;
  const stray = ["older-than", "keep", "dry-run", "yes"].find((flag) => call.text(flag) !== undefined);
  if (stray !== undefined) throw new UsageError(`--${stray} goes with --prune.`);
}

function limitOf(text: string | undefined): number {
  if (text === undefined) return USUAL_LIMIT;
  const limit = /^\d+$/.test(text) ? Number(text) : 0;
  if (limit < 1) throw new UsageError(`--limit is "${text}"; it must be a whole number above 0.`);
  return limit;
}
