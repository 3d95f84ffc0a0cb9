/** Why a search that did not find something has not proved that it cannot happen. */
import type { Flow } from "../flow/flow.ts";
import { partsOf } from "../flow/rules.ts";
import { givenUp } from "./answers.ts";
import type { Element } from "./elements.ts";
import type { Searched } from "./search.ts";

/** null: everything that can happen was tried, and nothing of it shows the element. */
export function doubtAbout(
  flow: Flow,
  { kind }: Pick<Element, "kind">,
  { isWhole, states }: Pick<Searched, "isWhole" | "states">,
): string | null {
  if (!isWhole) return `the search stopped after ${states} states`;
  if (kind === "limits") return "counts and amounts are only tried along circles of the flow";
  return doubtAboutFlow(flow);
}

function doubtAboutFlow(flow: Flow): string | null {
  const { hooks, stop, limits, settings, steps } = flow;
  if (hooks !== undefined) return "hooks of the project can give other values than those that were tried";
  if (partsOf(stop).some((part) => part.kind === "visits" || part.kind === "checks"))
    return "the verdict counts visits, and ways that differ only in their number were not all tried";
  const all = [
    limits,
    ...Object.values(steps).flatMap((step) => [step.limits ?? {}, step.limits?.perAttempt ?? {}]),
  ];
  if (settings.watch?.repeats !== undefined || all.some(isSpent))
    return "limits of turns, tokens, cost or repeats may have ended a way that was tried";
  for (const step of Object.values(steps))
    for (const why of givenUp(step))
      return `an answer of step "${step.id}" may exist that was not found: ${why}`;
  return null;
}

function isSpent({ turns, tokens, costUsd }: { turns?: number; tokens?: number; costUsd?: number }): boolean {
  return turns !== undefined || tokens !== undefined || costUsd !== undefined;
}
