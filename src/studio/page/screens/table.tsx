/** The screens that there are: a route without one is not shown, and has no place in the rail. */
import type { FunctionComponent } from "preact";
import type { RailPlace } from "../frame.tsx";
import { ALL_RUNS, type Route } from "../route.ts";
import { FlowsScreen } from "./flows.tsx";
import { InboxScreen } from "./inbox.tsx";
import { EffectsScreen } from "./effects.tsx";
import { late } from "./late.tsx";
import { RunScreen } from "./run.tsx";
import { RunsScreen } from "./runs.tsx";
import { TalkScreen } from "./talk.tsx";
import { WhyScreen } from "./why.tsx";

type Screens = {
  readonly [at in Route["at"]]?: FunctionComponent<{ readonly route: Extract<Route, { readonly at: at }> }>;
};

export const SCREENS: Screens = {
  runs: RunsScreen,
  run: RunScreen,
  talk: TalkScreen,
  why: WhyScreen,
  effects: EffectsScreen,
  inbox: InboxScreen,
  flows: FlowsScreen,
  flow: late(async () => (await import("./more.ts")).FlowScreen),
  start: late(async () => (await import("./more.ts")).StartScreen),
  compare: late(async () => (await import("./more.ts")).CompareScreen),
  fork: late(async () => (await import("./more.ts")).ForkScreen),
  whatif: late(async () => (await import("./more.ts")).WhatIfScreen),
  figures: late(async () => (await import("./more.ts")).FiguresScreen),
};

export const PLACES: readonly RailPlace[] = [
  { name: "Runs", key: "r", route: ALL_RUNS, holds: ["runs", "run", "talk", "why", "fork", "compare"] },
  { name: "Inbox", key: "i", route: { at: "inbox" }, holds: ["inbox"] },
  { name: "Flows", key: "f", route: { at: "flows" }, holds: ["flows", "flow", "start"] },
  {
    name: "Figures",
    key: "s",
    route: { at: "figures", agent: "", since: "", flow: "" },
    holds: ["figures"],
  },
  { name: "What if", key: "w", route: { at: "whatif", agent: null }, holds: ["whatif"] },
];
