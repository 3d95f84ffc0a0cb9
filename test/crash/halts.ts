/**
 * Places where a process can be made to halt: before, after and inside of the Nth git that is started, before and after the
 * Nth commit of a journal, and around the Nth change that it makes to files of the project itself. A process that has come there stops itself (SIGSTOP), so nothing depends on time.
 */
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** `after`: the work is done, and nobody has learned of it. `inside`: after one of the system calls that change files. */
export type Halt =
  | { readonly what: "git" | "write" | "file"; readonly nth: number; readonly when: "before" | "after" }
  | {
      readonly what: "git";
      readonly nth: number;
      readonly when: "inside";
      /** The Nth of the system calls with this name. */
      readonly call: string;
      readonly time: number;
    };

/** A folder with a `git` in it that halts, for the front of a PATH, and a module for `node --import` that does. */
export type Halts = {
  readonly folder: string;
  readonly bin: string;
  readonly preload: string;
  /** null: nothing halts. "record": every git is counted with the changes it makes. */
  readonly plan: (halt: Halt | "record" | null) => void;
  /** The number of the process that has halted; null: none has, or not yet. */
  readonly halted: () => number | null;
  readonly seen: () => Seen;
};

/** What there was since the plan was made. */
export type Seen = { readonly gits: readonly Git[]; readonly writes: number; readonly files: number };

/** `changes`: the system calls that changed files, where they were recorded. */
export type Git = { readonly command: string; readonly changes: readonly string[] };

const found = (program: string) =>
  spawnSync("sh", ["-c", `command -v ${program}`], { encoding: "utf8" }).stdout.trim();
const GIT = found("git");
/** Empty: it is not installed or may not trace, and nothing can halt inside of a git. */
export const STRACE =
  spawnSync("strace", ["-qq", "-D", "-o", "/dev/null", "true"]).status === 0 ? found("strace") : "";
const CHANGES = "write,rename,renameat2,link,unlink,unlinkat,mkdir,mkdirat,rmdir,ftruncate";

export function makeHalts(folder: string, isHurried = false): Halts {
  const [bin, preload] = [join(folder, "bin"), join(folder, "halting.mjs")];
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, "git"), wrapper(folder));
  chmodSync(join(bin, "git"), 0o755);
  writeFileSync(preload, module(folder) + (isHurried ? HURRIED : ""));
  const at = (name: string) => join(folder, name);
  const read = (name: string) => (existsSync(at(name)) ? readFileSync(at(name), "utf8") : "");
  return {
    folder,
    bin,
    preload,
    plan: (halt) => {
      for (const name of readdirSync(folder))
        if (name.startsWith("changes-") || ["halted", "inside", "calls", "writes", "files"].includes(name))
          rmSync(at(name));
      writeFileSync(at("count"), "0\n");
      writeFileSync(at("plan"), `${wordsOf(halt)}\n`);
    },
    halted: () => {
      const pid = /^\d+\n$/.test(read("halted")) ? Number(read("halted")) : null;
      if (pid === null || !isHalted(pid)) return null;
      // A process that is traced is often held for a moment.
      const isInside = read("plan").includes(" inside ");
      return isInside && !read("inside").includes("stopped by SIGSTOP") ? null : pid;
    },
    seen: () => {
      const calls = read("calls").split("\n").slice(0, -1);
      const gits = calls.map((command, index) => ({
        command,
        changes: [...read(`changes-${index + 1}`).matchAll(/^(\w+)\(/gm)].map((match) => match[1]!),
      }));
      return { gits, writes: read("writes").length, files: read("files").length };
    },
  };
}

function wordsOf(halt: Halt | "record" | null): string {
  if (halt === null) return "none";
  if (halt === "record") return "record";
  return [halt.what, halt.nth, halt.when, ...(halt.when === "inside" ? [halt.call, halt.time] : [])].join(
    " ",
  );
}

