/** What a run touches, made from its flow and the options it was started with. */
import { resolve } from "node:path";
import { createGround } from "../../boundaries/gate/paths.ts";
import { createToolbox, offerOf, type ServedTool } from "../../boundaries/tools/toolbox.ts";
import type { ModuleHost } from "../../effects/modules/module-host.ts";
import type { ConfineChild } from "../../boundaries/sandbox/sandbox.ts";
import type { Redactor } from "../../boundaries/redact/redact.ts";
import { childEnv, type RunProcess } from "../../effects/process/process.ts";
import { createShell } from "../../effects/process/shell.ts";
import { createWatch } from "../../effects/look/look.ts";
import type { Backend, Clock, Hooks, Person, Ports } from "../../engine/ports.ts";
import type { Flow, Module } from "../../flow/flow.ts";
import { defined } from "../../flow/json.ts";
import { composer } from "../../prompts/compose.ts";
import { discreet, withoutSecrets } from "../../boundaries/redact/redacted-ports.ts";
import { askerOf, githubFor, type Pinned } from "./github.ts";
import { guardedIn } from "./own-files.ts";
import { loadedModules } from "./own-modules.ts";
import { present } from "./folder-gone.ts";
import { programsFor } from "./programs.ts";

export type PortsContext = {
  readonly flow: Flow;
  readonly backend: Backend;
  readonly clock: Clock;
  /** Of the project, where its modules are. */
  readonly root: string;
  readonly cwd: string;
  /** Where runs are recorded. */
  readonly stateDir: string;
  readonly env?: NodeJS.ProcessEnv;
  /** How commands are started, and the names of the environment that they see besides the usual ones. */
  readonly ground: {
    readonly exec: RunProcess;
    readonly child: ConfineChild;
    /** How our own search through files is started. */
    readonly search?: RunProcess;
    readonly allow: readonly string[];
    /** Tools of servers. */
    readonly served?: readonly ServedTool[];
  };
  readonly repository: Pinned;
  readonly redactor: Redactor;
  readonly person: Person;
  readonly onText?: Ports["onText"];
  readonly hookTimeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Hears what the user should know of at the end. */
  readonly onWarning?: (text: string) => void;
};

/** Most runs only ask their model: whatever else they could use is made when they do. */
export function createPorts(around: PortsContext): Ports {
  const { flow, backend, clock, cwd, person, onText, redactor, ground } = around;
  let made: Ports | null = null;
  const all = () => (made ??= discreet(present(allPorts(around)), redactor));
  const isPlain = backend.run === undefined && onText === undefined && flow.hooks === undefined;
  if (!isPlain || (ground.served !== undefined && ground.served.length > 0)) return all();
  return {
    backend,
    tidy: (result) => withoutSecrets(result, redactor),
    clock,
    cwd,
    compose: composer,
    toolbox: {
      offer: offerOf(person, flow.settings.github.enabled),
      judge: (...args) => all().toolbox.judge(...args),
      wish: (...args) => all().toolbox.wish?.(...args) ?? null,
      call: (...args) => all().toolbox.call(...args),
      callGranted: (...args) => all().toolbox.callGranted(...args),
    },
    shell: {
      check: (...args) => all().shell.check(...args),
      perform: (...args) => all().shell.perform(...args),
    },
    watch: {
      look: (...args) => all().watch.look(...args),
      close: async () => await made?.watch.close?.(),
    },
    person: { ...person, ask: (...args) => all().person.ask(...args) },
  };
}

function allPorts(around: PortsContext): Ports {
  const { flow, backend, clock, root, cwd, stateDir, env = process.env, person, onText } = around;
  const { redactor, ground, repository } = around;
  const { allow } = ground;
  const exec: RunProcess = (command) => ground.exec({ ...command, tidy: redactor.text });
  const { search = exec } = ground;
  const { autoResponse, questions } = flow.settings;
  const { enabled } = flow.settings.github;
  const { signal = new AbortController().signal, onWarning } = around;
  const github = githubFor({ enabled, env, cwd, clock, signal, repository, onToken: redactor.learn });
  const programs = programsFor(env, [root, cwd]);
  const hooks = flow.hooks === undefined ? null : hooksOf(flow.hooks, around, env);
  const guarded = () => guardedIn({ cwd, root, stateDir }, env, loadedModules(flow, root));
  const files = createGround(cwd, [], guarded);
  const ports: Ports = {
    backend,
    clock,
    cwd,
    compose: composer,
    toolbox: createToolbox({
      cwd,
      env: () => childEnv(env, allow),
      exec,
      search,
      programs,
      tidy: redactor.text,
      autoResponse,
      protect: [],
      guarded,
      ...(enabled && { github: askerOf(github) }),
      asksUser: questions?.askUser === "person",
      ...(ground.served !== undefined && { served: ground.served }),
      granting: { person, ...(hooks !== null && { hooks }) },
    }),
    shell: createShell({ cwd, env, allow, exec, ground: files, git: programs.git }),
    watch: createWatch({
      agent: flow.agent,
      root,
      cwd,
      ground: files,
      env,
      github,
      confine: ground.child,
      ...(onWarning !== undefined && { onWarning }),
    }),
    person,
    ...(hooks !== null && { hooks }),
    ...(onText !== undefined && { onText }),
  };
  return ports;
}

/** The code of a machine, in a process of its own that is started when it is first asked. */
function hooksOf(
  module: Module,
  { root, cwd, hookTimeoutMs, ground: { child } }: PortsContext,
  env: NodeJS.ProcessEnv,
): Hooks {
  let host: Promise<ModuleHost> | null = null;
  const open = () => openHost(module, { root, cwd, env, child, hookTimeoutMs }, DEFAULT_EXPORT);
  return {
    call: async (path, args, signal, how) => await (await (host ??= open())).call(path, args, signal, how),
    close: async () => await (await host)?.close(),
  };
}

/** How a module of the project is started. */
export type HostContext = Pick<PortsContext, "root" | "cwd"> & {
  readonly env: NodeJS.ProcessEnv;
  readonly child: ConfineChild;
  readonly hookTimeoutMs: number | undefined;
};

export async function openHost(
  { file, digest }: Module,
  { root, cwd, env, child, hookTimeoutMs: timeoutMs }: HostContext,
  adapter?: string,
): Promise<ModuleHost> {
  const { createModuleHost } = await import("../../effects/modules/module-host.ts");
  const about = { file: resolve(root, file), digest, cwd, env, confine: child };
  return createModuleHost({ ...about, ...defined({ adapter, timeoutMs }) });
}

const DEFAULT_EXPORT = "(exports) => exports.default";
