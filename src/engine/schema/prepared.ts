/** A flow whose answers can be judged at once, because everything that its schemas need is loaded. */
import type { Flow, Flows } from "../../flow/flow.ts";
import { prepareSchemas, schemasOf } from "./schema.ts";

declare const PREPARED: unique symbol;

/** Only `prepare` makes one. `decide` takes no other flow: it is pure, and could not wait for a part of the validator. */
export type Prepared = Flow & { readonly [PREPARED]: true };

/** By their digests. */
export type PreparedFlows = { readonly [digest: string]: Prepared };

const known = new WeakSet<Flow>();

export async function prepare(flow: Flow): Promise<Prepared> {
  if (!known.has(flow)) await prepareSchemas(schemasOf(flow));
  known.add(flow);
  return flow as Prepared;
}

export async function prepareAll(flows: Flows): Promise<PreparedFlows> {
  const ready = Object.entries(flows).map(async ([digest, flow]) => [digest, await prepare(flow)] as const);
  return Object.fromEntries(await Promise.all(ready));
}
