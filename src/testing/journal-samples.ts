/** Runs and entries that the cases of the journal suite write, and how they look at what came of it. */
import assert from "node:assert/strict";
import type { Journal, NewRun } from "../engine/ports.ts";
import type { Entry } from "../flow/event.ts";
import type { Flow } from "../flow/flow.ts";
import type { JsonObject } from "../flow/json.ts";

/** By their titles. Each is given a journal on a new place. */
export type JournalCases = { readonly [title: string]: (journal: Journal) => Promise<void> };

export function newRun(id: string): NewRun {
  return { id, agent: "agent", at: 1_000, digest: "digest-1", flow: aFlow("a flow") };
}

/** A journal keeps a flow without ever looking into it. */
export function aFlow(title: string): Flow {
  return { ir: 1, title, steps: {} } as unknown as Flow;
}

export function waited(seq: number): Entry {
  return { seq, at: 1_000 + seq, event: { type: "step.waited", step: "s", visit: seq, ms: 5 } };
}

export function adopted(seq: number, flow: string): Entry {
  return { seq, at: 1_000 + seq, event: { type: "run.adopted", flow } };
}

export function spoken(seq: number, text: string, output: JsonObject): Entry {
  const usage = { turns: 1, inputTokens: 10, outputTokens: 2, costUsd: null };
  const reply = { kind: "said", text, calls: [], output, usage } as const;
  return { seq, at: 1_000 + seq, event: { type: "step.answered", step: "s", visit: seq, turn: 1, reply } };
}

export function seqs(entries: readonly Entry[]): readonly number[] {
  return entries.map(({ seq }) => seq);
}

export function idsOf(rows: readonly { readonly id: string }[]): readonly string[] {
  return rows.map(({ id }) => id);
}

export function many<T = undefined>(count: number, value?: T): T[] {
  return Array.from({ length: count }, () => value as T);
}

export async function newsOf(journal: Journal, cursor: string, limit?: number): Promise<readonly string[]> {
  const { entries, lost } = await journal.since(cursor, limit);
  assert.equal(lost, false);
  return entries.map(({ run, seq }) => `${run} ${seq}`);
}

export async function refuses(code: string, promise: Promise<unknown>, message = /./): Promise<void> {
  await assert.rejects(promise, { name: "RunnerError", code, message });
}

export async function settled<T>(result: PromiseSettledResult<T>): Promise<T> {
  if (result.status === "rejected") throw result.reason;
  return result.value;
}
