/** What each open page hears: the news of all runs and the frames of the one that it looks at, and never more than it takes. */
import type { Journal } from "../engine/ports.ts";
import { jsonLine } from "../flow/text/harmless.ts";
import { RunnerError } from "../run/errors.ts";
import { findRun } from "../run/records/runs.ts";
import { RequestRefusal } from "../serve/refusal.ts";
import { fromWire } from "./news.ts";
import type { KeptFrames } from "./kept-frames.ts";
import type { StudioAnswer, StudioRequest, Studio, Wire } from "./route.ts";
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

/** One open page. */
type StreamPage = {
  readonly line: Wire;
  /** The run that it looks at, as it names it. */
  readonly run: string | undefined;
  /** Of that run: the newest frame that was sent; null: not known. */
  seq: number | null;
  /** It is owed too much, and hears nothing until it has taken that. */
  isBehind: boolean;
};

/** A run that pages look at: it is read once for all of them. */
type WatchedRun = { readonly pages: Set<StreamPage>; isBusy: boolean; isDue: boolean };

type Wording = (message: StreamMessage, cursor: string) => string;

export function createStreams(most = MOST_STREAMS): Streams {
  const pages = new Set<StreamPage>();
  const watched = new Map<string, WatchedRun>();
  let wording: Wording | null = null;
  /** Ends listening to the news; null: no page is open. */
  let deafen: (() => void) | null = null;

  const listen = (studio: Studio, worded: Wording): (() => void) =>
    studio.news.listen({
      hear(message, cursor) {
        for (const page of pages) send(page, message, cursor, worded);
      },
      looked(changed, from, cursor) {
        for (const id of watched.keys())
          if (changed.has(id)) void sendFrames(id, from, cursor, studio, worded);
      },
    });

  const sendFrames = async (id: string, from: Journal, cursor: string, studio: Studio, worded: Wording) => {
    const run = watched.get(id);
    if (run === undefined) return;
    run.isDue = true;
    if (run.isBusy) return;
    run.isBusy = true;
    try {
      while (run.isDue) {
        run.isDue = false;
        const [row] = await from.rows([id]);
        if (row === undefined) return;
        const { fold } = await studio.shelf.look("reel", from, row);
        sendNewFrames(run.pages, fold.frames, cursor, worded);
      }
    } catch (error) {
      // The documents of the run say what is wrong with it.
      if (!(error instanceof RunnerError)) for (const { line } of run.pages) line.close();
    } finally {
      run.isBusy = false;
    }
  };

  const watch = (id: string, page: StreamPage) => {
    const run = watched.get(id) ?? { pages: new Set(), isBusy: false, isDue: false };
    watched.set(id, run);
    run.pages.add(page);
  };

  const leave = (page: StreamPage) => {
    pages.delete(page);
    for (const [id, run] of watched) if (run.pages.delete(page) && run.pages.size === 0) watched.delete(id);
    if (pages.size > 0) return;
    deafen?.();
    deafen = null;
  };

  const open = (line: Wire, query: StudioRequest["query"], studio: Studio, journal: Journal | null) => {
    const worded = (wording ??= wordingOf(studio));
    const seq = query.seq === undefined ? null : Number(query.seq);
    const page: StreamPage = { line, run: query.run, seq, isBehind: false };
    const say = (message: StreamMessage, cursor: string) => {
      if (pages.has(page)) send(page, message, cursor, worded);
    };
    const greet = async () => {
      const cursor = await studio.news.ready();
      say({ type: "hello", cursor, began: studio.began }, cursor);
      const problem = studio.news.problem();
      if (problem !== null) say({ type: "journal", problem }, cursor);
      if (journal === null) return say({ type: "questions", open: 0, runs: [] }, cursor);
      const missed = await missedBy(query.after, cursor, studio, journal);
      if (missed !== null) say(missed, cursor);
      say(await studio.news.asked(journal), cursor);
      if (page.run === undefined) return;
      // What `@last` means is settled once.
      const id = await findRun(journal, page.run).then((row) => row.id, unlessRefused);
      if (id === null || !pages.has(page)) return;
      watch(id, page);
      await sendFrames(id, journal, cursor, studio, worded);
    };
    pages.add(page);
    deafen ??= listen(studio, worded);
    void greet().catch(async (error: unknown) => {
      if (!(error instanceof RunnerError)) return line.close();
      const cursor = await studio.news.ready();
      // A journal that is away is in the news, and so is its return.
      if (studio.news.problem() === null) say({ type: "reset" }, cursor);
    });
    return page;
  };

  return {
    count: () => pages.size,
    async open({ query, signal }, studio) {
      if (pages.size >= most)
        throw new RequestRefusal(
          503,
          "TOO_MANY_STREAMS",
          `${most} pages are open already. Close one of them.`,
        );
      // What cannot be read is said in the stream, which goes on by itself.
      const journal = await studio.journal().catch(unlessRefused);
      return {
        kind: "stream",
        open(line) {
          const page = open(line, query, studio, journal);
          const alive = setInterval(() => line.send(":\n\n"), ALIVE_MS);
          const over = () => {
            clearInterval(alive);
            leave(page);
          };
          signal.addEventListener("abort", over, { once: true });
          return over;
        },
      };
    },
    close() {
      for (const { line } of pages) line.close();
    },
  };
}

