/**
 * Whether the commands of a run are confined, and by what. A project can ask for a sandbox; it cannot be the one who
 * switches it off: that takes the user's own settings, or a flag.
 */
import { homedir } from "node:os";
import { join } from "node:path";
import { isInside } from "../boundaries/paths.ts";
import type { ConfineChild, SandboxEngine, SandboxPolicy } from "../boundaries/sandbox.ts";
import type { Places } from "../boundaries/sandbox-policy.ts";
import { childEnv, runProcess, type Env, type RunProcess } from "../effects/process.ts";
import { RunnerError } from "../engine/ports.ts";
import type { Sandbox } from "../flow/settings.ts";
import type { SandboxWish } from "./config.ts";
import { programsFor } from "./programs.ts";
import { configFolder, type Project } from "./project.ts";

export type Decision =
  | { readonly confined: true; readonly sandbox: Sandbox; readonly why: string }
  | { readonly confined: false; readonly why: string; readonly warning: string | null };

/** A sandbox that is open, or the plain way to run commands. */
export type Ground = {
  readonly exec: RunProcess;
  /** How a process is started that stays: the code of a project. */
  readonly child: ConfineChild;
  /** How our own git is started over working trees that commands may have written. Absent: like any program of ours. */
  readonly git?: (trees: readonly [string, ...string[]]) => RunProcess;
  /** null: commands are not confined. */
  readonly inside: { readonly engine: SandboxEngine; readonly policy: SandboxPolicy } | null;
  readonly close: () => Promise<void>;
};

/** As it is. */
const unconfined: ConfineChild = (command) => ({ command, env: {}, afterwards: () => "" });

/** The same for all runs that are not confined. */
const OPEN: Ground = {
  exec: runProcess,
  child: unconfined,
  inside: null,
  close: () => Promise.resolve(),
};

export function decideSandbox(sandbox: Sandbox, wish: SandboxWish): Decision {
  const asks = sandbox.asked === true && sandbox.enabled;
  if (wish === "off") {
    const warning = asks ? "commands are not confined, although the agent asks for a sandbox" : null;
    return { confined: false, why: "switched off by --sandbox off or your settings", warning };
  }
  if (asks) return { confined: true, sandbox, why: "asked for by the agent file" };
  if (wish === "on") {
    // Nobody said which hosts such an agent needs.
    const network = { ...sandbox.network, mode: "none" as const };
    return {
      confined: true,
      sandbox: { ...sandbox, network },
      why: "asked for by --sandbox on or your settings",
    };
  }
  const says = sandbox.asked ? "the agent file says enabled: false" : "nobody asked for a sandbox";
  return { confined: false, why: says, warning: sandbox.asked ? `commands are not confined: ${says}` : null };
}

/** Where the user's settings are, or would be. */
export function settingsFolder(env: Env): string {
  return configFolder(env) ?? join(homedir(), ".config", "lockstep");
}

/** Opens the sandbox and tries it out: SANDBOX_UNAVAILABLE before any command or model is started. */
export async function openGround(
  decision: Decision,
  placesAround: () => Places,
  env: Env,
  exec: RunProcess = runProcess,
): Promise<Ground> {
  if (!decision.confined) return exec === runProcess ? OPEN : { ...OPEN, exec };
  const { policyOf, refuseGround, refusePath } = await import("../boundaries/sandbox-policy.ts");
  const { sandbox } = decision;
  const places = placesAround();
  const ground = refuseGround(places);
  if (ground !== null) throw unavailable(ground, decision);
  for (const path of sandbox.filesystem.allowedPaths) {
    const why = refusePath(path, places);
    if (why !== null) throw unavailable(`allowedPaths cannot hold "${path}": ${why}`, decision);
  }
  const policy = policyOf(sandbox, places);
  const engine = await openEngine(policy, places, env, exec, decision);
  const trouble = await tried(engine, policy);
  if (trouble !== null) {
    await engine.close();
    throw unavailable(trouble, decision);
  }
  const { confine, confineChild } = await import("../boundaries/sandbox.ts");
  const child = confineChild(engine, policy);
  const git: Ground["git"] = (trees) => {
    const confined = confine(exec, engine, policyForGit(policy, trees, env));
    // Another working tree may have the branch checked out: that one no command could write.
    return async (options) =>
      trees.some((tree) => isInside(tree, options.cwd)) ? await confined(options) : await exec(options);
  };
  return { exec: confine(exec, engine, policy), child, git, inside: { engine, policy }, close: engine.close };
}

/** Git may write the trees and their repository, but not what is obeyed later, and it reaches nobody. */
function policyForGit(
  policy: SandboxPolicy,
  [first, ...others]: readonly [string, ...string[]],
  { HOME = homedir(), XDG_CONFIG_HOME = join(HOME, ".config"), GIT_CONFIG_GLOBAL: named }: Env,
): SandboxPolicy {
  const trees = [first, ...others];
  const settings = [named ?? join(HOME, ".gitconfig"), join(XDG_CONFIG_HOME, "git", "config")];
  return {
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

export function placesOf(project: Project, cwd: string, env: NodeJS.ProcessEnv): Places {
  const { root, agentsDir, stateDir } = project;
  return { cwd, root, agentsDir, stateDir, configDir: settingsFolder(env), home: env.HOME || homedir() };
}

async function openEngine(
  policy: SandboxPolicy,
  { cwd, root }: Places,
  env: Env,
  exec: RunProcess,
  decision: Decision,
): Promise<SandboxEngine> {
  const { createBwrap } = await import("../boundaries/sandbox-bwrap.ts");
  const programs = programsFor(env, [cwd, root, ...policy.writable]);
  const outer = { exec, env: childEnv(env), programs };
  if (policy.hosts === null || policy.hosts.length === 0) return createBwrap(outer);
  const { openBridge } = await import("../boundaries/sandbox-srt.ts");
  const opened = await openBridge(policy.hosts);
  if (opened.kind === "open") return createBwrap({ ...outer, bridge: opened.bridge });
  throw unavailable(`${opened.why}, or set network.mode to "none"`, decision);
}

/** Whether commands can be confined here at all, to the project and without a network; null when they can. */
export async function selfTest(project: Project, env: NodeJS.ProcessEnv): Promise<string | null> {
  const { policyOf, refuseGround } = await import("../boundaries/sandbox-policy.ts");
  const { createBwrap } = await import("../boundaries/sandbox-bwrap.ts");
  const places = placesOf(project, project.root, env);
  const policy = policyOf(NO_NETWORK, places);
  const programs = programsFor(env, [project.root]);
  const engine = createBwrap({ exec: runProcess, env: childEnv(env), programs });
  return refuseGround(places) ?? (await engine.selfTest(policy));
}

const NO_NETWORK = {
  network: { mode: "none", trustedDomains: [] },
  filesystem: { allowedPaths: [] },
} as const;

/** What was tried once in this process holds for it. */
const trials = new Map<string, Promise<string | null>>();

async function tried(engine: SandboxEngine, policy: SandboxPolicy): Promise<string | null> {
  const key = JSON.stringify([engine.id, policy]);
  const trial = trials.get(key) ?? engine.selfTest(policy);
  trials.set(key, trial);
  const trouble = await trial;
  // A failure may be mended meanwhile.
  if (trouble !== null) trials.delete(key);
  return trouble;
}

function unavailable(why: string, { why: wanted }: Decision): RunnerError {
  return new RunnerError(
    "SANDBOX_UNAVAILABLE",
    `Commands cannot be confined, and a sandbox is ${wanted}: ${why}. ` +
      `To run without one on your own responsibility: --sandbox off.`,
  );
}
