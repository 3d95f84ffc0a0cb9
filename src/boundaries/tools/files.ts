/** Read, Write and Edit. */
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { lstat, open, rename, rm } from "node:fs/promises";
import { holdsRedacted, losesSecret, REDACTED } from "../../flow/text/redacted.ts";
import { pinnedReason } from "./pinned.ts";
import type { InGround, Pins } from "../../flow/machine/ground.ts";
import { defineTool, done, failedCall, type ToolOutcome, type Tool } from "./tool.ts";

export function fileTools(): readonly Tool[] {
  return [readTool(), writeTool(), editTool()];
}

const FILE_PATH = {
  type: "string",
  minLength: 1,
  description: "Path of the file, inside the working directory",
};

function readTool(): Tool {
  return defineTool<{ file_path: string; offset?: number; limit?: number }>({
    name: "Read",
    description: "Reads a text file and returns its lines with their numbers.",
    required: ["file_path"],
    properties: {
      file_path: FILE_PATH,
      offset: {
        type: "integer",
        minimum: 1,
        description: "Number of the first line to read; 1 if not given",
      },
      limit: {
        type: "integer",
        minimum: 1,
        description: `How many lines to read; ${MAX_LINES} if not given`,
      },
    },
    run: async ({ file_path, offset = 1, limit = MAX_LINES }, { ground }) => {
      const place = ground.reading(file_path);
      if (place.kind === "refused") return place;
      using pins = ground.pin();
      const file = await readPinned(pins, place.parts);
      if (file.kind === "unreadable") return failedCall(`Cannot read ${place.shown}: ${file.why}.`);
      return showLines(place.shown, file.text, offset, limit);
    },
  });
}

function writeTool(): Tool {
  return defineTool<{ file_path: string; content: string }>({
    name: "Write",
    description: "Writes a file as a whole. Folders that are missing are made; an existing file is replaced.",
    required: ["file_path", "content"],
    properties: { file_path: FILE_PATH, content: { type: "string", description: "The whole new content" } },
    run: async ({ file_path, content }, { ground, call, tidy }) => {
      const place = ground.writing(file_path);
      if (place.kind === "refused") return place;
      using pins = ground.pin();
      const existing = await lstat(makeWay(pins, place)).catch(() => null);
      if (existing !== null && !existing.isFile())
        return failedCall(`${place.shown} exists and is not a file.`);
      const isMarked = holdsRedacted(content);
      if (isMarked && tidy !== undefined && existing !== null) {
        const file = await readPinned(pins, place.parts);
        if (file.kind === "text" && losesSecret(file.text, tidy(file.text), content))
          return failedCall(
            `${place.shown} was not written: it holds a secret, which ${REDACTED} would replace. Change the other lines with Edit.`,
          );
      }
      await replaceFile(pins, place, content, existing?.mode ?? null, call);
      const verb = existing === null ? "Created" : "Replaced";
      const note = isMarked ? ` It holds ${REDACTED} as text, not the secret that this mark stands for.` : "";
      return done(`${verb} ${place.shown} (${Buffer.byteLength(content)} bytes).${note}`);
    },
  });
}

function editTool(): Tool {
  return defineTool<{ file_path: string; old_string: string; new_string: string; replace_all?: boolean }>({
    name: "Edit",
    description:
      "Replaces a piece of text in a file. old_string must occur exactly once, or replace_all must be true.",
    required: ["file_path", "old_string", "new_string"],
    properties: {
      file_path: FILE_PATH,
      old_string: {
        type: "string",
        minLength: 1,
        description: "The text to replace, exactly as in the file",
      },
      new_string: { type: "string", description: "What to put in its place" },
      replace_all: { type: "boolean", description: "Replace every occurrence" },
    },
    run: async ({ file_path, old_string, new_string, replace_all = false }, { ground, call }) => {
      const place = ground.writing(file_path);
      if (place.kind === "refused") return place;
      if (old_string === new_string)
        return failedCall("old_string and new_string are the same: nothing to do.");
      using pins = ground.pin();
      const file = await readPinned(pins, place.parts);
      if (file.kind === "unreadable") return failedCall(`Cannot edit ${place.shown}: ${file.why}.`);
      if (!file.exact)
        return failedCall(`Cannot edit ${place.shown}: it is not UTF-8 text, and saving would damage it.`);

      const [before, after] = withLineEndsOf(file.text, old_string, new_string);
      const pieces = file.text.split(before);
      const count = pieces.length - 1;
      if (count === 0)
        return failedCall(
          `old_string does not occur in ${place.shown}. ${holdsRedacted(old_string) ? `Leave out ${REDACTED}: a secret stands there.` : "Read the file and copy it exactly."}`,
        );
      if (count > 1 && !replace_all) {
        return failedCall(
          `old_string occurs ${count} times in ${place.shown}. Add lines around it until it is unique, or set replace_all.`,
        );
      }
      await replaceFile(pins, place, pieces.join(after), file.mode, call);
      return done(`Replaced ${count === 1 ? "1 occurrence" : `${count} occurrences`} in ${place.shown}.`);
    },
  });
}