/** null in place of what is wrong with the record; the documents of the page say it. */
function unlessRefused(error: unknown): null {
  if (error instanceof RunnerError) return null;
  throw error;
}

function send(page: StreamPage, message: StreamMessage, cursor: string, worded: Wording): void {
  const { line } = page;
  if (page.isBehind && line.held() > MOST_HELD / 8) return;
  if (page.isBehind) {
    page.isBehind = false;
    page.seq = null;
    line.send(streamText({ type: "reset" }, cursor));
  }
  if (line.held() > MOST_HELD) page.isBehind = true;
  else line.send(worded(message, cursor));
}

/** Pages that know the same get the same message. */
function sendNewFrames(
  pages: ReadonlySet<StreamPage>,
  frames: Pick<KeptFrames, "count" | "slice">,
  cursor: string,
  worded: Wording,
): void {
  const messages = new Map<string, StreamMessage>();
  for (const page of pages) {
    const run = page.run!;
    const count = frames.count();
    let known = page.seq ?? Math.max(0, count - OVERLAP);
    for (; known < count; known = Math.min(count, known + MOST_FRAMES)) {
      const key = `${known} ${run}`;
      const message = messages.get(key) ?? {
        type: "frames",
        run,
        frames: frames.slice(known, known + MOST_FRAMES),
      };
      messages.set(key, message);
      send(page, message, cursor, worded);
    }
    page.seq = known;
  }
}

/** What a page that comes back has to hear; null: it missed nothing. */
async function missedBy(
  after: string | undefined,
  cursor: string,
  { news }: Studio,
  journal: Journal,
): Promise<StreamMessage | null> {
  if (after === undefined || after === cursor) return null;
  const missed = await journal.since(fromWire(after), MOST_MISSED).catch(unlessRefused);
  if (missed === null || missed.lost || missed.entries.length === MOST_MISSED) return { type: "reset" };
  const ids = [...new Set(missed.entries.map((entry) => entry.run))];
  if (ids.length === 0) return null;
  return {
    type: "runs",
    total: await journal.count(),
    runs: await news.lines(journal, await journal.rows(ids)),
  };
}

/** Takes the secrets out of a message and makes it text once, however many pages hear it. */
function wordingOf({ redact }: Pick<Studio, "redact">): Wording {
  const texts = new WeakMap<StreamMessage, { readonly cursor: string; readonly text: string }>();
  return (message, cursor) => {
    const known = texts.get(message);
    if (known?.cursor === cursor) return known.text;
    const text = streamText(redact(message), cursor);
    texts.set(message, { cursor, text });
    return text;
  };
}

/** One event as browsers frame them. JSON has no line ends. */
export function streamText(message: StreamMessage, cursor: string): string {
  return `id: ${cursor}\ndata: ${jsonLine(message)}\n\n`;
}
