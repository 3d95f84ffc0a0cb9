/**
 * The processes of coding agents: each with everything that it starts, and with a folder for temporary files. All of it is
 * gone at the end, also when our own process is killed: a watcher, which waits for the end of a pipe that only we hold,
 * then ends what is left.
 */
import { spawn, type ChildProcessByStdio } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { AgentProcess, AgentProcesses, AgentProgram } from "../../flow/machine/agent-process.ts";
import { SHELL } from "../../flow/machine/programs.ts";
import { AGENT_WATCHER, WATCHER_SCRIPT } from "./agent-watcher.ts";
import { createCapture } from "./capture.ts";
import { stdioOf } from "./descriptors.ts";
import { guard, unguard } from "./process.ts";
import { markOfRun } from "./strays.ts";
import { descendantsOf, endProcesses, endTree, killTree, MARKS, newMark } from "./tree.ts";

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** `stateDir`: where the run is recorded. Together with its id it distinguishes the processes of a run from all others. */
export function createAgentProcesses(prefix: string, stateDir: string): AgentProcesses<Child> {
  const own = newMark();
  const running = new Set<AgentProcess<Child>>();
  const tidied = new Map<string, string>();
  let opened: Promise<string> | null = null;
  let watcher: Watcher | null = null;
  let runMark = "";

  async function open(run: string): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), prefix));
    runMark = markOfRun(stateDir, run);
    watcher = watch(own, runMark, folder);
    return folder;
  }

  function start({ file, args, cwd, env }: AgentProgram): AgentProcess<Child> {
    const mark = newMark();
    const marks = [env[MARKS], runMark, own, mark].filter(Boolean).join(":");
    const child = spawn(file, args, {
      cwd,
      env: { ...env, [MARKS]: marks },
      detached: true,
      stdio: stdioOf(["pipe", "pipe", "pipe"]),
    }) as Child;
    const leader = child.pid;
    const printed = createCapture(MOST_PRINTED);
    child.stderr.on("data", printed.write);
    child.stdin.on("error", () => undefined); // it no longer reads: it is about to end
    const gone = goneOf(child);
    const kill = () => (leader === undefined ? undefined : killTree(leader, mark));
    const end = async () => {
      if (leader === undefined) return;
      const started = descendantsOf(leader);
      child.stdin.end();
      await endTree({ leader, mark }, PATIENCE_MS, GRACE_MS);
      await endProcesses(started);
      await gone;
      unguard(leader);
      running.delete(agent);
      watcher?.send(`-${leader}`);
    };
    const agent: AgentProcess<Child> = { child, gone, printed: () => printed.text(), kill, end };
    if (leader === undefined) return agent;
    guard(leader, mark);
    running.add(agent);
    watcher?.send(`+${leader}`);
    return agent;
  }

  async function close(): Promise<void> {
    const folder = await opened;
    await Promise.all([...running].map((agent) => agent.end()));
    for (const [home, keep] of tidied) await removeBut(home, keep);
    if (folder !== null) await rm(folder, { recursive: true, force: true });
    watcher?.dismiss();
  }

  return {
    open: (run) => (opened ??= open(run)),
    start,
    tidy: (folder, keep) => {
      if (tidied.has(folder)) return;
      tidied.set(folder, keep);
      watcher?.send(`${keep}:${encodeURIComponent(folder)}`);
    },
    close,
  };
}

const MOST_PRINTED = 4 * 1024;
/** An agent whose input ends should end by itself; then it is asked to, and then made to. */
const PATIENCE_MS = 200;
const GRACE_MS = 1000;
const DRAIN_MS = 500;

async function goneOf(child: Child): Promise<string> {
  const drained = new Promise((resolve) => child.stderr.once("close", resolve));
  const how = await new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(`could not be started: ${error.message}`));
    child.once("exit", (code, signal) => resolve(`ended (${signal ?? code})`));
  });
  // What it printed last may still be on its way; a child of its own may hold the pipe for ever.
  await Promise.race([drained, sleep(DRAIN_MS, undefined, { ref: false })]);
  return how;
}

async function removeBut(folder: string, keep: string): Promise<void> {
  const entries = await readdir(folder).catch(() => []);
  for (const entry of entries) {
    if (entry !== keep) await rm(join(folder, entry), { recursive: true, force: true });
  }
}

type Watcher = { readonly send: (word: string) => void; readonly dismiss: () => void };

/** Waiting, it is a shell; only when we are gone does it become a Node. null where there is no such shell. */
function watch(mark: string, runMark: string, folder: string): Watcher | null {
  if (process.platform === "win32") return null;
  const args = ["-c", AGENT_WATCHER, process.execPath, WATCHER_SCRIPT, mark, folder];
  const child = spawn(SHELL, args, {
    cwd: "/",
    env: { [MARKS]: runMark },
    detached: true,
    stdio: stdioOf(["pipe", "ignore", "ignore"]),
  });
  const stdin = child.stdin as Socket;
  child.on("error", () => undefined);
  stdin.on("error", () => undefined);
  child.unref();
  stdin.unref();
  return {
    send: (word) => void stdin.write(`${word}\n`),
    dismiss: () => void stdin.end("done\n"),
  };
}
