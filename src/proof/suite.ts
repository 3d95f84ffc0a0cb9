/** Few tests that show everything a search has found: the longest ways first, and only those that show something new. */
import {
  NOTHING_AROUND,
  type Around,
  type CheckGiven,
  type FlowTest,
  type TestReply,
} from "../flow/flow-test.ts";
import type { Flow, Step, StepId } from "../flow/flow.ts";
import type { Json, JsonObject } from "../flow/json.ts";
import type { Moment } from "../story/story.ts";
import type { Happening } from "./choices.ts";
import { draftsOf } from "./answers.ts";
import { inputFor } from "./arguments.ts";
import type { Searched } from "./search.ts";
import type { Walked } from "./stepping.ts";

/** A test and its way: a number for each choice. Ways of a large flow take more memory than everything else. */
export type WayDraft = { readonly test: FlowTest; readonly course: Uint32Array };

export type Drafts = {
  readonly tests: readonly WayDraft[];
  /** Wanted elements that no way shows. */
  readonly missing: readonly string[];
};

/** Tests for these elements, without expectations: those are observed when a test is run. Gives back control after each. */
export function* suiteOf(
  flow: Flow,
  args: JsonObject,
  found: Searched,
  wanted: ReadonlySet<string>,
): Generator<undefined, Drafts> {
  const missing = [...wanted].filter((id) => !found.found.has(id));
  const lengthOf = (id: string) => found.found.get(id)!;
  const open = new Set([...wanted].filter((id) => found.found.has(id)));
  const tests: WayDraft[] = [];
  const numbers = new Map<Happening, number>();
  const numberOf = (choice: Happening) => {
    const known = numbers.get(choice) ?? numbers.size;
    numbers.set(choice, known);
    return known;
  };
  const ids = [...found.found.keys()].filter((id) => open.has(id));
  for (const id of ids.toSorted((a, b) => lengthOf(b) - lengthOf(a))) {
    if (!open.has(id)) continue;
    yield;
    const way = found.wayTo(id);
    const covers = found.shownOnWayTo(id, way, open);
    if (covers.length > 0)
      tests.push({
        test: testOfWay(flow, args, way, covers),
        course: Uint32Array.from(way.course, numberOf),
      });
  }
  return { tests: tests.toReversed(), missing };
}

/** The test that goes this way. `covers`: what it is written for. */
export function testOfWay(
  flow: Flow,
  params: JsonObject,
  { course, moments, until }: Walked,
  covers: readonly string[],
): FlowTest {
  const script: TestReply[] = [];
  const last = { text: "", times: 0 };
  const checks: { [name: string]: CheckGiven[] } = {};
  const hooks: { [name: string]: Json[] } = {};
  const sights: boolean[] = [];
  const answers: (string | null)[] = [];
  for (const [at, choice] of course.entries()) {
    const { entry } = moments[at + 1]!;
    const { event } = entry;
    if (event.type === "step.answered" && choice.kind !== "unaskable")
      addReply(script, knownReply(flow, event.step, choice), last);
    if (event.type === "step.checked")
      for (const { name, ok } of event.results) (checks[name] ??= []).push({ kind: ok ? "pass" : "fail" });
    if (event.type === "step.hooked" && choice.kind === "hooks")
      (hooks[`${event.step}.${event.hook}`] ??= []).push(choice.value);
    if (event.type === "step.looked") sights.push(...event.sights.map(({ met }) => met));
    if (event.type === "step.told") answers.push(event.answer);
  }
  const around: Around = {
    ...NOTHING_AROUND,
    checks: onlyFailing(checks),
    hooks: Object.fromEntries(
      Object.entries(hooks).filter(([, values]) => values.some((value) => value !== null)),
    ),
    sights: sights.includes(true) ? sights : [],
    answers,
  };
  return {
    name: nameOf(moments, covers),
    file: "generated.yaml",
    line: 1,
    params,
    input: inputFor(flow),
    script,
    ...(until !== undefined && { until }),
    around,
    ground: { kind: "memory" },
    expect: { lines: {}, values: {} },
    only: false,
    generated: true,
    covers,
  };
}

type Written = { readonly reply: TestReply; readonly text: string };

/** The same response again is one entry. */
function addReply(
  script: TestReply[],
  { reply, text }: Written,
  last: { text: string; times: number },
): void {
  if (last.text === text) script[script.length - 1] = { ...reply, times: (last.times += 1) };
  else {
    script.push(reply);
    last.text = text;
    last.times = 1;
  }
}

/** Many tests have the same beginning. */
function knownReply(flow: Flow, step: StepId, choice: Happening): Written {
  const of = flow.steps[step]!;
  const known = replies.get(choice)?.get(of);
  if (known !== undefined) return known;
  const made = withText(replyOf(of, choice));
  const all = replies.get(choice) ?? new Map<Step, Written>();
  replies.set(choice, all.set(of, made));
  return made;
}

const replies = new WeakMap<Happening, Map<Step, Written>>();

function withText(reply: TestReply): Written {
  return { reply, text: JSON.stringify(reply) };
}

/** A check that is not named passes. */
function onlyFailing(checks: { readonly [name: string]: readonly CheckGiven[] }): Around["checks"] {
  return Object.fromEntries(
    Object.entries(checks).filter(([, given]) => given.some(({ kind }) => kind === "fail")),
  );
}

function replyOf(step: Step, choice: Happening): TestReply {
  const reply = { line: 0, step: step.id };
  switch (choice.kind) {
    case "answers": {
      const given = Object.fromEntries(choice.with.map(({ path, value }) => [path.join("."), value]));
      const text = choice.text === undefined ? {} : { text: choice.text };
      // An answer that its label does not stand for is written out.
      if (!draftsOf(step).some(({ payload }) => payload === choice.payload))
        return { ...reply, ...text, output: choice.payload };
      return { ...reply, ...text, label: choice.label, ...(choice.with.length > 0 && { with: given }) };
    }
    case "says":
      return choice.payload === undefined
        ? { ...reply, text: choice.text }
        : { ...reply, output: choice.payload };
    case "calls":
      return { ...reply, calls: [{ name: choice.tool, input: choice.input }] };
    case "faults":
      return { ...reply, error: { kind: choice.fault } };
    case "called":
    case "checks":
    case "ends":
    case "hooks":
    case "looks":
    case "told":
    case "unaskable":
    case "waits":
      throw new Error(`${choice.kind} is not a response of a model`);
  }
}

/** By how it ends, and the first thing that it was written for. */
function nameOf(moments: readonly Moment[], [first = "nothing new"]: readonly string[]): string {
  const verdict = moments.at(-1)?.after.verdict;
  const end = verdict == null ? "goes on" : verdict.code === null ? verdict.outcome : verdict.code;
  return `${first} (${end})`;
}
