/** What is read of a journal: entries, flows, and lists of runs. Damage to one of them does not hide the others. */
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import type { Journal, RunRow } from "../../engine/ports.ts";
import type { Entry } from "../../flow/event.ts";
import type { Flow } from "../../flow/flow.ts";
import { entryFault, isRunId, isTime } from "../../flow/recorded.ts";
import type { Artifacts } from "./artifacts.ts";
import { entrySum, flowSum, runSum } from "./checksum.ts";
import {
  closed,
  entryDamaged,
  entryMissing,
  flowDamaged,
  journalErrorCode,
  pageDamaged,
  runDamaged,
  runUnknown,
  SQLITE,
  unavailable,
} from "../errors.ts";
import { withSharedNames } from "../shared-names.ts";
import type { Owners } from "./owners.ts";
import { isRemoved } from "./removal.ts";
import type {
  DueRecord,
  EventRecord,
  FlowRecord,
  ListRecord,
  NewsRecord,
  RunFacts,
  RunRecord,
  Statements,
} from "./statements.ts";

export type JournalReading = Pick<Journal, "read" | "flow" | "list" | "rows" | "count" | "since" | "size"> & {
  /** Nothing where it does not exist or is being removed. */
  readonly findRun: (id: string) => RunRecord | undefined;
  /** Does what reads from the database; what SQLite says becomes JOURNAL_UNAVAILABLE. */
  readonly look: <T>(work: () => T) => T;
};

export type ReadingFrom = {
  readonly file: string;
  readonly db: DatabaseSync;
  readonly sql: Statements;
  readonly artifacts: Artifacts;
  readonly owners: Owners;
};

