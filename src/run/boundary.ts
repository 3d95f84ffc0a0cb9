/** What a step may really touch here: the gate, the sandbox as this machine would open it, and the environment. */
import { commandForms } from "../boundaries/gate.ts";
import { mountsOf, rootsOf } from "../boundaries/sandbox-mounts.ts";
import { policyOf } from "../boundaries/sandbox-policy.ts";
import { offeredIn } from "../boundaries/toolbox.ts";
import { childEnv } from "../effects/process.ts";
import { RunnerError } from "../engine/ports.ts";
import type { Flow, Step } from "../flow/flow.ts";
import { mayUseServer, variablesIn } from "../flow/mcp.ts";
import type { PermissionMode } from "../flow/settings.ts";
import { readConfig, type SandboxWish } from "./config.ts";
import type { Project } from "./project.ts";
import { decideSandbox, openGround, placesOf, type Ground } from "./sandbox.ts";

export type Surroundings = {
  readonly project: Project;
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly wish?: SandboxWish;
};

export type StepBoundary = {
  readonly step: string;
  readonly mode: PermissionMode;
  readonly tools: readonly string[];
  /** Tools of which every call has to be approved by a person, where one can be asked. */
  readonly asks: readonly string[];
  /** The forms of commands that the model may give; null: any. Empty: none. */
  readonly commands: readonly string[] | null;
};

export type SandboxTold =
  | { readonly confined: false; readonly why: string }
  | {
      readonly confined: true;
      readonly why: string;
      readonly engine: string | null;
      /** Why it could not be opened here. */
      readonly trouble: string | null;
      /** null: no network. */
      readonly hosts: readonly string[] | null;
      readonly writable: readonly string[];
      /** Read-only although they lie in a folder that may be written. */
      readonly readOnly: readonly string[];
      /** What exists here and is not seen. */
      readonly hidden: readonly string[];
    };

/** A server of tools that the agent declares. Which tools it has is known when it is started. */
export type ServerTold = {
  readonly name: string;
  /** Its command line or its address. */
  readonly what: string;
  /** Variables of yours that it is given. */
  readonly variables: readonly string[];
  /** Those of the steps that may use some tool of it. */
  readonly steps: readonly string[];
};

export type Boundary = {
  readonly v: 1;
  readonly agent: string;
  readonly steps: readonly StepBoundary[];
  readonly servers: readonly ServerTold[];
  readonly sandbox: SandboxTold;
  /** Names of variables that commands see. */
  readonly env: readonly string[];
};

export async function boundaryOf(
  flow: Flow,
  steps: readonly Step[],
  around: Surroundings,
): Promise<Boundary> {
  const { sandbox, ground } = await tryGround(flow, around);
  await ground?.close();
  const config = readConfig(around.env);
  const names = Object.keys(childEnv(around.env, config.env)).toSorted();
  const servers = Object.entries(flow.settings.mcpServers ?? {}).map(([name, server]) => ({
    name,
    what: server.kind === "http" ? server.url : [server.command, ...server.args].join(" "),
    variables: variablesIn(server.kind === "http" ? server.headers : server.env),
    steps: steps.flatMap((step) => (mayUseServer(step, name) ? [step.id] : [])),
  }));
  const bounded = steps.map((step) => stepBoundary(flow, step));
  return { v: 1, agent: flow.agent, steps: bounded, servers, sandbox, env: names };
}

/** The sandbox that a run would have, open; null where it cannot be opened. To be closed by whoever asked. */
export async function tryGround(
  flow: Flow,
  { project, cwd, env, wish }: Surroundings,
): Promise<{ readonly sandbox: SandboxTold; readonly ground: Ground | null }> {
  const decision = decideSandbox(flow.settings.boundaries.sandbox, wish ?? readConfig(env).sandbox);
  const places = placesOf(project, cwd, env);
  const { why } = decision;
  if (!decision.confined) {
    return { sandbox: { confined: false, why }, ground: await openGround(decision, () => places, env) };
  }
  const policy = policyOf(decision.sandbox, places);
  const mounts = mountsOf(policy);
  const pathsAs = (...kinds: readonly string[]) =>
    mounts.flatMap(({ path, as }) => (kinds.includes(as) ? [path] : []));
  const told = {
    confined: true,
    why,
    hosts: policy.hosts,
    writable: [...rootsOf(policy), ...pathsAs("rw").filter((path) => !rootsOf(policy).includes(path))],
    readOnly: pathsAs("ro"),
    hidden: pathsAs("hidden folder", "hidden file"),
  } as const;
  try {
    const ground = await openGround(decision, () => places, env);
    return { sandbox: { ...told, engine: ground.inside?.engine.id ?? null, trouble: null }, ground };
  } catch (error) {
    if (!(error instanceof RunnerError)) throw error;
    return { sandbox: { ...told, engine: null, trouble: error.message }, ground: null };
  }
}

function stepBoundary(flow: Flow, step: Step): StepBoundary {
  const isModel = step.by.kind === "model";
  const tools = isModel ? offeredIn(flow, step).map(({ name }) => name) : [];
  const asks = isModel ? offeredIn(flow, step, "asking").map(({ name }) => name) : [];
  return {
    step: step.id,
    mode: step.tools.mode,
    tools,
    asks: asks.filter((name) => !tools.includes(name)),
    commands: tools.includes("Bash") || asks.includes("Bash") ? commandForms(step) : [],
  };
}
