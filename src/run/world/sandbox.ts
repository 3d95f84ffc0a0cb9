/**
 * The sandbox of a run, as this machine can give it: tried once for each policy, opened when the first command starts.
 * Where it cannot be had, a run that needs it does not begin, and any other says so before its first command.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { isInside } from "../../boundaries/gate/paths.ts";
import type { ConfineChild, SandboxEngine, SandboxPolicy } from "../../boundaries/sandbox/sandbox.ts";
import type { Bridge } from "../../boundaries/sandbox/bwrap.ts";
import type { SandboxPlaces } from "../../boundaries/sandbox/policy.ts";
import { childEnv, runProcess, type Env, type RunProcess } from "../../effects/process/process.ts";
import { RunnerError } from "../../engine/ports.ts";
import type { Confinement } from "../../flow/event.ts";
import type { NetworkWish } from "./config.ts";
import { keptIn } from "./own-files.ts";
import { programsFor } from "./programs.ts";
import { homeFolder, settingsFolder, type Project } from "./project.ts";
import { unconfinedWarning, type Confine, type Decision, type Warning } from "./sandbox-decision.ts";
import { errorText } from "../../flow/text/harmless.ts";

export { homeFolder, settingsFolder } from "./project.ts";

/** How a run starts processes. */
export type SandboxGround = {
  readonly exec: RunProcess;
  /** How a process is started that stays: the code of a project, a server of tools. */
  readonly child: ConfineChild;
  /** How our own search through files is started, which obeys nothing that is in them. */
  readonly search: RunProcess;
  /** How our own git is started over working trees that commands may have written. Absent: like any program of ours. */
  readonly git?: (trees: readonly [string, ...string[]]) => RunProcess;
  /** null: commands are not confined. */
  readonly inside: { readonly engine: SandboxEngine; readonly policy: SandboxPolicy } | null;
};

/** What was found out before the run begins. Closing it closes the way to the network. */
export type Settled = AsyncDisposable & {
  readonly held: Confinement;
  /** It holds a way to the network, which ends with its run. */
  readonly isHeld: boolean;
  /** Whether processes run with the user's permissions: nothing confines them, and some can start. */
  readonly isFree: boolean;
  readonly warnings: readonly Warning[];
  /** SANDBOX_UNAVAILABLE where this folder cannot be confined, although the other one could. */
  readonly groundAt: (cwd: string) => Promise<SandboxGround>;
};

const OPEN: SandboxGround = {
  exec: runProcess,
  child: (command) => ({ command, env: {}, afterwards: () => "" }),
  search: runProcess,
  inside: null,
};

const nothing = { [Symbol.asyncDispose]: () => Promise.resolve() };

/** Tries the sandbox that was decided on: SANDBOX_UNAVAILABLE where it must be there and is not. */
export async function settle(decision: Decision, places: SandboxPlaces, env: Env): Promise<Settled> {
  switch (decision.kind) {
    case "refused":
      throw new RunnerError("SANDBOX_UNAVAILABLE", decision.message);
    case "idle":
      return {
        ...nothing,
        ...unconfined(decision.why, null),
        isFree: false,
        groundAt: () => Promise.resolve(IDLE),
      };
    case "unconfined":
      return { ...nothing, ...unconfined(decision.why, decision.warning), groundAt };
    case "confine":
      return await settleConfined(decision, places, env);
  }
}

