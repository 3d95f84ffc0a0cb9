/** What a stop rule is made of, and after how many visits it can and must end a run. */
import type { Flow, Module, StopRule } from "./flow.ts";
import { own } from "./json.ts";

export type Part = Exclude<StopRule, { kind: "all" | "any" }>;

/** The single conditions of a rule, in the order in which it names them. */
export function partsOf(rule: StopRule): readonly Part[] {
  return "of" in rule ? rule.of.flatMap(partsOf) : [rule];
}

/** The modules of the project that a run of the flow may start. */
export function modulesIn({
  stop,
  hooks,
  settings,
}: Pick<Flow, "stop" | "hooks" | "settings">): readonly Module[] {
  const { enabled, types, modules = {} } = settings.actions;
  return [
    ...partsOf(stop).flatMap((part) => (part.kind === "module" ? [part.module] : [])),
    ...(hooks === undefined ? [] : [hooks]),
    ...(enabled ? types.flatMap((type) => own(modules, type) ?? []) : []),
  ];
}

/** Visits before which the rule ends no run; Infinity: it never ends one. `canCheck`: there are status checks to count. */
export function fewestVisits(rule: StopRule, canCheck: boolean): number {
  switch (rule.kind) {
    case "end":
      return Infinity;
    case "visits":
      return rule.count;
    case "checks":
      return canCheck ? rule.count : Infinity;
    case "keyword":
    case "signal":
    case "state":
    case "module":
      return 1;
    case "all":
      return rule.of.length === 0
        ? Infinity
        : Math.max(...rule.of.map((part) => fewestVisits(part, canCheck)));
    case "any":
      return Math.min(...rule.of.map((part) => fewestVisits(part, canCheck)));
  }
}

/** Visits after which the rule ends a run whatever happens; Infinity: it may never do so. */
export function mostVisits(rule: StopRule, flow: Pick<Flow, "steps">): number {
  switch (rule.kind) {
    case "visits":
      return rule.count;
    case "checks":
      return checksEveryVisit(flow) ? rule.count : Infinity;
    case "end":
    case "keyword":
    case "signal":
    case "state":
    case "module":
      return Infinity;
    case "all":
      return rule.of.length === 0 ? Infinity : Math.max(...rule.of.map((part) => mostVisits(part, flow)));
    case "any":
      return Math.min(...rule.of.map((part) => mostVisits(part, flow)));
  }
}

/** maxIterations as its author wrote it: visits beyond a count are only there to fix what checks found. */
export function maxIterationsOf({ stop, limits }: Pick<Flow, "stop" | "limits">): number {
  return stop.kind === "visits" ? stop.count : limits.visits;
}

/** Whether every visit is a status check: nothing verifies or closes, or no step has anything to choose. */
export function checksEveryVisit({ steps }: Pick<Flow, "steps">): boolean {
  const all = Object.values(steps).filter(({ aside }) => aside === undefined);
  return all.every(({ kind }) => kind === "work") || all.every(({ decide }) => decide.by === "const");
}

/** Status checks so far: visits begun of steps that verify or close, or of all steps. */
export function checksDone(
  flow: Pick<Flow, "steps">,
  {
    iterations,
    visits,
  }: { readonly iterations: number; readonly visits: { readonly [step: string]: number } },
): number {
  if (checksEveryVisit(flow)) return iterations;
  return Object.values(flow.steps)
    .filter(({ kind, aside }) => kind !== "work" && aside === undefined)
    .reduce((sum, { id }) => sum + (own(visits, id) ?? 0), 0);
}
