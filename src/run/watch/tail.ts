/** Following runs while other processes drive them: the journal is asked a few times a second whether it has grown. */
import { decide } from "../../engine/decide/decide.ts";
import type { Clock, Journal } from "../../engine/ports.ts";
import { prepareSchemas, schemasOf } from "../../engine/schema/schema.ts";
import { EMPTY_STATE, type State } from "../../engine/decide/state.ts";
import { flowFrom } from "../../flow/adopted.ts";
import type { Entry } from "../../flow/event.ts";
import type { Flow } from "../../flow/flow.ts";
import { findRun, listRuns, SLICE, type RunSummary } from "../records/runs.ts";

/** How long a change stays unseen at most, and how often it is looked whether a driver is still alive. */
const LAG_MS = 50;
const ALIVE_MS = 500;

export type Followed = { readonly entry: Entry; readonly state: State; readonly flow: Flow };

/**
 * Every entry of a run, from its first one on and as they come, with the state it led to. Ends when the run has ended,
 * when nobody drives it, or when the signal aborts.
 */
export async function* followRun(
  journal: Journal,
  ref: string,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<Followed> {
  const { id, digest } = await findRun(journal, ref);
  const flows: { [digest: string]: Flow } = {};
  const known = async (wanted: string): Promise<Flow> => {
    const flow = flows[wanted] ?? (await journal.flow(wanted));
    if (flow === null) throw new Error(`The flow ${wanted} of run ${id} is missing`);
    flows[wanted] = flow;
    await prepareSchemas(schemasOf(flow));
    return flow;
  };
  let flow = await known(digest);
  let state = EMPTY_STATE;
  let seq = 0;
  let looked = -1;
  let asked = 0;
  for (;;) {
    const version = await journal.version();
    const news = version === looked ? [] : await journal.read(id, seq, SLICE);
    // As long as there is more, the same version is read on.
    looked = news.length === SLICE ? -1 : version;
    for (const entry of news) {
      if (entry.event.type === "run.adopted") await known(entry.event.flow);
      flow = flowFrom(flow, entry.event, flows);
      state = decide(flow, state, entry.event);
      seq = entry.seq;
      yield { entry, state, flow };
    }
    if (news.at(-1)?.event.type === "run.ended" || signal.aborted) return;
    if (news.length > 0) continue;
    // Either way: a clock that is put back must not keep a dead driver alive.
    if (Math.abs(clock.now() - asked) >= ALIVE_MS) {
      asked = clock.now();
      if (!(await isDriven(journal, id)) && (await journal.read(id, seq, 1)).length === 0) return;
    }
    await clock.sleep(LAG_MS, signal);
  }
}

async function isDriven(journal: Journal, id: string): Promise<boolean> {
  return (await journal.rows([id]))[0]?.owned ?? false;
}

/** The newest runs, at once and whenever they have changed, until the signal aborts. */
export async function* followRuns(
  journal: Journal,
  clock: Clock,
  signal: AbortSignal,
  limit?: number,
): AsyncGenerator<readonly RunSummary[]> {
  let version = -1;
  let asked = 0;
  while (!signal.aborted) {
    const now = await journal.version();
    // A driver that died writes nothing.
    if (now !== version || Math.abs(clock.now() - asked) >= ALIVE_MS) {
      version = now;
      asked = clock.now();
      yield await listRuns(journal, limit === undefined ? {} : { limit });
    }
    await clock.sleep(LAG_MS, signal);
  }
}
