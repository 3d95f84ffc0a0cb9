/** All that can be read of a run later, and of its flow: documents, logs, spans, the conversation and the picture of its steps. */
import { audit } from "../../src/tell/audit.ts";
import { budgetOf } from "../../src/tell/budget.ts";
import type { PreparedFlows } from "../../src/engine/schema/prepared.ts";
import type { Entry } from "../../src/flow/event.ts";
import type { Flow, Flows } from "../../src/flow/flow.ts";
import { createMemoryJournal } from "../../src/journal/memory.ts";
import { show } from "../../src/run/index.ts";
import { whyAll } from "../../src/tell/why.ts";
import { story } from "../../src/story/story.ts";
import { logLines } from "../../src/tell/log.ts";
import { outlineOf } from "../../src/tell/outline.ts";
import { createSpans } from "../../src/tell/spans.ts";
import { createTranscript } from "../../src/tell/transcript.ts";
import { ready } from "../ready.ts";

export type Reports = { readonly [name: string]: unknown };

export async function reportsOf(
  flow: Flow,
  entries: readonly Entry[],
  adopted: Flows = {},
): Promise<Reports> {
  const [began, later] = [ready(flow), adopted as PreparedFlows];
  const [spans, transcript] = [createSpans(flow, "run", true), createTranscript()];
  const moments = [...story(began, entries, later)];
  return {
    show: await shown(flow, entries, adopted),
    why: whyAll(began, entries, later),
    audit: audit(began, entries, later),
    logs: moments.flatMap(logLines),
    spans: [...moments.flatMap(spans.hear), ...spans.close()],
    transcript: moments.flatMap(transcript),
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
