/** What can be looked at, each as one document: for tools and for resources. */
import type { Journal, RunRow } from "../engine/ports.ts";
import type { Flow } from "../flow/flow.ts";
import type { JsonObject } from "../flow/json.ts";
import { whyPartly } from "../run/records/reports.ts";
import { findRun, listRuns, particularsOf, show } from "../run/records/runs.ts";
import { momentsOf } from "../run/watch/follow.ts";
import { RunnerError } from "../run/errors.ts";
import { RequestRefusal } from "../serve/refusal.ts";
import { LEVELS, type Level } from "../tell/log-line.ts";
import { logLines } from "../tell/log.ts";
import { outlineOf } from "../tell/outline.ts";
import { createTranscript } from "../tell/transcript.ts";
import { recordsFor, type GraphFormat, type McpGround } from "./ground.ts";
import { questionDocument } from "./run-document.ts";

export const MOST_RUNS = 100;
const MOST_LINES = 200;

export async function runsSeen(
  { journal }: McpGround,
  { agent, limit = 20 }: { readonly agent?: string | undefined; readonly limit?: number },
): Promise<object> {
  const found = await journal();
  if (found === null) return { v: 1, runs: [] };
  const which = { limit: Math.min(limit, MOST_RUNS), ...(agent !== undefined && { agent }) };
  const runs = [];
  for (const summary of await listRuns(found, which)) {
    const { args, costUsd } = await particularsOf(found, summary.run);
    runs.push({ ...summary, args, costUsd });
  }
  return { v: 1, runs };
}

type Found = { readonly journal: Journal; readonly row: RunRow };

async function runOf(ground: McpGround, ref: string): Promise<Found> {
  const journal = await recordsFor(ground, ref);
  return { journal, row: await findRun(journal, ref) };
}

export async function runSeen(ground: McpGround, ref: string): Promise<object> {
  const { journal, row } = await runOf(ground, ref);
  return await show(journal, row.id);
}

export async function resultSeen(ground: McpGround, ref: string): Promise<object> {
  const { journal, row } = await runOf(ground, ref);
  const { run, agent, outcome, verdict, result, reason } = await show(journal, row.id);
  return { v: 1, run, agent, outcome, verdict, result, reason };
}

export async function whySeen(ground: McpGround, ref: string, target?: string): Promise<object> {
  const { journal, row } = await runOf(ground, ref);
  return await whyPartly(journal, row.id, target);
}

/** The newest lines, oldest first; `from`: the how-manyth line to begin with instead. */
export async function logSeen(
  ground: McpGround,
  ref: string,
  { level = "info", from }: { readonly level?: Level | undefined; readonly from?: number | undefined } = {},
): Promise<object> {
  const { journal, row } = await runOf(ground, ref);
  const least = LEVELS.indexOf(level);
  const lines: object[] = [];
  for await (const moments of momentsOf(journal, row))
    for (const moment of moments)
      lines.push(...logLines(moment).filter((line) => LEVELS.indexOf(line.level) >= least));
  return { v: 1, run: row.id, ...page(lines, from) };
}

/** What was said to the models, and what they said. */
export async function transcriptSeen(ground: McpGround, ref: string, from?: number): Promise<object> {
  const { journal, row } = await runOf(ground, ref);
  const next = createTranscript();
  const utterances: object[] = [];
  for await (const moments of momentsOf(journal, row))
    for (const moment of moments) utterances.push(...next(moment));
  const { lines, ...rest } = page(utterances, from);
  return { v: 1, run: row.id, ...rest, utterances: lines };
}

function page(all: readonly object[], from = Math.max(0, all.length - MOST_LINES)) {
  return { from, total: all.length, lines: all.slice(from, from + MOST_LINES) };
}

/** Of one run, or of the newest runs that wait. */
export async function questionsSeen(ground: McpGround, ref: string | undefined): Promise<object> {
  const journal = ref === undefined ? await ground.journal() : await recordsFor(ground, ref);
  if (journal === null) return { v: 1, questions: [] };
  const rows = ref === undefined ? await journal.list({ limit: MOST_RUNS }) : [await findRun(journal, ref)];
  const questions = [];
  for (const { id: run, agent } of rows) {
    const shown = await show(journal, run).catch((error: unknown) => {
      // One run that is damaged must not hide the others.
      if (ref === undefined && error instanceof RunnerError) return null;
      throw error;
    });
    for (const one of shown?.questions ?? []) questions.push({ run, agent, ...questionDocument(one) });
  }
  return { v: 1, questions };
}

/** The document of `lockstep check`, made by that command. */
export async function findingsSeen(
  { driver, agents, signal }: McpGround,
  agent: string | undefined,
): Promise<JsonObject> {
  if (agent === undefined && agents.names().length === 0)
    return { v: 1, agent: null, ok: true, problems: [] };
  if (agent !== undefined) await agents.load(agent);
  return await driver.read({ words: ["check", ...(agent === undefined ? [] : [agent])] }, signal);
}

export async function graphSeen(
  { agents, draw, redact }: McpGround,
  agent: string,
  format: GraphFormat,
): Promise<{ readonly v: 1; readonly agent: string; readonly format: GraphFormat; readonly graph: string }> {
  const { flow, problems } = await agents.load(agent);
  const outline = outlineOf(required(agent, flow), problems);
  return { v: 1, agent, format, graph: draw(redact(outline), format) };
}

function required(agent: string, flow: Flow | null): Flow {
  if (flow !== null) return flow;
  throw new RequestRefusal(
    409,
    "FLOW_INVALID",
    `The files of agent "${agent}" hold no flow: the tool findings lists the reasons.`,
  );
}
