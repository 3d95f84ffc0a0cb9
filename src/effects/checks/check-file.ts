/** A check that something is where it belongs: below the working directory, also when links are followed. */
import { lstatSync, realpathSync } from "node:fs";
import { resolve } from "node:path";
import type { CheckResult } from "../../flow/event.ts";
import type { FailureParams } from "../../flow/failure.ts";
import type { Check } from "../../flow/flow.ts";
import type { Grounded } from "../../flow/machine/ground.ts";
import { isWithinFolder } from "../grounded.ts";
import { oneLine } from "../process/output.ts";

export function judgeFile(
  { name, pattern, path }: Extract<Check, { kind: "file" }>,
  cwd: string,
  ground?: Grounded,
): CheckResult {
  const fault = findFault(cwd, path) ?? (ground === undefined ? null : findTrespass(ground, path));
  const summary = `\`${oneLine(path)}\` ${fault?.why ?? "is there"}.`;
  const params: FailureParams<"file"> = { missingFiles: [path], expectedPath: path, summary };
  return {
    name,
    ok: fault === null,
    pattern,
    summary,
    params: fault === null ? {} : params,
    ...(fault?.isForbidden ? { unrecoverable: true } : {}),
  };
}

type Fault = { readonly why: string; readonly isForbidden?: true };

function findFault(cwd: string, path: string): Fault | null {
  try {
    const root = realpathSync.native(cwd);
    const isInside = isWithinFolder(root, realpathSync.native(resolve(root, path)));
    return isInside ? null : { why: "leads out of the working directory" };
  } catch (error) {
    const { code = "an unknown fault" } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return { why: "is not there" };
    if (code === "EACCES" || code === "EPERM") return { why: "may not be looked at", isForbidden: true };
    return { why: `cannot be looked at: ${code}` };
  }
}

/** It is looked at where it was judged to be, whatever its name leads to by then. */
function findTrespass(ground: Grounded, path: string): Fault | null {
  const place = ground.reading(path);
  if (place.kind === "refused") return { why: `may not be looked at: ${place.why}`, isForbidden: true };
  try {
    using pins = ground.pin();
    lstatSync(pins.at(place.parts));
    return null;
  } catch {
    return { why: "is not there" };
  }
}