export function createReading({ file, db, sql, artifacts, owners }: ReadingFrom): JournalReading {
  const look = <T>(work: () => T): T => {
    if (!db.isOpen) throw closed(file);
    try {
      return work();
    } catch (cause) {
      throw unavailable(file, cause);
    }
  };
  /** A digest stands for one flow for ever, and what is derived from a flow is kept by its identity. */
  const flows = new Map<string, Flow>();
  const findRun = (id: string): RunRecord | undefined =>
    isRemoved(id) ? undefined : ((sql.findRun.get(id) as RunRecord | undefined) ?? findDamaged(id));
  /** By the name that stands for it. */
  const findDamaged = (id: string): RunRecord | undefined => {
    const key = keyOf(id);
    const run = key === null ? undefined : (sql.findKey.get(key) as RunRecord | undefined);
    return run === undefined || isRunId(run.name) || isRemoved(run.name) ? undefined : run;
  };

  const requireRun = (id: string): void => {
    const run = findRun(id);
    if (run === undefined) throw runUnknown(id);
    if (run.name !== id) throw runDamaged(file, id);
  };
  /** An entry that is not there, unless another process has just removed the run. */
  const missing = (id: string, seq: number) => {
    requireRun(id);
    return entryMissing(file, id, seq);
  };

  const toEntry = (key: number, row: unknown, sum: unknown, run: string, seq: number): Entry => {
    if (typeof row !== "string" || (sum !== null && sum !== entrySum(key, seq, row)))
      throw entryDamaged(file, run, seq, "does not fit its checksum");
    // All entries are objects: what begins otherwise is kept elsewhere, or damaged.
    const body = row.startsWith("{") ? row : artifacts.restore(row, run, seq);
    let entry: unknown;
    try {
      entry = JSON.parse(body);
    } catch (cause) {
      throw entryDamaged(file, run, seq, "is not JSON", cause);
    }
    const fault = entryFault(entry);
    if (fault !== null) throw entryDamaged(file, run, seq, fault);
    return withSharedNames(entry as Entry);
  };

  /** A page that SQLite cannot read ends the run there, and does not hide the entries before it. */
  const rowsOf = (id: string, key: number, afterSeq: number, limit: number): readonly EventRecord[] => {
    try {
      return sql.read.all(key, id, afterSeq, limit) as unknown as readonly EventRecord[];
    } catch (cause) {
      if (journalErrorCode(cause) !== SQLITE.CORRUPT) throw cause;
      let read = 0;
      try {
        for (const _ of sql.read.iterate(key, id, afterSeq, limit)) read += 1;
      } catch {
        throw pageDamaged(file, id, afterSeq + read + 1, cause);
      }
      throw cause;
    }
  };

  /** A page that SQLite cannot read damages the runs whose newest entries are on it, and does not hide the others. */
  const listed = (
    which: keyof typeof sql.lists,
    ...values: readonly SQLInputValue[]
  ): readonly ListRecord[] => {
    try {
      return sql.lists[which].whole.all(...values) as unknown as readonly ListRecord[];
    } catch (cause) {
      if (journalErrorCode(cause) !== SQLITE.CORRUPT) throw cause;
      return (sql.lists[which].bare.all(...values) as unknown as readonly ListRecord[]).map((row) => {
        try {
          const [whole] = sql.lists.listKey.whole.all(null, NEWEST, null, row[0]);
          return whole as unknown as ListRecord;
        } catch {
          return row;
        }
      });
    }
  };

  const parsedFlow = (digest: string, { json, sum }: FlowRecord): Flow => {
    let cause: unknown;
    try {
      if (typeof json === "string" && (sum === null || sum === flowSum(digest, json)))
        return JSON.parse(json) as Flow;
    } catch (error) {
      cause = error;
    }
    const runs = (sql.runsOfFlow.all(digest) as unknown as readonly { readonly id: string }[]).map(
      ({ id }) => id,
    );
    throw flowDamaged(file, digest, runs.filter(isRunId).slice(0, NAMED_RUNS), runs.length, cause);
  };

  /** A run that is damaged must not hide the others. */
  const lastOf = (
    key: number,
    body: string | null,
    sum: unknown,
    run: string,
    seq: number,
  ): Pick<RunRow, "last" | "damaged"> => {
    try {
      return { last: body === null ? null : toEntry(key, body, sum, run, seq) };
    } catch (cause) {
      return { last: null, damaged: unavailable(file, cause).message };
    }
  };

  /** For all rows of one look: each owner is asked for once. */
  const rowMaker = () => {
    const alive = new Map<string, boolean>();
    const isAlive = (owner: string) => {
      const known = alive.get(owner) ?? owners.isAlive(owner);
      alive.set(owner, known);
      return known;
    };
    return (record: ListRecord): RunRow => {
      const [key, name, agent, digest, createdAt, owner, sum, recorded, events, body, bodySum] = record;
      const owned = owner !== null && isAlive(owner);
      const id = isRunId(name) ? name : `${DAMAGED}${key}`;
      if (!isWholeRun({ key, name, agent, digest, created_at: createdAt, sum })) {
        const { message } = runDamaged(file, id);
        const { last } = lastOf(key, body, bodySum, id, events);
        const at = isTime(createdAt) ? createdAt : (last?.at ?? 0);
        return { id, agent: "-", digest, createdAt: at, events, last, owned, damaged: message };
      }
      const { last, damaged } =
        typeof recorded === "number" && recorded > events
          ? { last: null, damaged: entryMissing(file, id, events + 1).message }
          : lastOf(key, body, bodySum, id, events);
      const row = { id, agent, digest, createdAt, events, last, owned };
      return damaged === undefined ? row : Object.assign(row, { damaged });
    };
  };

  return {
    findRun,
    look,

    async read(id, afterSeq = 0, limit = ALL) {
      return look(() => {
        if (isRemoved(id)) throw runUnknown(id);
        // Before the rows: while they are read another process may append more.
        const due = sql.due.get(id) as DueRecord | undefined;
        const entries: Entry[] = [];
        for (let isMore = due !== undefined; isMore;) {
          const most = limit === ALL ? SLICE : Math.min(SLICE, limit - entries.length);
          const rows = rowsOf(id, due!.key, afterSeq + entries.length, most);
          for (const [seq, body, sum] of rows) {
            const next = afterSeq + entries.length + 1;
            if (seq !== next) throw missing(id, next);
            entries.push(toEntry(due!.key, body, sum, id, next));
          }
          isMore = rows.length === most && entries.length !== limit;
        }
        const end = afterSeq + entries.length;
        if (entries.length === 0) requireRun(id);
        if (entries.length !== limit && end < (due?.events ?? 0)) throw missing(id, end + 1);
        return entries;
      });
    },

    async flow(digest) {
      const known = flows.get(digest);
      if (known !== undefined) return known;
      return look(() => {
        const row = sql.findFlow.get(digest) as FlowRecord | undefined;
        if (row === undefined) return null;
        const flow = parsedFlow(digest, row);
        flows.set(digest, flow);
        return flow;
      });
    },

    async list({ prefix, agent = null, before, owned, limit = ALL } = {}) {
      return look(() => {
        const newest = before === undefined ? NEWEST : findRun(before)?.key;
        if (newest === undefined) throw runUnknown(before!);
        // Whether an owner is alive is not a matter of SQL.
        const most = owned === undefined ? limit : ALL;
        const taken = owned === undefined ? null : 1;
        const rows =
          prefix === undefined
            ? listed("list", agent, newest, taken, most)
            : listed("listPrefix", agent, newest, taken, most, prefix, `${prefix}${LAST_CHARACTER}`);
        const damagedOne = prefix === undefined ? undefined : findDamaged(prefix);
        const odd = damagedOne === undefined ? [] : listed("listKey", agent, newest, taken, damagedOne.key);
        const all = [...odd, ...rows].map(rowMaker());
        if (owned === undefined) return all;
        const driven = all.filter((row) => row.owned);
        return limit === ALL ? driven : driven.slice(0, limit);
      });
    },

    async rows(ids) {
      return look(() => {
        const toRow = rowMaker();
        return ids.flatMap((id) => {
          const key = findRun(id)?.key;
          return key === undefined ? [] : listed("listKey", null, NEWEST, null, key).map(toRow);
        });
      });
    },

    async count() {
      return look(() => (sql.count.get() as { readonly runs: number }).runs);
    },

    async since(cursor, limit = ALL) {
      return look(() => {
        const newest = () => {
          const row = sql.newest.get() as unknown as readonly [number, string, number] | undefined;
          return row === undefined ? "" : cursorOf(...row);
        };
        if (cursor === undefined) return { cursor: newest(), entries: [], lost: false };
        const at = placeOf(cursor);
        if (at === null || (at.row > 0 && sql.isThere.get(at.row, at.seq, at.run) === undefined))
          return { cursor: newest(), entries: [], lost: true };
        const rows = sql.since.all(at.row, limit) as unknown as readonly NewsRecord[];
        const last = rows.at(-1);
        const entries = rows
          .filter(([, run]) => isRunId(run))
          .map(([, run, seq, body, key, sum]) => ({
            run,
            seq,
            entry: lastOf(key, body, sum, run, seq).last,
          }));
        const next = last === undefined ? cursor : cursorOf(last[0], last[1], last[2]);
        return { cursor: next, entries, lost: false };
      });
    },

    async size(id) {
      return look(() => {
        if (findRun(id) === undefined) throw runUnknown(id);
        return (sql.size.get(id) as { readonly bytes: number }).bytes;
      });
    },
  };
}

