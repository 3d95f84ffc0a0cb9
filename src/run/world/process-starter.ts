/** The ground under a run: how it starts processes, settled before anything is trusted, made or recorded. */
import { existsSync } from "node:fs";
import type { SandboxPlaces } from "../../boundaries/sandbox/policy.ts";
import type { ServedTool } from "../../boundaries/tools/toolbox.ts";
import { markOfRun } from "../../effects/process/strays.ts";
import { MARKS } from "../../effects/process/tree.ts";
import type { Backend } from "../../engine/ports.ts";
import type { BackendSpec, Confinement } from "../../flow/event.ts";
import type { Flow } from "../../flow/flow.ts";
import type { UserConfig } from "./config.ts";
import type { DriveOptions } from "../options.ts";
import { inThisTurn } from "./read-once-a-turn.ts";
import { loadedModules } from "./own-modules.ts";
import { surroundings } from "./workplace.ts";
import { startsProcesses } from "./processes.ts";
import type { Project } from "./project.ts";
import { decideSandbox, type Decision } from "./sandbox-decision.ts";
import { placesOf, settle, type SandboxGround, type Settled } from "./sandbox.ts";

/** What the machine offers a run: how commands are started, and what they see of the environment. */
export type StarterContext = Pick<SandboxGround, "exec" | "child" | "search" | "git"> & {
  readonly held: Confinement;
  readonly allow: UserConfig["env"];
  readonly served: readonly ServedTool[];
  readonly warnings: readonly string[];
};

/** A run that is about to begin or to go on. */
export type StarterSetting = {
  /** The flow first; then others whose blocks may still be carried out. */
  readonly flows: readonly Flow[];
  readonly backend: Pick<Backend, "unconfinable"> & { readonly spec: Pick<BackendSpec, "id"> };
  readonly project: Project;
  readonly cwd: string;
  readonly config: UserConfig;
  /** Somebody may grant a stage more than its list. */
  readonly granting: boolean;
  /** It goes on, and was confined so far. */
  readonly began?: boolean;
};

/**
 * Whether its commands will be confined; SANDBOX_UNAVAILABLE where they must be and cannot be. Runs of the same turn share
 * it, unless it holds something that ends with its run.
 */
export async function settleGround(setting: StarterSetting, options: Wishes): Promise<Settled> {
  const make = () => {
    const { decision, places } = decideGround(setting, options);
    return settle(decision, places, options.env ?? process.env);
  };
  const { flows, backend, project, cwd, config, granting, began } = setting;
  if (flows.length > 1) return await make();
  const { env = process.env, sandbox, network, unseen } = options;
  const parts = [
    "ground",
    flows[0],
    backend,
    project,
    cwd,
    config,
    granting,
    began,
    env,
    sandbox,
    network,
    unseen,
  ];
  const first = inThisTurn(parts, () => ({ settled: make(), isTaken: false }));
  const settled = await first.settled;
  if (first.isTaken && settled.isHeld) return await make();
  first.isTaken = true;
  return settled;
}

type Wishes = Pick<DriveOptions, "env" | "sandbox" | "network" | "unseen">;

/** What is to confine the commands of a run, and what it is to keep them from. */
export function decideGround(
  { flows, backend, project, cwd, config, granting, began = false }: StarterSetting,
  { env = process.env, sandbox, network, unseen = [] }: Wishes,
): { readonly decision: Decision; readonly places: SandboxPlaces } {
  const { unconfinable = false, spec } = backend;
  const decision = decideSandbox({
    sandbox: flows[0]!.settings.boundaries.sandbox,
    wish: sandbox ?? config.sandbox,
    network: network ?? config.network,
    starts: flows.some((flow) => startsProcesses(flow, granting)),
    unconfinable: unconfinable ? spec.id : null,
    began,
  });
  // The folder of a worktree may be gone: then it is made again, and tried out when it is there.
  const place = existsSync(cwd) ? cwd : project.root;
  const modules = flows.flatMap((flow) => loadedModules(flow, project.root));
  return { decision, places: { ...placesOf(project, place, env, modules), unseen } };
}

/** Whether somebody could be asked to grant a stage more than its list. */
export function mayGrant({
  ask,
  wait = false,
  onPermission = "deny",
}: Omit<DriveOptions, "observe">): boolean {
  return ask !== undefined || wait || onPermission !== "deny";
}

/** Says at once what must be known before the first command; gives what was said. */
export function warnAtOnce(
  { warnings }: Settled,
  { notify }: Pick<DriveOptions, "notify">,
): readonly string[] {
  const loud = warnings.flatMap(({ text, loud: isLoud }) => (isLoud ? [text] : []));
  for (const text of loud) notify?.(text);
  return loud;
}

/** Which run processes belong to. */
export type RunAt = { readonly stateDir: string; readonly run: string };

/** Starts the servers of tools; they end with the stack. Every process that is started here carries the mark of the run. */
export async function openGround(
  flow: Flow,
  { cwd, ...at }: RunAt & { readonly cwd: string },
  { env = process.env, ...options }: DriveOptions,
  { config, ground: settled }: { readonly config: UserConfig; readonly ground: Settled },
  stack: AsyncDisposableStack,
): Promise<StarterContext> {
  const ground = await settled.groundAt(cwd);
  const { search, git } = ground;
  const { exec, child } = marking(ground, at, env);
  const warnings = settled.warnings.map(({ text }) => text);
  const { env: allow } = config;
  const around = { exec, child, search, ...(git !== undefined && { git }), held: settled.held, allow };
  if (flow.settings.mcpServers === undefined) return { ...around, served: [], warnings };
  const { openServers } = await import("./mcp.ts");
  const { signal } = surroundings(options);
  const servers = await openServers(flow, { cwd, env, allow, child, signal });
  stack.defer(servers.close);
  return { ...around, served: servers.tools, warnings: [...warnings, ...servers.warnings] };
}

/** A resumed run finds by it what outlived the process that started it. */
function marking(
  { exec, child }: SandboxGround,
  at: RunAt,
  env: NodeJS.ProcessEnv,
): Pick<SandboxGround, "exec" | "child"> {
  let known: string | null = null;
  const marks = (before: string | undefined) =>
    [before, (known ??= markOfRun(at.stateDir, at.run))].filter(Boolean).join(":");
  return {
    exec: (options) => exec({ ...options, env: { ...options.env, [MARKS]: marks(options.env[MARKS]) } }),
    child: (command, cwd) => {
      const confined = child(command, cwd);
      return { ...confined, env: { ...confined.env, [MARKS]: marks(env[MARKS]) } };
    },
  };
}
