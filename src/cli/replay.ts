/** `lockstep replay RUN|FILE …`: every decision once more, against the record. */
import { resolve } from "node:path";
import { parseBundle, replayBundle } from "../run/bundle.ts";
import { MOST_BUNDLE_BYTES, readWritten } from "../run/files.ts";
import { listRuns, readRun, replayRun, RunnerError, type Journal } from "../run/index.ts";
import { UsageError } from "./args.ts";
import type { Call } from "./call.ts";
import { withJournal } from "./journal.ts";
import { count, shownInLine, type Paint } from "./text.ts";

type Replayed = Awaited<ReturnType<typeof replayRun>>;
type Told = {
  readonly run: string;
  readonly agent: string;
  readonly ok: boolean;
  readonly events: number;
  readonly difference: Replayed["difference"];
  readonly ms: number;
};

export async function replayRuns(call: Call): Promise<number> {
  const { words, screen } = call;
  if (words.length === 0 && !call.on("all")) throw new UsageError("replay needs RUN, FILE or --all.");
  const told = await withJournal(call, async (journal, stateDir) => {
    const all = call.on("all") && journal !== null ? (await listRuns(journal)).map(({ run }) => run) : [];
    const runs: Told[] = [];
    for (const word of [...words, ...all]) {
      if (word.endsWith(".json")) runs.push(await fromFile(call, word));
      else if (journal === null)
        throw new RunnerError("RUN_UNKNOWN", `There is no run "${word}": none is recorded in ${stateDir}.`);
      else runs.push(await fromJournal(journal, word));
    }
    return runs;
  });
  const ok = told.every((run) => run.ok);
  const events = told.reduce((sum, run) => sum + run.events, 0);
  const ms = told.reduce((sum, run) => sum + run.ms, 0);
  const eventsPerSecond = Math.round(events / Math.max(ms / 1000, 1e-6));
  if (call.on("json")) {
    const runs = told.map(({ ms: _ms, ...run }) => run);
    screen.document({ v: 1, ok, events, eventsPerSecond, runs });
  } else {
    for (const run of told) screen.print(runText(run, screen.out));
    // A handful of events is over before the machine is warm.
    const rate = events < 1000 ? "" : `, ${eventsPerSecond.toLocaleString("en")} a second`;
    screen.tell(`${count(events, "event")} replayed${rate}`);
  }
  return ok ? 0 : 1;
}

async function fromFile(call: Call, file: string): Promise<Told> {
  const bundle = parseBundle(readText(call, file), file);
  return toTold(file, bundle.run.agent, await replayBundle(bundle));
}

async function fromJournal(journal: Journal, ref: string): Promise<Told> {
  const { row, flow } = await readRun(journal, ref);
  return toTold(row.id, flow.agent, await replayRun(journal, row.id));
}

function toTold(run: string, agent: string, { events, difference, ms }: Replayed): Told {
  return { run, agent, ok: difference === null, events, difference, ms };
}

export function readText(call: Call, file: string): string {
  try {
    return readWritten(resolve(call.cwd, file), MOST_BUNDLE_BYTES);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new RunnerError("EXPORT_INVALID", `${file} cannot be read: ${why}`, { cause });
  }
}

function runText({ run, agent, events, difference }: Told, paint: Paint): string {
  const about = `${shownInLine(run)} · ${shownInLine(agent)}`;
  if (difference === null) return `${paint("green", "✓ same")}  ${about} · ${count(events, "event")}`;
  const { seq, event, about: what, recorded, derived } = difference;
  const line = (name: string, value: unknown) =>
    `  ${paint("dim", name.padEnd(9))} ${shownInLine(JSON.stringify(value), 2000)}`;
  return [
    `${paint("red", "✗ differs")}  ${about} · entry ${seq} (${event}), ${what}`,
    line("recorded", recorded),
    line("derived", derived),
  ].join("\n");
}
