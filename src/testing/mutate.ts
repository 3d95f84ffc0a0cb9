/** Tests of the tests: which small changes of a flow its tests notice, and for each other one a test that would. */
import type { Prepared } from "../engine/schema/prepared.ts";
import { prepare } from "../engine/schema/prepared.ts";
import type { FlowTest } from "../flow/flow-test.ts";
import type { Flow, StepId } from "../flow/flow.ts";
import { reachFrom, stepsWithoutEnd } from "../flow/graph.ts";
import type { Json, JsonObject } from "../flow/json.ts";
import { waysApart, wayToEnd } from "../proof/apart.ts";
import { argumentsFor } from "../proof/arguments.ts";
import { elementsOf } from "../proof/elements.ts";
import { mutantsOf, type Mutant, type MutantClass } from "../proof/mutants.ts";
import type { Heard, Observed } from "../proof/observe.ts";
import { search } from "../proof/search.ts";
import { walk, type Walked } from "../proof/stepping.ts";
import { testOfWay } from "../proof/suite.ts";
import { outlineOf } from "../tell/outline.ts";
import { runTest, type TestResult } from "./flow-tests.ts";
import { inSlices } from "./slices.ts";

export type Fate =
  /** `by`: the test that fails with the change. */
  | { readonly kind: "killed"; readonly by: string }
  /** `lockstep check` reports the change as an error. */
  | { readonly kind: "checked"; readonly code: string }
  /** No test notices it (`survived`), or comes to it (`uncovered`). null: no test was found that would. */
  | { readonly kind: "survived" | "uncovered"; readonly test: FlowTest | null; readonly tried: number };

export type Mutated = { readonly mutant: Omit<Mutant, "flow">; readonly fate: Fate };

export type Mutation = {
  readonly mutants: readonly Mutated[];
  /** Steps that no run comes to: nothing of them was changed. */
  readonly notLive: readonly StepId[];
};

/** Tests that fail without any change say nothing about one. */
export type Base = { readonly results: readonly TestResult[]; readonly failing: readonly TestResult[] };

/** Aborted: of the tests that were run until then. */
export async function baseOf(
  flow: Prepared,
  tests: readonly FlowTest[],
  signal?: AbortSignal,
): Promise<Base> {
  const results: TestResult[] = [];
  for (const test of tests) {
    if (test.ground.kind !== "memory") continue;
    // An interruption is heard only between two turns of the loop.
    if (signal !== undefined) await new Promise(setImmediate);
    if (signal?.aborted) break;
    results.push(await runTest(flow, test));
  }
  return { results, failing: results.filter(({ status }) => status === "failed") };
}

export type MutateOptions = {
  /** Absent: all. */
  readonly classes?: readonly MutantClass[];
  /** Aborted: what was found so far is given. */
  readonly signal?: AbortSignal;
  readonly onMutant?: (done: number) => void;
};

export async function mutate(
  flow: Prepared,
  { results }: Base,
  { classes, signal, onMutant }: MutateOptions = {},
): Promise<Mutation> {
  const tests = results.filter(({ status }) => status === "passed").map(reachOf);
  const nodes = outlineOf(flow).nodes;
  const live = new Set(nodes.filter(({ isReached }) => isReached).map(({ id }) => id));
  const findTest = testFinder(flow, signal);
  const mutants: Mutated[] = [];
  for (const { flow: changed, ...mutant } of mutantsOf(flow, live)) {
    if (signal?.aborted) break;
    if (classes !== undefined && !classes.includes(mutant.kind)) continue;
    const fate = await fateOf({ ...mutant, flow: changed });
    if (fate === null) break;
    mutants.push({ mutant, fate });
    onMutant?.(mutants.length);
    // An interruption is heard only between two turns of the loop.
    await new Promise(setImmediate);
  }
  return { mutants, notLive: nodes.flatMap(({ id, isReached }) => (isReached ? [] : [id])) };

  /** null: it was aborted before that was known. */
  async function fateOf(mutant: Mutant): Promise<Fate | null> {
    const code = errorIn(mutant.flow);
    // A flow that its verdict ends may have no way to an end from the beginning.
    if (code !== null && code !== errorIn(flow)) return { kind: "checked", code };
    const changed = await prepare(mutant.flow);
    const near = tests.filter((test) => comesTo(test, mutant));
    for (const { test } of near) {
      if (signal?.aborted) return null;
      if (!(await passes(changed, test))) return { kind: "killed", by: test.name };
    }
    const noticing = await findTest(changed, mutant);
    if (noticing === null) return null;
    const { test, tried } = noticing;
    return { kind: near.length === 0 ? "uncovered" : "survived", test, tried };
  }
}

