/** Conversations with Claude Code that travel with a run: stored after each response, brought to the machine that goes on. */
import { constants, globSync } from "node:fs";
import { copyFile, mkdir, readFile, realpath, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Blobs } from "../../engine/ports.ts";
import type { Json } from "../../flow/json.ts";
import { memberAt } from "../untyped.ts";

export type ClaudeConversations = {
  /** Whether the conversation can be gone on with here. */
  readonly bring: (home: string, cwd: string, session: string) => Promise<boolean>;
  /** Stores it; gives what a mark says of it. */
  readonly keep: (home: string, run: string, mark: Json) => Promise<Json>;
};

/** Without blobs conversations are where they were made. */
export function createConversations(blobs: Blobs | undefined, marks: readonly Json[]): ClaudeConversations {
  const stored = new Map<string, string>();
  const note = (mark: Json) => {
    const [session, digest] = [memberAt(mark, "session"), memberAt(mark, "conversation")];
    if (typeof session === "string" && typeof digest === "string") stored.set(session, digest);
  };
  marks.forEach(note);
  return {
    bring: async (home, cwd, session) => {
      const found = fileOf(home, session);
      if (found !== null) await bringNear(found, await placeOf(home, cwd, session));
      if (blobs === undefined || found !== null) return true;
      const digest = stored.get(session);
      const bytes = digest === undefined || !isSession(session) ? null : await blobs.get(digest);
      if (bytes === null) return false;
      const file = await placeOf(home, cwd, session);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, bytes, { mode: 0o600 });
      return true;
    },
    keep: async (home, run, mark) => {
      const session = memberAt(mark, "session");
      const file = typeof session === "string" ? fileOf(home, session) : null;
      if (blobs === undefined || file === null) return mark;
      const conversation = await blobs.put(run, await readFile(file));
      const kept = { ...(mark as object), conversation } as Json;
      note(kept);
      return kept;
    },
  };
}

/** Claude Code looks for it in a folder that is named after the working directory. */
async function placeOf(home: string, cwd: string, session: string): Promise<string> {
  const folder = (await realpath(cwd)).replaceAll(/[^\dA-Za-z]/g, "-");
  return join(home, "projects", folder, `${session}.jsonl`);
}

/** A fork goes on with a conversation of its original, in a worktree of its own. */
async function bringNear(found: string, file: string): Promise<void> {
  if (found === file) return;
  try {
    await mkdir(dirname(file), { recursive: true });
    await copyFile(found, file, constants.COPYFILE_EXCL);
  } catch {
    // It is there already, or Claude Code says itself what it does not have.
  }
}

/** A journal may come from elsewhere: no name in it leads out of the folder. */
function isSession(session: string): boolean {
  return /^[\w-]{1,100}$/.test(session);
}

function fileOf(home: string, session: string): string | null {
  if (!isSession(session)) return null;
  const [found] = globSync(`projects/*/${session}.jsonl`, { cwd: home });
  return found === undefined ? null : join(home, found);
}