/** Without a program of its own but the one that it stands for: it is started some thirty times by a run. */
function wrapper(folder: string): string {
  return `#!/bin/sh
S='${folder}'
read -r n < "$S/count"; n=$((n + 1)); echo $n > "$S/count"
command=; skip=
for word; do
  if [ -n "$skip" ]; then skip=; continue; fi
  case $word in -c) skip=1;; -*) ;; *) command=$word; break;; esac
done
echo "$command" >> "$S/calls"
read -r what nth when call time < "$S/plan"
if [ "$what" = record ] && [ -n "${STRACE}" ]; then exec ${STRACE} -qq -D -o "$S/changes-$n" -e trace=${CHANGES} ${GIT} "$@"; fi
if [ "$what" != git ] || [ "$nth" != $n ]; then exec ${GIT} "$@"; fi
case $when in
before) echo $$ > "$S/halted"; kill -STOP $$; exec ${GIT} "$@";;
after) ${GIT} "$@"; code=$?; echo $$ > "$S/halted"; kill -STOP $$; exit $code;;
inside) echo $$ > "$S/halted"; exec ${STRACE} -qq -D -o "$S/inside" -e "trace=$call" -e "inject=$call:signal=STOP:when=$time" ${GIT} "$@";;
esac
`;
}

/** There is a second between two changes on GitHub. */
const HURRIED = `
import timers from "node:timers/promises";
const { setTimeout: wait } = timers;
timers.setTimeout = (ms, ...more) => wait(ms > 500 && ms <= 1000 ? 1 : ms, ...more);
syncBuiltinESMExports();
`;

/** Every change of a journal is committed by a statement of its own. */
function module(folder: string): string {
  return `import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { StatementSync } from "node:sqlite";
const { appendFileSync, readFileSync, writeFileSync } = fs;
const [what, nth, when] = readFileSync("${folder}/plan", "utf8").trim().split(" ");
const run = StatementSync.prototype.run;
const counts = { write: 0, file: 0 };
function come(to, at) {
  if (at === "before") appendFileSync("${folder}/" + to + "s", "."), counts[to]++;
  if (what !== to || counts[to] !== Number(nth) || when !== at) return;
  writeFileSync("${folder}/halted", process.pid + "\\n");
  process.kill(process.pid, "SIGSTOP");
}
StatementSync.prototype.run = function (...values) {
  if (this.sourceSQL !== "COMMIT") return run.apply(this, values);
  come("write", "before");
  const result = run.apply(this, values);
  come("write", "after");
  return result;
};
const isOurs = (path) =>
  typeof path === "string" && path.startsWith("${dirname(folder)}/project/") && !path.includes("/.lockstep/");
// Removing a folder calls the last two for each file in it.
for (const name of ["renameSync", "rmSync", "rmdirSync", "unlinkSync", "writeFileSync", "mkdirSync", "unlink", "rmdir"]) {
  const change = fs[name];
  fs[name] = (...values) => {
    if (!isOurs(values[0])) return change(...values);
    come("file", "before");
    const result = change(...values);
    if (name.endsWith("Sync")) come("file", "after");
    return result;
  };
}
syncBuiltinESMExports();
`;
}

/** Of a process, by its number, as the kernel has it. "": it has ended. */
function stateOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const state = stat.charAt(stat.lastIndexOf(")") + 2);
    return "ZX".includes(state) ? "" : state;
  } catch {
    return "";
  }
}

function isHalted(pid: number): boolean {
  return ["t", "T"].includes(stateOf(pid));
}

/** The processes that carry a mark in their environment. */
export function marked(mark: string): readonly number[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const isOne = readFileSync(`/proc/${name}/environ`, "latin1").includes(mark);
      return isOne && stateOf(Number(name)) !== "" ? [Number(name)] : [];
    } catch {
      return [];
    }
  });
}

/** The processes with a mark that were started with these words. */
export function markedAs(mark: string, words: readonly string[]): readonly number[] {
  return marked(mark).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8") === words.map((word) => `${word}\0`).join("");
    } catch {
      return false;
    }
  });
}

export function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended.
  }
}

/** Asks again until it is so. A machine under load may take its time, and one that hangs does not hold the suite. */
export async function until(what: string, isSo: () => boolean, limitMs = 120_000): Promise<void> {
  for (const since = performance.now(); !isSo(); await sleep(2))
    if (performance.now() - since > limitMs) throw new Error(`it did not come to this: ${what}`);
}
