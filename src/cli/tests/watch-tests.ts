/** `lockstep test --watch`: runs the tests again after every change to what they read, and prints results that differ. */
import { readdirSync } from "node:fs";
import { join, relative } from "node:path";
import type { FileTree } from "../../flow/files.ts";
import { EXIT } from "../../flow/verdict.ts";
import { RunnerError } from "../../run/errors.ts";
import { createFiles } from "../../run/world/files.ts";
import { findProject } from "../../run/world/project.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { repeatOnChange, watchedFiles } from "../../run/watch/files.ts";
import type { ChosenTest } from "./choose.ts";
import { readNamed, type TestsNamed } from "./read.ts";
import { reportersOf, writeReports } from "./reporters.ts";
import type { TestReport } from "./tested.ts";

/** What the command does once without --watch. */
export type TestingOnce = {
  readonly choose: (read: TestsNamed) => readonly ChosenTest[];
  readonly run: (read: TestsNamed, chosen: readonly ChosenTest[], signal: AbortSignal) => Promise<TestReport>;
  readonly tellProblems: (read: TestsNamed, files: FileTree) => unknown;
};

type Attempt = {
  /** Compared with the attempt before. */
  readonly result: string;
  readonly tell: () => unknown;
  /** Folders besides those that were read. */
  readonly folders: readonly string[];
};

/** Ctrl-C is a successful end. */
export async function watchTests(call: CallOf<"test">, root: string, once: TestingOnce): Promise<number> {
  const signal = call.host.interruption();
  const { agentsDir } = findProject(call.cwd, call.stateDir);
  let printed = "";
  call.screen.tell("Watching for changes; Ctrl-C ends.");
  await repeatOnChange(root, signal, async () => {
    const { files, read } = watchedFiles(createFiles(root));
    const { result, tell, folders } = await attempt(call, files, root, once, signal);
    if (result !== printed && !signal.aborted) await tell();
    printed = result;
    return [...read, ...[relative(root, agentsDir), ...folders].map((folder) => join(folder, "x"))];
  });
  return EXIT.completed;
}

/** A mistake in a file is printed and can be corrected. */
async function attempt(
  call: CallOf<"test">,
  files: FileTree,
  root: string,
  once: TestingOnce,
  signal: AbortSignal,
): Promise<Attempt> {
  try {
    const read = await readNamed(call, files);
    if (read.problems.length > 0)
      return {
        result: JSON.stringify(read.problems),
        tell: () => once.tellProblems(read, files),
        folders: [],
      };
    const chosen = once.choose(read);
    const report = await once.run(read, chosen, signal);
    const reporters = reportersOf(call.flags.reporter, call.flags.json);
    return {
      result: resultOf(report),
      tell: () => writeReports(call, reporters, report, root),
      folders: foldersOf(chosen, root),
    };
  } catch (error) {
    if (!(error instanceof RunnerError) && !(error instanceof UsageError)) throw error;
    const { message } = error;
    return { result: message, tell: () => call.screen.complain(call.typed(message)), folders: [] };
  }
}

/** What was written on the way, such as a snapshot, does not make a result new. */
function resultOf({ tested, coverage }: TestReport): string {
  return JSON.stringify([
    tested.map(({ agent, test: { file, line, name }, status, unmet, because }) => [
      agent,
      file,
      line,
      name,
      status,
      unmet,
      because,
    ]),
    coverage?.map(({ coverage: { totals }, missed }) => [totals, missed]),
  ]);
}

/** The folders that are copied for tests, and those of snapshots. */
function foldersOf(chosen: readonly ChosenTest[], root: string): readonly string[] {
  const copied = new Set(
    chosen.flatMap(({ test: { ground } }) => (ground.kind === "project" ? [ground.folder] : [])),
  );
  const agents = new Set(chosen.map(({ of: { agent } }) => agent));
  return [
    ...[...copied].flatMap((folder) => foldersIn(root, folder)),
    ...[...agents].map((agent) => `.agent/${agent}/tests/snapshots`),
  ];
}

function foldersIn(root: string, folder: string): readonly string[] {
  const inside = readdirSync(join(root, folder), { withFileTypes: true }).filter(
    (one) => one.isDirectory() && !NOT_COPIED.has(one.name),
  );
  return [folder, ...inside.flatMap(({ name }) => foldersIn(root, join(folder, name)))];
}

/** Too large to watch, or no part of a copy. */
const NOT_COPIED = new Set([".git", ".lockstep", "node_modules"]);
