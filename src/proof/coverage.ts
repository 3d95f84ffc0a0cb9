/** Coverage as a document: every live element once, with its place and what has shown it. */
import type { Flow, StepId } from "../flow/flow.ts";
import type { Path } from "../flow/json.ts";
import { ELEMENT_KINDS, type ElementKind, type Ignored } from "../flow/test-settings.ts";
import type { Hits } from "./cover.ts";
import { elementsOf } from "./elements.ts";

export type Coverage = {
  readonly v: 1;
  readonly kind: "lockstep-coverage";
  readonly agent: string;
  readonly digest: string;
  readonly totals: { readonly [kind in ElementKind]: Total };
  readonly elements: readonly Covered[];
  /** What the settings ignore and the flow does not have. */
  readonly stale: readonly Ignored[];
};

export type Total = { readonly covered: number; readonly of: number };

export type Covered = {
  readonly id: string;
  readonly kind: ElementKind;
  readonly step: StepId | null;
  /** Where it is written; null: nowhere, a default holds. */
  readonly file: string | null;
  readonly line: number | null;
  readonly hits: number;
  /** What showed it: tests, runs, or the seed of a fuzz run. */
  readonly by: readonly string[];
  /** Left out of the totals, and why. */
  readonly ignored?: string;
};

/** What one test or run has shown. */
export type ShownBy = { readonly name: string; readonly hits: Hits };

/** Where a part of the flow is written. */
export type PlaceOf = (part: Path) => { readonly file: string; readonly line: number } | null;

export function coverageOf(
  flow: Flow,
  digest: string,
  shown: readonly ShownBy[],
  placeOf: PlaceOf,
  ignore: readonly Ignored[] = [],
): Coverage {
  const reasons = new Map(ignore.map(({ id, why }) => [id, why]));
  const known = elementsOf(flow);
  const ids = new Set(known.map(({ id }) => id));
  const elements = known.map(({ id, kind, step, part }): Covered => {
    const by = shown.filter(({ hits }) => hits.has(id));
    const place = nearest(part, placeOf);
    const why = reasons.get(id);
    const covered: Covered = {
      id,
      kind,
      step,
      file: place?.file ?? null,
      line: place?.line ?? null,
      hits: by.reduce((sum, { hits }) => sum + hits.get(id)!, 0),
      by: by.map(({ name }) => name),
    };
    return why === undefined ? covered : Object.assign(covered, { ignored: why });
  });
  return {
    v: 1,
    kind: "lockstep-coverage",
    agent: flow.agent,
    digest,
    totals: totalsOf(elements),
    elements,
    stale: ignore.filter(({ id }) => !ids.has(id)),
  };
}

/** What nothing has shown, without what is ignored. */
export function gapsIn({ elements }: Coverage): readonly Covered[] {
  return elements.filter(({ hits, ignored }) => hits === 0 && ignored === undefined);
}

/** A part that is not written belongs to the part around it. */
function nearest(part: Path, placeOf: PlaceOf): ReturnType<PlaceOf> {
  for (let length = part.length; length > 0; length--) {
    const place = placeOf(part.slice(0, length));
    if (place !== null) return place;
  }
  return null;
}

function totalsOf(elements: readonly Covered[]): Coverage["totals"] {
  const counted = elements.filter(({ ignored }) => ignored === undefined);
  const total = (kind: ElementKind): Total => {
    const all = counted.filter((one) => one.kind === kind);
    return { covered: all.filter(({ hits }) => hits > 0).length, of: all.length };
  };
  return Object.fromEntries(ELEMENT_KINDS.map((kind) => [kind, total(kind)])) as Coverage["totals"];
}

export function percent({ covered, of }: Total): number {
  return of === 0 ? 100 : Math.floor((1000 * covered) / of) / 10;
}

/** Thresholds that are missed: kind → what is asked and what is there. */
export function missedIn(
  { totals }: Coverage,
  least: { readonly [kind: string]: number },
): readonly { readonly kind: string; readonly least: number; readonly got: number }[] {
  return Object.entries(least).flatMap(([kind, wanted]) => {
    const total = Object.hasOwn(totals, kind) ? totals[kind as ElementKind] : undefined;
    const got = total === undefined ? 0 : percent(total);
    return got >= wanted ? [] : [{ kind, least: wanted, got }];
  });
}

/** The format of editors and coverage services: lines where elements are written, and branches with their counts. */
export function toLcov({ elements, agent }: Coverage): string {
  const files = Map.groupBy(
    elements.filter(
      (one): one is Covered & { readonly file: string; readonly line: number } =>
        one.file !== null && one.line !== null,
    ),
    ({ file }) => file,
  );
  const records = [...files].map(([file, found]) => {
    const lines = Map.groupBy(found, ({ line }) => line);
    const data = [...lines]
      .toSorted(([a], [b]) => a - b)
      .map(([line, here]) => [line, Math.min(...here.map(({ hits }) => hits))] as const);
    const branches = found.filter(({ kind }) => kind === "branches" || kind === "transitions");
    const branchLines = branches.map(
      ({ line, hits }, at) => `BRDA:${line},0,${at},${hits === 0 ? "-" : hits}`,
    );
    return [
      `TN:${agent}`,
      `SF:${file}`,
      ...branchLines,
      `BRF:${branches.length}`,
      `BRH:${branches.filter(({ hits }) => hits > 0).length}`,
      ...data.map(([line, hits]) => `DA:${line},${hits}`),
      `LF:${data.length}`,
      `LH:${data.filter(([, hits]) => hits > 0).length}`,
      "end_of_record",
    ].join("\n");
  });
  return `${records.join("\n")}\n`;
}
