/** Two runs beside each other: the part that they share, where they part, and their differences in groups. */
import type { Json } from "../../../flow/json.ts";
import type { VisitSeen } from "../../wire.ts";
import type { CompareDocument } from "../../wire-agents.ts";

export type RunDifferenceSeen = CompareDocument["differences"][number];

/** Groups in the order of a run: what it was given, what happened, what came of it. */
const GROUPS = ["flow", "argument", "answer", "check", "path", "handoff", "verdict", "usage"] as const;

export const GROUP_NAMES: { readonly [about in RunDifferenceSeen["about"]]: string } = {
  flow: "Flow",
  argument: "Arguments",
  answer: "Answers",
  check: "Checks",
  path: "Path",
  handoff: "Handoff",
  verdict: "Verdict",
  usage: "Usage",
};

export function differenceGroups(
  differences: readonly RunDifferenceSeen[],
): readonly { readonly about: RunDifferenceSeen["about"]; readonly rows: readonly RunDifferenceSeen[] }[] {
  return GROUPS.map((about) => ({ about, rows: differences.filter((one) => one.about === about) })).filter(
    ({ rows }) => rows.length > 0,
  );
}

/** A value on one line; null where that side has none. */
export function sideText(value: Json): string | null {
  if (value === null) return null;
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The first difference that happened on the way, in one sentence; what was given comes before it. */
export function firstSentence(differences: readonly RunDifferenceSeen[]): string | null {
  const first = differences.find(({ about }) => about !== "flow" && about !== "argument") ?? differences[0];
  if (first === undefined) return null;
  const side = (value: Json) => sideText(value) ?? "nothing";
  const where = first.at === "" ? "" : ` at ${first.at}`;
  return `${GROUP_NAMES[first.about]}${where}: ${side(first.a)} in A, ${side(first.b)} in B`;
}

/** The visit that a difference belongs to; null: it names none. */
export function visitOf({
  at,
}: Pick<RunDifferenceSeen, "at">): { readonly step: string; readonly visit: number } | null {
  const found = /^(.+?)@([1-9]\d{0,8})(?=$|[/ ])/s.exec(at);
  return found === null ? null : { step: found[1]!, visit: Number(found[2]) };
}

/** A stretch of both ways: the same visits, or what each did by itself. */
export type WayPart =
  | { readonly kind: "shared"; readonly visits: readonly VisitSeen[] }
  | { readonly kind: "apart"; readonly a: readonly VisitSeen[]; readonly b: readonly VisitSeen[] };

/** Both ways joined up to where they part; from there on each stands by itself. */
export function joinedWays([a, b]: CompareDocument["ways"]): readonly WayPart[] {
  let same = 0;
  while (
    same < a.length &&
    same < b.length &&
    a[same]!.step === b[same]!.step &&
    a[same]!.visit === b[same]!.visit
  )
    same += 1;
  return [
    ...(same > 0 ? [{ kind: "shared", visits: a.slice(0, same) } as const] : []),
    ...(same < a.length || same < b.length
      ? [{ kind: "apart", a: a.slice(same), b: b.slice(same) } as const]
      : []),
  ];
}
