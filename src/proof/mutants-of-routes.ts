/** Changes of routes: where each label of a step leads, and what an author may have meant instead. */
import type { Flow, Label, Move, Step } from "../flow/flow.ts";
import { possibleLabels } from "./elements.ts";
import type { StepMutation } from "./mutants.ts";

export function* otherRoutes(flow: Flow, step: Step): Generator<StepMutation> {
  const possible = possibleLabels(flow, step);
  const labels = Object.keys(step.edges).filter((label) => possible.has(label) && !isTacit(step, label));
  const change = (label: Label, what: string, move: Move | null): StepMutation => {
    const { [label]: _edge, ...others } = step.edges;
    const edges = move === null ? others : { ...step.edges, [label]: move };
    return {
      kind: "routes",
      what: `${label} ${what}`,
      part: ["edges", label],
      labels: [label],
      step: { ...step, edges },
    };
  };
  for (const label of labels) {
    for (const { what, move } of movesInstead(flow, step, step.edges[label]!))
      yield change(label, what, move);
  }
  for (const [at, label] of labels.entries())
    for (const other of labels.slice(at + 1)) {
      const [one, two] = [step.edges[label]!, step.edges[other]!];
      if (JSON.stringify(one) === JSON.stringify(two)) continue;
      const edges = { ...step.edges, [label]: two, [other]: one };
      yield {
        kind: "routes",
        what: `${label} and ${other} lead where the other one led`,
        part: ["edges", label],
        labels: [label, other],
        step: { ...step, edges },
      };
    }
}

/** A label that every step accepts without naming it. */
function isTacit({ decide }: Step, label: Label): boolean {
  return decide.by === "field" && decide.always.includes(label) && !decide.allow.includes(label);
}

const END: Move = { kind: "end", outcome: "completed" };

function* movesInstead(
  flow: Flow,
  step: Step,
  move: Move,
): Generator<{ readonly what: string; readonly move: Move }> {
  switch (move.kind) {
    case "goto": {
      yield { what: "ends the run", move: END };
      const other = Object.keys(flow.steps).find(
        (id) => id !== move.step && flow.steps[id]!.aside === undefined,
      );
      if (other !== undefined)
        yield { what: `leads to ${other}, not to ${move.step}`, move: { ...move, step: other } };
      return;
    }
    case "end":
      yield {
        what: "leads to the step again instead of ending the run",
        move: { kind: "goto", step: step.id },
      };
      return;
    case "switch": {
      for (const value of Object.keys(move.cases)) {
        const { [value]: _case, ...cases } = move.cases;
        yield { what: `has no case ${value}`, move: { ...move, cases } };
      }
      yield* swappedCases(move);
      if (move.otherwise === undefined) return;
      const { otherwise: _otherwise, ...strict } = move;
      yield { what: "has no default", move: strict };
      return;
    }
    case "jump": {
      if (move.otherwise === undefined) return;
      const { otherwise: _otherwise, ...strict } = move;
      yield { what: "leads nowhere when no target is named", move: strict };
      return;
    }
    case "times":
      yield { what: "may be taken once more", move: { ...move, max: move.max + 1 } };
      if (move.max > 1) yield { what: "may be taken once less", move: { ...move, max: move.max - 1 } };
      if (JSON.stringify(move.move) !== JSON.stringify(move.after))
        yield {
          what: `leads at first where it led after ${move.max} times`,
          move: { ...move, move: move.after, after: move.move },
        };
      return;
    case "fork": {
      if (move.steps.length > 1)
        for (const sibling of move.steps)
          yield {
            what: `does not start ${sibling}`,
            move: { ...move, steps: move.steps.filter((id) => id !== sibling) },
          };
      if (move.join !== null) yield { what: "has no join", move: { ...move, join: null } };
      const { policy, ...plain } = move;
      yield policy === undefined
        ? { what: "goes on although a sibling fails", move: { ...move, policy: "independent" } }
        : { what: "fails with a sibling", move: plain };
    }
  }
}

function* swappedCases(
  move: Move & { kind: "switch" },
): Generator<{ readonly what: string; readonly move: Move }> {
  const { cases, otherwise } = move;
  const values = Object.keys(cases);
  const isSame = (a: Move, b: Move) => JSON.stringify(a) === JSON.stringify(b);
  for (const [at, value] of values.entries()) {
    const one = cases[value]!;
    for (const other of values.slice(at + 1)) {
      const two = cases[other]!;
      if (!isSame(one, two))
        yield {
          what: `leads for ${value} and ${other} where the other one led`,
          move: { ...move, cases: { ...cases, [value]: two, [other]: one } },
        };
    }
    if (otherwise !== undefined && !isSame(one, otherwise))
      yield {
        what: `leads for ${value} where it led by default, and the other way round`,
        move: { ...move, cases: { ...cases, [value]: otherwise }, otherwise: one },
      };
  }
}
