/** The programs that a command starts, as the kernel saw them: every successful `execve`, inside a sandbox or outside. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { start, type Ran, type Surroundings } from "../cli/world.ts";

export type Program = {
  /** As it was given to the kernel. */
  readonly path: string;
  readonly args: string;
  /** It runs in a mount namespace that was made after the command began. */
  readonly inside: boolean;
};

export type Traced = { readonly ran: Ran; readonly programs: readonly Program[] };

/** Whether strace works here: it may be missing, and a container may forbid it. */
export function canTrace(): [present: boolean, missing: string] {
  const { status, stderr, error } = spawnSync("strace", ["-f", "-qq", "-e", "trace=execve", "true"], {
    encoding: "utf8",
  });
  return [status === 0, `strace does not work here (apt install strace): ${error?.message ?? stderr}`];
}

export async function traced(
  program: string,
  args: readonly string[],
  cwd: string,
  around: Surroundings,
): Promise<Traced> {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-trace-"));
  const log = join(folder, "log");
  const calls = "trace=execve,execveat,clone,clone3,fork,vfork,unshare,setns";
  const flags = ["-f", "-qq", "--seccomp-bpf", "--pidns-translation", "-e", calls, "-e", "signal=none"];
  try {
    const ran = await start(STRACE, [...flags, "-s", "200", "-o", log, program, ...args], cwd, around);
    return { ran, programs: programsIn(readFileSync(log, "utf8")) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const STRACE = spawnSync("sh", ["-c", "command -v strace"], { encoding: "utf8" }).stdout.trim() || "strace";

/** A call may be reported in two lines, when another process came in between: the halves are joined first. */
export function programsIn(log: string): readonly Program[] {
  const halves = new Map<string, string>();
  const calls: { readonly pid: string; readonly text: string }[] = [];
  for (const line of log.split("\n")) {
    const [, pid = "", text = ""] = /^(\d+) +(.*)$/.exec(line) ?? [];
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(text);
    if (text.endsWith("<unfinished ...>")) halves.set(pid, text.replace(/ *<unfinished \.\.\.>$/, ""));
    else if (resumed !== null) calls.push({ pid, text: (halves.get(pid) ?? "") + (resumed[1] ?? "") });
    else if (pid !== "") calls.push({ pid, text });
  }
  const parents = new Map<string, string>();
  const entered = new Set<string>();
  for (const { pid, text } of calls) {
    if (/^(?:unshare|setns)\(.*CLONE_NEWNS.*= 0/.test(text)) entered.add(pid);
    const made = /^(?:v?fork|clone3?)\(.*= (\d+)(?: \/\* (\d+) in strace's PID NS \*\/)?$/.exec(text);
    const child = made?.[2] ?? made?.[1];
    if (child === undefined) continue;
    parents.set(child, pid);
    if (text.includes("CLONE_NEWNS")) entered.add(child);
  }
  const isInside = (pid: string | undefined): boolean =>
    pid !== undefined && (entered.has(pid) || isInside(parents.get(pid)));
  return calls.flatMap(({ pid, text }) => {
    const [, path, args] =
      /^execve(?:at)?\((?:\w+, )?"([^"]*)", \[(.*?)\](?:\.\.\.)?, .*= 0$/.exec(text) ?? [];
    return path === undefined ? [] : [{ path, args: args ?? "", inside: isInside(pid) }];
  });
}
