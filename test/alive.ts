/** Which processes are left of those that wrote down who they are, also in a PID namespace of their own. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** Lines such as `started 17 pid:[4026531836]` → those of the processes that are still there. */
export function alive(lines: readonly string[]): readonly string[] {
  const here = running();
  return lines.filter((line) => {
    const [, pid = "", namespace = ""] = /(\d+) (pid:\[\d+\])/.exec(line) ?? [];
    return namespace === OURS ? here.has(pid) : [...here.values()].includes(namespace);
  });
}

const OURS = readlinkSync("/proc/self/ns/pid");

/** By number, with the namespace of each; what ends meanwhile is not there any more. */
function running(): ReadonlyMap<string, string> {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return new Map(
    pids.flatMap((pid) => {
      try {
        // One that the kernel is clearing away has no memory any more, and runs nothing.
        if (readFileSync(`/proc/${pid}/cmdline`, "utf8") === "") return [];
        return [[pid, readlinkSync(`/proc/${pid}/ns/pid`)] as const];
      } catch {
        return [];
      }
    }),
  );
}
