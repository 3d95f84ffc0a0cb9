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
import { planRuns, runDrafts } from "./run-drafts.ts";
import { inSlices } from "./slices.ts";

export type Generated = {
  readonly tests: readonly FlowTest[];
  /** Elements that no way shows. `doubt`: why one may exist all the same; null: it is proved that none does. */
  readonly missing: readonly { readonly element: Element; readonly doubt: string | null }[];
  /** Ways that the engine allows and a run does not go: a prompt that cannot be made, for one. */
  readonly astray: readonly { readonly test: FlowTest; readonly why: string }[];
  readonly states: number;
  /** It was aborted: only some of the tests were made, and of what else there is nothing is known. */
  readonly isStopped: boolean;
};

export type GenerateOptions = {
  readonly params?: JsonObject;
  /** An element, or the beginning of its name. */
  readonly only?: string;
  readonly signal?: AbortSignal;
};

/** `hits`: what is shown already. */
export async function generate(
  flow: Prepared,
  hits: Hits,
  { params = {}, only, signal }: GenerateOptions = {},
): Promise<Generated> {
  const elements = elementsOf(flow).filter(
    ({ id }) => !hits.has(id) && (only === undefined || id === only || id.startsWith(only)),
  );
  const drafts = await draftsFor(flow, argumentsFor(flow, params), elements, signal);
  const { tests, planned, missing, astray: unaskable, ...searched } = drafts;
  const astray = [...unaskable];
  const written = new Map<FlowTest, FlowTest>();
  for await (const { test, ran, shared } of runDrafts(flow, planned)) {
    if (signal?.aborted === true) break;
    const { moments = [] } = ran;
    const lost = lostIn(test, moments, shared);
    if (lost === undefined && ran.fault === undefined)
      written.set(test, { ...test, expect: observedIn(moments) });
    else astray.push({ test, why: ran.fault?.why ?? reasonOf(moments, lost) });
  }
  const isStopped = signal?.aborted === true;
  const absent = new Set(isStopped ? [] : missing);
  return {
    tests: tests.flatMap((test) => written.get(test) ?? []),
    missing: elements
      .filter(({ id }) => absent.has(id))
      .map((element) => ({ element, doubt: doubtAbout(flow, element, searched) })),
    astray,
    states: searched.states,
    isStopped,
  };
}

/** The states and ways of a search take much memory, and nothing of them is needed for running the tests. */
async function draftsFor(
  flow: Prepared,
  args: JsonObject,
  elements: readonly Element[],
  signal: AbortSignal | undefined,
) {
  const none = { tests: [], planned: [], missing: [], astray: [], isWhole: false };
  let states = 0;
  const found = await inSlices(search(flow, { args, wanted: elements }), signal, (known) => (states = known));
  if (found === null) return { ...none, states };
  const wanted = new Set(elements.map(({ id }) => id));
  const suite = await inSlices(suiteOf(flow, args, found, wanted), signal);
  if (suite === null) return { ...none, states };
  const astray = found.unaskable.map(({ step, why, way }) => ({
    test: { ...testOfWay(flow, args, way, []), name: `${step} cannot be asked` },
    why,
  }));
  return {
    tests: suite.tests.map(({ test }) => test),
    planned: planRuns(flow, suite.tests),
    missing: suite.missing,
    astray,
    states: found.states,
    isWhole: found.isWhole,
  };
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
