/** The ground under a run: its sandbox, open for as long as the run goes on. */
import { resolve } from "node:path";
import type { ServedTool } from "../boundaries/toolbox.ts";
import { RunnerError, type Backend } from "../engine/ports.ts";
import type { Flow } from "../flow/flow.ts";
import { readConfig, type UserConfig } from "./config.ts";
import type { DriveOptions } from "./options.ts";
import { surroundings } from "./place.ts";
import type { Project } from "./project.ts";
import type { Result } from "./result.ts";
import { decideSandbox, openGround, placesOf, type Ground } from "./sandbox.ts";

/** What the machine offers a run: how commands are started, and what they see of the environment. */
export type Around = Pick<Ground, "exec" | "child" | "git"> & {
  readonly allow: UserConfig["env"];
  readonly served: readonly ServedTool[];
  readonly limits: UserConfig["limits"];
  readonly warnings: readonly string[];
};

/** The user's settings, before anything is made or recorded; and a sandbox is there if one is wanted. */
export async function requireGround(
  flow: Flow,
  project: Project,
  options: DriveOptions,
): Promise<UserConfig> {
  const { env = process.env, sandbox } = options;
  const config = readConfig(env);
  const decision = decideSandbox(flow.settings.boundaries.sandbox, sandbox ?? config.sandbox);
  if (!decision.confined) return config;
  const cwd = resolve(options.cwd ?? process.cwd());
  const ground = await openGround(decision, () => placesOf(project, cwd, env), env);
  await ground.close();
  return config;
}

/** A sandbox that would hold our commands and not the agent's own is none. */
export function requireConfinable(
  flow: Flow,
  { spec, unconfinable = false }: Backend,
  { env = process.env, sandbox }: DriveOptions,
): void {
  if (!unconfinable) return;
  const decision = decideSandbox(flow.settings.boundaries.sandbox, sandbox ?? readConfig(env).sandbox);
  if (!decision.confined) return;
  throw new RunnerError(
    "SANDBOX_UNAVAILABLE",
    `A sandbox is ${decision.why}, and the agent behind "${spec.id}" starts its commands itself, outside of it. ` +
      `Use another backend, or run it without a sandbox on your own responsibility: --sandbox off.`,
  );
}

/** Opens the sandbox where one is wanted, and closes it at the end, however that comes. */
export async function withGround(
  flow: Flow,
  project: Project,
  cwd: string,
  { env = process.env, sandbox, ...options }: DriveOptions,
  config: UserConfig,
  use: (around: Around) => Promise<Result>,
): Promise<Result> {
  const decision = decideSandbox(flow.settings.boundaries.sandbox, sandbox ?? config.sandbox);
  const ground = await openGround(decision, () => placesOf(project, cwd, env), env);
  const warnings = decision.confined || decision.warning === null ? [] : [decision.warning];
  const { exec, child, inside } = ground;
  const git = ground.git === undefined ? {} : { git: ground.git };
  const { env: allow, limits } = config;
  try {
    if (flow.settings.mcpServers === undefined)
      return await use({ exec, child, ...git, allow, limits, served: [], warnings });
    const { openServers } = await import("./mcp.ts");
    const { signal } = surroundings(options);
    const servers = await openServers(flow, { cwd, env, allow, inside, signal });
    try {
      const all = [...warnings, ...servers.warnings];
      return await use({ exec, child, ...git, allow, limits, served: servers.tools, warnings: all });
    } finally {
      await servers.close();
    }
  } finally {
    await ground.close();
  }
}