/** Whether Lockstep can have written it. */
export function isWholeRun({ key, name, agent, digest, created_at: createdAt, sum }: RunFacts): boolean {
  const isPlain = isRunId(name) && typeof agent === "string" && !/\p{Cc}/u.test(agent) && isTime(createdAt);
  return isPlain && (sum === null || sum === runSum(key, name, agent, digest, createdAt));
}

/** At most so many of the runs that a damaged flow belongs to. */
const NAMED_RUNS = 8;

/**
 * Where somebody has read to: the place of an entry, and which entry that was. SQLite gives a place again once the entry
 * that had the highest one is removed, so the place alone does not tell.
 */
function cursorOf(row: number, run: string, seq: number): string {
  return `${row} ${seq} ${run}`;
}

function placeOf(
  cursor: string,
): { readonly row: number; readonly seq: number; readonly run: string } | null {
  if (cursor === "") return { row: 0, seq: 0, run: "" };
  const [, row, seq, run = ""] = /^([1-9]\d{0,15}) (\d{1,15}) (.*)$/s.exec(cursor) ?? [];
  return row === undefined ? null : { row: Number(row), seq: Number(seq), run };
}

/** Stands with its key for a run whose id Lockstep cannot have made, so that it can be listed and removed. */
const DAMAGED = "damaged-";

function keyOf(id: string): number | null {
  const key = id.startsWith(DAMAGED) ? id.slice(DAMAGED.length) : "";
  return /^[1-9]\d{0,14}$/.test(key) ? Number(key) : null;
}

/** Rows that are held at once: those of a long run would outlive several collections of young objects. */
const SLICE = 500;
/** For SQLite: without a limit. */
const ALL = -1;
/** Above every key. */
const NEWEST = Number.MAX_SAFE_INTEGER;
/** Ids are ASCII, so that every id with a prefix lies before the prefix with this one behind it. */
const LAST_CHARACTER = "\u{10ffff}";
