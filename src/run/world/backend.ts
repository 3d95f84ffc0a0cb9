/** Which model a run asks, and how far an earlier stretch of the run had come with it. */
import { manual } from "../../flow/manual.ts";
import type { AiSdkOptions, Models } from "../../backends/ai-sdk/ai-sdk.ts";
import { parseScript, type ScriptReply } from "../../backends/scripted/script.ts";
import { createScripted } from "../../backends/scripted/scripted.ts";
import { RunnerError, type Backend } from "../../engine/ports.ts";
import type { BackendSpec, Entry, Worktree } from "../../flow/event.ts";
import type { Flow } from "../../flow/flow.ts";
import { isObject, own, type Json } from "../../flow/json.ts";
import type { UserConfig } from "./config.ts";

export type BackendOptions = {
  /** A model of your own. */
  readonly backend?: Backend;
  /** Or a scripted one: the replies, or the text of a script file with its name. */
  readonly script?: readonly ScriptReply[] | { readonly text: string; readonly file: string };
  /** Or one of those below, by its id. */
  readonly use?: string;
  /** The model that all steps ask, whatever they name. */
  readonly model?: string;
};

/** What a backend is made from. */
type Need = {
  readonly flow: Flow;
  readonly env: NodeJS.ProcessEnv;
  readonly config: UserConfig;
  /** Where the runs of the project are kept. */
  readonly stateDir: string;
  readonly root: string;
  readonly model?: string;
  /** The options of its spec, and the marks it left, when a run goes on. */
  readonly recorded?: Json;
  readonly marks: readonly Json[];
};

/** Every backend that can be named. What a plain run does not need is loaded when it is. */
const BACKENDS: { readonly [id: string]: (need: Need) => Promise<Backend> } = {
  scripted: (need) => Promise.resolve(scriptedAgain(need)),
  "ai-sdk": async ({ flow, env, config, ...how }) => {
    const { createModels } = await import("./models.ts");
    return await createModels(flow, { config, env }, how);
  },
  "claude-agent": async ({ flow, env, marks, model, recorded, stateDir }) => {
    const [{ createClaudeAgent }, { createAgentProcesses }, { modelNames }] = await Promise.all([
      import("../../backends/claude/claude-agent.ts"),
      import("../../effects/process/agent-processes.ts"),
      import("./models.ts"),
    ]);
    const processes = createAgentProcesses("lockstep-claude-", stateDir);
    const named = model ?? (isObject(recorded) ? own(recorded, "model") : undefined);
    const chosen = typeof named === "string" ? { model: named } : {};
    const backend = await createClaudeAgent({ env, marks, stateDir, processes, ...chosen });
    const models = typeof named === "string" ? [named] : modelNames(flow);
    return { ...backend, spec: { ...backend.spec, models } };
  },
  acp: async ({ env, config: { acp }, root, stateDir }) => {
    const [{ createAcp }, { findProgram }, { createAgentProcesses }] = await Promise.all([
      import("../../backends/acp/acp.ts"),
      import("./programs.ts"),
      import("../../effects/process/agent-processes.ts"),
    ]);
    if (acp === null)
      throw new RunnerError(
        "NO_BACKEND",
        `The backend "acp" starts an agent that your own config.json names: { "acp": { "command": "…" } }. See ${manual("agents")}`,
      );
    const command = findProgram(acp.command, env, [root]);
    if (command === null)
      throw new RunnerError(
        "BACKEND_UNAVAILABLE",
        `The agent "${acp.command}" of "acp" in your config.json is not found: name it by its absolute path, or by a name ` +
          `that is on your PATH outside of the project and of node_modules/.bin. See ${manual("agents")}`,
      );
    const processes = createAgentProcesses("lockstep-acp-", stateDir);
    return await createAcp({ env, ...acp, command, processes });
  },
};

/** The backend `ai-sdk` for models of your own choice; see there. */
export async function createAiSdk(models: Models, options?: AiSdkOptions): Promise<Backend> {
  return await (await import("../../backends/ai-sdk/ai-sdk.ts")).createAiSdk(models, options);
}

/** The model a run asks: one that was handed in, a script, one that was named, or the one that the run began with. */
export async function chooseBackend(
  options: BackendOptions,
  flow: Flow,
  around: Pick<Need, "env" | "config" | "stateDir" | "root">,
  past: { readonly spec?: BackendSpec; readonly marks: readonly Json[] } = { marks: [] },
): Promise<Backend> {
  if (options.backend !== undefined) return options.backend;
  const { script, model, use } = options;
  if (script !== undefined) {
    return createScripted("file" in script ? await parseScript(script.text, script.file) : script);
  }
  const { spec, marks } = past;
  const again = use === undefined && model === undefined ? spec : undefined;
  const id = again?.id ?? use ?? around.config.defaultBackend ?? "ai-sdk";
  const make = own(BACKENDS, id);
  if (make === undefined) {
    const what =
      again === undefined
        ? `Unknown backend "${id}". Use one of: ${Object.keys(BACKENDS).join(", ")}.`
        : `The run used the backend "${id}", which only the program that started it provides: pass it again, or name a model.`;
    throw new RunnerError("NO_BACKEND", what);
  }
  return await make({
    flow,
    ...around,
    ...(id === "claude-agent" ? { env: forClaudeCode(around.env) } : {}),
    marks,
    ...(model === undefined ? {} : { model }),
    ...(again === undefined ? {} : { recorded: again.options }),
  });
}

/** How long a watcher may take to end the coding agent of a run whose owner died; 0: nobody watches over the others. */
export function watcherMs({ id }: BackendSpec): number {
  return id === "acp" || id === "claude-agent" ? 3000 : 0;
}

/** Claude Code adds the version to the address by itself. */
function forClaudeCode(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { ANTHROPIC_BASE_URL: address } = env;
  return address === undefined ? env : { ...env, ANTHROPIC_BASE_URL: address.replace(/\/v1\/*$/, "") };
}

function scriptedAgain({ recorded, marks }: Need): Backend {
  if (recorded === undefined)
    throw new RunnerError(
      "NO_BACKEND",
      `A scripted model needs its script: pass --script FILE (see ${manual("scripts")}).`,
    );
  return createScripted((recorded as { readonly replies: readonly ScriptReply[] }).replies, marks);
}

/** What an earlier stretch of the run left behind: its folder, its model, and how far that had come. */
export function recallBackend(past: readonly Entry[]): {
  cwd: string;
  worktree: Worktree | undefined;
  spec: BackendSpec;
  marks: readonly Json[];
} {
  const [first] = past;
  if (first?.event.type !== "run.started") {
    throw new RunnerError("JOURNAL_UNAVAILABLE", "The run has no first entry: its journal is damaged.");
  }
  let spec = first.event.backend;
  let marks: Json[] = [];
  for (const { event } of past) {
    if (event.type === "run.resumed" && event.backend !== undefined) {
      spec = event.backend;
      marks = [];
    }
    if (event.type === "step.answered" && "mark" in event.reply && event.reply.mark !== undefined) {
      marks.push(event.reply.mark);
    }
  }
  const { cwd, worktree } = first.event;
  return { cwd, worktree, spec, marks };
}
