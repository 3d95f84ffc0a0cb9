/** The shortest way after which a run of one flow differs from a run of another. */
import type { Prepared } from "../engine/schema/prepared.ts";
import type { State } from "../engine/decide/state.ts";
import type { JsonObject } from "../flow/json.ts";
import { choicesFor, type Happening } from "./choices.ts";
import { stateKey, stepFrom, taken, type Course } from "./search.ts";

export type Apart =
  | { readonly kind: "apart"; readonly way: Course; readonly by: "path" | "words" | "verdict" }
  /** No way of what was tried tells them apart. */
  | { readonly kind: "same"; readonly tried: number };

const MOST_PAIRS = 20_000;

export function tellApart(one: Prepared, two: Prepared, args: JsonObject, most = MOST_PAIRS): Apart {
  type Pair = { readonly a: State; readonly b: State; readonly from: number; readonly via: Happening | null };
  const pairs: Pair[] = [{ a: stepFrom(one, args), b: stepFrom(two, args), from: -1, via: null }];
  const known = new Set<string>();
  const wayTo = (at: number): Course => {
    const way: Happening[] = [];
    for (let pair = pairs[at]!; pair.via !== null; pair = pairs[pair.from]!) way.push(pair.via);
    return way.toReversed();
  };
  for (let at = 0; at < pairs.length && at < most; at++) {
    const { a, b } = pairs[at]!;
    const by = difference(one, two, a, b);
    if (by !== null) return { kind: "apart", way: wayTo(at), by };
    const choices = [...choicesFor(one, a), ...choicesFor(two, b)];
    for (const choice of choices) {
      const [left, right] = [taken(one, a, choice), taken(two, b, choice)];
      if (left === null || right === null) continue;
      const key = `${stateKey(one, left.after)}#${stateKey(two, right.after)}#${countsIn(left.after, right.after)}`;
      if (known.has(key)) continue;
      known.add(key);
      pairs.push({ a: left.after, b: right.after, from: at, via: choice });
    }
  }
  return { kind: "same", tried: Math.min(pairs.length, most) };
}

/** Counts that a limit is about: as long as they grow alike, a later state may still differ. */
function countsIn(a: State, b: State): string {
  const turns = a.lanes.map(({ turn }) => Math.min(turn, 8)).join();
  return `${Math.min(a.iterations, 40)} ${Math.min(b.iterations, 40)} ${turns} ${JSON.stringify(a.failures)}`;
}

function difference(one: Prepared, two: Prepared, a: State, b: State): "path" | "words" | "verdict" | null {
  if (a.verdict?.outcome !== b.verdict?.outcome || a.verdict?.code !== b.verdict?.code) return "verdict";
  if (a.verdict?.step !== b.verdict?.step) return "path";
  const [left, right] = [doing(a), doing(b)];
  if (left !== right) return "path";
  for (const { step, command } of a.lanes)
    if (command.type === "ask" && wordsOf(one, a, step) !== wordsOf(two, b, step)) return "words";
  return JSON.stringify(a.handoff) === JSON.stringify(b.handoff) ? null : "path";
}

function doing({ pending }: State): string {
  return pending
    .map((command) => ("step" in command ? `${command.type} ${command.step}` : command.type))
    .join();
}

/** What the step says and may use, as far as the flow alone tells. */
function wordsOf(flow: Prepared, state: State, id: string): string {
  const step = flow.steps[id];
  const lane = state.lanes.find((other) => other.step === id);
  const editions = lane?.say.some((say) => say.kind === "failed-check")
    ? JSON.stringify(step?.guard?.checks ?? "")
    : "";
  return JSON.stringify([
    step?.prompt.text,
    step?.tools,
    step?.transcript,
    flow.system.text,
    flow.sections,
    editions,
  ]);
}
