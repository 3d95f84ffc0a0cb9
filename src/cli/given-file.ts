/** A file that a line names: read from the folder that the call works in. */
import { resolve } from "node:path";
import { RunnerError } from "../run/errors.ts";
import { readWritten } from "../run/world/files.ts";
import type { CommandCall } from "./call.ts";

/** Throws with this code when it cannot be read. */
export function readGiven(
  { cwd }: Pick<CommandCall, "cwd">,
  file: string,
  code: string,
  most?: number,
): string {
  try {
    return readWritten(resolve(cwd, file), most);
  } catch (cause) {
    const { code: why = "", message } = cause as NodeJS.ErrnoException;
    const where = why === "ENOENT" ? ` in ${resolve(cwd)}` : "";
    throw new RunnerError(code, `${file} cannot be read: ${message}${where}.`, { cause });
  }
}
