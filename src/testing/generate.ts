/** Tests for everything about a flow that no test shows yet, each run before it is given. */
import type { Prepared } from "../engine/schema/prepared.ts";
import type { FlowTest } from "../flow/flow-test.ts";
import type { Json, JsonObject } from "../flow/json.ts";
import { argumentsFor } from "../proof/arguments.ts";
import { hitsIn, type Hits } from "../proof/cover.ts";
import { doubtAbout } from "../proof/doubts.ts";
import { elementsOf, type Element } from "../proof/elements.ts";
import { observe } from "../proof/observe.ts";
import { search } from "../proof/search.ts";
import { suiteOf, testOfWay } from "../proof/suite.ts";
import { runInMemory } from "./ground.ts";

export type Generated = {
  readonly tests: readonly FlowTest[];
  /** Elements that no way shows. `doubt`: why one may exist all the same; null: it is proved that none does. */
  readonly missing: readonly { readonly element: Element; readonly doubt: string | null }[];
  /** Ways that the engine allows and a run does not go: a prompt that cannot be made, for one. */
  readonly astray: readonly { readonly test: FlowTest; readonly why: string }[];
  readonly states: number;
};

/** `hits`: what is shown already. `only`: an element, or the beginning of its name. */
export async function generate(
  flow: Prepared,
  hits: Hits,
  { params = {}, only }: { readonly params?: JsonObject; readonly only?: string } = {},
): Promise<Generated> {
  const elements = elementsOf(flow).filter(
    ({ id }) => !hits.has(id) && (only === undefined || id === only || id.startsWith(only)),
  );
  const args = argumentsFor(flow, params);
  const found = search(flow, { args, wanted: elements });
  const { tests, missing } = suiteOf(flow, args, found, new Set(elements.map(({ id }) => id)));
  const good: FlowTest[] = [];
  const astray: { readonly test: FlowTest; readonly why: string }[] = found.unaskable.map(
    ({ step, why, way }) => ({
      test: { ...testOfWay(flow, args, way, []), name: `${step} cannot be asked` },
      why,
    }),
  );
  for (const test of tests) {
    const ran = await runInMemory(flow, test);
    const { moments, observed } = observe(flow, ran.entries, ran);
    const shown = hitsIn(moments);
    const lost = test.covers.find((id) => !shown.has(id));
    if (lost === undefined && ran.fault === undefined) good.push({ ...test, expect: observedAs(observed) });
    else astray.push({ test, why: ran.fault?.why ?? reasonOf(observed.reason, lost) });
  }
  return {
    tests: good,
    missing: elements
      .filter(({ id }) => missing.includes(id))
      .map((element) => ({ element, doubt: doubtAbout(flow, element, found) })),
    astray,
    states: found.states,
  };
}

function reasonOf(reason: Json | undefined, lost: string | undefined): string {
  return typeof reason === "string" && reason !== "" ? reason : `it does not show ${lost}`;
}

/** What the run did, as expectations: a generated test says what the flow does today. */
function observedAs(observed: { readonly [key: string]: Json | undefined }): FlowTest["expect"] {
  const { outcome, code, path, calls } = observed;
  const values = {
    outcome: outcome ?? null,
    ...(code !== undefined && { code }),
    path: path ?? [],
    ...(Array.isArray(calls) && calls.length > 0 && calls.length < MOST_CALLS && { calls }),
  };
  return { lines: {}, values };
}

const MOST_CALLS = 20;
