/** One look at the journal for everybody who listens: which runs changed, which are gone, and how many questions are open. */
import { RunnerError, type Journal, type RunRow } from "../engine/ports.ts";
import { errorText } from "../flow/text/harmless.ts";
import { DAMAGED, everyRow, summarise, type RunSummary } from "../run/records/runs.ts";
import type { FoldShelf } from "./shelf.ts";
import type { LineFacts, RunLine, StreamMessage } from "./wire.ts";

export type StudioNews = {
  /** Looks as long as anybody listens. Gives what ends it. */
  readonly listen: (listener: NewsListener) => () => void;
  /** Rows of the list, with what is known of each; what is not known yet is worked out and comes with the stream. */
  readonly lines: (journal: Journal, rows: readonly RunRow[]) => Promise<readonly RunLine[]>;
  /** The runs that ask something. */
  readonly asking: (journal: Journal) => Promise<AskingRuns>;
  /** How many questions are open, for somebody who begins to listen; everybody else is told too where it is news. */
  readonly asked: (journal: Journal) => Promise<StreamMessage>;
  /** The cursor from which on everybody who listens hears of everything. */
  readonly ready: () => Promise<string>;
  /** Why the journal cannot be read; null: it can. */
  readonly problem: () => string | null;
  /** Tells everybody. */
  readonly say: (message: StreamMessage) => void;
  /** What has to be done before the process may end. */
  readonly close: () => void;
};

/** By run: its open questions, and its entries, with which others may take the place of these. */
export type AskingRuns = ReadonlyMap<string, AskingRun>;
type AskingRun = { readonly open: number; readonly events: number };

export type NewsListener = {
  /** The same words for all. */
  readonly hear: (message: StreamMessage, cursor: string) => void;
  /** After every look: the runs that have new entries. */
  readonly looked: (changed: ReadonlySet<string>, journal: Journal, cursor: string) => void;
};

/** How long a change stays unseen at most while runs move. */
export const LOOK_MS = 40;
/** How long nothing has to happen until looks are rarer, and how rare. */
const CALM_AFTER_MS = 2000;
const CALM_MS = 250;
/** So far apart: messages about rows, and asking whether processes still drive their runs. */
const ROWS_MS = 240;
const OWNERS_MS = 480;
/** Rows in one message. */
const MOST_ROWS = 100;
/** Entries that are read at once. */
const MOST_NEWS = 500;
const MOST_FACTS = 5000;
/** The first rows of a list wait so long for what is not known yet. */
const PATIENCE_MS = 60;
/** How long a journal that cannot be read is left alone. */
const AWAY_MS = 1000;

/** `isDamaged`: not all of it can be read, although its newest entry can. */
type Facts = { readonly facts: LineFacts | null; readonly isDamaged: boolean };
type Known = Facts & { readonly events: number; readonly createdAt: number };

export type NewsOptions = {
  /** Calls back when the journal may have been written to, where that can be known without looking. Gives what ends it. */
  readonly watch?: (changed: () => void) => () => void;
  readonly calmMs?: number;
};

