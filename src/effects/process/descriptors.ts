/** Which descriptors our process was started with that Node does not keep from its children. */
import { openSync, readdirSync, readFileSync } from "node:fs";
import { sealed, type Stdio } from "../../flow/machine/descriptors.ts";

/** What a child is given: its own descriptors, and nothing behind any number that we inherited. */
export function stdioOf(own: readonly Stdio[]): Stdio[] {
  inherited ??= findInherited();
  if (inherited.length === 0) return [...own];
  nothing ??= openSync("/dev/null", "r+");
  return sealed(own, inherited, nothing);
}

/** Looked for once: whatever Node opens itself is closed in children. */
let inherited: readonly number[] | null = null;
let nothing: number | null = null;

const CLOSED_IN_CHILDREN = 0o2000000;

/** Node marks the low numbers itself and stops at the first gap above 15. */
function findInherited(): readonly number[] {
  try {
    const numbers = readdirSync("/proc/self/fd").map(Number);
    return numbers.filter((number) => number > 2 && !isClosedInChildren(number));
  } catch {
    return []; // no such list on this system
  }
}

function isClosedInChildren(number: number): boolean {
  try {
    const flags = /^flags:\s+(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${number}`, "utf8"))?.[1];
    return flags === undefined || (Number.parseInt(flags, 8) & CLOSED_IN_CHILDREN) !== 0;
  } catch {
    return true; // it was open only while the list was read
  }
}
