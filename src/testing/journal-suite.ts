/** What every journal must do. One suite; each implementation runs it. */
import { describe, it } from "node:test";
import type { Journal } from "../engine/ports.ts";
import { entryCases } from "./journal-entries.ts";
import { listCases } from "./journal-lists.ts";
import { requireFunction, requireOptions, requireText } from "./kit-options.ts";
import { ownerCases } from "./journal-owners.ts";
import { sharedCases } from "./journal-shared.ts";

/** A place that holds runs, empty at first. */
export type JournalPlace = {
  /** A journal on this place; opened a second time, it stands for a second process. */
  readonly open: () => Promise<Journal>;
  /** Called once all journals are closed. */
  readonly remove: () => Promise<void>;
};

export type JournalSuiteOptions = {
  /** Why a place cannot be opened twice, if it cannot. The cases that need it are listed as skipped, with this reason. */
  readonly alone?: string;
};

/**
 * Registers the cases with node:test.
 *
 *     journalSuite("memory", async () => {
 *       const journal = createMemoryJournal();
 *       return { open: async () => journal, remove: async () => {} };
 *     }, { alone: "what is in memory ends with its journal" });
 */
export function journalSuite(
  name: string,
  make: () => Promise<JournalPlace>,
  options: JournalSuiteOptions = {},
): void {
  requireText("journalSuite", "the name of the journal", name);
  requireFunction("journalSuite", "a function that makes a place for journals", make);
  requireOptions("journalSuite", options, { alone: "text" });
  const together = { skip: options.alone ?? false };

  /** Opens journals on a new place, and closes them when the case is over. */
  const world = async (body: (open: () => Promise<Journal>) => Promise<void>) => {
    const place = await make();
    const opened: Journal[] = [];
    try {
      await body(async () => {
        const journal = await place.open();
        opened.push(journal);
        return journal;
      });
    } finally {
      for (const journal of opened) await journal.close();
      await place.remove();
    }
  };

  describe(`journal: ${name}`, () => {
    for (const [title, body] of Object.entries({ ...entryCases, ...ownerCases, ...listCases }))
      it(title, () => world(async (open) => body(await open())));
    for (const [title, body] of Object.entries(sharedCases)) it(title, together, () => world(body));
  });
}
