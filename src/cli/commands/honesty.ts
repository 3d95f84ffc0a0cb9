/** `lockstep honesty AGENT`: how often "done" agreed with the checks, over recorded runs. */
import { setImmediate } from "node:timers/promises";
import type { Honesty, Rate, RunClaims } from "../../proof/honesty.ts";
import { claimsBy, createClaims, honestyOf, type HonestyRow } from "../../proof/honesty.ts";
import { EXIT, exitOfSignal } from "../../flow/verdict.ts";
import { RunnerError } from "../../run/errors.ts";
import { foldEvery } from "../../run/records/fold.ts";
import { loadNamed } from "../agent.ts";
import type { CallOf } from "../commands.ts";
import { withJournal } from "../journal.ts";
import { count, duration, headed, shownInLine, table, type Paint } from "../text/text.ts";

export async function showHonesty(call: CallOf<"honesty">): Promise<number> {
  const { flags, screen } = call;
  const [name = ""] = call.words;
  const signal = call.host.interruption();
  const { flow, problems } = await loadNamed(name, call.cwd);
  const from = flags.since === undefined ? -Infinity : Date.now() - flags.since;
  const { runs, damaged } = await claimsOf(call, name, from, signal);
  // An agent that was removed may have recorded runs.
  const missing = problems.find(({ code }) => code === "AC-SERVICE-001");
  if (runs.length === 0 && missing !== undefined && !signal.aborted)
    throw new RunnerError("USAGE", `${missing.message} ${missing.fix}`);
  const honesty = honestyOf(runs, Object.keys(flow?.checks ?? {}));
  const rows = flags.by === undefined ? null : claimsBy(runs, flags.by);
  if (flags.json)
    screen.document({
      v: 1,
      kind: "lockstep-honesty",
      ok: !signal.aborted,
      agent: name,
      damaged,
      ...(signal.aborted && { stopped: "interrupted" }),
      ...honesty,
      ...(rows !== null && { by: flags.by, rows }),
    });
  else {
    const lines = flags.quiet
      ? wrongIn(name, honesty, damaged)
      : textOf(name, honesty, rows, flags.by, damaged, screen.out);
    if (lines.length > 0) screen.print(lines.map((line) => line.trimEnd()).join("\n"));
    if (signal.aborted) screen.complain("Interrupted: only the runs that were read are counted.");
  }
  return signal.aborted ? exitOfSignal(signal) : EXIT.completed;
}

/** Newest first; a run that is damaged counts as far as it can be read. */
async function claimsOf(
  call: CallOf<"honesty">,
  agent: string,
  since: number,
  signal: AbortSignal,
): Promise<{ readonly runs: readonly RunClaims[]; readonly damaged: number }> {
  const runs: RunClaims[] = [];
  let damaged = 0;
  await withJournal(call, async (journal) => {
    if (journal === null) return;
    let folded = createClaims();
    const open = () => (folded = createClaims()).add;
    for await (const { row, isWhole } of foldEvery(journal, { agent, since }, open)) {
      if (!isWhole) damaged += 1;
      runs.push({ run: row.id, flow: row.digest, isOver: folded.isOver(), claims: folded.claims });
      if (runs.length % SHOWN_EVERY > 0) continue;
      call.screen.status(`read ${count(runs.length, "run")}`);
      // A busy process hears no signals.
      await setImmediate();
      if (signal.aborted) break;
    }
  }).finally(() => call.screen.status(null));
  return { runs, damaged };
}

const SHOWN_EVERY = 50;

/** For `--quiet`: what should be looked at, a line each. */
function wrongIn(agent: string, { claims, falseDone, checks }: Honesty, damaged: number): readonly string[] {
  const about = (text: string) => `${shownInLine(agent)}: ${text}`;
  return [
    ...(damaged === 0 ? [] : [about(count(damaged, "damaged run"))]),
    ...(falseDone.count === 0
      ? []
      : [about(`${falseDone.count} of ${count(claims, "claim")} overturned by a check`)]),
    ...checks.flatMap(({ check, note }) =>
      note === null ? [] : [about(`the check ${shownInLine(check)}: ${note}`)],
    ),
  ];
}

function textOf(
  agent: string,
  honesty: Honesty,
  rows: readonly HonestyRow[] | null,
  by: string | undefined,
  damaged: number,
  paint: Paint,
): readonly string[] {
  const { runs, claims, falseDone, honestFirst, recovered, exhausted, leftOpen, tries, price } = honesty;
  const { patterns, checks } = honesty;
  const counts = Object.entries(tries).map(([number, of]) => `${number}: ${count(of, "run")}`);
  const broken = damaged === 0 ? "" : `, ${damaged} damaged`;
  return [
    `${shownInLine(agent)}: ${count(runs, "recorded run")}${broken}, ${count(claims, "claim")} to be done`,
    "",
    ...table([
      ["false claims", rateText(falseDone), "claims that a check overturned"],
      ["right at first", rateText(honestFirst), "runs whose first claim passed its checks"],
      ["recovered", rateText(recovered), "runs with a false claim whose last claim passed"],
      ["given up", rateText(exhausted), "runs with a false claim that ended without one that passed"],
      ["left open", rateText(leftOpen), "runs with a false claim that have not ended"],
      ["claims until one passed", counts.length === 0 ? "-" : counts.join(", "), ""],
      ["price of a false claim", priceText(price), "on average, until a claim passed"],
    ]),
    ...(patterns.length === 0
      ? []
      : [
          "",
          ...headed(paint, [
            ["failure", "times", "next claim passed"],
            ...patterns.map(({ pattern, hits, recovered: next }) => [
              shownInLine(pattern),
              String(hits),
              String(next),
            ]),
          ]),
        ]),
    ...(checks.length === 0
      ? []
      : [
          "",
          ...headed(paint, [
            ["check", "passed", "failed", "could not run", ""],
            ...checks.map(({ check, passed, failed, couldNotRun, note }) => [
              shownInLine(check),
              String(passed),
              String(failed),
              String(couldNotRun),
              note === null ? "" : paint("yellow", note),
            ]),
          ]),
        ]),
    ...(rows === null
      ? []
      : [
          "",
          ...headed(paint, [
            [by ?? "", "runs", "claims", "false claims", "right at first", ""],
            ...rows.map((row) => [
              shownInLine(row.name),
              String(row.runs),
              String(row.claims),
              rateText(row.falseDone),
              rateText(row.honestFirst),
              row.isChanged ? "the flow changed" : "",
            ]),
          ]),
        ]),
  ];
}

/** `18 of 60  30 % (20-43 %)`; without claims there is no rate. */
function rateText({ count: some, of, interval }: Rate): string {
  if (interval === null) return "-";
  const { low, high } = interval;
  return `${some} of ${of}  ${percent(some / of)} % (${percent(low)}-${percent(high)} %)`;
}

function percent(rate: number): string {
  return String(Math.round(rate * 100));
}

function priceText(price: Honesty["price"]): string {
  if (price === null) return "-";
  const money = price.costUsd === null ? "no known price" : `$${price.costUsd.toFixed(4)}`;
  return `${count(Math.round(price.tokens), "token")}, ${money}, ${duration(price.ms)}`;
}
