/** Recorded tests whose responses were given to something else than is said now: a remark, a list, a document. */
import type { FileTree } from "../../flow/files.ts";
import { HEARD_PARTS } from "../../flow/flow-test.ts";
import { firstChanges, heardPath, readHeardPage } from "../../proof/drift-page.ts";
import type { Drift, Drifted } from "../../proof/drift.ts";
import { count, shownInLine, type Paint } from "../text/text.ts";
import type { ChosenTest } from "./choose.ts";
import type { Tested, TestReport } from "./tested.ts";

export function isRecorded({ test: { script } }: Pick<ChosenTest, "test">): boolean {
  return script.some(({ heard }) => heard !== undefined);
}

/** One line for a test, none where nothing has changed. */
export function driftRemarks({ test, drifted }: Tested): readonly string[] {
  const { compared, drifts } = drifted ?? NOTHING;
  if (drifts.length === 0) return [];
  return [
    `${shownInLine(test.file)}:${test.line}: ${drifts.length} of ${count(compared, "response")} were given to other words ` +
      `(${partsText(drifts)}): routing is tested, the model is not. See: lockstep test --stale`,
  ];
}

const NOTHING: Drifted = { compared: 0, drifts: [] };

/** `prompt at 2, 5; words at 7`. */
function partsText(drifts: readonly Drift[]): string {
  return HEARD_PARTS.flatMap((part) => {
    const at = drifts.flatMap(({ reply, parts }) => (parts.includes(part) ? [reply] : []));
    const more = at.length > MOST_NAMED ? ` and ${at.length - MOST_NAMED} more` : "";
    return at.length === 0 ? [] : [`${part} at ${at.slice(0, MOST_NAMED).join(", ")}${more}`];
  }).join("; ");
}

const MOST_NAMED = 8;

export function driftDocument({ compared, drifts }: Drifted) {
  return {
    compared,
    responses: drifts.map(({ reply, line, step, visit, parts }) => ({ reply, line, step, visit, parts })),
  };
}

export function staleDocument(report: TestReport) {
  const stale = staleIn(report);
  return {
    v: 1,
    kind: "lockstep-stale-tests",
    // A list is not a judgement: drift in tests/settings.yaml makes a stale test fail.
    ok: report.stopped !== "interrupted",
    stale: stale.length,
    recorded: report.tested.length,
    stopped: report.stopped,
    tests: stale.map(({ agent, test: { name, file, line }, drifted }) => ({
      agent,
      name,
      file,
      line,
      drift: driftDocument(drifted ?? NOTHING),
    })),
  };
}

/** `quiet`: only what is stale. */
export function staleText(report: TestReport, files: FileTree, paint: Paint, quiet: boolean): string {
  const stale = staleIn(report);
  if (quiet)
    return stale
      .flatMap((one) => linesOf(one, files, paint))
      .join("\n")
      .trimEnd();
  const total = `${stale.length} of ${count(report.tested.length, "recorded test")} stale`;
  return [...stale.flatMap((one) => linesOf(one, files, paint)), total].join("\n");
}

function staleIn({ tested }: TestReport): readonly Tested[] {
  return tested.filter(({ drifted = NOTHING }) => drifted.drifts.length > 0);
}

function linesOf({ agent, test, drifted }: Tested, files: FileTree, paint: Paint): readonly string[] {
  const read = files.read(heardPath(test.file));
  const page = readHeardPage(read.kind === "text" ? read.text : "");
  const { compared, drifts } = drifted ?? NOTHING;
  const about = `${drifts.length} of ${count(compared, "response")}`;
  const lines = [`${paint("yellow", "!")} ${shownInLine(agent)} › ${shownInLine(test.name)}  ${about}`];
  const shown = new Set<string>();
  for (const { reply, line, step, visit, parts, now } of drifts) {
    const place = paint("dim", `${shownInLine(test.file)}:${line}`);
    lines.push(`  response ${reply} to ${shownInLine(step)}@${visit}: another ${parts.join(", ")}  ${place}`);
    // A changed system prompt is the same change for every response.
    for (const changed of firstChanges(page.get(reply), now)) {
      if (shown.has(changed.join("\n"))) continue;
      shown.add(changed.join("\n"));
      lines.push(...changed.map((text) => `      ${coloured(shownInLine(text, 500), paint)}`));
    }
  }
  return [...lines, ""];
}

function coloured(line: string, paint: Paint): string {
  return paint(line.startsWith("+") ? "green" : line.startsWith("-") ? "red" : "dim", line);
}
