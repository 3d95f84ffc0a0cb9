/** Whether a text matches a pattern of a flow: a pattern may need longer than the universe has, and gets a moment. */
import type { Worker } from "node:worker_threads";

/** `why` is there when it could not be found out: that counts as no match. */
export type PatternResult = { readonly ok: boolean; readonly why?: string };

/**
 * A regular expression with the flag `u`. `$` also stands before a line break at the very end, as outputs and files end
 * with one. Never rejects, and never holds up whatever else this process does: what is not sure to be quick is matched
 * in a thread of its own, and given up after a quarter of a second.
 */
export async function matchesPattern(
  pattern: string,
  text: string,
  signal?: AbortSignal,
): Promise<PatternResult> {
  const regex = parsePattern(pattern);
  if (regex === null) return { ok: false, why: "the pattern is not a valid regular expression" };
  if (signal?.aborted === true) return INTERRUPTED;
  const trimmed = text.replace(/\r?\n$/, "");
  const texts = trimmed === text ? [text] : [text, trimmed];
  if (isQuick(pattern, text)) return { ok: texts.some((each) => regex.test(each)) };
  return await matchAside(pattern, texts, signal);
}

const PATTERN_MS = 250;
const QUICK_STEPS = 1_000_000;
const INTERRUPTED: PatternResult = { ok: false, why: "the match was interrupted" };

function parsePattern(pattern: string): RegExp | null {
  try {
    return new RegExp(pattern, "u");
  } catch {
    return null;
  }
}

/**
 * Without groups a pattern is a row of single characters. It can start anywhere, and each quantifier can stop anywhere,
 * so that it takes at most this many steps. Escaped ones count too, which only makes the bound more careful.
 */
function isQuick(pattern: string, text: string): boolean {
  if (pattern.includes("(")) return false;
  const quantifiers = pattern.match(/[*+?{]/g)?.length ?? 0;
  return pattern.length * (text.length + 1) ** (quantifiers + 1) <= QUICK_STEPS;
}

/** In the words of a script, since the command is one bundled file that a thread could not start from. */
const MATCH = `
  const { parentPort, workerData: { pattern, texts } } = require("node:worker_threads");
  const regex = new RegExp(pattern, "u");
  parentPort.postMessage(texts.some((text) => regex.test(text)));
`;

/** The moment begins when the thread does: a busy machine may take long to start one. */
async function matchAside(
  pattern: string,
  texts: readonly string[],
  signal?: AbortSignal,
): Promise<PatternResult> {
  const { Worker } = await import("node:worker_threads");
  const worker = new Worker(MATCH, { eval: true, workerData: { pattern, texts }, env: {}, execArgv: [] });
  const ended = new AbortController();
  try {
    return await firstResult(worker, ended.signal, signal);
  } finally {
    ended.abort();
    await worker.terminate();
  }
}

function firstResult(worker: Worker, ended: AbortSignal, signal?: AbortSignal): Promise<PatternResult> {
  return new Promise((resolve) => {
    worker.once("message", (ok) => resolve({ ok: ok === true }));
    worker.once("error", () => resolve({ ok: false, why: "the pattern needs more room than there is" }));
    worker.once("online", () => {
      const slow = () => resolve({ ok: false, why: "the pattern took too long" });
      const timer = setTimeout(slow, PATTERN_MS);
      ended.addEventListener("abort", () => clearTimeout(timer), { once: true });
    });
    signal?.addEventListener("abort", () => resolve(INTERRUPTED), { once: true, signal: ended });
    if (signal?.aborted === true) resolve(INTERRUPTED);
  });
}
