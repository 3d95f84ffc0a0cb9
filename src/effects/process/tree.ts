/**
 * All the processes that one command started, and how to be rid of them.
 *
 * A command runs in a process group of its own, but a child may leave the group (`setsid`, a daemon). So each command
 * also gets a mark in its environment, which every descendant inherits: where there is a /proc, strays are found by it.
 * A child that leaves the group *and* wipes its environment is beyond this; only a PID namespace holds that one.
 */
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** `mark` is null where no process can have left the group. */
export type ProcessTree = { readonly leader: number; readonly mark: string | null };

/** The variable that carries the marks: this command's, after those of the commands it runs inside of. */
export const MARKS = "LOCKSTEP_TREE";

export function newMark(): string {
  return randomUUID();
}

/** Waits `patienceMs` for the tree to be gone, then asks it to end, then forces it. */
export async function endTree(tree: ProcessTree, patienceMs: number, graceMs: number): Promise<void> {
  if (await isGone(tree, patienceMs)) return;
  signalTree(tree, "SIGTERM");
  if (await isGone(tree, graceMs)) return;
  for (let round = 0; round < KILL_ROUNDS; round += 1) {
    signalTree(tree, "SIGKILL");
    if (await isGone(tree, POLL_MS)) return;
  }
}

/**
 * Whether a PID namespace ended within this time, by its first process: the kernel lets that one become a zombie only
 * when all the others are gone. False if the first process is not known.
 */
export async function isNamespaceGone(first: number | null, withinMs: number): Promise<boolean> {
  if (first === null) return false;
  for (const since = performance.now(); ; await sleep(NAMESPACE_POLL_MS)) {
    if (!isLiving(first)) return true;
    if (performance.now() - since >= withinMs) return false;
  }
}

const NAMESPACE_POLL_MS = 1;

/** At once and without waiting, for a process that has no time left. Without a mark only the group is known. */
export function killTree(leader: number, mark: string | null): void {
  if (mark !== null) signalTree({ leader, mark }, "SIGKILL");
  else send(-leader, "SIGKILL");
}

/** Every process that carries the mark: waits for them to be gone, asks them to end, then forces them. Names those. */
export async function endMarked(
  mark: string,
  patienceMs: number,
  graceMs: number,
): Promise<readonly string[]> {
  // No group has this number, so only the mark counts.
  const tree = { leader: NO_GROUP, mark };
  if (await isGone(tree, patienceMs)) return [];
  const names = targets(tree).map((pid) => readProc(pid, "comm").trim() || `process ${pid}`);
  await endTree(tree, 0, graceMs);
  return names;
}

const NO_GROUP = 2 ** 30;

/** One process, and not another one that got its number later. */
export type KnownProcess = { readonly pid: number; readonly since: string };

/** What a process has started, and what that has started; nothing where the system has no /proc. */
export function descendantsOf(leader: number): readonly KnownProcess[] {
  const all = (runningPids() ?? []).map((pid) => ({ pid, stat: statOf(pid) }));
  const found = new Set([leader]);
  for (let size = 0; size !== found.size;) {
    size = found.size;
    for (const { pid, stat } of all) if (found.has(Number(stat.parent))) found.add(pid);
  }
  found.delete(leader);
  return all.flatMap(({ pid, stat: { since = "" } }) => (found.has(pid) ? [{ pid, since }] : []));
}

/** Those that left their group and wiped their environment are known by their parents only, as long as these live. */
export async function endProcesses(known: readonly KnownProcess[]): Promise<void> {
  const living = () => known.filter(({ pid, since }) => isLiving(pid) && statOf(pid).since === since);
  for (let round = 0; round < KILL_ROUNDS && living().length > 0; round += 1) {
    // Those whose input has ended are about to end.
    if (round > 0) for (const { pid } of living()) send(pid, round < 20 ? "SIGTERM" : "SIGKILL");
    await sleep(POLL_MS);
  }
}

const POLL_MS = 10;
/** A tree that forks faster than it is read needs more than one round; one that cannot die must not hold us. */
const KILL_ROUNDS = 200;

