/** What each open page hears: the news of all runs and the frames of the one that it looks at, and never more than it takes. */
import type { Journal } from "../engine/ports.ts";
import { jsonLine } from "../flow/text/harmless.ts";
import { RunnerError } from "../run/errors.ts";
import { findRun } from "../run/records/runs.ts";
import { fromWire, type NewsListener } from "./news.ts";
import { RequestRefusal } from "../serve/refusal.ts";
import { type StudioAnswer, type StudioRequest, type Studio, type Wire } from "./route.ts";
import type { StreamMessage } from "./wire.ts";

/** At once. */
const MOST_STREAMS = 24;
/** What a slow client is owed at most; beyond, it is told to ask for everything again. */
const MOST_HELD = 1024 * 1024;
const ALIVE_MS = 15_000;
/** Frames that are sent again when nobody says which ones are known. */
const OVERLAP = 50;
/** Entries that a client can have missed without asking for everything again. */
const MOST_MISSED = 500;
const MOST_FRAMES = 2000;

export type Streams = {
  readonly open: (asked: StudioRequest, studio: Studio) => Promise<StudioAnswer>;
  readonly count: () => number;
  readonly close: () => void;
};

export function createStreams(most = MOST_STREAMS): Streams {
  const lines = new Set<Wire>();
  return {
    count: () => lines.size,
    async open({ query, signal }, studio) {
      if (lines.size >= most)
        throw new RequestRefusal(
          503,
          "TOO_MANY_STREAMS",
          `${most} pages are open already. Close one of them.`,
        );
      // What cannot be read is said in the stream, which goes on by itself.
      const journal = await studio.journal().catch((error: unknown) => {
        if (error instanceof RunnerError) return null;
        throw error;
      });
      return {
        kind: "stream",
        open(line) {
          lines.add(line);
          const leave = openStream(line, query, studio, journal, signal);
          return () => {
            lines.delete(line);
            leave();
          };
        },
      };
    },
    close() {
      for (const line of lines) line.close();
    },
  };
}

function openStream(
  line: Wire,
  query: StudioRequest["query"],
  studio: Studio,
  journal: Journal | null,
  signal: AbortSignal,
): () => void {
  const { run, after } = query;
  /** Of the run that is looked at: the newest frame that was sent; null: not known. */
  let seq = query.seq === undefined ? null : Number(query.seq);
  let id: string | null = null;
  let isBehind = false;
  let isBusy = false;
  let isOver = false;

  const send = (message: StreamMessage, cursor: string) => {
    if (isOver) return;
    if (isBehind && line.held() > MOST_HELD / 8) return;
    if (isBehind) {
      isBehind = false;
      seq = null;
      line.send(streamText({ type: "reset" }, cursor));
    }
    if (line.held() > MOST_HELD) isBehind = true;
    else line.send(streamText(studio.redact(message), cursor));
  };

  const sendFrames = async (from: Journal, cursor: string) => {
    if (run === undefined || isBusy) return;
    isBusy = true;
    try {
      // What `@last` means is settled once.
      id ??= (await findRun(from, run)).id;
      const [row] = await from.rows([id]);
      if (row === undefined) return;
      const { fold } = await studio.shelf.look("reel", from, row);
      const { frames } = fold;
      const known = seq ?? Math.max(0, frames.length - OVERLAP);
      const news = frames.slice(known, known + MOST_FRAMES);
      if (news.length > 0) send({ type: "frames", run, frames: news }, cursor);
      seq = news.at(-1)?.[0] ?? known;
    } catch (error) {
      // The documents of the run say what is wrong with it.
      if (!(error instanceof RunnerError)) throw error;
    } finally {
      isBusy = false;
    }
  };

  const catchUp = async () => {
    const cursor = await studio.news.ready();
    send({ type: "hello", cursor, began: studio.began }, cursor);
    const problem = studio.news.problem();
    if (problem !== null) send({ type: "journal", problem }, cursor);
    if (journal === null) return send({ type: "questions", open: 0, runs: [] }, cursor);
    if (after !== undefined && after !== cursor) await tellMissed(journal, cursor);
    const asking = await studio.news.asking(journal);
    const open = [...asking.values()].reduce((all, one) => all + one, 0);
    send({ type: "questions", open, runs: [...asking.keys()] }, cursor);
    await sendFrames(journal, cursor);
  };

  const tellMissed = async (from: Journal, cursor: string) => {
    const missed = await from.since(fromWire(after ?? ""), MOST_MISSED).catch((error: unknown) => {
      if (error instanceof RunnerError) return null;
      throw error;
    });
    if (missed === null || missed.lost || missed.entries.length === MOST_MISSED)
      return send({ type: "reset" }, cursor);
    const ids = [...new Set(missed.entries.map((entry) => entry.run))];
    if (ids.length === 0) return;
    const runs = await studio.news.lines(from, await from.rows(ids));
    send({ type: "runs", total: await from.count(), runs }, cursor);
  };

  const listener: NewsListener = {
    hear: send,
    looked(changed, from, cursor) {
      if (id !== null && changed.has(id)) void sendFrames(from, cursor).catch(() => line.close());
    },
  };
  const leave = studio.news.listen(listener);
  const alive = setInterval(() => line.send(":\n\n"), ALIVE_MS);
  const over = () => {
    if (isOver) return;
    isOver = true;
    clearInterval(alive);
    leave();
  };
  signal.addEventListener("abort", over, { once: true });
  void catchUp().catch(() => line.close());
  return over;
}

/** One event as browsers frame them. JSON has no line ends. */
export function streamText(message: StreamMessage, cursor: string): string {
  return `id: ${cursor}\ndata: ${jsonLine(message)}\n\n`;
}
