/** The journal as a server reads it: opened once there is one, again where it was replaced, and never for long at a time. */
import { statSync, watch } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Journal } from "../engine/ports.ts";
import type { Flow } from "../flow/flow.ts";
import { openExistingJournal } from "../run/records/journal.ts";
import { isServerAddress } from "../run/world/project.ts";

export type Door = {
  /** null: nothing is recorded. JOURNAL_UNAVAILABLE: what is there cannot be read. */
  readonly journal: () => Promise<Journal | null>;
  /** Calls back when something was written to the file of the journal. Gives what ends it. */
  readonly watch: (changed: () => void) => () => void;
  readonly close: () => Promise<void>;
};

/** A person looks at the page: that a server is away is said soon. */
const PATIENCE_MS = 2000;

type Opened = { readonly id: string; readonly journal: Promise<Journal | null> };

/** `place`: the state folder, or the address of the server that records runs. */
export function openDoor(place: string, env: NodeJS.ProcessEnv): Door {
  const idOf = () => (isServerAddress(place) ? place : fileId(join(place, "runs.db")));
  let opened: Opened | null = null;
  let isClosed = false;

  const shut = async () => {
    const before = opened;
    opened = null;
    // What could not be opened need not be closed.
    await before?.journal.then((journal) => journal?.close()).catch(() => undefined);
  };

  return {
    async journal() {
      const id = idOf();
      if (opened !== null && opened.id !== id) await shut();
      if (id === null || isClosed) return null;
      if (opened === null) {
        const journal = openExistingJournal(place, { now: Date.now }, { env, patienceMs: PATIENCE_MS }).then(
          considerate,
        );
        const attempt = { id, journal };
        opened = attempt;
        // What failed is tried again by the next request.
        journal.catch(() => {
          if (opened === attempt) opened = null;
        });
      }
      return await opened.journal;
    },
    watch(changed) {
      if (isServerAddress(place)) return () => undefined;
      try {
        const watcher = watch(place, { persistent: false }, (_event, name) => {
          if (name?.startsWith("runs.db") !== false) changed();
        });
        // Where nothing can be watched, the journal is looked at from time to time all the same.
        watcher.on("error", () => watcher.close());
        return () => watcher.close();
      } catch {
        return () => undefined;
      }
    },
    async close() {
      isClosed = true;
      await shut();
    },
  };
}

/** Another file under the same name is another journal. */
function fileId(file: string): string | null {
  const found = statSync(file, { throwIfNoEntry: false });
  return found === undefined ? null : `${found.dev}:${found.ino}`;
}

const MOST_FLOWS = 64;

/** Other requests wait so long at most while runs are read. */
const TURN_MS = 5;

/** While runs are read other requests get their turn; flows, which never change under their digest, are kept. */
function considerate(journal: Journal | null): Journal | null {
  if (journal === null) return null;
  const flows = new Map<string, Flow>();
  let turnAt = performance.now();
  return {
    ...journal,
    async read(...asked) {
      const entries = await journal.read(...asked);
      if (performance.now() - turnAt > TURN_MS) {
        await nextTurn();
        turnAt = performance.now();
      }
      return entries;
    },
    async flow(digest) {
      const known = flows.get(digest) ?? (await journal.flow(digest));
      if (known === null) return null;
      flows.delete(digest);
      flows.set(digest, known);
      if (flows.size > MOST_FLOWS) flows.delete(flows.keys().next().value!);
      return known;
    },
  };
}
