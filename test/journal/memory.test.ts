import assert from "node:assert/strict";
import { it } from "node:test";
import type { Entry } from "../../src/flow/event.ts";
import type { Flow } from "../../src/flow/flow.ts";
import { createMemoryJournal } from "../../src/journal/memory.ts";
import { journalSuite } from "../../src/testing/journal-suite.ts";

journalSuite(
  "memory",
  async () => {
    const journal = createMemoryJournal();
    return { open: async () => journal, remove: async () => {} };
  },
  { alone: "what is in memory ends with the journal that holds it" },
);

it("a memory journal hands out the very entries it was given", async () => {
  const journal = createMemoryJournal();
  const flow = { ir: 1 } as unknown as Flow;
  const handle = await journal.create({ id: "r1", agent: "agent", at: 1, digest: "d", flow });
  const entry: Entry = { seq: 1, at: 1, event: { type: "step.waited", step: "s", visit: 1, ms: 0 } };
  await handle.append([entry]);
  assert.equal((await journal.read("r1"))[0], entry);
  assert.equal((await journal.list())[0]?.last, entry);
  assert.equal(await journal.flow("d"), flow);
});
