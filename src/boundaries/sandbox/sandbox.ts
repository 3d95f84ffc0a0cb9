/**
 * The sandbox around commands: what they may write, what they never see, and which hosts they reach.
 *
 * The gate decides whether a command runs; this decides what it can do when it does. An engine turns a command and a
 * policy into the argument vector that is started instead.
 */
import { RunnerError } from "../../engine/ports.ts";
import { errorText } from "../../flow/text/harmless.ts";
import type { Watched } from "./sandbox-git.ts";
import { nestedRepositories, newlyNested, quarantine, unfinished, watchedPaths } from "./mounts.ts";

/** Absolute paths without links. What does not exist is passed over, because it is looked at again for each command. */
export type SandboxPolicy = {
  /** The run's folder: commands start in it or below, and may write there. */
  readonly cwd: string;
  /** Further folders that may be written. */
  readonly writable: readonly string[];
  /** Read-only although they lie in a folder that may be written. */
  readonly shielded: readonly string[];
  /** They must be as they are now after a command: missing, or links. */
  readonly watched?: readonly Watched[];
  /** The user's home folder: read-only, but for what is hidden of it. */
  readonly home: string;
  /** Folders that look empty inside. */
  readonly hidden: readonly string[];
  /** The hosts that can be reached; null: there is no network at all; all: the network of this machine. */
  readonly hosts: readonly string[] | "all" | null;
};

export type SandboxEngine = {
  readonly id: string;
  /** null when commands can be confined by this policy here; else why not, and what to do about it. */
  readonly selfTest: (policy: SandboxPolicy) => Promise<string | null>;
  /**
   * What is started instead. `values` are variables for the command, and not for what confines it. `report`: the first
   * process of the command's PID namespace is reported on this descriptor. `lasting`: the command goes on to its end when
   * the process that started it has ended.
   */
  readonly wrap: (
    command: SandboxCommand,
    policy: SandboxPolicy,
    cwd?: string,
    values?: Values,
    report?: number,
    lasting?: boolean,
  ) => readonly string[];
  /** Why the command was never started, if `wrapped` ended like this; null: it was. */
  readonly notStarted: (wrapped: readonly string[], result: Ended) => NotStarted | null;
  /** What a command sees of the environment besides. */
  readonly env: Env;
  readonly close: () => Promise<void>;
};

/** `isOutdated`: a path of the policy went away in that moment, so that it can be tried again. */
export type NotStarted = { readonly why: string; readonly isOutdated: boolean };

/** A line for `sh -c`, or an argument vector. */
export type SandboxCommand = string | readonly string[];

type Env = { readonly [name: string]: string | undefined };
type Values = { readonly [name: string]: string };
type Options = {
  readonly command: SandboxCommand;
  readonly cwd: string;
  readonly env: Env;
  readonly values?: Values;
  readonly reportsNamespace?: true;
  readonly lasting?: true;
};

type Ended = { readonly exitCode: number | null; readonly stdout: string; readonly stderr: string };

/** The same `exec`, with every command inside the sandbox. */
export function confine<O extends Options, R extends Ended>(
  exec: (options: O) => Promise<R>,
  engine: SandboxEngine,
  policy: SandboxPolicy,
): (options: O) => Promise<R> {
  return async (options) => {
    const watched = watchedPaths(policy);
    const nested = nestedRepositories(policy);
    const begun = unfinished(policy);
    const result = await start(options);
    const moved = restored(() => [...watched, ...newlyNested(policy, nested)]);
    const left = unfinished(policy).filter((path) => !begun.includes(path));
    const note = [
      moved,
      ...left.map(leftUnfinished),
      isCutOff(result, policy) ? noNetwork(policy) : "",
      isReadOnly(result) ? readOnly(policy) : "",
    ]
      .filter((line) => line !== "")
      .join("\n");
    if (note === "") return result;
    return { ...result, stderr: result.stderr === "" ? note : `${result.stderr.trimEnd()}\n${note}` };
  };

  /** Sockets of other programs come and go while the mounts are made. */
  async function start(options: O): Promise<R> {
    for (let left = STARTS; ; left -= 1) {
      const { command: given, cwd, values, lasting } = options;
      const command = engine.wrap(given, policy, cwd, values, NAMESPACE_REPORT, lasting);
      const env = { ...options.env, ...engine.env };
      const result = await exec({ ...options, command, env, values: {}, reportsNamespace: true });
      if (left === 1 || engine.notStarted(command, result)?.isOutdated !== true) return result;
    }
  }
}

