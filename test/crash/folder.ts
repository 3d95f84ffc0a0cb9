/** A folder for what is killed and raced over. */
import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** In memory where that can be: what a kill leaves is the same there, and only power loss tells it from a disk. */
export function quickFolder(name: string): string {
  const memory = "/dev/shm";
  return mkdtempSync(join(existsSync(memory) ? memory : tmpdir(), `lockstep-${name}-`));
}
