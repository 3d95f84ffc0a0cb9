/** Tests for everything about a flow that no test shows yet, each run before it is given. */
import type { Prepared } from "../engine/schema/prepared.ts";
import { cached } from "../flow/cached.ts";
import type { FlowTest } from "../flow/flow-test.ts";
import type { JsonObject } from "../flow/json.ts";
import { argumentsFor } from "../proof/arguments.ts";
import { hitsIn, type Hits } from "../proof/cover.ts";
import { doubtAbout } from "../proof/doubts.ts";
import { elementsOf, type Element } from "../proof/elements.ts";
import { callsIn, legsOf } from "../proof/observe.ts";
import { search } from "../proof/search.ts";
import { suiteOf, testOfWay } from "../proof/suite.ts";
import type { Moment } from "../story/story.ts";
import { runDrafts } from "./run-drafts.ts";

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
  const {
    tests,
    missing,
    astray: unaskable,
    ...searched
  } = draftsFor(flow, argumentsFor(flow, params), elements);
  const astray = [...unaskable];
  const written = new Map<FlowTest, FlowTest>();
  for await (const { test, ran, shared } of runDrafts(flow, tests)) {
    const { moments = [] } = ran;
    const lost = lostIn(test, moments, shared);
    if (lost === undefined && ran.fault === undefined)
      written.set(test, { ...test, expect: observedIn(moments) });
    else astray.push({ test, why: ran.fault?.why ?? reasonOf(moments, lost) });
  }
  const good = tests.flatMap(({ test }) => written.get(test) ?? []);
  return {
    tests: good,
    missing: elements
      .filter(({ id }) => missing.includes(id))
      .map((element) => ({ element, doubt: doubtAbout(flow, element, searched) })),
    astray,
    states: searched.states,
  };
}

/** The states of a search take much memory, and nothing of them is needed for running the tests. */
function draftsFor(flow: Prepared, args: JsonObject, elements: readonly Element[]) {
  const found = search(flow, { args, wanted: elements });
  const { tests, missing } = suiteOf(flow, args, found, new Set(elements.map(({ id }) => id)));
  const astray = found.unaskable.map(({ step, why, way }) => ({
    test: { ...testOfWay(flow, args, way, []), name: `${step} cannot be asked` },
    why,
  }));
  return { tests, missing, astray, states: found.states, isWhole: found.isWhole };
}

/** What a test was written for is mostly shown after the part that it shares with others. */
function lostIn({ covers }: FlowTest, moments: readonly Moment[], shared: number): string | undefined {
  const shown = hitsIn(moments.slice(shared));
  if (covers.every((id) => shown.has(id))) return undefined;
  const all = hitsIn(moments);
  return covers.find((id) => !all.has(id));
}

function reasonOf(moments: readonly Moment[], lost: string | undefined): string {
  return moments.at(-1)?.after.verdict?.reason || `it does not show ${lost}`;
}

/** What the run did, as expectations: a generated test says what the flow does today. */
function observedIn(moments: readonly Moment[]): FlowTest["expect"] {
  const { outcome = "interrupted", code = null } = moments.at(-1)?.after.verdict ?? {};
  const calls = moments.flatMap((moment) => wordsOf(moment).calls);
  const values = {
    outcome,
    ...(code !== null && { code }),
    path: moments.flatMap((moment) => wordsOf(moment).path),
    ...(calls.length > 0 && calls.length < MOST_CALLS && { calls }),
  };
  return { lines: {}, values };
}

/** Worked out once for all tests with this moment. */
const wordsOf = cached((moment: Moment) => ({
  path: legsOf([moment]).map(({ text }) => text),
  calls: callsIn(moment),
}));

const MOST_CALLS = 20;
