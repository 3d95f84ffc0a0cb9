/** All that can be read of a run later, and of its flow: documents, logs, spans, the conversation and the picture of its steps. */
import { audit } from "../../src/tell/audit.ts";
import { decide } from "../../src/engine/decide/decide.ts";
import { EMPTY_STATE } from "../../src/engine/decide/state.ts";
import { budgetOf } from "../../src/tell/budget.ts";
import type { Entry } from "../../src/flow/event.ts";
import { flowFrom } from "../../src/flow/adopted.ts";
import type { Flow, Flows } from "../../src/flow/flow.ts";
import { outlineOf } from "../../src/tell/outline.ts";
import { createMemoryJournal } from "../../src/journal/memory.ts";
import { show } from "../../src/run/index.ts";
import { logLines } from "../../src/run/watch/log-lines.ts";
import { createSpans } from "../../src/run/records/spans.ts";
import { createTranscript } from "../../src/tell/transcript.ts";
import { whyAll } from "../../src/run/records/why.ts";

export type Reports = { readonly [name: string]: unknown };

export async function reportsOf(
  flow: Flow,
  entries: readonly Entry[],
  adopted: Flows = {},
): Promise<Reports> {
  const [spans, transcript] = [createSpans(flow, "run", true), createTranscript(flow)];
  const told: { readonly [name: string]: unknown[] } = { logs: [], spans: [], transcript: [] };
  let before = EMPTY_STATE;
  let here = flow;
  for (const entry of entries) {
    here = flowFrom(here, entry.event, adopted);
    const after = decide(here, before, entry.event);
    told.logs!.push(...logLines(entry, before, after, here));
    told.spans!.push(...spans.hear(entry, before, after));
    told.transcript!.push(...transcript(entry, before, after));
    before = after;
  }
  told.spans!.push(...spans.close());
  return {
    show: await shown(flow, entries, adopted),
    why: whyAll(flow, entries, adopted),
    audit: audit(flow, entries, adopted),
    ...told,
    outline: outlineOf(flow),
    budget: budgetOf(flow),
  };
}

async function shown(flow: Flow, entries: readonly Entry[], adopted: Flows): Promise<unknown> {
  const journal = createMemoryJournal();
  const { agent } = flow;
  const handle = await journal.create({ id: "run", agent, at: 0, digest: "digest", flow }, entries, adopted);
  await handle.release();
  return await show(journal, "run", 0);
}
