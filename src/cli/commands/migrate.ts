/** `lockstep migrate NAME`: shows what the files would become; `--write` writes them. */
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { diff } from "node:util";
import { hasErrors } from "../../flow/problem.ts";
import { EXIT } from "../../flow/verdict.ts";
import { migrateAgent, type FileChange } from "../../load/migrate.ts";
import { RunnerError } from "../../run/errors.ts";
import { createFiles } from "../../run/world/files.ts";
import { notWritable } from "../../run/world/write-whole.ts";
import { findProject } from "../../run/world/project.ts";
import { loadNamed } from "../agent.ts";
import type { CallOf } from "../commands.ts";
import { countProblems } from "../text/problems.ts";
import { count, shown, shownInLine, type Paint } from "../text/text.ts";

export async function migrateFiles(call: CallOf<"migrate">): Promise<number> {
  const [name = ""] = call.words;
  const { root } = findProject(call.cwd);
  const before = await loadNamed(name, call.cwd);
  if (before.flow === null) {
    const [first] = before.problems;
    throw new RunnerError(
      "FLOW_INVALID",
      `${name} cannot be read, so it cannot be migrated: ${first?.message ?? ""}`,
    );
  }
  // Stage files have had one form only.
  const isStages = before.flow.dialect === "stage";
  const { changes, notes } = isStages ? { changes: [], notes: [] } : migrateAgent(name, createFiles(root));
  const isWritten = call.flags.write && changes.length > 0;
  if (isWritten) for (const change of changes) write(root, change);
  const after = isWritten ? await loadNamed(name, call.cwd) : null;

  if (call.flags.json) call.screen.document({ v: 1, agent: name, written: isWritten, changes, notes });
  else {
    const lines = changes.length === 0 ? [`${shownInLine(name)} already has the current format.`] : [];
    call.screen.print(
      [
        ...lines,
        ...changes.map((change) => unified(change, call.screen.out)),
        ...notes.map((note) => `! ${shown(note)}`),
      ].join("\n"),
    );
    if (after !== null)
      call.screen.tell(`${count(changes.length, "file")} written; check: ${countProblems(after.problems)}`);
    else if (changes.length > 0) call.screen.tell("Nothing was written; write the files with --write.");
  }
  return after !== null && hasErrors(after.problems) ? EXIT.invalid : EXIT.completed;
}

/** Whole or not at all. */
function write(root: string, { path, after }: FileChange): void {
  const file = join(root, path);
  const draft = `${file}.${process.pid}.new`;
  try {
    // Never through a link: the folder may be a clone of somebody else's.
    writeFileSync(draft, after, { flag: "wx" });
    renameSync(draft, file);
  } catch (cause) {
    throw notWritable(`${path} cannot be migrated`, file, cause);
  }
}

const CONTEXT = 3;

/** The changed lines with a few around them. */
function unified({ path, before, after }: FileChange, paint: Paint): string {
  const lines = diff(before.split("\n"), after.split("\n")).map(([side, line]) => ({ side, line }));
  const near = lines.map((_, at) =>
    lines.slice(Math.max(0, at - CONTEXT), at + CONTEXT + 1).some(({ side }) => side !== 0),
  );
  const out = [paint("bold", `--- ${shownInLine(path)}`)];
  for (const [at, { side, line }] of lines.entries()) {
    if (!near[at]) {
      if (near[at - 1]) out.push(paint("dim", "  …"));
      continue;
    }
    const text = shownInLine(line, 400);
    out.push(side === 0 ? `  ${text}` : side > 0 ? paint("red", `- ${text}`) : paint("green", `+ ${text}`));
  }
  return out.join("\n");
}
