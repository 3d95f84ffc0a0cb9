/** What git says about the working tree, the branch, its upstream and a merge. */
import type { CommandOutput } from "../process/output.ts";
import { firstMatch, linesOf } from "../process/output.ts";

/** One path of `git status --porcelain`: two columns for its state, a space, the path. */
export type StatusEntry = { readonly x: string; readonly y: string; readonly path: string };

export function statusEntries({ stdout }: CommandOutput): readonly StatusEntry[] {
  return linesOf(stdout).flatMap((line) => {
    const [x = "", y = ""] = line;
    const path = line.slice(3).trim();
    return /^[ MTADRCU?][ MTADRCU?] \S/.test(line) && path !== "" ? [{ x, y, path }] : [];
  });
}

export function isUntracked({ x, y }: StatusEntry): boolean {
  return x === "?" && y === "?";
}

export function isStaged({ x }: StatusEntry): boolean {
  return x !== " " && x !== "?";
}

export function isUnstaged({ y }: StatusEntry): boolean {
  return y !== " " && y !== "?";
}

/** Both sides touched it, and the conflict is not resolved yet. */
export function isUnmerged({ x, y }: StatusEntry): boolean {
  return x === "U" || y === "U" || (x === y && (x === "A" || x === "D"));
}

/**
 * The branch that `git status`, with or without `-sb`, or `git branch` names as the current one; also the only word of
 * `git branch --show-current` and `git rev-parse --abbrev-ref HEAD`. Empty when there is none, as on a detached head.
 */
export function branchName({ stdout }: CommandOutput): string {
  const lines = linesOf(stdout);
  const header = headerOf(lines);
  if (header !== null) return header.branch;
  const named = firstMatch(lines, /^(?:On branch |\* )(\S+)/)?.[1];
  if (named !== undefined) return named.startsWith("(") ? "" : named;
  const [word = "", ...more] = lines.filter((line) => line.trim() !== "");
  return more.length === 0 && /^[\w./@#+-]+$/.test(word) && word !== "HEAD" ? word : "";
}

/**
 * How the branch stands to its upstream, in git's words: `up to date`, `ahead 2`, `behind 1`, `ahead 2, behind 1`,
 * `gone` (the upstream was deleted), `no upstream`, `no branch` (a detached head), or `rejected` after a push. Empty
 * when the output does not say. Read from `git status`, with or without `-sb`, `git branch -vv` and `git push`.
 */
export function remoteStatus({ stdout, stderr }: CommandOutput): string {
  const lines = linesOf(stdout, stderr);
  if (lines.some((line) => /^ ! \[(?:remote )?rejected\]/.test(line))) return "rejected";
  return upstreamOfHeader(lines) ?? upstreamOfList(lines) ?? upstreamOfProse(lines) ?? "";
}

/**
 * How a merge stands: `conflict: a.ts, b.ts` (without paths when git names none), `blocked: a.ts` (local changes are in
 * the way), `merging` (resolved, not committed), `merged` or `up to date`. Empty when the output does not say.
 */
export function mergeStatus(output: CommandOutput): string {
  const lines = linesOf(output.stdout, output.stderr);
  const says = (pattern: RegExp) => firstMatch(lines, pattern) !== null;
  const conflicts = conflictPaths(output);
  if (conflicts.length > 0) return `conflict: ${conflicts.slice(0, MAX_NAMED).join(", ")}`;
  if (says(/^(?:Automatic merge failed|error: Merging is not possible|You have unmerged paths)/))
    return "conflict";
  const blocking = blockingPaths(lines);
  if (blocking.length > 0) return `blocked: ${blocking.slice(0, MAX_NAMED).join(", ")}`;
  if (says(/^All conflicts fixed but you are still merging/)) return "merging";
  if (says(/^(?:Merge made by |Fast-forward$)/)) return "merged";
  return says(/^Already up.to.date\.?$/) ? "up to date" : "";
}

const MAX_NAMED = 20;

/** Unmerged paths, as `git merge` and `git status` in both its forms list them, each once. */
export function conflictPaths(output: CommandOutput): readonly string[] {
  const lines = linesOf(output.stdout, output.stderr);
  const named = lines.flatMap((line) => {
    const match =
      /^CONFLICT \(.+?\): .*\bconflict in (.+)$/i.exec(line) ??
      /^CONFLICT \(.+?\): (.+?) deleted in /.exec(line) ??
      /^\t(?:both|deleted by|added by) \w+: +(.+)$/.exec(line);
    return match?.[1] === undefined ? [] : [match[1]];
  });
  const unmerged = statusEntries(output)
    .filter(isUnmerged)
    .map(({ path }) => path);
  return [...new Set([...named, ...unmerged])];
}

function blockingPaths(lines: readonly string[]): readonly string[] {
  const start = lines.findIndex((line) => line.endsWith("would be overwritten by merge:"));
  if (start === -1) return [];
  const rest = lines.slice(start + 1);
  const end = rest.findIndex((line) => !line.startsWith("\t"));
  return (end === -1 ? rest : rest.slice(0, end)).map((line) => line.trim());
}

type Header = { readonly branch: string; readonly upstream: boolean; readonly counts: string };

/** The first line of `git status -sb`: `## main...origin/main [ahead 1]`. */
function headerOf(lines: readonly string[]): Header | null {
  const text = lines.find((line) => line.startsWith("## "))?.slice("## ".length);
  if (text === undefined) return null;
  if (text === "HEAD (no branch)") return { branch: "", upstream: false, counts: "" };
  const [names = "", ...rest] = text.replace(/^(?:No commits yet|Initial commit) on /, "").split(" ");
  const [branch = "", upstream] = names.split("...");
  const counts = /^\[(.*)\]$/.exec(rest.join(" "))?.[1] ?? "";
  return { branch, upstream: upstream !== undefined, counts };
}

function upstreamOfHeader(lines: readonly string[]): string | null {
  const header = headerOf(lines);
  if (header === null) return null;
  if (header.branch === "") return "no branch";
  if (!header.upstream) return "no upstream";
  return header.counts === "" ? "up to date" : header.counts;
}

/** `git branch -vv`: `* main 1a2b3c4 [origin/main: ahead 1] message`. */
function upstreamOfList(lines: readonly string[]): string | null {
  const current = firstMatch(lines, /^\* \S+ +[0-9a-f]{4,} \[[^\]:]+(?:: ([^\]]+))?\]/);
  return current === null ? null : (current[1] ?? "up to date");
}

/** The same in the sentences of plain `git status`, and in the words of a push without upstream. */
function upstreamOfProse(lines: readonly string[]): string | null {
  const [, ahead, behind] =
    firstMatch(lines, /^and have (\d+) and (\d+) different commits each/) ??
    firstMatch(lines, /^Your branch is ahead of '.+' by (\d+) commit/) ??
    [];
  if (behind !== undefined) return `ahead ${ahead}, behind ${behind}`;
  if (ahead !== undefined) return `ahead ${ahead}`;
  const late = firstMatch(lines, /^Your branch is behind '.+' by (\d+) commit/)?.[1];
  if (late !== undefined) return `behind ${late}`;
  if (firstMatch(lines, /^Your branch is based on '.+', but the upstream is gone\./)) return "gone";
  if (firstMatch(lines, /^Your branch is up to date with /)) return "up to date";
  return firstMatch(lines, /^fatal: The current branch .+ has no upstream branch\./) ? "no upstream" : null;
}
