/** Every page, row and file of a journal, checked without changing any of it. */
import { existsSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { RunnerError } from "../../engine/ports.ts";
import { isObject } from "../../flow/json.ts";
import { entryFault, isRunId, isTime } from "../../flow/recorded.ts";
import { createArtifacts, type Artifacts } from "./artifacts.ts";
import { entrySum, flowSum, runSum } from "./checksum.ts";
import { openDatabase } from "./database.ts";
import { EntryDamaged, unavailable } from "../errors.ts";
import { fileInside } from "./inside.ts";
import { createOwners } from "./owners.ts";
import { isRemoved } from "./removal.ts";

/** `damage`: something cannot be read. `left`: something is there that is not needed. */
export type JournalFault = {
  readonly kind: "damage" | "left";
  readonly part: "database" | "runs" | "entries" | "flows" | "artifacts" | "owners";
  readonly detail: string;
};

export type CheckedJournal = {
  readonly faults: readonly JournalFault[];
  readonly runs: readonly string[];
  readonly counts: {
    readonly runs: number;
    readonly entries: number;
    readonly flows: number;
    readonly artifacts: number;
    /** Rows that were recorded before there were checksums. */
    readonly unsealed: number;
  };
};

/** null: there is no journal. Throws STATE_UNSAFE where links are in the folder. */
export function checkJournal(directory: string): CheckedJournal | null {
  const file = fileInside(directory, "runs.db");
  if (!existsSync(file)) return null;
  const faults: JournalFault[] = [];
  const found: Found = {
    damage: (part, detail) => void faults.push({ kind: "damage", part, detail }),
    left: (part, detail) => void faults.push({ kind: "left", part, detail }),
  };
  const counts = { runs: 0, entries: 0, flows: 0, artifacts: 0, unsealed: 0 };
  const runs: string[] = [];
  let db: DatabaseSync | undefined;
  try {
    const opened = openDatabase(directory, "look");
    ({ db } = opened);
    // One state of the file, while other processes go on writing.
    db.exec("BEGIN");
    checkPages(db, found);
    const sum = opened.isOld ? "NULL AS sum" : "sum";
    const extents = checkEntries(db, sum, createArtifacts(directory, "check"), counts, found);
    runs.push(...checkRuns(db, opened.isOld, extents, counts, found));
    checkFlows(db, sum, counts, found);
  } catch (cause) {
    if (cause instanceof RunnerError && cause.code !== "JOURNAL_UNAVAILABLE") throw cause;
    const { message } = unavailable(file, cause);
    // The fix is given beside it.
    const fault = message.replace(/ (?:Restore|Rescue) .*/s, "");
    if (!faults.some(({ part }) => part === "database")) found.damage("database", fault);
  } finally {
    db?.close();
  }
  for (const { file: lock, isHeld } of createOwners(directory, "check").all())
    if (!isHeld) found.left("owners", `${lock} was left by a process that died`);
  return { faults, runs, counts };
}

type Part = JournalFault["part"];
type Found = {
  readonly damage: (part: Part, detail: string) => void;
  readonly left: (part: Part, detail: string) => void;
};
type Counts = { runs: number; entries: number; flows: number; artifacts: number; unsealed: number };

/** SQLite's own check of all pages, tables and indexes. */
function checkPages(db: DatabaseSync, { damage }: Found): void {
  const rows = db.prepare(`PRAGMA integrity_check(${MOST_NAMED})`).all() as unknown as readonly {
    readonly integrity_check: string;
  }[];
  for (const { integrity_check: said } of rows) if (said !== "ok") damage("database", said);
}

const MOST_NAMED = 20;

type Extent = { count: number; last: number; id: string };

/** In the order they lie in the file. Gives for each key of a run how many there are, and the highest number. */
function checkEntries(
  db: DatabaseSync,
  sum: string,
  artifacts: Artifacts,
  counts: Counts,
  { damage, left }: Found,
): ReadonlyMap<number, Extent> {
  const names = new Map(
    (db.prepare("SELECT key, id FROM run").all() as unknown as readonly { key: number; id: unknown }[]).map(
      ({ key, id }) => [key, typeof id === "string" && isRunId(id) ? id : `damaged-${key}`],
    ),
  );
  const extents = new Map<number, Extent>();
  const needed = new Set<string>();
  const rows = db.prepare(`SELECT run, seq, body, ${sum} FROM event`).iterate() as Iterable<EventRow>;
  for (const { run, seq, body, sum: kept } of rows) {
    counts.entries += 1;
    const extent = extents.get(run) ?? { count: 0, last: 0, id: names.get(run) ?? `${run} without a row` };
    extent.count += 1;
    extent.last = Math.max(extent.last, seq);
    extents.set(run, extent);
    if (kept === null) counts.unsealed += 1;
    const named = typeof body === "string" ? artifacts.named(body) : null;
    if (named !== null) needed.add(named);
    const fault = entryFaultOf(run, seq, body, kept, artifacts, extent.id);
    if (fault !== null) damage(named === null ? "entries" : "artifacts", fault);
  }
  const files = artifacts.names();
  counts.artifacts = needed.size;
  const unneeded = files.filter((name) => !needed.has(name)).length;
  if (unneeded > 0)
    left(
      "artifacts",
      `${unneeded === 1 ? "1 file" : `${unneeded} files`} that no entry needs, or half written`,
    );
  return extents;
}

type EventRow = {
  readonly run: number;
  readonly seq: number;
  readonly body: unknown;
  readonly sum: unknown;
};

function entryFaultOf(
  run: number,
  seq: number,
  body: unknown,
  sum: unknown,
  artifacts: Artifacts,
  id: string,
): string | null {
  const what = `entry ${seq} of run ${id}`;
  if (typeof body !== "string" || (sum !== null && sum !== entrySum(run, seq, body)))
    return `${what} does not fit its checksum`;
  try {
    const fault = entryFault(JSON.parse(artifacts.restore(body, id, seq)));
    return fault === null ? null : `${what} ${fault}`;
  } catch (error) {
    if (error instanceof SyntaxError) return `${what} is not JSON`;
    if (error instanceof EntryDamaged) return error.message.replace(/: it holds .*/, `: it holds ${what}`);
    throw error;
  }
}

function checkRuns(
  db: DatabaseSync,
  isOld: boolean,
  extents: ReadonlyMap<number, Extent>,
  counts: Counts,
  { damage, left }: Found,
): readonly string[] {
  const rows = db
    .prepare(
      `SELECT key, id, agent, digest, created_at, ${isOld ? "NULL AS sum, NULL AS events" : "sum, events"} FROM run`,
    )
    .all() as unknown as readonly RunRow[];
  const keys = new Set(rows.map(({ key }) => key));
  for (const { key, id, agent, digest, created_at: at, sum, events } of rows) {
    if (typeof id === "string" && isRemoved(id)) {
      left("runs", `run ${key} is half removed`);
      continue;
    }
    counts.runs += 1;
    const extent = extents.get(key) ?? { count: 0, last: 0, id: "" };
    const isPlain = isRunId(id) && typeof agent === "string" && typeof digest === "string" && isTime(at);
    const name = isRunId(id) ? id : `damaged-${key}`;
    if (!isPlain || (sum !== null && sum !== runSum(key, id, agent, digest, at)))
      damage("runs", `the row of run ${name} is not valid or does not fit its checksum`);
    const due = Math.max(extent.last, typeof events === "number" ? events : 0);
    if (extent.count < due) damage("entries", `run ${name} has ${extent.count} of ${due} entries`);
  }
  const first = db.prepare(
    "SELECT body ->> '$.event.run' AS id FROM event WHERE run = ? AND seq = 1 AND json_valid(body)",
  );
  for (const [key, { count }] of extents) {
    if (keys.has(key)) continue;
    const { id } = first.get(key) ?? {};
    const name = isRunId(id) ? id : `with the key ${key}`;
    damage("runs", `the row of run ${name} is missing; ${count} of its entries are there`);
  }
  return rows.flatMap(({ id }) => (isRunId(id) ? [id] : []));
}

type RunRow = {
  readonly key: number;
  readonly id: unknown;
  readonly agent: unknown;
  readonly digest: unknown;
  readonly created_at: unknown;
  readonly sum: unknown;
  readonly events: unknown;
};

function checkFlows(db: DatabaseSync, sum: string, counts: Counts, { damage }: Found): void {
  const runsOf = db.prepare("SELECT id FROM run WHERE digest = ? ORDER BY key DESC");
  const named = (digest: string) =>
    (runsOf.all(digest) as unknown as readonly { readonly id: unknown }[])
      .flatMap(({ id }) => (isRunId(id) ? [id] : []))
      .slice(0, MOST_NAMED)
      .join(", ") || "none";
  const rows = db.prepare(`SELECT digest, json, ${sum} FROM flow`).iterate() as Iterable<{
    readonly digest: unknown;
    readonly json: unknown;
    readonly sum: unknown;
  }>;
  for (const { digest, json, sum: kept } of rows) {
    counts.flows += 1;
    if (kept === null) counts.unsealed += 1;
    if (typeof digest === "string" && isFlow(digest, json, kept)) continue;
    damage(
      "flows",
      `the flow ${String(digest).slice(0, 12)} was changed; its runs: ${named(String(digest))}`,
    );
  }
  const missing = db
    .prepare("SELECT DISTINCT digest FROM run WHERE digest NOT IN (SELECT digest FROM flow)")
    .all();
  for (const { digest } of missing)
    damage("flows", `the flow ${String(digest).slice(0, 12)} is missing; its runs: ${named(String(digest))}`);
}

function isFlow(digest: string, json: unknown, sum: unknown): boolean {
  if (typeof json !== "string" || (sum !== null && sum !== flowSum(digest, json))) return false;
  try {
    return isObject(JSON.parse(json));
  } catch {
    return false;
  }
}