/** What a test comes to on the flow as it is. */
type Reach = {
  readonly test: FlowTest;
  readonly steps: ReadonlySet<StepId>;
  readonly labels: ReadonlySet<string>;
};

function reachOf({ test, outcomes }: TestResult): Reach {
  const { moments = [], path = [] } = outcomes ?? {};
  return {
    test,
    steps: new Set(moments.flatMap(({ after }) => after.lanes.map(({ step }) => step))),
    labels: new Set(path.map(({ step, label }) => `${step} ${label}`)),
  };
}

function comesTo({ steps, labels }: Reach, mutant: Mutant): boolean {
  if (mutant.step === null) return true;
  if (mutant.labels === undefined) return steps.has(mutant.step);
  return mutant.labels.some((label) => labels.has(`${mutant.step} ${label}`));
}

/** A change that makes a test impossible to run is noticed as well. */
async function passes(flow: Prepared, test: FlowTest): Promise<boolean> {
  try {
    return (await runTest(flow, test)).status === "passed";
  } catch {
    return false;
  }
}

/** What `check` would report of the graph. */
function errorIn({ steps, entry }: Flow): string | null {
  const all = new Map(Object.entries(steps));
  const endless = stepsWithoutEnd(all);
  return endless.size > 0 && [...reachFrom(entry, all).steps].some((id) => endless.has(id))
    ? "FLOW-NO-END"
    : null;
}

const MOST_CANDIDATES = 40;

/** Ways that may tell the flows apart, tried on both until a test passes on the one and fails on the other. */
function testFinder(flow: Prepared, signal: AbortSignal | undefined) {
  const args = argumentsFor(flow);
  let known: readonly Walked[] | null = null;
  /** Ways to every element: counts and limits are reached by them. null: it was aborted. */
  const longWays = async (): Promise<readonly Walked[] | null> => {
    if (known !== null) return known;
    const searched = await inSlices(search(flow, { args, wanted: elementsOf(flow) }), signal);
    if (searched === null) return null;
    const { found, wayTo } = searched;
    known = [...found.keys()].map(wayTo).toSorted((a, b) => a.course.length - b.course.length);
    return known;
  };
  /** An interruption is heard only between two turns of the loop. */
  const isStopped = async (): Promise<boolean> => {
    if (signal !== undefined) await new Promise(setImmediate);
    return signal?.aborted === true;
  };
  return async (
    changed: Prepared,
    mutant: Mutant,
  ): Promise<{ readonly test: FlowTest | null; readonly tried: number } | null> => {
    const ways = waysApart(flow, changed, args);
    let candidates = 0;
    let byWords: FlowTest | null = null;
    let next = ways.next();
    for (; next.done !== true && candidates < MOST_CANDIDATES; next = ways.next()) {
      if (await isStopped()) return null;
      candidates += 1;
      const whole = wayToEnd(flow, args, next.value);
      const walked = whole === null ? null : walk(flow, args, whole);
      const test = walked === null ? null : await killerOf(flow, changed, mutant, args, walked);
      if (test !== null && (mutant.kind === "words" || test.expect.values.said === undefined))
        return { test, tried: candidates };
      byWords ??= test;
    }
    if (byWords !== null) return { test: byWords, tried: candidates };
    const tried = next.done === true ? next.value.tried : candidates;
    const long = await longWays();
    for (const way of long ?? []) {
      if (await isStopped()) return null;
      const test = await killerOf(flow, changed, mutant, args, way);
      if (test !== null) return { test, tried };
    }
    return long === null ? null : { test: null, tried: tried + long.length };
  };
}