export function createNews(
  open: () => Promise<Journal | null>,
  shelf: FoldShelf,
  { watch = () => () => undefined, calmMs = CALM_MS }: NewsOptions = {},
): StudioNews {
  const now = () => performance.now();
  const listeners = new Set<NewsListener>();
  const facts = new Map<string, Known>();
  /** Runs whose rows have to be told of. */
  const dirty = new Set<string>();
  /** Runs that a process drove when they were last looked at. */
  const living = new Set<string>();
  /** Runs that clients know of. */
  const told = new Set<string>();
  let opened: { readonly journal: Journal; cursor: string; version: number; total: number } | null = null;
  let asks: Promise<Map<string, AskingRun>> | null = null;
  /** What was told last of the runs that ask, as text: a request may find them before those who listen hear of them. */
  let asksTold: string | null = null;
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> | null = null;
  /** No listener has heard anything yet, so nothing can be missing. */
  let isFirst = true;
  let rowsAt = 0;
  let ownersAt = 0;
  /** When something was new. */
  let newsAt = 0;
  let lookedAt = 0;
  let unwatch: (() => void) | null = null;
  /** Something may have been written since the newest look began. */
  let isWoken = false;
  let isClosed = false;
  let problem: string | null = null;

  const say = (message: StreamMessage) => {
    for (const { hear } of listeners) hear(message, toWire(opened?.cursor ?? ""));
  };

  const factsOf = async (journal: Journal, row: RunRow): Promise<Facts> => {
    const found = knownOf(row);
    if (found !== undefined) return found;
    const read = await shelf.look("line", journal, row).then(
      ({ fold, damage }): Facts => ({ facts: fold.facts(), isDamaged: damage !== null }),
      (error: unknown): Facts => {
        // A run that is damaged must not hide the others.
        if (error instanceof RunnerError) return { facts: null, isDamaged: true };
        throw error;
      },
    );
    facts.delete(row.id);
    facts.set(row.id, { events: row.events, createdAt: row.createdAt, ...read });
    if (facts.size > MOST_FACTS) facts.delete(facts.keys().next().value!);
    return read;
  };

  const knownOf = ({ id, events, createdAt }: RunRow): Known | undefined => {
    const found = facts.get(id);
    return found?.events === events && found.createdAt === createdAt ? found : undefined;
  };

  const lineOf = async (journal: Journal, row: RunRow): Promise<RunLine> => {
    const { facts: known, isDamaged } = await factsOf(journal, row);
    const line = { ...summarise(row), facts: known };
    const map = asks === null ? null : await asks;
    if (map !== null) count(map, line);
    return isDamaged ? { ...line, ...DAMAGED } : line;
  };

  const begin = async (journal: Journal) => {
    // Before the cursor: what is written between the two is found by the next look.
    const version = await journal.version();
    const { cursor } = await journal.since();
    opened = { journal, cursor, version, total: await journal.count() };
    living.clear();
    for (const { id } of await journal.list({ owned: true })) living.add(id);
  };

  const look = async () => {
    const journal = await open();
    if (journal === null || journal !== opened?.journal) {
      const isChanged = !isFirst && (opened !== null || journal !== null);
      opened = null;
      asks = null;
      if (journal !== null) await begin(journal);
      // What a request found before the cursor was taken may lack what was written in between.
      asks = null;
      isFirst = false;
      noteProblem(null);
      if (isChanged) await tellReset(journal);
      return;
    }
    const changed = await newsOf(opened);
    if (changed.size > 0) newsAt = now();
    // First: who looks at a run waits for its entries, and for nothing that is worked out for the list.
    const cursor = toWire(opened.cursor);
    for (const { looked } of listeners) looked(changed, journal, cursor);
    if (now() - ownersAt >= OWNERS_MS) {
      ownersAt = now();
      await lookAtOwners(journal);
    }
    if (now() - rowsAt >= ROWS_MS) {
      rowsAt = now();
      await tellRows(opened);
    }
  };

  const tellReset = async (journal: Journal | null) => {
    say({ type: "reset" });
    tellAsking(journal === null ? new Map<string, AskingRun>() : await asking(journal));
  };

  const tellAsking = (map: AskingRuns) => {
    asksTold = textOf(map);
    say(questionsIn(map));
  };

  /** What was known may have changed meanwhile, so all of it is looked at again once it can be read. */
  const noteProblem = (reason: string | null) => {
    if (reason !== null) {
      opened = null;
      asks = null;
      isFirst = false;
    }
    if (reason === problem) return;
    problem = reason;
    say({ type: "journal", problem });
  };

  const newsOf = async (at: NonNullable<typeof opened>): Promise<ReadonlySet<string>> => {
    const changed = new Set<string>();
    const version = await at.journal.version();
    if (version === at.version) return changed;
    at.version = version;
    let begun = 0;
    for (;;) {
      const { cursor, entries, lost } = await at.journal.since(at.cursor, MOST_NEWS);
      at.cursor = cursor;
      if (lost) {
        asks = null;
        await tellReset(at.journal);
        break;
      }
      for (const { run, seq } of entries) {
        changed.add(run);
        dirty.add(run);
        living.add(run);
        if (seq === 1) begun += 1;
      }
      if (entries.length < MOST_NEWS) break;
    }
    const total = await at.journal.count();
    if (total < at.total + begun) await tellGone(at.journal);
    at.total = total;
    return changed;
  };

  /** A process that died has written nothing. */
  const lookAtOwners = async (journal: Journal) => {
    const rows = new Map((await journal.rows([...living])).map((row) => [row.id, row]));
    for (const id of living) {
      const row = rows.get(id);
      if (row?.owned === true) continue;
      living.delete(id);
      if (row !== undefined) dirty.add(id);
    }
  };

  const tellRows = async ({ journal, total }: NonNullable<typeof opened>) => {
    const ids = [...dirty].slice(0, MOST_ROWS);
    if (ids.length === 0) return;
    for (const id of ids) dirty.delete(id);
    const runs: RunLine[] = [];
    for (const row of await journal.rows(ids)) runs.push(await lineOf(journal, row));
    for (const { run } of runs) told.add(run);
    say({ type: "runs", total, runs });
    const map = await asking(journal);
    if (asksTold !== textOf(map)) tellAsking(map);
  };

  const tellGone = async (journal: Journal) => {
    const ids = [...told];
    const gone: string[] = [];
    for (let place = 0; place < ids.length; place += MOST_ROWS) {
      const some = ids.slice(place, place + MOST_ROWS);
      const there = new Set((await journal.rows(some)).map(({ id }) => id));
      gone.push(...some.filter((id) => !there.has(id)));
    }
    if (gone.length === 0) return;
    const map = asks === null ? null : await asks;
    for (const id of gone) {
      told.delete(id);
      dirty.delete(id);
      facts.delete(id);
      map?.delete(id);
      shelf.forget(id);
    }
    say({ type: "gone", runs: gone });
  };

  const asking = async (journal: Journal) => {
    // Without a listener nothing looks at what is new.
    if (listeners.size === 0) return await findAsking(journal);
    asks ??= findAsking(journal);
    asks.catch(() => {
      asks = null;
    });
    return await asks;
  };

  /** Once over all runs; afterwards only what is new is looked at. */
  const findAsking = async (journal: Journal) => {
    const map = new Map<string, AskingRun>();
    for await (const row of everyRow(journal)) {
      const summary = summarise(row);
      if (mayAsk(summary)) count(map, { ...summary, facts: (await factsOf(journal, row)).facts });
    }
    return map;
  };

  // What cannot be read now is looked at again.
  const lookOnce = () =>
    (looking ??= look()
      .catch((error: unknown) => noteProblem(errorText(error)))
      .finally(() => {
        looking = null;
      }));

  const goOn = async () => {
    isWoken = false;
    lookedAt = now();
    await lookOnce();
    if (listeners.size === 0 || isClosed) return;
    const isCalm = now() - newsAt > CALM_AFTER_MS && dirty.size === 0 && problem === null;
    if (!isCalm) rest();
    else unwatch ??= watch(wake);
    lookIn(problem !== null ? AWAY_MS : isCalm && !isWoken ? calmMs : LOOK_MS);
  };

  const wake = () => {
    isWoken = true;
    if (looking === null) lookIn(Math.max(0, lookedAt + LOOK_MS - now()));
  };

  const lookIn = (ms: number) => {
    clearTimeout(timer);
    timer = setTimeout(() => void goOn(), ms);
  };

  const rest = () => {
    clearTimeout(timer);
    unwatch?.();
    unwatch = null;
  };

  return {
    say,
    asking,
    async asked(journal) {
      const map = await asking(journal);
      // What one has heard and others have not would never be told once it is as it was before.
      if (asksTold !== null && asksTold !== textOf(map)) tellAsking(map);
      asksTold = textOf(map);
      return questionsIn(map);
    },
    problem: () => problem,
    listen(listener) {
      if (listeners.size === 0) {
        opened = null;
        asksTold = null;
        isFirst = true;
      }
      listeners.add(listener);
      if (listeners.size === 1) lookIn(0);
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0) rest();
      };
    },
    async ready() {
      if (opened === null) await lookOnce();
      return toWire(opened?.cursor ?? "");
    },
    async lines(journal, rows) {
      const until = now() + PATIENCE_MS;
      const lines: RunLine[] = [];
      for (const row of rows) {
        told.add(row.id);
        if (knownOf(row) !== undefined || now() < until) lines.push(await lineOf(journal, row));
        else {
          lines.push({ ...summarise(row), facts: null });
          dirty.add(row.id);
        }
      }
      return lines;
    },
    close() {
      isClosed = true;
      rest();
    },
  };
}

/** What has ended for good asks nothing; the rest may. */
function mayAsk({ state }: RunSummary): boolean {
  return state !== "completed" && state !== "failed";
}

function count(map: Map<string, AskingRun>, { run, facts, state, events }: RunLine): void {
  const open = state === "completed" || state === "failed" ? 0 : (facts?.questions ?? 0);
  if (open === 0) map.delete(run);
  else map.set(run, { open, events });
}

function textOf(map: AskingRuns): string {
  return JSON.stringify([...map]);
}

function questionsIn(map: AskingRuns): StreamMessage {
  const open = [...map.values()].reduce((all, one) => all + one.open, 0);
  return { type: "questions", open, runs: [...map.keys()] };
}

/** A cursor names a run, and somebody else may have written the name: nothing in it can pose as part of the stream. */
export function toWire(cursor: string): string {
  return Buffer.from(cursor).toString("base64url");
}

export function fromWire(text: string): string {
  return Buffer.from(text, "base64url").toString();
}
