/** `lockstep fleet submit --follow`: waits until the runs have ended, and reports them as a batch does. */
import { EXIT, exitOfSignal } from "../../flow/verdict.ts";
import type { Submitted } from "../../fleet/submit.ts";
import { show, type Journal, type Shown } from "../../run/index.ts";
import { exitOf } from "../../run/batch.ts";
import { summarise } from "../../run/records/runs.ts";
import { systemClock } from "../../run/world/clock.ts";
import type { CallOf } from "../commands.ts";
import { withRecord } from "../journal.ts";
import { count, duration, shownInLine, table } from "../text/text.ts";

const LAG_MS = 250;

export async function followSubmitted(
  call: CallOf<"fleet submit">,
  runs: readonly Submitted[],
): Promise<number> {
  const { screen, host, flags } = call;
  const signal = host.interruption();
  return await withRecord(call, runs[0]?.run ?? "", async (journal) => {
    await untilOver(journal, runs, signal, (open) => {
      screen.status(`${runs.length - open} of ${count(runs.length, "run")} over`);
    });
    screen.status(null);
    const shown = await Promise.all(
      runs.map(async ({ name, run }) => ({ name, result: await show(journal, run) })),
    );
    const exitCode = signal.aborted ? exitOfSignal(signal) : exitOf(shown.map(({ result }) => result));
    if (flags.json) {
      const items = runs.map((one, place) => ({ ...one, result: shown[place]!.result }));
      screen.document({ v: 1, runs: items, success: exitCode === EXIT.completed, exitCode });
    } else screen.print(rowsOf(shown).join("\n"));
    return exitCode;
  });
}

/** Until each has ended, or waits for a person. */
async function untilOver(
  journal: Journal,
  runs: readonly Submitted[],
  signal: AbortSignal,
  onOpen: (open: number) => void,
): Promise<void> {
  let open = runs.map(({ run }) => run);
  while (open.length > 0 && !signal.aborted) {
    const rows = await journal.rows(open);
    open = rows.filter(isOpen).map(({ id }) => id);
    onOpen(open.length);
    if (open.length > 0) await systemClock.sleep(LAG_MS, signal);
  }
}

/** A worker drives it, or will. One that a person stopped goes on only when a person says so. */
function isOpen(row: Parameters<typeof summarise>[0]): boolean {
  const event = row.last?.event;
  if (event?.type === "run.stopped" && event.by === undefined) return false;
  return ["running", "queued", "interrupted"].includes(summarise(row).state);
}

function rowsOf(shown: readonly { readonly name: string; readonly result: Shown }[]): readonly string[] {
  return table(
    shown.map(({ name, result: { run, outcome, code, durationMs, reason } }) => [
      shownInLine(name, 40),
      shownInLine(run ?? "", 80),
      outcome,
      duration(durationMs),
      outcome === "completed" ? "" : shownInLine(code === null ? reason : `${code}: ${reason}`, 200),
    ]),
  );
}
