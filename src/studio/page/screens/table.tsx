/** The screens that there are: a route without one is not shown, and has no place in the rail. */
import type { FunctionComponent } from "preact";
import type { RailPlace } from "../frame.tsx";
import { ALL_RUNS, type Route } from "../route.ts";
import { RunsScreen } from "./runs.tsx";

type Screens = {
  readonly [at in Route["at"]]?: FunctionComponent<{ readonly route: Extract<Route, { readonly at: at }> }>;
};

export const SCREENS: Screens = {
  runs: RunsScreen,
};

export const PLACES: readonly RailPlace[] = [
  { name: "Runs", key: "r", route: ALL_RUNS, holds: ["runs", "run", "talk", "why", "fork", "compare"] },
];
