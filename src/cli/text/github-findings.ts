/** Findings of `check` as annotations of GitHub Actions. */
import { relative, resolve } from "node:path";
import type { Problem } from "../../flow/problem.ts";
import { githubAnnotation, MOST_ANNOTATIONS } from "./github-annotation.ts";

/** `root`: the project; `workspace`: the checkout that paths are relative to. Of too many, the last one says so. */
export function githubFindings(
  problems: readonly Problem[],
  root: string,
  workspace: string | undefined,
): readonly string[] {
  const ofLevel = (level: Problem["severity"]) => {
    const all = problems.filter(({ severity }) => severity === level);
    const shown = all.length > MOST_ANNOTATIONS ? all.slice(0, MOST_ANNOTATIONS - 1) : all;
    const left = all.length - shown.length;
    const more = `::${level} title=lockstep check::${left} more findings: see the log of this step`;
    const lines = shown.map((problem) => annotationOf(problem, root, workspace));
    return left === 0 ? lines : [...lines, more];
  };
  return [...ofLevel("error"), ...ofLevel("warning")];
}

function annotationOf(
  { severity: level, code, file, line, column, message, why, fix }: Problem,
  root: string,
  workspace: string | undefined,
): string {
  return githubAnnotation({
    level,
    file: workspace === undefined ? file : relative(workspace, resolve(root, file)),
    line,
    column,
    title: code,
    lines: [message, `Why: ${why}`, `Fix: ${fix}`],
  });
}
