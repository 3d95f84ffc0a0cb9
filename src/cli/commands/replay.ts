/** `lockstep replay RUN|FILE …`: every decision once more, against the record. */
import { EXIT } from "../../flow/verdict.ts";
import { parseBundle, replayBundle } from "../../run/records/bundle.ts";
import { requireRecord } from "../../run/records/journal.ts";
import { MOST_BUNDLE_BYTES } from "../../run/world/files.ts";
import { findRun, RunnerError, type Journal } from "../../run/index.ts";
import { replayRow, type TimedReplay } from "../../run/records/replay.ts";
import { everyRow } from "../../run/records/runs.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { readGiven } from "../given-file.ts";
import { withJournal } from "../journal.ts";
import { count, shownInLine, type Paint } from "../text/text.ts";

type RunReplayed = {
  readonly run: string;
  readonly agent: string;
  readonly ok: boolean;
  readonly events: number;
  readonly difference: TimedReplay["difference"];
  readonly ms: number;
  /** Why it cannot be read. */
  readonly damaged?: string;
};
type Row = Parameters<typeof replayRow>[1];

export async function replayRuns(call: CallOf<"replay">): Promise<number> {
  const { words, screen } = call;
  if (words.length === 0 && !call.flags.all) throw new UsageError("replay needs RUN, FILE or --all.");
  const isJson = call.flags.json;
  const replayed: Omit<RunReplayed, "ms">[] = [];
  let ok = true;
  let differs = false;
  let isDamaged = false;
  let events = 0;
  let ms = 0;
  await withJournal(call, async (journal, stateDir) => {
    const total = call.flags.all ? ((await journal?.count()) ?? 0) + words.length : words.length;
    let done = 0;
    const tell = ({ ms: took, ...run }: RunReplayed) => {
      ok &&= run.ok;
      differs ||= run.difference !== null;
      isDamaged ||= run.damaged !== undefined;
      events += run.events;
      ms += took;
      done += 1;
      if (isJson) replayed.push(run);
      else screen.print(runText(run, screen.out));
      if (total > MANY) screen.status(done === total ? null : `replayed ${done} of ${total} runs`);
    };
    for (const word of words) {
      if (word.endsWith(".json")) tell(await fromFile(call, word));
      else {
        const record = requireRecord(journal, word, stateDir);
        tell(await fromJournal(record, await findRun(record, word)));
      }
    }
    if (journal !== null && call.flags.all)
      for await (const row of everyRow(journal))
        tell(await fromJournal(journal, row).catch((error: unknown) => unreadable(row, error)));
  }).finally(() => screen.status(null));
  const eventsPerSecond = Math.round(events / Math.max(ms / 1000, 1e-6));
  if (isJson) screen.document({ v: 1, ok, events, eventsPerSecond, runs: replayed });
  else {
    // A handful of events is over before the machine is warm.
    const rate = events < 1000 ? "" : `, ${eventsPerSecond.toLocaleString("en")} a second`;
    screen.tell(`${count(events, "event")} replayed${rate}`);
  }
  if (isDamaged && !differs) return EXIT.unavailable;
  return ok ? EXIT.completed : EXIT.failed;
}

/** Of more runs than this it is shown how many are done. */
const MANY = 20;

async function fromFile(call: CallOf<"replay">, file: string): Promise<RunReplayed> {
  const bundle = parseBundle(readGiven(call, file, "EXPORT_INVALID", MOST_BUNDLE_BYTES), file);
  return toReplayed(file, bundle.run.agent, await replayBundle(bundle));
}

async function fromJournal(journal: Journal, row: Row): Promise<RunReplayed> {
  return toReplayed(row.id, row.agent, await replayRow(journal, row));
}

/** One that is damaged does not hide the others. */
function unreadable({ id, agent }: Row, error: unknown): RunReplayed {
  if (!(error instanceof RunnerError) || error.code !== "JOURNAL_UNAVAILABLE") throw error;
  return { run: id, agent, ok: false, events: 0, difference: null, ms: 0, damaged: error.message };
}

function toReplayed(run: string, agent: string, { events, difference, ms }: TimedReplay): RunReplayed {
  return { run, agent, ok: difference === null, events, difference, ms };
}

function runText({ run, agent, events, difference, damaged }: Omit<RunReplayed, "ms">, paint: Paint): string {
  const about = `${shownInLine(run)} · ${shownInLine(agent)}`;
  if (damaged !== undefined) return `${paint("red", "✗ damaged")}  ${about} · ${shownInLine(damaged, 1000)}`;
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
