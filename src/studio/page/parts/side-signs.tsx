/** Two sides on a graph: which lines are whose, in words and in a picture. */
import type { JSX } from "preact";
import { timesOf, type Sides } from "../sides.ts";
import type { GraphLook } from "./graph.tsx";

export function SideSigns({ names }: { readonly names: readonly [string, string] }): JSX.Element {
  return (
    <span class="row small">
      {names.map((name, at) => (
        <span key={name} class={`sign-${at === 0 ? "a" : "b"}`}>
          {name}
        </span>
      ))}
    </span>
  );
}

export function sidesLook(sides: Sides): GraphLook {
  const total = (ways: readonly string[]) => timesOf(sides, ways).reduce((sum, one) => sum + one, 0);
  return { step: () => ({}), taken: total, sides: (ways) => timesOf(sides, ways) };
}
