/** Which screens there are, for parts that lead to one only where it is there. */
import type { Route } from "../route.ts";

const known = new Set<Route["at"]>();

export function declareScreens(names: readonly string[]): void {
  for (const name of names) known.add(name as Route["at"]);
}

export function hasScreen(name: Route["at"]): boolean {
  return known.has(name);
}
