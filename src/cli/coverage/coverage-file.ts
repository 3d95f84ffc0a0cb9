/** Coverage written to files: the format follows from the name. */
import { dirname, extname, resolve } from "node:path";
import { toLcov, type Coverage } from "../../proof/coverage.ts";
import { notWritable, writeWhole } from "../../run/world/write-whole.ts";
import { outlineOf } from "../../tell/outline.ts";
import type { Flow } from "../../flow/flow.ts";
import { UsageError } from "../args.ts";
import { isDrawable } from "../graph/graph.ts";
import { withHits } from "../../proof/outline-hits.ts";
import { jsonLine } from "../text/text.ts";
import { coverageHtml } from "./coverage-html.ts";
import { makeFolder } from "../../run/world/files.ts";

export type FlowCoverage = { readonly flow: Flow; readonly coverage: Coverage };

const ENDINGS = [".html", ".json", ".info"] as const;
type Ending = (typeof ENDINGS)[number];

/** Checked before the tests are run. */
export function requireEnding(file: string): Ending {
  const ending = ENDINGS.find((one) => one === extname(file).toLowerCase());
  if (ending !== undefined) return ending;
  throw new UsageError(
    `${file}: coverage is written as .html (to read), .json (for programs) or .info (lcov). Name the file accordingly.`,
  );
}

/** lcov holds several agents in one file; the others hold one. */
export function writeCoverage(cwd: string, file: string, found: readonly FlowCoverage[]): void {
  const ending = requireEnding(file);
  const path = resolve(cwd, file);
  if (ending !== ".info" && found.length !== 1)
    throw new UsageError(`${file} holds the coverage of one agent, not of ${found.length}. Name the agent.`);
  try {
    makeFolder(dirname(path));
    writeWhole(path, textOf(ending, found));
  } catch (cause) {
    throw notWritable(`The coverage cannot be written to ${file}`, path, cause);
  }
}

function textOf(ending: Ending, found: readonly FlowCoverage[]): string {
  if (ending === ".info") return found.map(({ coverage }) => toLcov(coverage)).join("");
  const [{ flow, coverage }] = found as readonly [FlowCoverage];
  if (ending === ".json") return `${jsonLine(coverage, 2)}\n`;
  const outline = outlineOf(flow);
  return `${coverageHtml(coverage, isDrawable(outline) ? withHits(outline, coverage) : null)}\n`;
}
