/** A journal that lives as long as the process: for tests, simulations and runs that need no second chance. */
import { STORED, type Journal, type NewRun, type RunHandle, type RunRow } from "../engine/ports.ts";
import { adoptions } from "../flow/adopted.ts";
import type { Entry } from "../flow/event.ts";
import type { Flow, Flows } from "../flow/flow.ts";
import { closed, outOfOrder, runExists, runHeld, runUnknown, writerStale } from "./errors.ts";

/**
 * Nothing is copied or written out: entries come back as the very values that were appended.
 *
 *     const journal = createMemoryJournal();
 *     const handle = await journal.create({ id: "r1", agent: "a", at: 0, digest, flow });
 *     await handle.append([{ seq: 1, at: 0, event }]);
 */
export function createMemoryJournal(): Journal {
  const runs = new Map<string, Run>();
  const flows = new Map<string, Flow>();
  let open = true;
  let written = 0;
  /** The place of the newest entry in the order of all. */
  let newest = 0;

  const mustBeOpen = () => {
    if (!open) throw closed(NAME);
  };
  const find = (id: string): Run => {
    mustBeOpen();
    const run = runs.get(id);
    if (run === undefined) throw runUnknown(id);
    return run;
  };

  const keep = (more: Flows) => {
    for (const [digest, flow] of Object.entries(more)) if (!flows.has(digest)) flows.set(digest, flow);
  };

  const handleOf = (run: Run): RunHandle => {
    const { id } = run.about;
    const { epoch } = run;
    const isOurs = () => run.held && run.epoch === epoch;
    const refusal = () => {
      if (!open) return closed(NAME);
      if (runs.get(id) !== run) return runUnknown(id);
      return writerStale(id, run.held ? "this process" : null);
    };

    return {
      run: id,
      epoch,
      append(entries, adopted) {
        if (!isOurs()) return Promise.reject(refusal());
        const next = run.entries.length + 1;
        for (let place = 0; place < entries.length; place++) {
          const { seq } = entries[place]!;
          if (seq !== next + place) return Promise.reject(outOfOrder(id, seq));
        }
        for (const entry of entries) {
          run.entries.push(entry);
          run.places.push((newest += 1));
        }
        if (adopted !== undefined) keep(adopted);
        written += 1;
        return STORED;
      },
      async release() {
        if (!isOurs()) return;
        run.held = false;
        written += 1;
      },
    };
  };

  return {
    async create(about, entries = [], adopted = {}) {
      mustBeOpen();
      if (runs.has(about.id)) throw runExists(about.id);
      const misplaced = entries.find((entry, index) => entry.seq !== index + 1);
      if (misplaced !== undefined) throw outOfOrder(about.id, misplaced.seq);
      keep({ ...adopted, [about.digest]: about.flow });
      written += 1;
      const places = entries.map(() => (newest += 1));
      const run: Run = { about, entries: [...entries], places, epoch: 1, held: true };
      runs.set(about.id, run);
      return handleOf(run);
    },

    async claim(id, { takeOver = false } = {}) {
      const run = find(id);
      if (run.held && !takeOver) throw runHeld(id, "this process");
      const wasHeld = run.held;
      run.epoch += 1;
      run.held = true;
      written += 1;
      return wasHeld ? { ...handleOf(run), abandoned: true } : handleOf(run);
    },

    async read(id, afterSeq = 0, limit = Infinity) {
      return find(id).entries.slice(afterSeq, afterSeq + limit);
    },

    async flow(digest) {
      mustBeOpen();
      return flows.get(digest) ?? null;
    },

    async list({ prefix = "", agent, before, owned, limit = Infinity } = {}) {
      mustBeOpen();
      const made = [...runs.values()];
      const older = before === undefined ? made : made.slice(0, made.indexOf(find(before)));
      const meant = older.filter(
        ({ about, held }) =>
          about.id.startsWith(prefix) &&
          (agent === undefined || about.agent === agent) &&
          (owned === undefined || held),
      );
      return meant.toReversed().slice(0, limit).map(rowOf);
    },

    async rows(ids) {
      mustBeOpen();
      return ids.flatMap((id) => runs.get(id) ?? []).map(rowOf);
    },

    async count() {
      mustBeOpen();
      return runs.size;
    },

    async since(cursor, limit = Infinity) {
      mustBeOpen();
      if (cursor === undefined) return { cursor: String(newest), entries: [], lost: false };
      const from = Number(cursor);
      const news = [...runs.values()]
        .flatMap(({ about, entries, places }) => {
          const first = places.findLastIndex((place) => place <= from) + 1;
          return places
            .slice(first)
            .map((place, index) => ({ place, run: about.id, entry: entries[first + index]! }));
        })
        .toSorted((a, b) => a.place - b.place)
        .slice(0, limit);
      const entries = news.map(({ run, entry }) => ({ run, seq: entry.seq, entry }));
      return { cursor: String(news.at(-1)?.place ?? from), entries, lost: false };
    },

    async size(id) {
      return find(id).entries.reduce((sum, entry) => sum + Buffer.byteLength(JSON.stringify(entry)), 0);
    },

    async version() {
      mustBeOpen();
      return written;
    },

    async remove(id) {
      if (find(id).held) throw runHeld(id, "this process");
      runs.delete(id);
      written += 1;
      const left = [...runs.values()];
      const needed = new Set(left.map(({ about }) => about.digest));
      for (const { entries } of left) for (const digest of adoptions(entries)) needed.add(digest);
      for (const digest of flows.keys()) if (!needed.has(digest)) flows.delete(digest);
    },

    async tidy() {
      mustBeOpen();
    },

    async close() {
      open = false;
      for (const run of runs.values()) run.held = false;
    },
  };
}

type Run = {
  readonly about: NewRun;
  readonly entries: Entry[];
  /** Where each entry stands in the order of all that were written. */
  readonly places: number[];
  epoch: number;
  held: boolean;
};

function rowOf({ about, entries, held }: Run): RunRow {
  return {
    id: about.id,
    agent: about.agent,
    digest: about.digest,
    createdAt: about.at,
    events: entries.length,
    last: entries.at(-1) ?? null,
    owned: held,
  };
}

const NAME = "The journal in memory";
