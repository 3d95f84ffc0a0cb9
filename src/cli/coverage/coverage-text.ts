/** Coverage for people in a terminal: a table of kinds, and what is not covered with its place. */
import { ELEMENT_KINDS, type ElementKind, type TestSettings } from "../../flow/test-settings.ts";
import { gapsIn, missedIn, percent, type Coverage, type Covered, type Total } from "../../proof/coverage.ts";
import { count, shownInLine, table, type Paint } from "../text/text.ts";

export function coverageText(
  coverage: Coverage,
  least: TestSettings["coverage"],
  paint: Paint,
  most: number = Infinity,
): readonly string[] {
  const missed = new Set(missedIn(coverage, least).map(({ kind }) => kind));
  const kinds = ELEMENT_KINDS.filter((kind) => coverage.totals[kind].of > 0 || least[kind] !== undefined);
  const rows = kinds.map((kind) => {
    const total = coverage.totals[kind];
    const wanted = least[kind];
    return [kind, ...share(total), wanted === undefined ? "" : `at least ${wanted} %`];
  });
  const lines = table(rows).map((line, at) => {
    const kind = kinds[at]!;
    const { covered, of } = coverage.totals[kind];
    const colour = missed.has(kind) ? "red" : covered === of ? "green" : "yellow";
    return `  ${paint(colour, missed.has(kind) ? `${line.trimEnd()}  missed` : line.trimEnd())}`;
  });
  return [
    `${paint("bold", `Coverage of ${shownInLine(coverage.agent)}`)}  ${share(wholeOf(coverage)).join("  ")}`,
    ...lines,
    ...gapLines("Not covered", gapsIn(coverage), paint, most),
    ...ignoredLines(coverage, paint),
  ];
}

/** Tests and recorded runs side by side. */
export function comparisonText(
  tests: Coverage,
  runs: Coverage,
  paint: Paint,
  most: number,
): readonly string[] {
  const kinds = ELEMENT_KINDS.filter((kind) => tests.totals[kind].of > 0);
  const cells = (kind: ElementKind) => [kind, ...share(tests.totals[kind]), ...share(runs.totals[kind])];
  const rows = [["", "tests", "", "runs", ""], ...kinds.map(cells)];
  const { onlyRuns, onlyTests, neither } = compared(tests, runs);
  return [
    paint("bold", `Coverage of ${shownInLine(tests.agent)}`),
    ...table(rows).map((line) => `  ${line.trimEnd()}`),
    ...gapLines("Seen in runs, not in tests: write tests for these first", onlyRuns, paint, most),
    ...gapLines("Seen in tests, never in a run", onlyTests, paint, most),
    ...gapLines("Seen in neither", neither, paint, most),
  ];
}

export type ComparedCoverage = {
  readonly onlyRuns: readonly Covered[];
  readonly onlyTests: readonly Covered[];
  readonly neither: readonly Covered[];
};

export function compared(tests: Coverage, runs: Coverage): ComparedCoverage {
  const inRuns = new Set(runs.elements.filter(({ hits }) => hits > 0).map(({ id }) => id));
  const gaps = gapsIn(tests);
  return {
    onlyRuns: gaps.filter(({ id }) => inRuns.has(id)),
    onlyTests: tests.elements.filter(({ id, hits }) => hits > 0 && !inRuns.has(id)),
    neither: gaps.filter(({ id }) => !inRuns.has(id)),
  };
}

function wholeOf({ totals }: Coverage): Total {
  const all = Object.values(totals);
  return {
    covered: all.reduce((sum, { covered }) => sum + covered, 0),
    of: all.reduce((sum, { of }) => sum + of, 0),
  };
}

function share(total: Total): readonly string[] {
  return [`${total.covered}/${total.of}`, total.of === 0 ? "-" : `${percent(total)} %`];
}

/** The most important kinds first, since a long list is cut. */
function gapLines(title: string, gaps: readonly Covered[], paint: Paint, most: number): readonly string[] {
  if (gaps.length === 0) return [];
  const rank = ({ kind }: Covered) => ELEMENT_KINDS.indexOf(kind);
  const shown = gaps.toSorted((a, b) => rank(a) - rank(b)).slice(0, most);
  const rows = shown.map(({ kind, id, file, line }) => [
    kind,
    shownInLine(id, 100),
    file === null ? "" : `${shownInLine(file, 100)}:${line}`,
  ]);
  const more = gaps.length - shown.length;
  return [
    "",
    paint("bold", title),
    ...table(rows).map((line) => `  ${line.trimEnd()}`),
    ...(more === 0 ? [] : [`  … and ${more} more: add --verbose to list them`]),
  ];
}

function ignoredLines({ elements, stale }: Coverage, paint: Paint): readonly string[] {
  const ignored = elements.flatMap(({ id, ignored: why }) => (why === undefined ? [] : [[id, why]]));
  const rows = ignored.map(([id = "", why = ""]) => [shownInLine(id, 100), shownInLine(why, 100)]);
  return [
    ...(rows.length === 0
      ? []
      : [
          "",
          `${count(rows.length, "element")} ignored`,
          ...table(rows).map((line) => `  ${line.trimEnd()}`),
        ]),
    ...stale.map(({ id, line }) =>
      paint(
        "yellow",
        `settings.yaml:${line}: "${shownInLine(id, 100)}" is ignored, but is not an element of the flow.`,
      ),
    ),
  ];
}
