/** The addresses of the page: every screen and every selection has one, so that back, reload and links work. */

export type Route =
  | { readonly at: "runs"; readonly state: string; readonly agent: string; readonly q: string }
  | {
      readonly at: "run";
      readonly run: string;
      readonly tab: RunTab;
      readonly visit: VisitName | null;
      readonly seq: number | null;
    }
  | { readonly at: "talk"; readonly run: string; readonly of: string | null }
  | { readonly at: "why"; readonly run: string; readonly visit: VisitName }
  | { readonly at: "fork"; readonly run: string; readonly visit: VisitName }
  | { readonly at: "effects" }
  | { readonly at: "inbox" }
  | { readonly at: "flows" }
  | { readonly at: "flow"; readonly agent: string; readonly step: string | null }
  | { readonly at: "start"; readonly agent: string }
  | { readonly at: "compare"; readonly a: string; readonly b: string }
  | { readonly at: "whatif"; readonly agent: string | null }
  | { readonly at: "figures"; readonly agent: string; readonly since: string; readonly flow: string }
  | { readonly at: "unknown"; readonly path: string };

/** What a run is looked at as. The conversation has a route of its own, since it selects something else. */
export type RunTab = "way" | "effects" | "log" | "document";

export type VisitName = { readonly step: string; readonly visit: number };

export function parseRoute(path: string, search: string): Route {
  const given = new URLSearchParams(search);
  const text = (name: string) => given.get(name) ?? "";
  const parts = path
    .split("/")
    .filter((part) => part !== "")
    .map(decoded);
  const unknown: Route = { at: "unknown", path };
  if (parts.includes(null)) return unknown;
  const [place = "runs", one, two, three, ...rest] = parts as string[];
  if (rest.length > 0) return unknown;
  switch (place) {
    case "runs":
      if (one === undefined) return { at: "runs", state: text("state"), agent: text("agent"), q: text("q") };
      return runRoute(one, two, three, given) ?? unknown;
    case "flows":
      if (one === undefined) return { at: "flows" };
      if (three !== undefined) return unknown;
      if (two === "start") return { at: "start", agent: one };
      return { at: "flow", agent: one, step: two ?? null };
    case "compare":
      return one === undefined || two === undefined || three !== undefined
        ? unknown
        : { at: "compare", a: one, b: two };
    case "whatif":
      return two === undefined ? { at: "whatif", agent: one ?? null } : unknown;
    case "figures":
      return one === undefined
        ? { at: "figures", agent: text("agent"), since: text("since"), flow: text("flow") }
        : unknown;
    case "inbox":
    case "effects":
      return one === undefined ? { at: place } : unknown;
    default:
      return unknown;
  }
}

function runRoute(
  run: string,
  two: string | undefined,
  three: string | undefined,
  given: URLSearchParams,
): Route | null {
  const seq = seqOf(given.get("at"));
  if (two === undefined) return { at: "run", run, tab: "way", visit: null, seq };
  if (three === undefined && two === "talk") return { at: "talk", run, of: given.get("of") };
  if (three === undefined && isTab(two)) return { at: "run", run, tab: two, visit: null, seq };
  const visit = parseVisit(two);
  if (visit === null) return null;
  if (three === undefined) return { at: "run", run, tab: "way", visit, seq };
  return three === "why" || three === "fork" ? { at: three, run, visit } : null;
}

/** `closure.issue@2`; null: that does not name a visit. */
export function parseVisit(text: string): VisitName | null {
  const found = /^(.+)@([1-9]\d{0,8})$/s.exec(text);
  return found === null ? null : { step: found[1]!, visit: Number(found[2]) };
}

export function visitText({ step, visit }: VisitName): string {
  return `${step}@${visit}`;
}

export function hrefOf(route: Route): string {
  switch (route.at) {
    case "runs":
      return `/runs${query({ state: route.state, agent: route.agent, q: route.q })}`;
    case "run": {
      const visit = route.visit === null ? "" : `/${encodeURIComponent(visitText(route.visit))}`;
      const rest = route.tab === "way" ? visit : `/${route.tab}`;
      return `/runs/${encodeURIComponent(route.run)}${rest}${query({ at: route.seq === null ? "" : String(route.seq) })}`;
    }
    case "talk":
      return `/runs/${encodeURIComponent(route.run)}/talk${query({ of: route.of ?? "" })}`;
    case "why":
    case "fork":
      return `/runs/${encodeURIComponent(route.run)}/${encodeURIComponent(visitText(route.visit))}/${route.at}`;
    case "flow":
      return `/flows/${encodeURIComponent(route.agent)}${route.step === null ? "" : `/${encodeURIComponent(route.step)}`}`;
    case "start":
      return `/flows/${encodeURIComponent(route.agent)}/start`;
    case "compare":
      return `/compare/${encodeURIComponent(route.a)}/${encodeURIComponent(route.b)}`;
    case "whatif":
      return route.agent === null ? "/whatif" : `/whatif/${encodeURIComponent(route.agent)}`;
    case "figures":
      return `/figures${query({ agent: route.agent, since: route.since, flow: route.flow })}`;
    case "inbox":
    case "effects":
    case "flows":
      return `/${route.at}`;
    case "unknown":
      return "/runs";
  }
}

export const ALL_RUNS: Route = { at: "runs", state: "", agent: "", q: "" };

/** The run as a whole, as it stands now. */
export function runAt(run: string, visit: VisitName | null = null, seq: number | null = null): Route {
  return { at: "run", run, tab: "way", visit, seq };
}

function isTab(text: string): text is RunTab {
  return text === "effects" || text === "log" || text === "document";
}

function seqOf(text: string | null): number | null {
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : null;
}

function query(values: { readonly [name: string]: string }): string {
  const kept = Object.entries(values).filter(([, value]) => value !== "");
  return kept.length === 0 ? "" : `?${new URLSearchParams(kept)}`;
}

function decoded(part: string): string | null {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}
