/** What a command about tests answers when the flow or its tests cannot be read. */
import type { FileTree } from "../../flow/files.ts";
import type { Problem } from "../../flow/problem.ts";
import { EXIT, exitCode } from "../../flow/verdict.ts";
import type { RunnerError } from "../../run/errors.ts";
import type { CommandCall } from "../call.ts";
import { noReport } from "../text/failure.ts";
import { renderProblems } from "../text/problems.ts";
import { count } from "../text/text.ts";
import type { Tested, TestReport } from "./tested.ts";

/** `more`: what else the document holds. */
export function tellInvalid(
  { flags, screen, typed }: CommandCall,
  kind: string,
  problems: readonly Problem[],
  files: FileTree,
  more: object = {},
): number {
  if (flags.json) screen.document({ ...invalidDocument(kind, problems), ...more });
  else screen.print(renderProblems(problems, files, screen.out, typed));
  return EXIT.invalid;
}

function invalidDocument(kind: string, problems: readonly Problem[]): object {
  const errors = problems.filter(({ severity }) => severity === "error").length;
  const reason = `${count(errors, "error")} in the files of the agent. The problems say where, and how to correct them.`;
  return noReport(kind, { code: "FLOW_INVALID", reason, exitCode: EXIT.invalid }, problems);
}

/** A report with a failed case for each error: without one, CI would show that nothing was tested, and not why. */
export function invalidReport(problems: readonly Problem[]): TestReport {
  const errors = problems.filter(({ severity }) => severity === "error");
  return refusedReport(
    errors.map(({ code, file, line, message, fix }) => ({
      agent: /^\.agent\/([^/]+)\//.exec(file)?.[1] ?? "lockstep",
      test: { name: `${code} at ${file}:${line}`, file, line },
      why: `${message} ${fix}`,
    })),
    invalidDocument("lockstep-tests", problems),
  );
}

/** The same for what keeps the tests from being run at all: there are none, or their code is not trusted. */
export function unavailableReport({ code, message }: RunnerError): TestReport {
  const failure = { code, reason: message, exitCode: exitCode({ outcome: "failed", code }) };
  return refusedReport(
    [{ agent: "lockstep", test: { name: code, file: ".agent", line: 1 }, why: message }],
    noReport("lockstep-tests", failure, []),
  );
}

function refusedReport(
  cases: readonly (Pick<Tested, "agent" | "test"> & { readonly why: string })[],
  document: object,
): TestReport {
  const tested = cases.map(({ agent, test, why }): Tested => ({
    agent,
    test,
    status: "failed",
    unmet: [],
    because: [why],
    look: null,
    ms: 0,
  }));
  return { tested, notRun: 0, stopped: null, remarks: [], refused: document };
}
