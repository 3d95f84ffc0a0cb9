/** `lockstep show RUN --follow`: what another process does with a run, as it happens. */
import { followRun, show, type Journal } from "../../run/index.ts";
import { systemClock } from "../../run/world/clock.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { resumeCommand } from "../conduct.ts";
import { statusLine } from "../text/progress.ts";
import { renderReport } from "../text/report.ts";
import { visitLines } from "./show.ts";
import { jsonLine } from "../text/text.ts";

export async function followShown(call: CallOf<"show">, journal: Journal, run: string): Promise<number> {
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
