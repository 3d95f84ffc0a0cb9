/** The backends that can be named: a row for each says how it is made, and what the rest of a run must know of it. */
import { RunnerError, type Backend, type Blobs } from "../../engine/ports.ts";
import type { Flow } from "../../flow/flow.ts";
import { isObject, own, type Json } from "../../flow/json.ts";
import { manual } from "../../flow/manual.ts";
import type { ProgramEntry, UserConfig } from "./config.ts";

/** What a backend is made from. */
export type BackendNeed = {
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
  /** Where conversations are stored that travel with a run; absent: they stay here. */
  readonly blobs?: Blobs;
};

export type BackendRow = {
  /** Loads what the backend needs, so that runs without it start as fast as before. */
  readonly make: (need: BackendNeed) => Promise<Backend>;
  /** It starts a program, which the user's config.json names under the id of the backend. */
  readonly program?: {
    readonly about: string;
    /** The page of the manual about it. */
    readonly page: string;
    /** How long an answer may take, unless the user sets `timeoutMs`. Absent: there is no such setting. */
    readonly timeoutMs?: number;
  };
  /** Its program starts commands by its own means, where no sandbox of ours can hold them. */
  readonly unconfinable?: true;
  /** A watcher ends its program when the process that owns the run dies. */
  readonly watched?: true;
};

const ANSWER_MS = 300_000;

export const BACKENDS: { readonly [id: string]: BackendRow } = {
  scripted: {
    make: async ({ recorded, marks }) => {
      const { createScripted } = await import("../../backends/scripted/scripted.ts");
      if (recorded !== undefined)
        return createScripted((recorded as { readonly replies: [] }).replies, marks);
      throw new RunnerError(
        "NO_BACKEND",
        `A scripted model needs its script: pass --script FILE (see ${manual("scripts")}).`,
      );
    },
  },
  "ai-sdk": {
    make: async ({ flow, env, config, ...how }) => {
      const { createModels } = await import("./models.ts");
      return await createModels(flow, { config, env }, how);
    },
  },
  "claude-agent": {
    watched: true,
    make: async (need) => {
      const [{ createClaudeAgent }, { modelNames }, processes] = await Promise.all([
        import("../../backends/claude/claude-agent.ts"),
        import("./models.ts"),
        processesOf(need, "lockstep-claude-"),
      ]);
      const { flow, marks, stateDir, blobs } = need;
      const { ANTHROPIC_BASE_URL: address } = need.env;
      // Claude Code adds the version to the address by itself.
      const env =
        address === undefined
          ? need.env
          : { ...need.env, ANTHROPIC_BASE_URL: address.replace(/\/v1\/*$/, "") };
      const model = namedModel(need);
      const backend = await createClaudeAgent({
        env,
        marks,
        stateDir,
        processes,
        ...(model && { model }),
        ...(blobs && { blobs }),
      });
      return { ...backend, spec: { ...backend.spec, models: model ? [model] : modelNames(flow) } };
    },
  },
  acp: {
    program: { about: "The coding agent that the backend acp starts.", page: "agents" },
    unconfinable: true,
    watched: true,
    make: async (need) => {
      const [{ createAcp }, program, processes] = await Promise.all([
        import("../../backends/acp/acp.ts"),
        programOf(need, "acp"),
        processesOf(need, "lockstep-acp-"),
      ]);
      return await createAcp({ env: need.env, ...program, processes });
    },
  },
  command: {
    program: {
      about: "The program that the backend command asks as a model.",
      page: "models",
      timeoutMs: ANSWER_MS,
    },
    watched: true,
    make: async (need) => {
      const [{ createCommandModel }, program, processes] = await Promise.all([
        import("../../backends/command/command.ts"),
        programOf(need, "command"),
        processesOf(need, "lockstep-command-"),
      ]);
      const model = namedModel(need);
      return createCommandModel({
        env: need.env,
        timeoutMs: ANSWER_MS,
        ...program,
        processes,
        ...(model && { model }),
      });
    },
  },
};

/** What `--backend` takes. A script is given with `--script`. */
export const BACKEND_IDS = Object.keys(BACKENDS).filter((id) => id !== "scripted");

async function processesOf({ stateDir }: BackendNeed, prefix: string) {
  const { createAgentProcesses } = await import("../../effects/process/agent-processes.ts");
  return createAgentProcesses(prefix, stateDir);
}

/** The model that all steps ask, whatever they name. */
function namedModel({ model, recorded }: BackendNeed): string | undefined {
  const named = model ?? (isObject(recorded) ? own(recorded, "model") : undefined);
  return typeof named === "string" ? named : undefined;
}

/** The program with its full path: never one that lies in the project. */
async function programOf({ config, env, root }: BackendNeed, id: string): Promise<ProgramEntry> {
  const { findProgram } = await import("./programs.ts");
  const entry = own(config.programs, id);
  const page = manual(BACKENDS[id]!.program!.page);
  if (entry === undefined)
    throw new RunnerError(
      "NO_BACKEND",
      `The backend "${id}" starts a program that your own config.json names: { "${id}": { "command": "…" } }. See ${page}`,
    );
  const command = findProgram(entry.command, env, [root]);
  if (command !== null) return { ...entry, command };
  throw new RunnerError(
    "BACKEND_UNAVAILABLE",
    `The program "${entry.command}" of "${id}" in your config.json is not found: name it by its absolute path, or by a name ` +
      `that is on your PATH outside of the project and of node_modules/.bin. See ${page}`,
  );
}
