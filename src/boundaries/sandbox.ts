/**
 * The sandbox around commands: what they may write, what they never see, and which hosts they reach.
 *
 * The gate decides whether a command runs; this decides what it can do when it does. An engine turns a command and a
 * policy into the argument vector that is started instead.
 */
import { RunnerError } from "../engine/ports.ts";
import { nestedRepositories, newlyNested, quarantine, watchedPaths } from "./sandbox-mounts.ts";

/** Absolute paths without links. What does not exist is passed over, because it is looked at again for each command. */
export type SandboxPolicy = {
  /** The run's folder: commands start in it or below, and may write there. */
  readonly cwd: string;
  /** Further folders that may be written. */
  readonly writable: readonly string[];
  /** Read-only although they lie in a folder that may be written. */
  readonly shielded: readonly string[];
  /** Empty to whoever looks inside. */
  readonly hidden: readonly string[];
  /** The hosts that can be reached; null: there is no network at all. */
  readonly hosts: readonly string[] | null;
};

export type SandboxEngine = {
  readonly id: string;
  /** null when commands can be confined by this policy here; else why not, and what to do about it. */
  readonly selfTest: (policy: SandboxPolicy) => Promise<string | null>;
  /** What is started instead. `values` are variables for the command, and not for what confines it. */
  readonly wrap: (
    command: Command,
    policy: SandboxPolicy,
    cwd?: string,
    values?: Values,
  ) => readonly string[];
  /** What a command sees of the environment besides. */
  readonly env: Env;
  readonly close: () => Promise<void>;
};

/** A line for `sh -c`, or an argument vector. */
export type Command = string | readonly string[];

type Env = { readonly [name: string]: string | undefined };
type Values = { readonly [name: string]: string };
type Options = {
  readonly command: Command;
  readonly cwd: string;
  readonly env: Env;
  readonly values?: Values;
};

/** The same `exec`, with every command inside the sandbox. */
export function confine<O extends Options, R extends { readonly stderr: string }>(
  exec: (options: O) => Promise<R>,
  engine: SandboxEngine,
  policy: SandboxPolicy,
): (options: O) => Promise<R> {
  return async (options) => {
    const watched = watchedPaths(policy);
    const nested = nestedRepositories(policy);
    const command = engine.wrap(options.command, policy, options.cwd, options.values);
    const result = await exec({ ...options, command, env: { ...options.env, ...engine.env }, values: {} });
    const note = restored(() => [...watched, ...newlyNested(policy, nested)]);
    if (note === "") return result;
    return { ...result, stderr: result.stderr === "" ? note : `${result.stderr.trimEnd()}\n${note}` };
  };
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

/** A line for each place that had to be put right. */
function restored(watched: () => Parameters<typeof quarantine>[0]): string {
  try {
    const moved = quarantine(watched());
    return moved.map((path) => `[${path} is not for commands to make: it was moved away]`).join("\n");
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const message = `A command left what git would obey, and it cannot be moved away: ${why}. Look at .git before you use it.`;
    throw new RunnerError("SANDBOX_UNAVAILABLE", message, { cause });
  }
}
