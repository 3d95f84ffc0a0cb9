/** `lockstep show RUN`; with `--follow`, as it happens. */
import type { Entry, Sight } from "../../flow/event.ts";
import { findRun, followRun, RunnerError, show, type Journal, type Shown } from "../../run/index.ts";
import type { CallOf } from "../commands.ts";
import { resumeCommand } from "../conduct.ts";
import { UsageError } from "../args.ts";
import { EXIT } from "../../flow/verdict.ts";
import { toFailure } from "../../tell/result.ts";
import { slicesOf } from "../../run/records/runs.ts";
import { eventWords } from "../../tell/event-words.ts";
import { systemClock } from "../../run/world/clock.ts";
import { withRunOrFile } from "../journal.ts";
import { failedLine, ledLine, statusLine, wordsLine } from "../text/progress.ts";
import { renderedMarkdown } from "../text/rendered.ts";
import { renderReport, resultText } from "../text/report.ts";
import { duration, jsonLine, shownInLine, table, type Paint } from "../text/text.ts";

export async function showRun(call: CallOf<"show">): Promise<number> {
  const { screen } = call;
  const [ref = ""] = call.words;
  if (call.flags.json && call.flags.events)
    throw new UsageError("--json and --events cannot be used together: both write to stdout.");
  return await withRunOrFile(call, ref, async (journal, run) => {
    const row = await findRun(journal, run);
    if (call.flags.follow) return await followShown(call, journal, row.id);
    if (call.flags.events) {
      for await (const slice of slicesOf(journal, row.id))
        for (const entry of slice) screen.emit(jsonLine(entry));
      return 0;
    }
    if (call.flags.audit) return await tellAudit(call, journal, row.id);
    const isText = !call.flags.result && !call.flags.json;
    const lines: string[] = [];
    const result = await show(journal, row.id, Date.now(), (entry) => {
      if (isText) lines.push(...visitLines(entry, screen.out));
      if (lines.length >= LINES) screen.print(lines.splice(0).join("\n"));
    }).catch((error: unknown) => {
      if (!call.flags.json || !(error instanceof RunnerError) || error.code !== "JOURNAL_UNAVAILABLE")
        throw error;
      const failure = toFailure(row.agent, error.code, error.message);
      return { ...failure, run: row.id, outcome: "damaged" } as const;
    });
    if (call.flags.result) return printResult(call, result);
    const code = result.outcome === "damaged" ? EXIT.unavailable : EXIT.completed;
    if (call.flags.json) {
      screen.document(result);
      return code;
    }
    const onward = run === ref ? resumeCommand(call, result) : null;
    const report = renderReport(result, onward, screen.out, call.typed);
    screen.print([...lines, report, ...stepTable(result, screen.out)].join("\n"));
    return code;
  });
}

/** What another process does with the run, as it happens. */
async function followShown(call: CallOf<"show">, journal: Journal, run: string): Promise<number> {
  const { screen } = call;
  if (call.flags.audit) throw new UsageError("--audit shows a whole run and cannot be followed.");
  const signal = call.host.interruption();
  for await (const { entry, state } of followRun(journal, run, systemClock, signal)) {
    if (call.flags.events) screen.emit(jsonLine(entry));
    else if (!call.flags.json) for (const line of visitLines(entry, screen.out)) screen.print(line);
    screen.status(state.verdict === null ? statusLine(state, Date.now() - entry.at) : null);
  }
  screen.status(null);
  if (call.flags.events) return 0;
  const result = await show(journal, run);
  if (call.flags.json) screen.document(result);
  else screen.print(renderReport(result, resumeCommand(call, result), screen.out, call.typed));
  return 0;
}

/** Of a long run so many are printed at once. */
const LINES = 500;

/** Only what the run made: text as it is but for what a terminal would obey, anything else as JSON. */
function printResult(
  { screen, flags, typed }: CallOf<"show">,
  { run, result, outcome, reason }: Shown,
): number {
  if (flags.json) screen.document({ v: 1, run, result });
  else if (result !== null) screen.emit(renderedMarkdown(resultText(result), screen.out));
  if (outcome === "damaged") {
    const unknown = result === null ? `The result of run ${run} is unknown. ` : "";
    screen.complain(`${unknown}${typed(shownInLine(reason, 1000))}`);
    return EXIT.unavailable;
  }
  if (result !== null) return 0;
  screen.complain(
    `Run ${run} has no result: ${outcome === "completed" ? "its last answer contains no data" : `it is ${outcome}`}.`,
  );
  return 1;
}

/** What each step took. */
function stepTable({ steps }: Shown, paint: Paint): readonly string[] {
  if (steps.length === 0) return [];
  const rows = steps.map(({ step, visits, turns, inputTokens, outputTokens, ms, costUsd }) => [
    shownInLine(step, 60),
    ...[visits, turns, inputTokens, outputTokens].map(String),
    duration(ms),
    costUsd === null ? "-" : `$${costUsd.toFixed(4)}`,
  ]);
  const [head = "", ...lines] = table([
    ["STEP", "VISITS", "TURNS", "TOKENS IN", "OUT", "TIME", "COST"],
    ...rows,
  ]);
  return ["", paint("dim", `  ${head}`), ...lines.map((line) => `  ${line}`)];
}

/** How a visit was settled, if this entry settled one, and what else is worth knowing afterwards. */
function visitLines({ event, led, underWay }: Entry, paint: Paint): readonly string[] {
  if (eventWords(event)?.lasting) return wordsLine(event, paint, false);
  const failed = event.type === "step.checked" ? event.results.find((other) => !other.ok) : undefined;
  if (led === undefined)
    return event.type === "step.checked" && failed !== undefined ? [failedLine(event, failed, paint)] : [];
  const seen = ({ met, what }: Sight) =>
    paint("dim", `      ${met ? "met" : "not met"}: ${shownInLine(what, 400)}`);
  const line = ledLine(led, failed, paint, underWay);
  return event.type === "step.looked" ? [line].concat(event.sights.map(seen)) : [line];
}

/** The run in the words of the life of its stages. */
async function tellAudit({ screen, flags }: CallOf<"show">, journal: Journal, run: string): Promise<number> {
  const { auditRun } = await import("../../run/records/reports.ts");
  const records = await auditRun(journal, run);
  if (flags.json) screen.document({ v: 1, run, audit: records });
  else {
    const lines = records.map(({ at, name, about }) => [
      screen.out("dim", new Date(at).toISOString().slice(11, 23)),
      name,
      screen.out("dim", shownInLine(JSON.stringify(about), 200)),
    ]);
    screen.print(lines.map((line) => line.join("  ")).join("\n"));
  }
  return 0;
}
