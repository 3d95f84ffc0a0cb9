/** Which flow holds when: the one that a run began with, until it adopts another. */
import type { Entry, Event } from "./event.ts";
import type { Flow } from "./flow.ts";
import { own } from "./json.ts";

/** The flow that holds from this event on. */
export function flowFrom<F extends Flow>(
  flow: F,
  event: Event,
  adopted: { readonly [digest: string]: F } = {},
): F {
  if (event.type !== "run.adopted") return flow;
  const next = own(adopted, event.flow);
  if (next === undefined) throw new Error(`The flow ${event.flow} that was adopted is not there`);
  return next;
}

/** The digests of the flows that a run adopted, in order. */
export function adoptions(entries: readonly Entry[]): readonly string[] {
  const digests: string[] = [];
  for (const { event } of entries) if (event.type === "run.adopted") digests.push(event.flow);
  return digests;
}