/** The living processes that have this variable with this value; none where the system has no /proc. */
export function pidsWith(name: string, value: string): readonly number[] {
  const pids = (runningPids() ?? []).filter((pid) => valuesOf(pid, name).includes(value));
  return pids.filter((pid) => isAlive(statOf(pid).state));
}

/** A command can write any text into other variables of other processes, by a file that these read: it does not count there. */
function valuesOf(pid: number, name: string): readonly string[] {
  const entries = readProc(pid, "environ").split("\0");
  return entries.filter((entry) => entry.startsWith(`${name}=`)).map((entry) => entry.slice(name.length + 1));
}

/** Whether a value of `LOCKSTEP_TREE` holds the mark. */
export function isMarked(value: string | undefined, mark: string): boolean {
  return value?.split(":").includes(mark) === true;
}

/** Our own process and those that it was started by, which are never ended from here. */
function ownLine(): ReadonlySet<number> {
  const line = new Set<number>();
  for (let pid = process.pid; pid > 0 && !line.has(pid); pid = Number(statOf(pid).parent ?? 0)) line.add(pid);
  return line;
}

/**
 * Whether a process of this name is at work in one of these folders, or may be: one that cannot be looked at counts, and so
 * does any where the system has no /proc.
 */
export function isAtWork(name: string, folders: readonly string[]): boolean {
  return (
    runningPids()?.some((pid) => {
      const program = /\((.*)\)/s.exec(readProc(pid, "stat"))?.[1] ?? "";
      if (program !== name && !program.startsWith(`${name}-`)) return false;
      const place = folderOf(pid);
      const isThere = folders.some((folder) => place === folder || place?.startsWith(`${folder}/`));
      return isAlive(statOf(pid).state) && (place === null || isThere);
    }) ?? true
  );
}

/** null: it is another user's. */
function folderOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return null;
  }
}

async function isGone(tree: ProcessTree, withinMs: number): Promise<boolean> {
  for (let waited = 0; ; waited += POLL_MS) {
    if (targets(tree).length === 0) return true;
    if (waited >= withinMs) return false;
    await sleep(POLL_MS);
  }
}

function signalTree(tree: ProcessTree, signal: NodeJS.Signals): void {
  for (const target of targets(tree)) send(target, signal);
}

/** What `kill` has to be called with: the group as a whole, and each process that carries the mark. */
function targets({ leader, mark }: ProcessTree): readonly number[] {
  const group = send(-leader, 0);
  if (!group && mark === null) return [];
  const pids = runningPids();
  if (pids === null) return group ? [-leader] : [];
  const found = mark === null ? [] : pids.filter((pid) => carries(pid, mark));
  const own = found.length === 0 ? null : ownLine();
  const marked = found.filter((pid) => own?.has(pid) !== true);
  return group && pids.some((pid) => isLivingMember(pid, leader)) ? [-leader, ...marked] : marked;
}

function carries(pid: number, mark: string): boolean {
  return valuesOf(pid, MARKS).some((value) => isMarked(value, mark));
}

function send(target: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(target, signal);
  } catch {
    return false; // already gone, or not ours to signal
  }
}

/** null where the system has no /proc. */
function runningPids(): readonly number[] | null {
  if (process.platform !== "linux") return null;
  return readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
}

/** Whether the process is in the group and not a zombie that merely waits to be reaped. */
function isLivingMember(pid: number, group: number): boolean {
  const { state, pgrp } = statOf(pid);
  return Number(pgrp) === group && isAlive(state);
}

function isLiving(pid: number): boolean {
  return send(pid, 0) && isAlive(statOf(pid).state);
}

function isAlive(state: string | undefined): boolean {
  return state !== undefined && state !== "" && state !== "Z" && state !== "X";
}

type Stat = {
  readonly state?: string | undefined;
  readonly parent?: string | undefined;
  readonly pgrp?: string | undefined;
  readonly since?: string | undefined;
};

function statOf(pid: number): Stat {
  // "pid (name) state ppid pgrp …": the name may hold anything, so reading starts after its last parenthesis.
  const stat = readProc(pid, "stat");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, parent, pgrp] = fields;
  return { state, parent, pgrp, since: fields[19] };
}

function readProc(pid: number, file: "environ" | "stat" | "comm"): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "latin1");
  } catch {
    return ""; // ended meanwhile, or another user's
  }
}