/** The test that goes this way, if it passes on the flow and fails on the changed one. */
async function killerOf(
  flow: Prepared,
  changed: Prepared,
  mutant: Mutant,
  args: JsonObject,
  way: Walked,
): Promise<FlowTest | null> {
  const bare = testOfWay(flow, args, way, []);
  const [here, there] = [await attempt(flow, bare), await attempt(changed, bare)];
  if (here === null || isAstray(here)) return null;
  const test: FlowTest = {
    ...bare,
    name: `notices when ${mutant.what}`,
    // Written for one change, not for coverage: generating tests again leaves it as it is.
    generated: false,
    expect: { lines: {}, values: expectedOf(here, there) },
  };
  return (await passes(flow, test)) && !(await passes(changed, test)) ? test : null;
}

/** The run did not go the way of its script: such a test would be about the script. */
function isAstray({ observed }: Attempt): boolean {
  return typeof observed.code === "string" && observed.code.startsWith("SCRIPT_");
}

type Attempt = { readonly observed: Observed; readonly heard: readonly Heard[] };

async function attempt(flow: Prepared, test: FlowTest): Promise<Attempt | null> {
  try {
    const { ran, outcomes } = await runTest(flow, test);
    if (ran === null || outcomes === null || ran.fault !== undefined) return null;
    return { observed: outcomes.observed, heard: ran.heard };
  } catch {
    return null;
  }
}

/** How the run ends and which way it goes, and the first thing besides that the change makes different. */
function expectedOf(here: Attempt, there: Attempt | null): FlowTest["expect"]["values"] {
  const { outcome = null, code } = here.observed;
  const path = (here.observed.path ?? []) as readonly Json[];
  const values: { [key: string]: Json } = {
    outcome,
    ...(code !== undefined && { code }),
    path: path.length > LONGEST_PATH && there !== null ? ["...", ...path.slice(-3)] : path,
  };
  if (there === null) return values;
  for (const key of ["outcome", "code", "path", "calls", "checks", "handoff", "asked", "turns"] as const) {
    const value = here.observed[key];
    if (JSON.stringify(value) === JSON.stringify(there.observed[key])) continue;
    return value === undefined ? values : { ...values, [key]: value };
  }
  const words = differentWords(here.heard, there.heard);
  return words === null ? values : { ...values, said: [words] };
}

/** Of a longer path the end says enough, as long as the two differ in something else. */
const LONGEST_PATH = 30;

/** A line that only one of the two says at the same place. */
function differentWords(here: readonly Heard[], there: readonly Heard[]): JsonObject | null {
  for (const [at, { step, visit, text }] of here.entries()) {
    const other = there[at];
    if (other === undefined || other.step !== step || other.text === text) continue;
    const saw = lineOnlyIn(text, other.text);
    if (saw !== undefined) return { at: `${step}@${visit}`, saw: [saw] };
    const unseen = lineOnlyIn(other.text, text);
    if (unseen !== undefined) return { at: `${step}@${visit}`, unseen: [unseen] };
  }
  return null;
}

const LONGEST_LINE = 120;

function lineOnlyIn(text: string, other: string): string | undefined {
  return text
    .split("\n")
    .map((line) => line.trim().slice(0, LONGEST_LINE))
    .find((line) => line !== "" && !line.startsWith("re:") && !other.includes(line));
}

/** Of what counts: a change that `check` reports needs no test. null: nothing counts. */
export function scoreOf(mutants: readonly Mutated[]): number | null {
  const counted = mutants.filter(({ fate }) => fate.kind !== "checked");
  const killed = counted.filter(({ fate }) => fate.kind === "killed").length;
  return counted.length === 0 ? null : killed / counted.length;
}
