/** The moves that an edge or a failed check can lead to, derived from the flow alone. */
import type { Flow, Move, Step, StepId } from "./flow.ts";

/** Every move that a move can turn out to be, with what must hold for it. */
export function* branchesOf(move: Move, when: readonly string[] = []): Generator<Branch> {
  switch (move.kind) {
    case "goto":
    case "fork":
    case "end":
      yield { move, when };
      return;
    case "switch":
      for (const [value, one] of Object.entries(move.cases)) {
        yield* branchesOf(one, [...when, `${move.on.join(".")} = ${value}`]);
      }
      if (move.otherwise !== undefined) yield* branchesOf(move.otherwise, [...when, "otherwise"]);
      return;
    case "jump":
      yield { move, when };
      if (move.otherwise !== undefined) yield* branchesOf(move.otherwise, [...when, "no target named"]);
      return;
    case "times":
      yield* branchesOf(move.move, [...when, `up to ${move.max} times`]);
      yield* branchesOf(move.after, [...when, "afterwards"]);
  }
}

/** Every move that the edges of a step can turn out to be. */
export function movesOf({ edges }: Pick<Step, "edges">): readonly Branch["move"][] {
  const found: Branch["move"][] = [];
  for (const label of Object.keys(edges)) addMoves(edges[label]!, found);
  return found;
}

/** Not by `branchesOf`: this is done for every step of a flow that is checked, and nobody reads the words. */
function addMoves(move: Move, found: Branch["move"][]): void {
  switch (move.kind) {
    case "goto":
    case "fork":
    case "end":
      found.push(move);
      return;
    case "switch":
      for (const one of Object.values(move.cases)) addMoves(one, found);
      if (move.otherwise !== undefined) addMoves(move.otherwise, found);
      return;
    case "jump":
      found.push(move);
      if (move.otherwise !== undefined) addMoves(move.otherwise, found);
      return;
    case "times":
      addMoves(move.move, found);
      addMoves(move.after, found);
  }
}

export function isForking(step: Step): boolean {
  return movesOf(step).some(({ kind }) => kind === "fork");
}

export type Branch = {
  readonly move: Exclude<Move, { kind: "switch" | "times" }>;
  readonly when: readonly string[];
};

/**
 * Where failed checks may send the run, by the step they guard. `caller` is the step that led to it if that is a
 * work step, and else the step itself.
 */
export function backTargets(flow: Flow): ReadonlyMap<StepId, readonly StepId[]> {
  const guarded = Object.values(flow.steps).filter((step) => step.guard?.onFailure === "retry");
  const wanted = new Set(guarded.filter((step) => step.guard!.back.kind === "caller").map(({ id }) => id));
  const callers = wanted.size === 0 ? new Map<StepId, Set<StepId>>() : callersOf(flow, wanted);
  return new Map(
    guarded.map(({ id, guard }) => {
      if (guard!.back.kind === "goto") return [id, [guard!.back.step]];
      if (guard!.back.kind === "again") return [id, [id]];
      const known = [...(callers.get(id) ?? [])];
      const working = known.filter((caller) => flow.steps[caller]!.kind === "work");
      const isOwn = id === flow.entry || known.length === 0 || working.length < known.length;
      return [id, isOwn ? [...working, id] : working];
    }),
  );
}

/** For each of the wanted steps, the other steps that may have led to it. A step that ends a lane may be the caller of a join. */
function callersOf(flow: Flow, wanted: ReadonlySet<StepId>): Map<StepId, Set<StepId>> {
  const callers = new Map<StepId, Set<StepId>>();
  const joins = new Set<StepId>();
  const ending: StepId[] = [];
  const add = (from: StepId, to: StepId) => {
    if (!wanted.has(to) || from === to) return;
    const known = callers.get(to);
    if (known === undefined) callers.set(to, new Set([from]));
    else known.add(from);
  };
  for (const step of Object.values(flow.steps)) {
    // What a question about a step leads to, the step itself has led to.
    const from = step.aside ?? step.id;
    if (step.guard?.back.kind === "goto") add(from, step.guard.back.step);
    for (const move of movesOf(step)) {
      if (move.kind === "goto") add(from, move.step);
      else if (move.kind === "jump") for (const id of move.among) add(from, id);
      else if (move.kind === "end") ending.push(step.id);
      else {
        for (const id of move.steps) add(from, id);
        if (move.join !== null) joins.add(move.join);
      }
    }
  }
  for (const join of joins) for (const id of ending) add(id, join);
  const backwards = [...callers].flatMap(([guarded, known]) =>
    [...known].map((id) => [guarded, id] as const),
  );
  for (const [guarded, caller] of backwards) add(guarded, caller);
  return callers;
}