/** How often a command is started at most while paths of its policy go away: each try takes a few milliseconds. */
export const STARTS = 50;

/** Where the process that starts commands reads which namespace they are in. */
export const NAMESPACE_REPORT = 3;

/** Whether a command failed as one does that misses the network. */
function isCutOff({ exitCode, stdout, stderr }: Ended, { hosts }: SandboxPolicy): boolean {
  return exitCode !== 0 && hosts !== "all" && [stderr, stdout].some((text) => NO_NETWORK.test(text));
}

/** As curl, git, npm, Node, Python, cargo, Go and the C library say it. */
const NO_NETWORK =
  /\b(?:ENOTFOUND|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH)\b|could not resolve (?:host|proxy)|temporary failure (?:in name resolution|resolving)|name or service not known|network is unreachable|nodename nor servname|dial tcp|(?:no such host|failed to (?:lookup address|connect to .+ port \d+))|ECONNREFUSED 127\.0\.0\.1:3128|CONNECT tunnel failed|from proxy after CONNECT|failed to establish a new connection/i;

function noNetwork({ hosts }: SandboxPolicy): string {
  const there =
    hosts === null || hosts === "all"
      ? "There is no network in the sandbox"
      : `Of the network, the sandbox reaches only ${hosts.join(", ")}`;
  return `[${there}. The user can open it: --network usual (package registries), --network HOST,HOST or --network all]`;
}

/** Whether a command failed as one does that may not write, or may not move what is held in its place. */
function isReadOnly({ exitCode, stdout, stderr }: Ended): boolean {
  return exitCode !== 0 && [stderr, stdout].some((text) => READ_ONLY.test(text));
}

/** As the C library, Node and Rust say it. */
const READ_ONLY = /read-only file ?system|device or resource busy|\b(?:EROFS|EBUSY)\b/i;

function readOnly({ cwd, writable }: SandboxPolicy): string {
  const where = [cwd, ...writable, "/tmp"].join(", ");
  return (
    `[This is the sandbox: commands may write in ${where}, but not to .agent, .lockstep, settings and hooks of git, or what ` +
    `Lockstep loads. The user can open more folders: runner.boundaries.sandbox.filesystem.allowedPaths in agent.json]`
  );
}

/** A process that stays, inside the sandbox: what to start in its place, and a look at what it left so far. */
export type Confined = {
  readonly command: readonly string[];
  readonly env: Env;
  readonly afterwards: () => string;
};

export type ConfineChild = (command: readonly string[], cwd: string) => Confined;

/** It keeps its stdio and every other descriptor it is given; all its processes end with it. */
export function confineChild(engine: SandboxEngine, policy: SandboxPolicy): ConfineChild {
  return (command, cwd) => {
    const watched = watchedPaths(policy);
    const nested = nestedRepositories(policy);
    // The program may lie where commands see nothing.
    const seeing = { ...policy, shielded: [...policy.shielded, ...command.slice(0, 1)] };
    return {
      command: engine.wrap(command, seeing, cwd),
      env: engine.env,
      afterwards: () => restored(() => [...watched, ...newlyNested(policy, nested)]),
    };
  };
}

/** What stands there is run when it is continued, outside. */
function leftUnfinished(path: string): string {
  return `[an unfinished rebase is left in ${path}: look at it before you continue it]`;
}

/** A line for each place that had to be put right. */
function restored(watched: () => Parameters<typeof quarantine>[0]): string {
  try {
    return quarantine(watched())
      .map(({ path, to }) => {
        const where = to === null ? "it was put back" : `it was moved away, to ${to}`;
        return `[${path} is not for commands to make: ${where}]`;
      })
      .join("\n");
  } catch (cause) {
    const message = `A command left files that git would act on, and they cannot be moved away: ${errorText(cause)}. Inspect .git before you use it.`;
    throw new RunnerError("SANDBOX_UNAVAILABLE", message, { cause });
  }
}
