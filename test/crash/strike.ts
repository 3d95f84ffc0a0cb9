/** One strike: the command goes on with a run, halts at a place, is hit there, and what is left of it runs to its end. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { MAIN, type Ran } from "../cli/world.ts";
import type { StandIn } from "../github/stand-in.ts";
import { marked, markedAs, send, until, type Halt } from "./halts.ts";
import type { Struck } from "./struck-world.ts";

/**
 * `http`: a question to GitHub, before it has had its effect or when its answer is on the way. `filter`: while git waits for
 * a filter of the user over a file that it checks out. In the sandbox there is no other way to know where a git is.
 */
export type Place =
  | Halt
  | { readonly what: "http"; readonly nth: number; readonly when: "before" | "after" }
  | { readonly what: "filter"; readonly nth: number; readonly when: "inside" };

/** What the filter is seen by. */
export const SLOW = ["sleep", "0.8"] as const;

/**
 * `kill`: of our process alone, and the git it has started goes on. `kill, git slow`: the same, and that git is still at it
 * when the next process comes. `kill all`: power fails, or a container is ended.
 */
export const BLOWS = ["kill", "kill, git slow", "kill all", "SIGINT", "SIGINT twice", "SIGTERM"] as const;
export type Blow = (typeof BLOWS)[number];

export type Hit = Ran & {
  readonly signal: NodeJS.Signals | null;
  /** false: the command ended before it came to the place. */
  readonly isHit: boolean;
  /** Lets a git go on that is still held. */
  readonly release: () => void;
};

/** Nobody strikes. `meanwhile` is called when it is under way. */
export async function goOn(world: Struck, args: readonly string[], meanwhile = () => {}): Promise<Hit> {
  world.halts.plan(null);
  const { child, ended, mark } = begin(world, args);
  const late = setTimeout(meanwhile, 500);
  await withinLimit(ended, child.pid!);
  clearTimeout(late);
  meanwhile();
  await noneLeft(mark);
  return { ...child.ran(), isHit: false, release: () => {} };
}

export async function strike(
  world: Struck,
  args: readonly string[],
  place: Place,
  blow: Blow,
  stand: StandIn | undefined,
): Promise<Hit> {
  const isHalt = place.what !== "http" && place.what !== "filter";
  world.halts.plan(isHalt ? place : null);
  const asked = stand?.log.length ?? 0;
  if (place.what === "http")
    stand!.fault(
      { kind: "hang", ...(place.when === "after" && { after: true }) },
      { nth: place.nth, times: 1 },
    );
  const { child, ended, mark } = begin(world, args);
  const filters = new Set<number>();
  const isThere = () => {
    if (place.what === "http") return stand!.log.length - asked >= place.nth;
    if (place.what !== "filter") return world.halts.halted() !== null;
    for (const pid of markedAs(mark, SLOW)) filters.add(pid);
    return filters.size >= place.nth;
  };
  await until(`${JSON.stringify(place)} is reached`, () => isThere() || child.hasEnded());
  if (child.hasEnded()) {
    stand?.calm();
    await noneLeft(mark);
    return { ...child.ran(), isHit: false, release: () => {} };
  }
  // The answer of the stand-in is made in the same turn as the question is logged.
  await sleep(0);
  const halted = isHalt ? world.halts.halted() : null;
  const isGit = halted !== null && halted !== child.pid;
  const release = () => halted !== null && send(halted, "SIGCONT");
  stand?.calm();
  if (blow === "kill all") {
    await until("nothing is left alive", () => {
      const pids = marked(mark);
      for (const pid of pids) send(pid, "SIGKILL");
      return pids.length === 0;
    });
  } else if (blow === "kill" || blow === "kill, git slow") {
    send(child.pid!, "SIGKILL");
    await withinLimit(ended, child.pid!);
    if (isGit && blow === "kill, git slow") return { ...child.ran(), isHit: true, release };
  } else {
    const signal = blow === "SIGTERM" ? "SIGTERM" : "SIGINT";
    send(child.pid!, signal);
    if (!isGit) release();
    await until("the signal is heard", () => child.hasEnded() || /topping/.test(child.ran().stderr));
    if (blow === "SIGINT twice") send(child.pid!, "SIGINT");
  }
  release();
  await withinLimit(ended, child.pid!);
  await noneLeft(mark);
  return { ...child.ran(), isHit: true, release: () => {} };
}

function begin({ env, home }: Struck, args: readonly string[]) {
  const mark = `struck-${randomUUID()}`;
  const child = spawn(process.execPath, [MAIN, ...args], {
    cwd: home,
    env: { ...env, LOCKSTEP_TREE: mark },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const said = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => (said.stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said.stderr += text));
  let isClosed = false;
  const ended = new Promise<void>((resolve) => {
    child.on("close", () => {
      isClosed = true;
      resolve();
    });
  });
  const ran = () => ({ ...said, code: child.exitCode, signal: child.signalCode });
  return { mark, ended, child: { pid: child.pid, hasEnded: () => isClosed, ran } };
}

async function withinLimit(ended: Promise<void>, pid: number): Promise<void> {
  const late = setTimeout(() => send(pid, "SIGABRT"), 120_000);
  await ended;
  clearTimeout(late);
}

async function noneLeft(mark: string): Promise<void> {
  await until("no process is left", () => marked(mark).length === 0);
}

/** What the command said with `--json`; null: nothing. */
export function documentOf({ stdout }: Ran): { readonly [key: string]: unknown } | null {
  if (stdout === "") return null;
  assert.match(stdout, /^[^\n]+\n$/, "one document");
  return JSON.parse(stdout) as { readonly [key: string]: unknown };
}
