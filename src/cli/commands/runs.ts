/** `lockstep runs` */
import { findRun, listRuns, type Journal, type RunSummary } from "../../run/index.ts";
import { sizeOfRun } from "../../run/records/prune.ts";
import { DAMAGED, particularsOf, type Particulars } from "../../run/records/runs.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { withJournal, withOwnJournal } from "../journal.ts";
import { age, besideEachOther, fit, shownInLine, size, table, widthOf, type Paint } from "../text/text.ts";

const USUAL_LIMIT = 20;

export async function listRecorded(call: CallOf<"runs">): Promise<number> {
  const { screen } = call;
  const limit = limitOf(call);
  requirePrune(call);
  if (call.flags.prune && !call.flags["dry-run"])
    return await withOwnJournal(
      call,
      null,
      async (journal, stateDir) => await (await import("./prune.ts")).pruneRuns(call, journal, stateDir),
      async (foreign) => {
        for (const word of call.words) await findRun(foreign, word);
      },
    );
  return await withJournal(call, async (journal, stateDir) => {
    if (call.flags.prune) return await (await import("./prune.ts")).pruneRuns(call, journal, stateDir);
    if (call.flags.watch) return await watchRuns(call, journal, stateDir, limit);
    const runs = journal === null ? [] : await listRuns(journal, { limit });
    const newest = journal === null ? [] : await rowsOf(journal, runs, stateDir);
    const total = (await journal?.count()) ?? 0;
    if (call.flags.json) screen.document({ v: 1, runs: newest, total });
    else if (newest.length === 0) screen.tell(`No runs are recorded in ${stateDir}.`);
    else screen.print(runTable(newest, Date.now(), screen.out));
    if (newest.length < total)
      screen.tell(call.typed(`${total - newest.length} more; to list all: lockstep runs --limit ${total}`));
    return 0;
  });
}

async function watchRuns(
  call: CallOf<"runs">,
  journal: Journal | null,
  stateDir: string,
  limit: number,
): Promise<number> {
  const { screen, host } = call;
  if (call.flags.json) throw new UsageError("--watch and --json cannot be used together.");
  if (journal === null)
    throw new UsageError(`No runs are recorded in ${stateDir}, so there is nothing to watch.`);
  const { followRuns } = await import("../../run/watch/follow.ts");
  const { systemClock } = await import("../../run/world/clock.ts");
  const tell = host.stdout.isTTY === true ? drawer(call, journal, stateDir) : printer(call);
  screen.tell("Watching the runs; Ctrl-C ends.");
  for await (const runs of followRuns(journal, systemClock, host.interruption(), limit)) await tell(runs);
  return 0;
}

/** On a terminal the table is drawn over itself. */
function drawer(
  { screen, host }: CallOf<"runs">,
  journal: Journal,
  stateDir: string,
): (runs: readonly RunSummary[]) => Promise<void> {
  let before = "";
  let known: readonly Row[] = [];
  return async (runs) => {
    // Only what has changed is read again.
    const isKnown = (row: Row) => runs.some(({ run, events }) => run === row.run && events === row.events);
    const same = known.filter(isKnown);
    const news = runs.filter(({ run }) => same.every((row) => row.run !== run));
    const read = [...same, ...(await rowsOf(journal, news, stateDir))];
    known = runs.map((summary) => ({ ...read.find(({ run }) => run === summary.run)!, ...summary }));
    const drawn = runTable(known, Date.now(), screen.out, host.stdout.columns);
    if (drawn === before) return;
    const back = before === "" ? "" : `\u001b[${before.split("\n").length}A\u001b[J`;
    before = drawn;
    if (back !== "") host.stdout.write(back);
    screen.print(drawn);
  };
}

/** Elsewhere a line is printed for every run that changed. */
function printer({ screen }: CallOf<"runs">): (runs: readonly RunSummary[]) => Promise<void> {
  let known = new Map<string, string>();
  return (runs) => {
    const now = new Map(runs.map((run) => [run.run, stateText(run)]));
    for (const [run, text] of now) if (known.get(run) !== text) screen.print(text);
    known = now;
    return Promise.resolve();
  };
}

function stateText({ run, agent, state, code, steps, events }: RunSummary): string {
  return [
    shownInLine(run, 64),
    shownInLine(agent, 40),
    shownInLine(code === null ? state : `${state} ${code}`, 120),
    besideEachOther(steps) || "-",
    events,
  ].join("  ");
}

type Row = RunSummary & Particulars & { readonly bytes: number };

async function rowsOf(
  journal: Journal,
  runs: readonly RunSummary[],
  stateDir: string,
): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const run of runs) {
    const particulars = await particularsOf(journal, run.run);
    const bytes = await sizeOfRun(journal, run.run, stateDir);
    rows.push({ ...run, ...particulars, ...(particulars.damaged && DAMAGED), bytes });
  }
  return rows;
}

const HEAD = ["RUN", "AGENT", "STATE", "STEP", "STARTED", "AGE", "COST", "EVENTS", "SIZE"];

/** `width`: longer lines are cut. */
function runTable(runs: readonly Row[], now: number, paint: Paint, width = Infinity): string {
  const hasBatch = runs.some(({ batch }) => batch !== undefined);
  const rows = runs.map((row) => [
    shownInLine(row.run, 64),
    shownInLine(row.agent, 40),
    shownInLine(row.code === null ? row.state : `${row.state} ${row.code}`, 120),
    besideEachOther(row.steps) || "-",
    timeText(row.createdAt),
    age(now - Date.parse(row.updatedAt)),
    row.costUsd === null ? "-" : `$${row.costUsd.toFixed(4)}`,
    String(row.events),
    size(row.bytes),
    ...(hasBatch ? [shownInLine(row.batch ?? "-", 40)] : []),
    argumentText(row.args),
  ]);
  const [head = "", ...lines] = table([[...HEAD, ...(hasBatch ? ["BATCH"] : []), "ARGUMENTS"], ...rows]);
  const cut = (line: string) => (widthOf(line) > width ? fit(line, width) : line);
  return [paint("dim", cut(head)), ...lines.map(cut)].join("\n");
}

/** In UTC, as in logs and documents, to the minute. */
function timeText(iso: string): string {
  return `${iso.slice(0, 16).replace("T", " ")}Z`;
}

function argumentText(args: Row["args"]): string {
  const shown = Object.entries(args).map(
    ([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  return shownInLine(shown.join(" ") || "-", 80);
}

function requirePrune(call: CallOf<"runs">): void {
  const { written } = call;
  const isGiven = (flag: "watch" | "limit" | "max" | "older-than" | "keep" | "dry-run" | "yes") =>
    written[flag].length > 0;
  if (call.flags.prune) {
    const other = (["watch", "limit", "max"] as const).find(isGiven);
    if (other !== undefined) throw new UsageError(`--${other} cannot be used with --prune.`);
    const range = (["older-than", "keep"] as const).find(isGiven);
    if (call.words.length > 0 && range !== undefined)
      throw new UsageError(`--${range} cannot be used with RUN: exactly the named runs are removed.`);
    return;
  }
  if (call.words.length > 0)
    throw new UsageError(`RUN only works with --prune. To show a run: lockstep show ${call.words[0]}`);
  const stray = (["older-than", "keep", "dry-run", "yes"] as const).find(isGiven);
  if (stray !== undefined) throw new UsageError(`--${stray} goes with --prune.`);
}

function limitOf({ flags: { limit, max } }: CallOf<"runs">): number {
  if (limit !== undefined && max !== undefined)
    throw new UsageError("--limit and --max are the same flag; give one of them.");
  return limit ?? max ?? USUAL_LIMIT;
}
