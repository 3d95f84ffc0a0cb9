/** How a label becomes a move. Selectors are resolved here; what comes back is a plain move or the reason there is none. */
import type { Choice, PlainMove } from "../../flow/deed.ts";
import type { Label, Move, Step } from "../../flow/flow.ts";
import { own, readPath, type Json, type JsonObject } from "../../flow/json.ts";
import { messages } from "../../flow/text/endings.ts";

export type Routed =
  /** `counted`: it used up one of the times that its edge may be taken. */
  | {
      readonly kind: "move";
      readonly move: PlainMove;
      readonly counted: boolean;
      readonly choices: readonly Choice[];
    }
  | { readonly kind: "none"; readonly why: string; readonly choices: readonly Choice[] };

const NONE: readonly Choice[] = [];

/** `taken` is how often this edge was taken before, for edges that count. */
export function route(
  step: Step,
  label: Label,
  payload: JsonObject,
  carried: JsonObject,
  iteration: number,
  taken: number,
): Routed {
  const edge = own(step.edges, label);
  if (edge === undefined) return { kind: "none", why: messages.noRoute(iteration + 1), choices: NONE };
  if (edge.kind !== "times") return select(step, edge, payload, carried, NONE);
  const choices: readonly Choice[] = [{ kind: "times", taken, max: edge.max }];
  if (taken >= edge.max) return select(step, edge.after, payload, carried, choices);
  const routed = select(step, edge.move, payload, carried, choices);
  return routed.kind === "move" ? { ...routed, counted: true } : routed;
}

function select(
  step: Step,
  move: Move,
  payload: JsonObject,
  carried: JsonObject,
  before: readonly Choice[],
): Routed {
  if (move.kind === "switch") {
    const value = caseOf(readPath(carried, move.on));
    const found = value === null ? undefined : own(move.cases, value);
    const chosen = found ?? move.otherwise;
    const choice: Choice = { kind: "switch", on: move.on, value, otherwise: found === undefined };
    const choices = [...before, choice];
    if (chosen !== undefined) return select(step, chosen, payload, carried, choices);
    const why = messages.noCase(step.id, move.on.join("."), value === null ? "no value" : `"${value}"`);
    return { kind: "none", why, choices };
  }
  if (move.kind === "jump") {
    const target = readPath(payload, move.field);
    const { field } = move;
    const isNamed = typeof target === "string" && move.among.includes(target);
    const choices: readonly Choice[] = [
      ...before,
      { kind: "jump", field, found: target ?? null, otherwise: !isNamed },
    ];
    if (isNamed) return { kind: "move", move: { kind: "goto", step: target }, counted: false, choices };
    const absent = target === undefined || target === null || target === "";
    if (absent && move.otherwise !== undefined)
      return select(step, move.otherwise, payload, carried, choices);
    const found =
      typeof target === "string"
        ? `"${target.slice(0, 80)}"`
        : absent
          ? "nowhere"
          : "a value that is not a name";
    return { kind: "none", why: messages.badJump(step.id, found), choices };
  }
  // An edge counts as a whole: deeper in it a counted move is an ordinary one.
  if (move.kind === "times") return select(step, move.move, payload, carried, before);
  return { kind: "move", move, counted: false, choices: before };
}

function caseOf(value: Json | undefined): string | null {
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return null;
}
