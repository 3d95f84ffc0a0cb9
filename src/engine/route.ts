/** How a label becomes a move. Selectors are resolved here; what comes back is a plain move or the reason there is none. */
import type { Label, Move, Step } from "../flow/flow.ts";
import { own, readPath, type Json, type JsonObject } from "../flow/json.ts";
import { messages } from "./messages.ts";

export type PlainMove = Exclude<Move, { kind: "switch" } | { kind: "jump" } | { kind: "times" }>;
export type Routed =
  /** `counted`: it used up one of the times that its edge may be taken. */
  | { readonly kind: "move"; readonly move: PlainMove; readonly counted: boolean }
  | { readonly kind: "none"; readonly why: string };

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
  if (edge === undefined) return { kind: "none", why: messages.noRoute(iteration + 1) };
  if (edge.kind !== "times") return select(step, edge, payload, carried);
  if (taken >= edge.max) return select(step, edge.after, payload, carried);
  const routed = select(step, edge.move, payload, carried);
  return routed.kind === "move" ? { ...routed, counted: true } : routed;
}

function select(step: Step, move: Move, payload: JsonObject, carried: JsonObject): Routed {
  if (move.kind === "switch") {
    const value = caseOf(readPath(carried, move.on));
    const chosen = value === null ? move.otherwise : (own(move.cases, value) ?? move.otherwise);
    return chosen === undefined
      ? {
          kind: "none",
          why: messages.noCase(step.id, move.on.join("."), value === null ? "no value" : `"${value}"`),
        }
      : select(step, chosen, payload, carried);
  }
  if (move.kind === "jump") {
    const target = readPath(payload, move.field);
    if (typeof target === "string" && move.among.includes(target)) {
      return { kind: "move", move: { kind: "goto", step: target }, counted: false };
    }
    const absent = target === undefined || target === null || target === "";
    if (absent && move.otherwise !== undefined) return select(step, move.otherwise, payload, carried);
    const found =
      typeof target === "string"
        ? `"${target.slice(0, 80)}"`
        : absent
          ? "nowhere"
          : "something that is no name";
    return { kind: "none", why: messages.badJump(step.id, found) };
  }
  // An edge counts as a whole: deeper in it a counted move is an ordinary one.
  if (move.kind === "times") return select(step, move.move, payload, carried);
  return { kind: "move", move, counted: false };
}

function caseOf(value: Json | undefined): string | null {
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return null;
}
