/** `check --fix`: corrects in the files what has one right answer, and reports it. */
import { notWritable, writeWhole } from "../../run/world/write-whole.ts";
import { join } from "node:path";
import { applyFixes, type AppliedFix } from "../../load/fix.ts";
import { createFiles } from "../../run/world/files.ts";
import { load } from "../../run/load.ts";
import { findProject } from "../../run/world/project.ts";
import { shownInLine, type Paint } from "../text/text.ts";

/** Everything that was changed, or under `dryRun` would be. */
export async function fixAgents(
  names: readonly string[],
  cwd: string,
  dryRun: boolean,
): Promise<readonly AppliedFix[]> {
  const { root } = findProject(cwd);
  const all: AppliedFix[] = [];
  for (const name of names) {
    const { changes, texts } = await applyFixes(
      createFiles(root),
      async (files) => (await load(name, { cwd, files })).problems,
    );
    all.push(...changes);
    if (dryRun) continue;
    for (const [file, text] of texts) write(join(root, file), text);
  }
  return all;
}

export function fixesText(changes: readonly AppliedFix[], dryRun: boolean, paint: Paint): string {
  if (changes.length === 0) return "Nothing can be fixed automatically.";
  const word = dryRun ? "would fix" : "fixed";
  return changes
    .map(({ code, file, line, before, after }) => {
      const change = before === "" ? `+ ${after}` : `${before} → ${after}`;
      const place = paint("bold", `${shownInLine(file)}:${line}`);
      return `${place}  ${paint("green", word)}  ${code}\n  ${shownInLine(change)}`;
    })
    .join("\n");
}

function write(path: string, text: string): void {
  try {
    writeWhole(path, text);
  } catch (cause) {
    throw notWritable(`${path} cannot be fixed`, path, cause);
  }
}
