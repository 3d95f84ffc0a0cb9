/** A watchdog over coding agents: a query that gives no sign of life for too long is given up, and asked again. */
import type { Backend, RunRequest, TurnResult } from "../../engine/ports.ts";

/** An agent may run a command of its own for a while without a word. */
export const INACTIVITY_MS = 30 * 60_000;

/** How long one that was stopped may take to answer. */
const GRACE_MS = 5000;

/** What an agent says and the tools it asks for are signs of life. Models answer within a patience of their own. */
export function watchOver(backend: Backend, inactivityMs = INACTIVITY_MS): Backend {
  const { run } = backend;
  return run === undefined
    ? backend
    : { ...backend, run: async (request) => await guarded(run, request, inactivityMs) };
}

async function guarded(
  run: NonNullable<Backend["run"]>,
  request: RunRequest,
  inactivityMs: number,
): Promise<TurnResult> {
  const silent = new AbortController();
  const begin = () => setTimeout(() => silent.abort(), inactivityMs);
  let timer = begin();
  let late: NodeJS.Timeout | undefined;
  const left = new Promise<null>((resolve) => {
    silent.signal.addEventListener("abort", () => (late = setTimeout(resolve, GRACE_MS, null)));
  });
  try {
    const result = await Promise.race([
      left,
      run({
        ...request,
        signal: AbortSignal.any([request.signal, silent.signal]),
        onText: (delta) => {
          timer.refresh();
          request.onText?.(delta);
        },
        gate: async (call, batch) => {
          // A person who is asked may take their time.
          clearTimeout(timer);
          const allowance = await request.gate(call, batch);
          timer = begin();
          return allowance;
        },
      }),
    ]);
    if (silent.signal.aborted && !request.signal.aborted && result?.kind !== "reply")
      return silence(inactivityMs);
    return result ?? silence(inactivityMs);
  } finally {
    clearTimeout(timer);
    clearTimeout(late);
  }
}

/** Passing, like a network that does not answer: it is tried again a few times. */
function silence(inactivityMs: number): TurnResult {
  const message = `The agent gave no output for ${inactivityMs} ms and was stopped.`;
  return { kind: "fault", fault: { kind: "network", message } };
}
