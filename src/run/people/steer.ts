/** Pausing and stopping runs from outside: the process that owns a run is asked to, and a run without one is marked. */
import { decide } from "../../engine/decide/decide.ts";
import { RunnerError, type Clock, type Journal, type RunRow } from "../../engine/ports.ts";
import type { Entry } from "../../flow/event.ts";
import type { Mail } from "../../flow/mail.ts";
import { requireKnownState } from "../trust/foreign-state.ts";
import { foldRun } from "../records/fold.ts";
import { findRun, summarise } from "../records/runs.ts";
import { mailOf } from "./mail.ts";

export type Steered = {
  readonly run: string;
  readonly agent: string;
  /** `asked`: it has not come to rest yet. `ended`: it was over before it could. */
  readonly state: "paused" | "stopped" | "ended" | "asked";
};

/** How long the driving process may take before the caller stops waiting, and how often that is checked. */
const PATIENCE_MS = 5000;
const LAG_MS = 50;

/** What is under way is finished; then the run rests until it is resumed with `unpause`. */
export async function pauseRun(...given: SteerArguments): Promise<Steered> {
  return await steer("pause", given, markPaused);
}

/** What is under way is given up, as with Ctrl-C at the process that drives it. NOT_DRIVEN when no process does. */
export async function stopRun(...given: SteerArguments): Promise<Steered> {
  return await steer("stop", given, async (_journal, { id, agent }) => {
    const why = `No process is running run ${id} of "${agent}", so there is nothing to stop.`;
    throw new RunnerError("NOT_DRIVEN", why);
  });
}

type SteerArguments = [
  journal: Journal,
  stateDir: string,
  ref: string,
  clock: Clock,
  env?: NodeJS.ProcessEnv,
];

async function steer(
  wish: "pause" | "stop",
  [journal, stateDir, ref, clock, env = process.env]: SteerArguments,
  undriven: (journal: Journal, row: RunRow, clock: Clock, mail: Mail) => Promise<"paused">,
): Promise<Steered> {
  if (journal.mail === undefined) requireKnownState(stateDir, env);
  const row = await findRun(journal, ref);
  const { id: run, agent } = row;
  const mail = mailOf(journal, stateDir);
  const marked = row.owned ? null : await undriven(journal, row, clock, mail).catch(unlessTaken);
  if (marked !== null) return { run, agent, state: marked };
  await mail.leaveWish(run, wish);
  return { run, agent, state: await stateAfter(wish, journal, mail, run, clock) };
}

/** A process has begun to drive it in that moment. */
function unlessTaken(error: unknown): null {
  if (error instanceof RunnerError && error.code === "RUN_OWNED_ELSEWHERE") return null;
  throw error;
}

async function markPaused(
  journal: Journal,
  { id: run }: RunRow,
  clock: Clock,
  mail: Mail,
): Promise<"paused"> {
  const handle = await journal.claim(run);
  try {
    // What was wished before is over.
    await mail.forgetWish(run, "continue");
    const row = await findRun(journal, run);
    const { state, flow, last } = await foldRun(journal, row);
    const isOver = state.pending.length === 0 && state.halted.length === 0;
    if (isOver)
      throw new RunnerError("RUN_OVER", `Run ${run} of "${row.agent}" has ended; there is nothing to pause.`);
    if (state.verdict?.code === "PAUSED" && state.pending.length === 0) return "paused";
    const at = clock.now();
    const { verdict } = decide(flow, state, { type: "run.paused" }).state;
    const seq = last?.seq ?? 0;
    const paused: Entry = { seq: seq + 1, at, event: { type: "run.paused" } };
    const ended: Entry = { seq: seq + 2, at, event: { type: "run.ended", verdict: verdict! } };
    await handle.append([paused, ended]);
    return "paused";
  } finally {
    await handle.release();
  }
}

async function stateAfter(
  wish: "pause" | "stop",
  journal: Journal,
  mail: Mail,
  run: string,
  clock: Clock,
): Promise<Steered["state"]> {
  const signal = new AbortController().signal;
  for (let waited = 0; waited < PATIENCE_MS; waited += LAG_MS) {
    const row = await findRun(journal, run);
    if (!row.owned) {
      await mail.forgetWish(run, wish);
      const { state } = summarise(row);
      return state === "paused" ? "paused" : state === "interrupted" ? "stopped" : "ended";
    }
    await clock.sleep(LAG_MS, signal);
  }
  return "asked";
}
