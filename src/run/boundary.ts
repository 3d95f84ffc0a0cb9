/** What a step may really touch here: the gate, the sandbox as this machine would open it, and the environment. */
import { commandForms } from "../boundaries/gate/gate.ts";
import { mountsOf, rootsOf } from "../boundaries/sandbox/mounts.ts";
import { policyOf } from "../boundaries/sandbox/policy.ts";
import type { SandboxPolicy } from "../boundaries/sandbox/sandbox.ts";
import { offeredIn } from "../boundaries/tools/toolbox.ts";
import { childEnv } from "../effects/process/process.ts";
import { RunnerError } from "../engine/ports.ts";
import type { Confinement } from "../flow/event.ts";
import type { Flow, Step } from "../flow/flow.ts";
import { defined, own } from "../flow/json.ts";
import { mayUseServer, serverText, serverValues, variablesIn } from "../flow/mcp.ts";
import type { PermissionMode } from "../flow/settings.ts";
import { BACKENDS } from "./world/backend-table.ts";
import { readConfig, type NetworkWish, type SandboxWish } from "./world/config.ts";
import { decideGround } from "./world/process-starter.ts";
import type { Project } from "./world/project.ts";
import { settle, type SandboxGround } from "./world/sandbox.ts";

export type Surroundings = {
  readonly project: Project;
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly wish?: SandboxWish;
  readonly network?: NetworkWish;
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

/** What the result document of a run would say of its sandbox, and more. */
export type SandboxReport = Confinement & { readonly warnings: readonly string[] } & (
    | {
        readonly confined: false;
        /** false: there is nothing to confine. */
        readonly starts: boolean;
      }
    | {
        readonly confined: true;
        /** Why it could not be opened here. */
        readonly trouble: string | null;
        /** null: no network. all: the network of this machine. */
        readonly hosts: readonly string[] | "all" | null;
        readonly writable: readonly string[];
        /** Read-only although they lie in a folder that may be written. */
        readonly readOnly: readonly string[];
        /** What exists here and is not seen. */
        readonly hidden: readonly string[];
      }
  );

/** A server of tools that the agent declares. Which tools it has is known when it is started. */
export type ServerReport = {
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
  readonly servers: readonly ServerReport[];
  readonly sandbox: SandboxReport;
  /** Names of variables that commands see. */
  readonly env: readonly string[];
};

export async function boundaryOf(
  flow: Flow,
  steps: readonly Step[],
  around: Surroundings,
): Promise<Boundary> {
  await using tried = await tryGround(flow, around);
  const { sandbox } = tried;
  const config = readConfig(around.env);
  const names = Object.keys(childEnv(around.env, config.env)).toSorted();
  const servers = Object.entries(flow.settings.mcpServers ?? {}).map(([name, server]) => ({
    name,
    what: serverText(server),
    variables: variablesIn(serverValues(server)),
    steps: steps.flatMap((step) => (mayUseServer(step, name) ? [step.id] : [])),
  }));
  const bounded = steps.map((step) => stepBoundary(flow, step));
  return { v: 1, agent: flow.agent, steps: bounded, servers, sandbox, env: names };
}

/** The sandbox that a run would have; null where it must be there and cannot be opened. */
export async function tryGround(
  flow: Flow,
  { project, cwd, env, wish, network }: Surroundings,
): Promise<Tried> {
  const config = readConfig(env);
  const id = config.defaultBackend ?? "";
  const backend = { spec: { id }, unconfinable: own(BACKENDS, id)?.unconfinable === true };
  const { decision, places } = decideGround(
    { flows: [flow], backend, project, cwd, config, granting: true },
    { env, ...defined({ sandbox: wish, network }) },
  );
  try {
    const settled = await settle(decision, places, env);
    const ground = await settled.groundAt(cwd);
    const { inside } = ground;
    const held = { ...settled.held, warnings: settled.warnings.map(({ text }) => text) };
    const sandbox: SandboxReport =
      inside === null
        ? { ...held, confined: false, starts: decision.kind !== "idle" }
        : { ...held, confined: true, trouble: null, ...around(inside.policy) };
    return { ground, sandbox, [Symbol.asyncDispose]: settled[Symbol.asyncDispose] };
  } catch (error) {
    if (!(error instanceof RunnerError)) throw error;
    const policy = policyOf({ hosts: null, allowedPaths: [] }, places);
    const why = decision.kind === "refused" ? "asked for" : decision.why;
    const held = { confined: true, engine: null, network: "none", why } as const;
    const sandbox = { ...held, trouble: error.message, warnings: [], ...around(policy) };
    return { ground: null, sandbox, [Symbol.asyncDispose]: () => Promise.resolve() };
  }
}

type Tried = AsyncDisposable & { readonly sandbox: SandboxReport; readonly ground: SandboxGround | null };

function around(policy: SandboxPolicy) {
  const mounts = mountsOf(policy);
  const pathsAs = (...kinds: readonly string[]) =>
    mounts.flatMap(({ path, as }) => (kinds.includes(as) ? [path] : []));
  return {
    hosts: policy.hosts,
    writable: [...rootsOf(policy), ...pathsAs("rw").filter((path) => !rootsOf(policy).includes(path))],
    readOnly: pathsAs("ro"),
    hidden: pathsAs("hidden folder", "hidden file"),
  };
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
