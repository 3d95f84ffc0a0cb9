/** Journals under which a run stops as if its process had died: at a write, at the record of an effect, or at once. */
import type { RunHandle } from "../../src/engine/ports.ts";
import { RunnerError, type Journal } from "../../src/run/index.ts";

/** Stops the process, as it were, at the Nth record of an effect: just before it is written, or just after. */
export function breaking(journal: Journal, at: number, written: boolean): Journal {
  let seen = 0;
  const wrap = (handle: Awaited<ReturnType<Journal["create"]>>) => ({
    ...handle,
    append: async (entries: Parameters<typeof handle.append>[0]) => {
      const isEffect = entries.some(
        ({ event }) => event.type.startsWith("effect.") || event.type === "run.ended",
      );
      if (isEffect) seen += 1;
      if (seen !== at || !isEffect) return await handle.append(entries);
      if (written) await handle.append(entries);
      throw new RunnerError("JOURNAL_UNAVAILABLE", "The disk is full.");
    },
  });
  return {
    ...journal,
    create: async (...args) => wrap(await journal.create(...args)),
    claim: async (run) => wrap(await journal.claim(run)),
  };
}

/** Stops the process, as it were, at the Nth write: just before it, or just after. */
export function dying(journal: Journal, at: number, when: "before" | "after"): Journal {
  let writes = 0;
  const die = () => new RunnerError("JOURNAL_UNAVAILABLE", "The process is gone.");
  const mortal = (handle: RunHandle): RunHandle => ({
    ...handle,
    append: async (more, adopted) => {
      writes += 1;
      if (writes > at || (writes === at && when === "before")) throw die();
      await handle.append(more, adopted);
      if (writes === at) throw die();
    },
  });
  return {
    ...journal,
    create: async (...run) => mortal(await journal.create(...run)),
    claim: async (run) => mortal(await journal.claim(run)),
  };
}

/** The run is recorded, and that is all that is done of it. */
export function breakingAtOnce(journal: Journal): Journal {
  return {
    ...journal,
    create: async (...args) => {
      await (await journal.create(...args)).release();
      throw new RunnerError("JOURNAL_UNAVAILABLE", "The disk is full.");
    },
  };
}
