/** Whether a file of the working folder is as a stop rule wants it. */
import { realpath } from "node:fs/promises";
import { dirname, isAbsolute, resolve } from "node:path";
import type { Sight } from "../../flow/event.ts";
import type { FileState, Resource } from "../../flow/flow.ts";
import type { JsonObject } from "../../flow/json.ts";
import { fillArgument } from "../actions/arguments.ts";
import type { Grounded } from "../../flow/machine/ground.ts";
import { isWithinFolder, openToRead, reasonOf } from "../grounded.ts";
import { matchesPattern } from "../checks/match-pattern.ts";

export async function lookAtFile(
  { path: template, want }: Extract<Resource, { kind: "file" }>,
  args: JsonObject,
  { cwd, ground }: { readonly cwd: string; readonly ground?: Grounded },
  signal: AbortSignal,
): Promise<Sight> {
  const filled = fillArgument(template, args, (text) => text);
  if (filled.kind === "unresolved") return { met: false, what: filled.why };
  const path = filled.text;
  try {
    const place = await findPlace(cwd, path);
    if (place.kind === "refused") return { met: false, what: `${path} was not looked at: ${place.why}` };
    const judged = ground?.reading(path);
    if (judged?.kind === "refused") return { met: false, what: `${path} was not looked at: ${judged.why}` };
    if (place.kind === "missing") return { met: want.kind === "absent", what: `${path} is not there` };
    using pins = ground?.pin();
    const real = judged === undefined || pins === undefined ? place.real : pins.at(judged.parts);
    return await judge(real, path, want, signal);
  } catch (error) {
    return { met: false, what: `${path} cannot be read: ${reasonOf(error)}` };
  }
}

type Place =
  | { readonly kind: "there"; readonly real: string }
  | { readonly kind: "missing" }
  | { readonly kind: "refused"; readonly why: string };

/** Links are followed only while they stay inside; that something is missing is reported only of folders inside. */
async function findPlace(cwd: string, path: string): Promise<Place> {
  const full = resolve(cwd, path);
  if (isAbsolute(path) || path.includes("\0") || !isWithinFolder(cwd, full))
    return { kind: "refused", why: "it leads out of the working folder" };
  const top = await realpath(cwd);
  for (let here = full; ; here = dirname(here)) {
    const real = await realpath(here).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT" || error.code === "ENOTDIR") return null;
      throw error;
    });
    if (real === null) continue;
    if (!isWithinFolder(top, real)) return { kind: "refused", why: "a link leads out of the working folder" };
    return here === full ? { kind: "there", real } : { kind: "missing" };
  }
}

async function judge(real: string, path: string, want: FileState, signal: AbortSignal): Promise<Sight> {
  if (want.kind === "exists" || want.kind === "absent")
    return { met: want.kind === "exists", what: `${path} is there` };
  const head = await readHead(real);
  if (head === null) return { met: false, what: `${path} is not a file` };
  const { text, isWhole } = head;
  const { ok, why } =
    want.kind === "contains"
      ? { ok: text.includes(want.text), why: undefined }
      : await matchesPattern(want.pattern, text, signal);
  const sought = want.kind === "contains" ? JSON.stringify(want.text) : `/${want.pattern}/`;
  if (ok) return { met: true, what: `${path} holds ${sought}` };
  const cut = isWhole ? "" : `, of which only the first ${MOST_READ} bytes are read`;
  return { met: false, what: `${path} does not hold ${sought}${cut}${why === undefined ? "" : `: ${why}`}` };
}

const MOST_READ = 1024 * 1024;

type Head = { readonly text: string; readonly isWhole: boolean };

/** null: it is not a file. */
async function readHead(file: string): Promise<Head | null> {
  const handle = await openToRead(file);
  try {
    if (!(await handle.stat()).isFile()) return null;
    const buffer = Buffer.alloc(MOST_READ + 1);
    let size = 0;
    for (let read = -1; read !== 0 && size < buffer.length; size += read) {
      ({ bytesRead: read } = await handle.read(buffer, size, buffer.length - size, size));
    }
    return { text: buffer.toString("utf8", 0, Math.min(size, MOST_READ)), isWhole: size <= MOST_READ };
  } finally {
    await handle.close();
  }
}
