/** What a command about tests answers when the flow or its tests cannot be read. */
import type { FileTree } from "../../flow/files.ts";
import type { Problem } from "../../flow/problem.ts";
import { EXIT } from "../../flow/verdict.ts";
import type { CommandCall } from "../call.ts";
import { noReport } from "../text/failure.ts";
import { renderProblems } from "../text/problems.ts";
import { count } from "../text/text.ts";

/** `more`: what else the document holds. */
export function tellInvalid(
  { flags, screen, typed }: CommandCall,
  kind: string,
  problems: readonly Problem[],
  files: FileTree,
  more: object = {},
): number {
  const errors = problems.filter(({ severity }) => severity === "error").length;
  const reason = `${count(errors, "error")} in the files of the agent. The problems say where, and how to correct them.`;
  const failure = { code: "FLOW_INVALID", reason, exitCode: EXIT.invalid };
  if (flags.json) screen.document({ ...noReport(kind, failure, problems), ...more });
  else screen.print(renderProblems(problems, files, screen.out, typed));
  return EXIT.invalid;
}
