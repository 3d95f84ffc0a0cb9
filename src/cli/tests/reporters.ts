/** `--reporter NAME[=FILE]`: which reports are written, and where each goes. */
import { appendFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { errorText } from "../../flow/text/harmless.ts";
import { notWritable, writeWhole } from "../../run/world/write-whole.ts";
import { oneOf, UsageError } from "../args.ts";
import type { CommandCall } from "../call.ts";
import { createPaint } from "../text/text.ts";
import type { TestReport } from "./tested.ts";
import { makeFolder } from "../../run/world/files.ts";

export const REPORTERS = ["pretty", "tap", "junit", "json", "github"] as const;
export type ReporterName = (typeof REPORTERS)[number];

/** `file` is null for stdout. */
export type Reporting = { readonly name: ReporterName; readonly file: string | null };

/** Something is always on stdout: without a reporter that writes there, `pretty`, or the document of `--json`. */
export function reportersOf(written: readonly string[], isJson: boolean): readonly Reporting[] {
  const named = written.map(reporterNamed);
  const onStdout = named.filter(({ file }) => file === null);
  if (isJson && onStdout.some(({ name }) => name !== "json"))
    throw new UsageError(
      "--json prints one document on stdout: give the other reporters files, as in junit=FILE.",
    );
  const first: readonly Reporting[] =
    onStdout.length > 0 ? [] : [{ name: isJson ? "json" : "pretty", file: null }];
  const all = [...first, ...named];
  const shared = all.filter(({ name, file }) => file === null && name !== "pretty" && name !== "github");
  if (shared.length > 0 && all.filter(({ file }) => file === null).length > 1)
    throw new UsageError(
      `${shared[0]!.name} needs stdout for itself: give one of the reporters a file, as in ${shared[0]!.name}=FILE.`,
    );
  return all;
}

function reporterNamed(written: string): Reporting {
  const [, word = "", file] = /^([^=]*)(?:=(.*))?$/s.exec(written) ?? [];
  const name = REPORTERS.find((one) => one === word);
  if (name === undefined)
    throw new UsageError(`--reporter takes ${oneOf(REPORTERS)}, not "${word}".`, {
      word,
      candidates: REPORTERS,
    });
  if (file === "") throw new UsageError(`--reporter ${written} names no file.`);
  return { name, file: file ?? null };
}

/**
 * Files first: a result on stdout must not say that all is well when a report is missing. `root`: the project that the
 * paths of test files are relative to. `others`: writes what else goes to files.
 */
export async function writeReports(
  call: CommandCall,
  reporters: readonly Reporting[],
  report: TestReport,
  root: string,
  others: () => void = () => undefined,
): Promise<void> {
  const { screen, host } = call;
  const typed = {
    ...report,
    remarks: report.remarks.map(call.typed),
    tested: report.tested.map((one) => ({ ...one, look: one.look === null ? null : call.typed(one.look) })),
  };
  const failed = await failure(async () => {
    for (const one of reporters) await writeToFile(call, one, report, typed, root);
    others();
  });
  const told = failed === null ? report : { ...report, unwritten: errorText(failed) };
  for (const { name, file } of reporters) {
    if (file !== null) continue;
    if (name === "json") screen.document(await documentOf(told));
    else if (name === "pretty") {
      const { prettyReport } = await import("./report-pretty.ts");
      const text = prettyReport(typed, screen.out, call.flags);
      if (text !== "") screen.print(text);
    } else {
      const text = await textFor(name, told, root, host.env);
      if (text !== "") screen.emit(text);
    }
  }
  if (failed !== null) throw failed;
}

async function failure(write: () => Promise<void>): Promise<Error | null> {
  try {
    await write();
    return null;
  } catch (error) {
    if (error instanceof Error) return error;
    throw error;
  }
}

async function writeToFile(
  { cwd, host }: CommandCall,
  { name, file }: Reporting,
  report: TestReport,
  typed: TestReport,
  root: string,
): Promise<void> {
  if (name === "github") await summarise(report, host.env.GITHUB_STEP_SUMMARY);
  if (file === null) return;
  const text =
    name === "pretty"
      ? (await import("./report-pretty.ts")).prettyReport(typed, createPaint(false))
      : await textFor(name, report, root, host.env);
  writeReport(resolve(cwd, file), file, text);
}

async function textFor(
  name: Exclude<ReporterName, "pretty">,
  report: TestReport,
  root: string,
  env: NodeJS.ProcessEnv,
): Promise<string> {
  switch (name) {
    case "tap":
      return (await import("./report-tap.ts")).tapReport(report);
    case "junit":
      return (await import("./report-junit.ts")).junitReport(report);
    case "json":
      return JSON.stringify(await documentOf(report), null, 2);
    case "github":
      return (await import("./report-github.ts")).githubReport(report, root, env.GITHUB_WORKSPACE);
  }
}

async function documentOf(report: TestReport): Promise<object> {
  return report.refused ?? (await import("./report-json.ts")).testsDocument(report);
}

function writeReport(path: string, shown: string, text: string): void {
  try {
    makeFolder(dirname(path));
    writeWhole(path, `${text}\n`);
  } catch (error) {
    throw notWritable(`The report cannot be written to ${shown}`, path, error);
  }
}

/** The summary of the step: GitHub names the file. Other commands of the step write there too. */
async function summarise(report: TestReport, file: string | undefined): Promise<void> {
  if (file === undefined || file === "") return;
  const { githubSummary } = await import("./report-github.ts");
  try {
    appendFileSync(file, `${githubSummary(report)}\n`);
  } catch (error) {
    throw new UsageError(
      `The summary of the step cannot be written to GITHUB_STEP_SUMMARY: ${errorText(error)}.`,
    );
  }
}
