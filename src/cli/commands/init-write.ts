/** Writing a new agent: all of its files or nothing, and never through a link that leads out of the project. */
import { lstatSync, mkdtempSync, realpathSync, renameSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { errorText } from "../../flow/text/harmless.ts";
import { RunnerError } from "../../run/errors.ts";
import { makeFolder } from "../../run/world/files.ts";

type Place = { readonly root: string; readonly agentsDir: string };

/** NOT_WRITABLE where the folder of the agents is something else, or leads elsewhere. */
export function requireAgentsFolder({ root, agentsDir }: Place): void {
  const found = lstatSync(agentsDir, { throwIfNoEntry: false });
  if (found?.isSymbolicLink()) requireInside(root, agentsDir);
  else if (found !== undefined && !found.isDirectory())
    throw unwritten(`${agentsDir} is not a folder. Move it away`);
}

/** As above, and USAGE where the agent is there. */
export function requireFree(place: Place, name: string): void {
  requireAgentsFolder(place);
  const folder = join(place.agentsDir, name);
  // Also a link that leads nowhere.
  if (lstatSync(folder, { throwIfNoEntry: false }) !== undefined)
    throw new RunnerError(
      "USAGE",
      `${folder} is there already, and nothing in it is overwritten. Choose another name.`,
    );
}

function requireInside(root: string, link: string): void {
  const target = realOf(link);
  if (target === null) throw unwritten(`${link} is a link that leads nowhere. Remove it`);
  if (!`${target}${sep}`.startsWith(`${realpathSync(root)}${sep}`))
    throw unwritten(`${link} is a link out of the project, to ${target}. Replace it with a folder`);
  if (!lstatSync(target).isDirectory())
    throw unwritten(`${link} is a link to ${target}, which is not a folder. Remove it`);
}

function realOf(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}

/** `texts`: by path below the folder of the agent. Where it fails, nothing is left that was not there before. */
export function writeAgent(
  { root, agentsDir }: Place,
  name: string,
  texts: { readonly [path: string]: string },
): void {
  let made: string | undefined;
  let draft: string | undefined;
  let isWritten = false;
  try {
    made = makeFolder(agentsDir);
    // The files are a level deeper than those of an agent, so that a draft is never taken for one.
    draft = mkdtempSync(join(agentsDir, ".new-"));
    for (const [path, text] of Object.entries(texts)) {
      const file = join(draft, name, path);
      makeFolder(dirname(file));
      writeFileSync(file, text, { flag: "wx" });
    }
    renameSync(join(draft, name), join(agentsDir, name));
    isWritten = true;
  } catch (cause) {
    throw unwritten(unwrittenReason(cause, root), cause);
  } finally {
    if (draft !== undefined) rmSync(draft, { recursive: true, force: true });
    if (made !== undefined && !isWritten) removeEmpty(made);
  }
}

/** Somebody else may have put an agent of their own into it. */
function removeEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // It is not empty, or gone.
  }
}

/** What the system said, as the cause and the first thing to do about it. */
export function unwrittenReason(cause: unknown, root: string): string {
  const { code = "" } = cause instanceof Error ? (cause as NodeJS.ErrnoException) : {};
  switch (code) {
    case "ENOSPC":
      return "the disk is full. Make room on it";
    case "EDQUOT":
      return "your quota of the disk is used up. Make room on it";
    case "EROFS":
      return `${root} is on a file system that can only be read. Mount it for writing`;
    case "EACCES":
    case "EPERM":
      return `you may not write there (${errorText(cause)}). Make ${root} writable`;
    case "ENOTEMPTY":
    case "EEXIST":
      return `somebody else has just written there (${errorText(cause)}). Choose another name`;
    default:
      return `${errorText(cause)}. Remove the cause`;
  }
}

/** `reason`: with what can be done about it at its end. */
function unwritten(reason: string, cause?: unknown): RunnerError {
  return new RunnerError(
    "NOT_WRITABLE",
    `The agent cannot be written: ${reason}, or choose another folder with --cwd DIR.`,
    { cause },
  );
}