const MAX_LINES = 2_000;
const MAX_LINE_LENGTH = 2_000;
/** Leaves room for a note within what is shown to a model. */
const MAX_SHOWN_BYTES = 60 * 1024;
const MAX_FILE_BYTES = 32 * 1024 * 1024;

export type TextFile =
  /** `exact`: writing the text back would give the same bytes. */
  | { readonly kind: "text"; readonly text: string; readonly exact: boolean; readonly mode: number }
  | { readonly kind: "unreadable"; readonly why: string };

/** The file with these parts, wherever their names lead by now. */
export async function readPinned(
  pins: Pins,
  parts: readonly string[],
  maxBytes = MAX_FILE_BYTES,
): Promise<TextFile> {
  try {
    return await readText(pins.at(parts), maxBytes);
  } catch (error) {
    return { kind: "unreadable", why: pinnedReason(error) };
  }
}

/** Should a link or a pipe have taken its place, it is not followed and not waited for. */
async function readText(path: string, maxBytes: number): Promise<TextFile> {
  const handle = await open(
    path,
    constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0),
  ).catch((error: NodeJS.ErrnoException) => error);
  if (handle instanceof Error) return { kind: "unreadable", why: pinnedReason(handle) };
  try {
    const stats = await handle.stat();
    if (!stats.isFile())
      return { kind: "unreadable", why: "it is not a file; use Glob to list what is in a folder" };
    if (stats.size > maxBytes) {
      return { kind: "unreadable", why: `it has ${stats.size} bytes, more than ${maxBytes}` };
    }
    const bytes = await handle.readFile();
    if (bytes.subarray(0, 8_192).includes(0)) {
      return { kind: "unreadable", why: `it is a binary file of ${bytes.length} bytes` };
    }
    const text = bytes.toString("utf8");
    return { kind: "text", text, exact: Buffer.from(text).equals(bytes), mode: stats.mode };
  } finally {
    await handle.close();
  }
}

function showLines(shown: string, text: string, offset: number, limit: number): ToolOutcome {
  if (text === "") return done(`${shown} is empty.`);
  const lines = text.replace(/\r?\n$/, "").split(/\r?\n/);
  if (offset > lines.length)
    return failedCall(`${shown} has only ${lines.length} lines; offset ${offset} is behind its end.`);
  const numbered: string[] = [];
  let bytes = 0;
  for (const [index, line] of lines.slice(offset - 1, offset - 1 + limit).entries()) {
    const entry = `${String(offset + index).padStart(6)}\t${shorten(line)}`;
    bytes += Buffer.byteLength(entry) + 1;
    if (bytes > MAX_SHOWN_BYTES) break;
    numbered.push(entry);
  }
  const next = offset + numbered.length;
  const rest =
    next > lines.length
      ? ""
      : `\n[lines ${next} to ${lines.length} are not shown; go on with offset ${next}]`;
  return done(numbered.join("\n") + rest);
}

function shorten(line: string): string {
  if (line.length <= MAX_LINE_LENGTH) return line;
  return `${line.slice(0, MAX_LINE_LENGTH)} [… ${line.length - MAX_LINE_LENGTH} characters cut]`;
}

/** Read shows lines without their ends, so a file with CRLF is to be met with CRLF. */
function withLineEndsOf(text: string, before: string, after: string): readonly [string, string] {
  if (text.includes(before) || !text.includes("\r\n")) return [before, after];
  const crlf = (piece: string) => piece.replace(/\r?\n/g, "\r\n");
  return [crlf(before), crlf(after)];
}

/**
 * All or nothing: the new content takes the file's place in one step, with the old file's mode. What a killed process left
 * behind is under the name that the same call has again when it is repeated.
 */
async function replaceFile(
  pins: Pins,
  place: InGround,
  content: string,
  mode: number | null,
  call: string,
): Promise<void> {
  const mark = createHash("sha256").update(`${call}\0${place.path}`).digest("hex").slice(0, 16);
  const path = makeWay(pins, place);
  const temporary = pins.at([...place.parts.slice(0, -1), `.lockstep-${mark}.tmp`]);
  try {
    await rm(temporary, { force: true });
    const handle = await open(temporary, "wx", 0o666);
    try {
      if (mode !== null) await handle.chmod(mode & 0o777);
      await handle.writeFile(content);
    } finally {
      await handle.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw new Error(`${place.shown} was not written: ${pinnedReason(error)}`, { cause: error });
  }
}

/** The path to the file, in a folder that is made if it is missing. */
function makeWay(pins: Pins, { parts, shown }: InGround): string {
  try {
    return pins.at(parts, "make");
  } catch (error) {
    throw new Error(`the folder of ${shown} cannot be used: ${pinnedReason(error)}`, { cause: error });
  }
}
