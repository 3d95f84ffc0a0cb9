/** What `graph --coverage` draws: the coverage of tests, of recorded runs, or of a file that was written before. */
import type { Flow } from "../../flow/flow.ts";
import { isObject, type Json } from "../../flow/json.ts";
import type { Coverage } from "../../proof/coverage.ts";
import { RunnerError } from "../../run/errors.ts";
import type { LoadedAgent } from "../../run/load.ts";
import { createFiles, MOST_BUNDLE_BYTES } from "../../run/world/files.ts";
import type { Outline } from "../../tell/outline.ts";
import type { CallOf } from "../commands.ts";
import { readGiven } from "../given-file.ts";
import { withHits } from "../../proof/outline-hits.ts";
import { tellFindings } from "../commands/check.ts";
import { measureRuns, measureTests } from "./measure.ts";

/** null: the tests cannot be read, which has been reported. */
export async function drawnCoverage(
  call: CallOf<"graph">,
  loaded: LoadedAgent,
  flow: Flow,
  outline: Outline,
  what: string,
): Promise<Outline | null> {
  const files = createFiles(loaded.project.root);
  if (what === "runs") {
    const { coverage } = await measureRuns(call, loaded, flow, files, -Infinity);
    return withHits(outline, coverage);
  }
  if (what !== "tests") return withHits(outline, readCoverage(call, what, loaded.agent));
  const measured = await measureTests(loaded, flow, files);
  if (measured.kind === "measured") return withHits(outline, measured.coverage);
  tellFindings(call, [{ ...loaded, problems: measured.problems }], loaded.agent);
  return null;
}

function readCoverage(call: CallOf<"graph">, file: string, agent: string): Coverage {
  const text = readGiven(call, file, "USAGE", MOST_BUNDLE_BYTES);
  const refuse = (why: string): never => {
    throw new RunnerError(
      "USAGE",
      `${file} ${why}. Write one with: lockstep test ${agent} --coverage-file coverage.json`,
    );
  };
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch {
    return refuse("is not JSON");
  }
  const isCoverage =
    isObject(value) &&
    value.kind === "lockstep-coverage" &&
    value.v === 1 &&
    Array.isArray(value.elements) &&
    value.elements.every((one) => isObject(one as Json) && typeof one.id === "string" && isCount(one.hits));
  if (!isCoverage) return refuse("is not a coverage file");
  const coverage = value as unknown as Coverage;
  return coverage.agent === agent ? coverage : refuse(`is about another agent, "${coverage.agent}"`);
}

function isCount(hits: unknown): boolean {
  return Number.isSafeInteger(hits) && (hits as number) >= 0;
}
