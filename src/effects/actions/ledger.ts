/** Acts on the world, each written down before it is done and after: none is done twice, and none fails unheard. */
import type { EffectEvent } from "../../flow/event.ts";

export type Act = {
  readonly kind: string;
  /** The same for every attempt at the same thing. */
  readonly key: string;
  /** What it is done to. */
  readonly target: string;
  /** What is about to be done. */
  readonly detail: string;
  /**
   * For what is looked for in a list: the newest number there before it is done, which is recorded with the intention.
   * undefined: not known.
   */
  readonly newest?: () => Promise<number | undefined>;
  /** What to say if it was done by an attempt whose end was not recorded; null: it was not. `newest` as recorded. */
  readonly find: (newest?: number) => Promise<string | null>;
  /** There is something to do again, although it was done before. */
  readonly again?: true;
  /** It waits until everything else that is due at the end of the run is done. */
  readonly last?: true;
  readonly perform: () => Promise<Done>;
};

export type Done = { readonly state: "applied" | "held" | "failed"; readonly detail: string };

export type Ledger = {
  /** Whether the run may go on as if it were done. */
  readonly act: (act: Act) => Promise<boolean>;
  readonly stateOf: (key: string) => "intended" | Done["state"] | null;
  /** Of an attempt whose end is not recorded. */
  readonly isOpen: () => boolean;
  readonly dryRun: boolean;
};

export type LedgerPast = { readonly state: "intended" | Done["state"]; readonly newest?: number | undefined };

export type LedgerOptions = {
  /** How far earlier attempts came, by key. */
  readonly past: ReadonlyMap<string, LedgerPast>;
  readonly record: (event: EffectEvent) => Promise<void>;
  /** Acts are reported and not done. */
  readonly dryRun: boolean;
  readonly signal: AbortSignal;
};

export function createLedger({ past, record, dryRun, signal }: LedgerOptions): Ledger {
  const stateOf: Ledger["stateOf"] = (key) => past.get(key)?.state ?? null;
  return {
    stateOf,
    isOpen: () => past.values().some(({ state }) => state === "intended"),
    dryRun,
    act: async (act) => {
      const { kind, key, target, detail, again, perform } = act;
      const last = stateOf(key);
      const before = again === true && last === "applied" ? null : last;
      if (before === "applied" || before === "held") return true;
      if (dryRun) {
        await record({ type: "effect.held", key, kind, target, detail: `not done (--dry-run): ${detail}` });
        return true;
      }
      const earlier = past.get(key)?.newest;
      const found = before === null ? null : await act.find(earlier);
      if (found !== null) {
        await record({ type: "effect.applied", key, detail: found });
        return true;
      }
      // A request of an earlier attempt may be answered late, so its number counts for this one as well.
      const newest = earlier ?? (await act.newest?.());
      const known = newest === undefined ? {} : { newest };
      await record({ type: "effect.intended", key, kind, target, detail, ...known });
      const done = await heardOf(await perform(), () => act.find(newest));
      // An interrupted effect has not failed: the process that resumes the run checks how far it came.
      if (signal.aborted && done.state !== "applied") return false;
      await record(
        done.state === "held"
          ? { type: "effect.held", key, kind, target, detail: done.detail }
          : { type: `effect.${done.state}`, key, detail: done.detail },
      );
      return done.state !== "failed";
    },
  };
}

/** A failure may be of the answer alone: the connection broke after the thing was done. */
async function heardOf(done: Done, find: () => Promise<string | null>): Promise<Done> {
  const found = done.state === "failed" ? await find() : null;
  return found === null ? done : applied(found);
}

export function applied(detail: string): Done {
  return { state: "applied", detail };
}

export function held(detail: string): Done {
  return { state: "held", detail };
}

export function failedEffect(detail: string): Done {
  return { state: "failed", detail };
}