async function settleConfined(decision: Confine, places: SandboxPlaces, env: Env): Promise<Settled> {
  const { hosts, bridge, warning } = await openNetwork(decision);
  const close = async () => await bridge?.close();
  const key = JSON.stringify([decision.allowedPaths, hosts, places, env["PATH"]]);
  const confined = async (around: SandboxPlaces): Promise<SandboxGround | Trouble> => {
    const { policyOf, createBwrap, confine, confineChild } = await (parts ??= loadParts());
    // Most runs that may start a command never do: the folders are looked at when one does.
    const open = () => {
      const policy = policyOf({ hosts, allowedPaths: decision.allowedPaths }, around);
      const programs = programsFor(env, [around.cwd, around.root, ...policy.writable]);
      const outer = { exec: runProcess, env: childEnv(env), programs };
      return { policy, engine: createBwrap({ ...outer, ...(bridge !== null && { bridge }) }) };
    };
    let known: ReturnType<typeof open> | null = null;
    const inside = () => (known ??= open());
    const test = async () => await refusal(decision, around, inside);
    const trouble = await tried(around === places ? key : JSON.stringify([key, around.cwd]), test);
    if (trouble !== null) return trouble;
    const exec: RunProcess = (options) => confine(runProcess, inside().engine, inside().policy)(options);
    return {
      exec,
      search: exec,
      child: (command, cwd) => confineChild(inside().engine, inside().policy)(command, cwd),
      git: (trees) => {
        const { engine, policy } = inside();
        const within = confine(runProcess, engine, policyForGit(policy, trees, env));
        // Another working tree may have the branch checked out: that one no command could write.
        return async (options) => {
          if (!trees.some((tree) => isInside(tree, options.cwd))) return await runProcess(options);
          const result = await within(options);
          // Else the exit code would be taken for an answer of git.
          return engine.notStarted([], result) === null ? result : { ...result, exitCode: NOT_STARTED };
        };
      },
      get inside() {
        return inside();
      },
    };
  };
  try {
    const ground = await confined(places);
    if ("trouble" in ground) {
      const { trouble, byProject } = ground;
      // What a project holds, or a command left in it, never takes the sandbox away.
      if (decision.must || byProject) throw unavailable(trouble, decision);
      await close();
      return { ...nothing, ...unconfined(trouble, unconfinedWarning(trouble)), groundAt };
    }
    const engine = bridge === null ? "bwrap" : "bwrap+srt";
    return {
      [Symbol.asyncDispose]: close,
      held: { confined: true, engine, network: hosts ?? "none", why: decision.why },
      isHeld: bridge !== null,
      isFree: false,
      warnings: [decision.warning, warning].filter((one) => one !== null),
      groundAt: async (cwd) => {
        if (cwd === places.cwd) return ground;
        // Of a run of which only the end is left, the folder may be gone: nothing can start in it.
        if (!existsSync(cwd)) return shut(`${cwd} is gone`);
        const other = await confined({ ...places, cwd });
        if ("trouble" in other) throw unavailable(other.trouble, decision);
        return other;
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Loaded by the first run that may start a process. */
let parts: ReturnType<typeof loadParts> | null = null;

async function loadParts() {
  return {
    ...(await import("../../boundaries/sandbox/policy.ts")),
    ...(await import("../../boundaries/sandbox/bwrap.ts")),
    ...(await import("../../boundaries/sandbox/sandbox.ts")),
  };
}

function unconfined(
  why: string,
  warning: Warning | null,
): Pick<Settled, "held" | "isHeld" | "isFree" | "warnings"> {
  const held: Confinement = { confined: false, engine: null, network: "all", why };
  return { held, isHeld: false, isFree: true, warnings: warning === null ? [] : [warning] };
}

/** Git may write the trees and their repository, but not what is obeyed later, and it has no network. */
function policyForGit(
  policy: SandboxPolicy,
  [first, ...others]: readonly [string, ...string[]],
  { HOME = homedir(), XDG_CONFIG_HOME = join(HOME, ".config"), GIT_CONFIG_GLOBAL: named }: Env,
): SandboxPolicy {
  const trees = [first, ...others];
  const settings = [named ?? join(HOME, ".gitconfig"), join(XDG_CONFIG_HOME, "git", "config")];
  return {
    ...policy,
    cwd: first,
    writable: others,
    // The user's own settings are seen and not written.
    shielded: [...policy.shielded, ...settings, ...trees.map((tree) => join(tree, ".agent"))],
    hidden: [
      ...policy.hidden.filter((path) => !settings.includes(path)),
      ...trees.map((tree) => join(tree, ".lockstep")),
    ],
    hosts: null,
  };
}

/** As a shell says it. */
const NOT_STARTED = 126;

const groundAt = () => Promise.resolve(OPEN);

/** Nothing is started on it. */
function shut(why: string): SandboxGround {
  const refused = () => new RunnerError("SANDBOX_UNAVAILABLE", `No process can be started: ${why}.`);
  return {
    exec: () => Promise.reject(refused()),
    child: () => {
      throw refused();
    },
    search: runProcess,
    inside: null,
  };
}

/** Of a flow that can start nothing: should it try to all the same, it is refused. */
const IDLE = shut("this flow was found to start none, so that no sandbox was opened for it");

type Opened = {
  readonly hosts: readonly string[] | "all" | null;
  readonly bridge: Bridge | null;
  readonly warning: Warning | null;
};

const loadProxy = () => import("../../boundaries/sandbox/srt.ts");
let proxy: ReturnType<typeof loadProxy> | null = null;

/** The hosts that can really be reached. Where none were named, a missing proxy means that there are none. */
async function openNetwork({ network }: Pick<Confine, "network">): Promise<Opened> {
  const closed = { hosts: null, bridge: null, warning: null };
  if (network.hosts === "all") return { ...closed, hosts: "all" };
  if (network.hosts === null || network.hosts.length === 0) return closed;
  const { TRUSTED_HOSTS } = await (parts ??= loadParts());
  const hosts = network.hosts === "usual" ? withUsual(TRUSTED_HOSTS, network.more) : network.hosts;
  const { openBridge } = await (proxy ??= loadProxy());
  const opened = await openBridge(hosts);
  if (opened.kind === "open") return { hosts, bridge: opened.bridge, warning: null };
  if (network.must)
    throw new RunnerError(
      "SANDBOX_UNAVAILABLE",
      `The requested hosts cannot be reached from the sandbox: ${opened.why}. ` +
        `Or run without a network: --network none.`,
    );
  // A proxy that is not installed is the usual case: the command that misses the network reports it.
  const text = `there is no network in the sandbox: ${opened.why}`;
  return { ...closed, warning: opened.isMissing ? null : { text, loud: false } };
}

function withUsual(usual: readonly string[], more: readonly string[]): readonly string[] {
  return more.length === 0 ? usual : [...new Set([...usual, ...more])];
}

/** `modules`: those that the run may start, absolute. */
export function placesOf(
  project: Project,
  cwd: string,
  env: NodeJS.ProcessEnv,
  modules: readonly string[] = [],
): SandboxPlaces {
  const { root, agentsDir, stateDir } = project;
  const own = (roots: readonly string[]) => keptIn(roots, env, modules);
  const programs = (env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  const home = homeFolder(env);
  return { cwd, root, agentsDir, stateDir, configDir: settingsFolder(env), home, programs, own };
}

/** Whether commands can be confined here at all, to the project and without a network; null when they can. */
export async function selfTest(project: Project, env: NodeJS.ProcessEnv): Promise<string | null> {
  const { policyOf, refuseGround } = await import("../../boundaries/sandbox/policy.ts");
  const { createBwrap } = await import("../../boundaries/sandbox/bwrap.ts");
  const places = placesOf(project, project.root, env);
  const policy = policyOf({ hosts: null, allowedPaths: [] }, places);
  const programs = programsFor(env, [project.root]);
  const engine = createBwrap({ exec: runProcess, env: childEnv(env), programs });
  return refuseGround(places) ?? (await engine.selfTest(policy));
}

/** What commands reach where neither a flag nor the agent file says anything about it. */
export async function networkHere(wish: NetworkWish | null): Promise<string> {
  if (wish === "none" || wish === "all") return wish;
  const { hasProxy, SRT } = await import("../../boundaries/sandbox/srt.ts");
  const hosts = wish === null || wish === "usual" ? "the usual package registries" : wish.join(", ");
  if (await hasProxy()) return hosts;
  return wish === null ? `none (${SRT} is not installed)` : `${hosts}, for which ${SRT} is needed`;
}

/** Why commands cannot be confined. `byProject`: for a reason that the project's files give; elsewhere they could be. */
type Trouble = { readonly trouble: string; readonly byProject: boolean };

/** null: they can be confined to these places. */
async function refusal(
  { allowedPaths }: Confine,
  places: SandboxPlaces,
  inside: () => NonNullable<SandboxGround["inside"]>,
): Promise<Trouble | null> {
  const { refuseGround, refusePath } = await (parts ??= loadParts());
  const ground = refuseGround(places);
  if (ground !== null) return { trouble: ground, byProject: false };
  for (const path of allowedPaths) {
    const why = refusePath(path, places);
    if (why !== null) return { trouble: `allowedPaths cannot hold "${path}": ${why}`, byProject: true };
  }
  try {
    const { engine, policy } = inside();
    const trouble = await engine.selfTest(policy);
    if (trouble === null) return null;
    return { trouble, byProject: (await selfTestElsewhere(engine)) === null };
  } catch (error) {
    const trouble = errorText(error);
    return { trouble, byProject: true };
  }
}

/** Whether this machine can confine anything: tried in an empty folder of our own. */
async function selfTestElsewhere(engine: SandboxEngine): Promise<string | null> {
  const cwd = mkdtempSync(join(tmpdir(), "lockstep-sandbox-"));
  try {
    return await engine.selfTest({ cwd, writable: [], shielded: [], home: cwd, hidden: [], hosts: null });
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
}

/** What was tried once in this process holds for it. */
const trials = new Map<string, Promise<Trouble | null>>();

async function tried(key: string, test: () => Promise<Trouble | null>): Promise<Trouble | null> {
  const trial = trials.get(key) ?? test();
  trials.set(key, trial);
  const trouble = await trial;
  // A failure may be fixed meanwhile.
  if (trouble !== null) trials.delete(key);
  return trouble;
}

function unavailable(why: string, { why: wanted }: Pick<Confine, "why">): RunnerError {
  return new RunnerError(
    "SANDBOX_UNAVAILABLE",
    `Commands cannot be sandboxed, but a sandbox is ${wanted}: ${why}. ` +
      `To run without one on your own responsibility: --sandbox off.`,
  );
}
