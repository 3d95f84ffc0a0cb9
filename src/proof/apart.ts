/** Where two flows differ: the shortest ways after which a run of one may differ from a run of the other. */
import type { Prepared } from "../engine/schema/prepared.ts";
import type { State } from "../engine/decide/state.ts";
import type { JsonObject } from "../flow/json.ts";
import { choicesFor, type Happening } from "./choices.ts";
import { firstMoment, stateKey, taken, type Course } from "./stepping.ts";

const MOST_PAIRS = 3_000;

/** Ways of the first flow, the shortest first. `tried` counts the pairs of states that were compared. */
export function* waysApart(
  one: Prepared,
  two: Prepared,
  args: JsonObject,
  most = MOST_PAIRS,
): Generator<Course, { readonly tried: number }> {
  type Pair = {
    readonly a: State;
    readonly b: State;
    readonly from: number;
    readonly via: Happening | null;
    /** They differed already. */
    readonly isApart: boolean;
  };
  const pairs: Pair[] = [
    { a: firstMoment(one, args).after, b: firstMoment(two, args).after, from: -1, via: null, isApart: false },
  ];
  const known = new Set<string>();
  const wayTo = (at: number): Course => {
    const way: Happening[] = [];
    for (let pair = pairs[at]!; pair.via !== null; pair = pairs[pair.from]!) way.push(pair.via);
    return way.toReversed();
  };
  for (let at = 0; at < pairs.length && at < most; at++) {
    const { a, b, isApart } = pairs[at]!;
    const differs = isApart || isDifferent(one, two, a, b);
    if (differs) yield wayTo(at);
    for (const choice of [...choicesFor(one, a), ...choicesFor(two, b)]) {
      const [left, right] = [taken(one, a, choice), taken(two, b, choice)];
      if (left === null) continue;
      // After a difference the second run may not go this way at all: what the first does is compared with nothing.
      const b2 = right === null ? b : right.after;
      if (right === null && !differs) {
        pairs.push({ a: left.after, b: b2, from: at, via: choice, isApart: true });
        continue;
      }
      const key = `${stateKey(one, left.after)}#${stateKey(two, b2)}#${countsIn(left.after, b2)}`;
      if (known.has(key)) continue;
      known.add(key);
      pairs.push({ a: left.after, b: b2, from: at, via: choice, isApart: differs });
    }
  }
  return { tried: Math.min(pairs.length, most) };
}

/** The shortest way on to an end, a completed one if there is any; null: none was found. */
export function wayToEnd(flow: Prepared, args: JsonObject, way: Course): Course | null {
  let state = firstMoment(flow, args).after;
  for (const choice of way) {
    const moment = taken(flow, state, choice);
    if (moment === null) return null;
    state = moment.after;
  }
  type Node = { readonly state: State; readonly from: number; readonly via: Happening | null };
  const nodes: Node[] = [{ state, from: -1, via: null }];
  const known = new Set([stateKey(flow, state)]);
  let other = -1;
  const courseTo = (at: number): Course => {
    const rest: Happening[] = [];
    for (let node = nodes[at]!; node.via !== null; node = nodes[node.from]!) rest.push(node.via);
    return [...way, ...rest.toReversed()];
  };
  for (let at = 0; at < nodes.length && at < MOST_STATES; at++) {
    const here = nodes[at]!.state;
    if (here.pending.length === 0) {
      if (here.verdict?.outcome === "completed") return courseTo(at);
      if (other === -1) other = at;
      continue;
    }
    for (const choice of choicesFor(flow, here)) {
      const moment = taken(flow, here, choice);
      if (moment === null) continue;
      const key = `${stateKey(flow, moment.after)} ${moment.after.pending.length}`;
      if (known.has(key)) continue;
      known.add(key);
      nodes.push({ state: moment.after, from: at, via: choice });
    }
  }
  return other === -1 ? null : courseTo(other);
}

const MOST_STATES = 2_000;

/** Counts that a limit is about: as long as they grow alike, a later state may still differ. */
function countsIn(a: State, b: State): string {
  const turns = a.lanes.map(({ turn }) => Math.min(turn, 8)).join();
  return `${Math.min(a.iterations, 40)} ${Math.min(b.iterations, 40)} ${turns} ${JSON.stringify(a.failures)}`;
}

function isDifferent(one: Prepared, two: Prepared, a: State, b: State): boolean {
  const [left, right] = [a.verdict, b.verdict];
  if (left?.outcome !== right?.outcome || left?.code !== right?.code || left?.step !== right?.step)
    return true;
  if (doing(a) !== doing(b) || JSON.stringify(a.handoff) !== JSON.stringify(b.handoff)) return true;
  return a.lanes.some(
    ({ step, command }) => command.type === "ask" && wordsOf(one, a, step) !== wordsOf(two, b, step),
  );
}

function doing({ pending }: State): string {
  return pending
    .map((command) => ("step" in command ? `${command.type} ${command.step}` : command.type))
    .join();
}

/** What the step says and may use, as far as the flow alone shows. */
function wordsOf(flow: Prepared, state: State, id: string): string {
  const step = flow.steps[id];
  const lane = state.lanes.find((other) => other.step === id);
  const editions = lane?.say.some((say) => say.kind === "failed-check")
    ? Object.values(flow.steps).map(({ guard }) => guard?.checks ?? "")
    : [];
  return JSON.stringify([
    step?.prompt.text,
    step?.tools,
    step?.transcript,
    flow.system.text,
    flow.sections,
    editions,
  ]);
}
