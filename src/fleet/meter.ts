/** Holds the models of a worker to what all workers together may ask and spend. */
import type { Backend, TurnRequest, TurnResult } from "../engine/ports.ts";
import type { Usage } from "../flow/event.ts";
import { isObject, own } from "../flow/json.ts";
import type { Postgres } from "../journal/postgres/connection.ts";
import { createBuckets, type Buckets } from "./buckets.ts";
import { BUDGET, bucketName } from "./limits.ts";

export type Meter = {
  /** For the runs of one group. A call that has to wait for longer than a stretch should hold a slot is not made. */
  readonly metered: (group: string) => (backend: Backend) => Backend;
  /** Why no run of this group may be driven now; null: nothing is spent. */
  readonly spent: (group: string) => Promise<string | null>;
};

/** So long a call waits in its slot. */
export const METER_PATIENCE_MS = 30_000;
/** Those who could not wait any longer do not all come back at once. */
const SPREAD_MS = 15_000;

export function createMeter(postgres: Postgres, patienceMs = METER_PATIENCE_MS): Meter {
  const buckets = createBuckets(postgres);
  return {
    metered: (group) => (backend) => meteredBackend(backend, group, buckets, patienceMs),
    async spent(group) {
      for (const name of await budgetsOf(group, buckets))
        if ((await buckets.take(name, 0, 0)) > 0) return spentText(name);
      return null;
    },
  };
}

type SetAside = { readonly name: string; readonly amount: number; readonly of: Figured | null };
type Figured = "tokens" | "costUsd";

function meteredBackend(backend: Backend, group: string, buckets: Buckets, patienceMs: number): Backend {
  /** The largest call so far, by model and step: the next one may be as large. */
  const largest = new Map<string, { readonly [figure in Figured]: number }>();

  /** A fault: the call is not made now. */
  const setAside = async (request: TurnRequest, ref: string): Promise<readonly SetAside[] | TurnResult> => {
    const names = await buckets.names();
    const before = largest.get(keyOf(request, ref));
    const wanted: SetAside[] = [
      ...(await budgetsOf(group, buckets)).map((name): SetAside => ({
        name,
        amount: before?.costUsd ?? 0,
        of: "costUsd",
      })),
      { name: `${ref}.tokens`, amount: before?.tokens ?? roughTokens(request), of: "tokens" },
      // The one that counts the moment comes last.
      { name: `${ref}.requests`, amount: 1, of: null },
    ];
    const taken: SetAside[] = [];
    const end = performance.now() + patienceMs;
    for (const one of wanted.filter(({ name }) => names.has(name))) {
      const isMoney = one.of === "costUsd";
      const left = isMoney ? 0 : Math.max(0, end - performance.now());
      const waitMs = await buckets.take(one.name, one.amount, left, request.signal);
      if (waitMs === 0) taken.push(one);
      else {
        for (const { name, amount } of taken) await buckets.settle(name, -amount);
        if (request.signal.aborted) return [];
        return isMoney ? spentFault(one.name) : lateFault(one.name, waitMs, patienceMs);
      }
    }
    return taken;
  };

  const account = async (
    request: TurnRequest,
    ref: string,
    taken: readonly SetAside[],
    result: TurnResult,
  ) => {
    const usage = result.kind === "reply" ? result.usage : result.fault.usage;
    const key = keyOf(request, ref);
    const before = largest.get(key);
    const used = { tokens: tokensIn(usage), costUsd: usage?.costUsd ?? null };
    largest.set(key, {
      tokens: Math.max(before?.tokens ?? 0, used.tokens ?? 0),
      costUsd: Math.max(before?.costUsd ?? 0, used.costUsd ?? 0),
    });
    for (const { name, amount, of } of taken) {
      // What is not known stays as it was set aside; a call that failed before it began has used nothing.
      const figure = of === null ? null : (used[of] ?? (result.kind === "fault" ? 0 : null));
      if (figure !== null) await buckets.settle(name, figure - amount);
    }
    if (result.kind !== "fault" || result.fault.kind !== "rate-limit") return;
    const names = await buckets.names();
    const held = [`${ref}.requests`, `${ref}.tokens`].filter((name) => names.has(name));
    await buckets.hold(held, result.fault.retryAfterMs ?? 0);
  };

  const metered =
    <Request extends TurnRequest>(ask: (request: Request) => Promise<TurnResult>) =>
    async (request: Request): Promise<TurnResult> => {
      const ref = refOf(backend, request.model);
      const taken = await setAside(request, ref);
      if ("kind" in taken) return taken;
      const result = await ask(request);
      // An answer that was paid for counts also where that cannot be written down.
      await account(request, ref, taken, result).catch(() => undefined);
      return result;
    };

  const { turn, run } = backend;
  return Object.assign(
    {},
    backend,
    turn !== undefined && { turn: metered(turn) },
    run !== undefined && { run: metered(run) },
  );
}

/** As limits name it: PROVIDER/MODEL, also where a flow uses a name of the user's own. */
function refOf({ spec: { id, options } }: Backend, model: string): string {
  const models = isObject(options) ? own(options, "models") : undefined;
  const ref = isObject(models) ? (own(models, model) ?? own(models, "*")) : undefined;
  if (typeof ref === "string") return ref;
  return model.includes("/") ? model : `${id}/${model}`;
}

function keyOf({ asker: { step } }: TurnRequest, ref: string): string {
  return JSON.stringify([ref, step]);
}

async function budgetsOf(group: string, buckets: Buckets): Promise<readonly string[]> {
  const names = await buckets.names();
  return [bucketName({ name: BUDGET, group: null }), bucketName({ name: BUDGET, group })].filter((name) =>
    names.has(name),
  );
}

/** Before anything is known of a step: about four letters a token. */
function roughTokens({ system, messages }: TurnRequest): number {
  const letters = messages.reduce(
    (sum, message) => sum + ("text" in message ? message.text.length : 0),
    system.length,
  );
  return Math.ceil(letters / 4);
}

function tokensIn(usage: Usage | undefined): number | null {
  if (usage === undefined || usage.unknown?.includes("tokens") === true) return null;
  return usage.inputTokens + usage.outputTokens;
}

function lateFault(name: string, waitMs: number, patienceMs: number): TurnResult {
  const retryAfterMs = Math.ceil(Math.max(waitMs, patienceMs + 1) + Math.random() * SPREAD_MS);
  const message = `The fleet's limit ${name} is reached. The call is made later.`;
  return { kind: "fault", fault: { kind: "rate-limit", code: "FLEET_RATE", message, retryAfterMs } };
}

function spentFault(name: string): TurnResult {
  return { kind: "fault", fault: { kind: "other", code: "FLEET_BUDGET", message: spentText(name) } };
}

function spentText(name: string): string {
  return `The fleet's budget ${name} is spent. The run goes on when its period begins anew, or with a larger one: lockstep fleet limit`;
}
