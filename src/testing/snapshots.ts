/** The snapshots of an agent's tests on disk: compared, written where there is none yet, and updated. */
import { lstatSync, mkdirSync, realpathSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { RunnerError } from "../engine/ports.ts";
import type { FileTree } from "../flow/files.ts";
import type { FlowTest } from "../flow/flow-test.ts";
import type { Unmet } from "../proof/expect.ts";
import { changedLines, snapshotPaths } from "../proof/snapshot.ts";
import { isInsideProject } from "../run/world/files.ts";
import { writeWhole } from "../run/world/write-whole.ts";
import { makeFolder } from "../journal/make-folder.ts";

export type SnapshotOptions = {
  readonly root: string;
  readonly files: FileTree;
  /** All tests of the agent, whether they are run or not. */
  readonly tests: readonly FlowTest[];
  readonly agent: string;
  /** Rewrites those that differ, and removes those that belong to no test. */
  readonly update: boolean;
  /** A missing one fails, and is not written. */
  readonly isCi: boolean;
};

export type Snapshots = {
  /** null: it is as it was, or it was written. */
  readonly compare: (test: FlowTest, text: string) => Unmet | null;
  /** Those that belong to no test; with `update` they are removed. */
  readonly stale: () => readonly string[];
  readonly written: readonly string[];
};

export function openSnapshots(options: SnapshotOptions): Snapshots {
  const { root, files, tests, agent, update, isCi } = options;
  const paths = snapshotPaths(tests);
  const written: string[] = [];
  const write = (path: string, text: string) => {
    requireOwnFolder(root, dirname(path));
    if (lstatSync(join(root, path), { throwIfNoEntry: false })?.isFile() === false)
      throw new RunnerError("NOT_WRITABLE", `${path} is not a file: the snapshot is not written there.`);
    writeWhole(join(root, path), text);
    written.push(path);
    return null;
  };
  return {
    written,
    compare: (test, text) => {
      const path = paths.get(test);
      if (path === undefined) return null;
      const found = files.read(path);
      if (found.kind === "text" && found.text === text) return null;
      if (update || (found.kind === "missing" && !isCi)) return write(path, text);
      const about = { key: "snapshot", line: test.expect.lines.snapshot ?? test.line, at: "" };
      if (found.kind !== "text") {
        const got = `none. Write it with: lockstep test ${agent} --update`;
        return { ...about, expected: `a snapshot in ${path}`, got };
      }
      const got = `other text. If it is as it should be: lockstep test ${agent} --update`;
      return { ...about, expected: `what ${path} holds`, got, diff: changedLines(found.text, text) };
    },
    stale: () => {
      const stale = staleSnapshots(agent, tests, files);
      for (const path of update ? stale : []) {
        requireOwnFolder(root, dirname(path));
        rmSync(join(root, path), { force: true });
      }
      return stale;
    },
  };
}

/** Snapshots that belong to no test. */
export function staleSnapshots(
  agent: string,
  tests: readonly FlowTest[],
  files: Pick<FileTree, "list">,
): readonly string[] {
  const kept = new Set(snapshotPaths(tests).values());
  const folder = `.agent/${agent}/tests/snapshots`;
  return (files.list(folder) ?? [])
    .filter((name) => name.endsWith(".md"))
    .map((name) => `${folder}/${name}`)
    .filter((path) => !kept.has(path));
}

/** A link in a cloned project must not make us write or remove elsewhere. */
function requireOwnFolder(root: string, folder: string): void {
  const path = join(root, folder);
  makeFolder(dirname(path));
  const known = lstatSync(path, { throwIfNoEntry: false });
  const isOwn =
    isInsideProject(realpathSync.native(root), realpathSync.native(dirname(path))) &&
    (known === undefined || known.isDirectory());
  if (!isOwn)
    throw new RunnerError(
      "NOT_WRITABLE",
      `${folder} leads out of the project or is not a folder: snapshots are not written there.`,
    );
  if (known === undefined) mkdirSync(path);
}
