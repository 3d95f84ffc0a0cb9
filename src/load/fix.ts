/** Automatic fixes: applies the edits that findings carry, round by round until none is left. */
import type { Files, FileTree } from "../flow/files.ts";
import type { Problem } from "../flow/problem.ts";
import { editJson } from "./text/edit.ts";

/** One thing that was changed. `line` is that of the text it was made in. */
export type AppliedFix = {
  readonly code: string;
  readonly file: string;
  readonly line: number;
  readonly pointer: string;
  /** "" for what was not there. */
  readonly before: string;
  readonly after: string;
};

export type FixedFiles = {
  readonly changes: readonly AppliedFix[];
  /** The new text of each file that changed. */
  readonly texts: ReadonlyMap<string, string>;
};

/** One mistake may hide another: a word must be spelled right before it can be seen to lead nowhere. */
const ROUNDS = 20;

/** Nothing is written: `problemsOf` is asked again and again about files in which the edits are made. */
export async function applyFixes(
  files: FileTree,
  problemsOf: (files: FileTree) => Promise<readonly Problem[]>,
): Promise<FixedFiles> {
  const texts = new Map<string, string>();
  const changes: AppliedFix[] = [];
  const changed: FileTree = {
    list: files.list,
    read: (path) => {
      const text = texts.get(path);
      return text === undefined ? files.read(path) : { kind: "text", text };
    },
  };
  for (let round = 0; round < ROUNDS; round++) {
    const mended = mendOnce(changed, await problemsOf(changed));
    if (mended.changes.length === 0) break;
    changes.push(...mended.changes);
    for (const [file, text] of mended.texts) texts.set(file, text);
  }
  return { changes, texts };
}

/** The edits of one round; those that get into each other's way wait for the next. */
export function mendOnce(files: Files, problems: readonly Problem[]): FixedFiles {
  const edits = problems.flatMap(({ code, mend = [] }) => mend.map((edit) => ({ ...edit, code })));
  const texts = new Map<string, string>();
  const changes: AppliedFix[] = [];
  for (const [file, wanted] of Map.groupBy(edits, (edit) => edit.file)) {
    const read = files.read(file);
    if (read.kind !== "text") continue;
    const mark = read.text.startsWith("\uFEFF") ? "\uFEFF" : "";
    const edited = editJson(read.text.slice(mark.length), wanted);
    if (edited.changes.length === 0) continue;
    texts.set(file, mark + edited.text);
    for (const { edit, line, before, after } of edited.changes) {
      changes.push({ code: edit.code, file, line, pointer: edit.pointer, before, after });
    }
  }
  return { changes, texts };
}
