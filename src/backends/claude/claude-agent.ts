/**
 * Claude Code as a backend with a loop of its own, through the Claude Agent SDK.
 *
 * It is given only what the step is offered: its tools, our gate in front of each call, an environment of a few names, a
 * config folder of its own and none of the user's or the project's Claude settings. It never runs in a mode that skips
 * permissions. The engine owns the retries, the limits and the validation of the answer.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Backend, Blobs, RunRequest, TurnResult } from "../../engine/ports.ts";
import type { Fault, JudgedCall } from "../../flow/event.ts";
import type { Json, JsonObject } from "../../flow/json.ts";
import type { AgentProcess, AgentProcesses } from "../../flow/machine/agent-process.ts";
import { createConversations } from "./claude-conversations.ts";
import { createBatches, createHook, type HookInput, type HookOutput } from "./claude-gate.ts";
import {
  ANSWER_TOOL,
  asksToWait,
  hearClaude,
  NO_TOTALS,
  NOTHING,
  readMarks,
  toClaudeResult,
  usageSoFar,
  type ClaudeHeard,
} from "./claude-read.ts";
import { conversationText, INTERRUPTED, INTERRUPTED_FAULT, runOf, type AgentChild } from "../agent-child.ts";
import { toDraft07 } from "../draft-07.ts";
import { passOn, type Environment } from "../environment.ts";
import { toolOptions } from "./claude-tools.ts";
import { loadPeer } from "../peer.ts";
import { errorText } from "../../flow/text/harmless.ts";

export type ClaudeAgentOptions = {
  /** The user's environment; what is passed on of it is chosen here. */
  readonly env: NodeJS.ProcessEnv;
  /** Where conversations are kept, so that a run can be resumed; absent: they go when the backend is closed. */
  readonly stateDir?: string;
  /** How the program is started, and ended with everything that it started. */
  readonly processes: AgentProcesses<AgentChild>;
  /** Of earlier replies of the same run. */
  readonly marks?: readonly Json[];
  /** Where conversations are stored so that another machine can go on with them; absent: they stay here. */
  readonly blobs?: Blobs;
  /** The model that all steps ask, whatever they name. */
  readonly model?: string;
  /** Silence after which a query is given up; five minutes unless said. What we run for it is not silence. */
  readonly silenceMs?: number;
};

/** What we use of the SDK. */
type Sdk = {
  readonly query: (question: {
    readonly prompt: string;
    readonly options: SdkOptions;
  }) => AsyncIterable<JsonObject>;
};

type SpawnOptions = {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd?: string;
  readonly env: NodeJS.ProcessEnv;
  /** Aborts when the program has had its time to end by itself. */
  readonly signal: AbortSignal;
};

type SdkOptions = {
  readonly abortController: AbortController;
  readonly hooks: {
    readonly PreToolUse: readonly {
      readonly hooks: readonly ((input: HookInput) => Promise<HookOutput>)[];
      readonly timeout: number;
      readonly onFailure: "block";
    }[];
  };
  readonly [option: string]: unknown;
};

/** BACKEND_UNAVAILABLE if the SDK is not installed. */
export async function createClaudeAgent(options: ClaudeAgentOptions): Promise<Backend> {
  const { env, stateDir, processes, marks = [], model, silenceMs = SILENCE_MS } = options;
  const { query } = (await loadPeer(SDK, env)) as Sdk;
  const totals = new Map(readMarks(marks));
  const conversations = createConversations(options.blobs, marks);

  async function openHome(run: string): Promise<{ readonly temp: string; readonly home: string }> {
    const temp = await processes.open(run);
    // A journal may come from elsewhere: no name in it leads out of the folder.
    const name = run.replaceAll(/[^\w-]/g, "_");
    const home = stateDir === undefined ? join(temp, "config") : join(stateDir, "runs", name, "claude");
    await mkdir(home, { recursive: true });
    // Caches and copies of settings go; what was said stays, for a run that is resumed.
    if (stateDir !== undefined) processes.tidy(home, "projects");
    return { temp, home };
  }

  /** One that is lost begins anew, with everything that was said. */
  async function inItsConversation(request: RunRequest, home: string): Promise<RunRequest> {
    const { session, whole, ...anew } = request;
    if (session === undefined || (await conversations.bring(home, request.cwd, session))) return request;
    return { ...anew, messages: whole ?? request.messages };
  }

  async function run(asked: RunRequest): Promise<TurnResult> {
    if (asked.signal.aborted) return INTERRUPTED;
    const { temp, home } = await openHome(runOf(asked.asker));
    const request = await inItsConversation(asked, home);
    const started: AgentProcess<AgentChild>[] = [];
    const spawn = ({ command, args, cwd = request.cwd, env: seen, signal }: SpawnOptions) => {
      const agent = processes.start({ file: command, args, cwd, env: seen });
      signal.addEventListener("abort", () => agent.kill());
      started.push(agent);
      return agent.child;
    };
    const batches = createBatches();
    const stop = new AbortController();
    const abort = () => stop.abort();
    request.signal.addEventListener("abort", abort);
    const running = new Set<Promise<unknown>>();
    const call: RunRequest["call"] = (one, signal) => {
      const called = request.call(one, signal).finally(() => running.delete(called));
      running.add(called);
      return called;
    };
    let silent = false;
    const patience = setTimeout(() => {
      silent = running.size === 0;
      if (silent) abort();
      else patience.refresh();
    }, silenceMs);
    const judged: JudgedCall[] = [];
    const refused = (name: string, why: string) => void judged.push({ name, denied: why });
    let heard = NOTHING;
    let thrown: string | null = null;
    try {
      const question = {
        prompt: conversationText(request.messages),
        options: {
          ...toOptions({ ...request, call, ...(model !== undefined && { model }) }, stop.signal),
          env: toEnv(env, home, temp),
          spawnClaudeCodeProcess: spawn,
          abortController: stop,
          hooks: {
            PreToolUse: [
              {
                hooks: [createHook(request.gate, batches, completionOf(request), refused)],
                // It waits for the end of a response, which may be long.
                timeout: 3600,
                onFailure: "block" as const,
              },
            ],
          },
        },
      };
      for await (const message of query(question)) {
        patience.refresh();
        batches.hear(message);
        heard = hearClaude(heard, message);
        if (asksToWait(heard)) abort();
      }
    } catch (error) {
      thrown = errorText(error);
    } finally {
      // A command that is still running when the program is gone is ended too.
      stop.abort();
      clearTimeout(patience);
      await Promise.allSettled([...running, ...started.map((agent) => agent.end())]);
      batches.end();
      request.signal.removeEventListener("abort", abort);
    }
    if (request.signal.aborted) return interrupted(heard);
    if (silent) return toSilence(silenceMs, heard);
    const before = (request.session === undefined ? undefined : totals.get(request.session)) ?? NO_TOTALS;
    const printed = started.map((agent) => agent.printed()).join("\n");
    const result = toClaudeResult(heard, {
      structured: request.output !== undefined,
      before,
      thrown,
      printed,
    });
    if (result.mark !== undefined)
      for (const [session, figures] of readMarks([result.mark])) totals.set(session, figures);
    const named = toModel(model ?? request.model);
    const by = {
      provider: "anthropic",
      ...(named !== "" && { model: named }),
      ...(heard.model !== undefined && { answered: heard.model }),
    };
    const { mark } = result;
    const kept =
      mark === undefined ? {} : { mark: await conversations.keep(home, runOf(request.asker), mark) };
    return { ...result, ...kept, by, ...(judged.length > 0 && { judged }) };
  }

  const recorded = model === undefined ? {} : { model };
  return { spec: { id: "claude-agent", options: recorded }, run, close: processes.close };
}

const SDK = { name: "@anthropic-ai/claude-agent-sdk", version: "0.3", whose: "The claude-agent backend" };

/** It counts with what it cost so far. */
function interrupted(heard: ClaudeHeard): TurnResult {
  return { kind: "fault", fault: withUsage(INTERRUPTED_FAULT, heard) };
}

function withUsage(fault: Fault, heard: ClaudeHeard): Fault {
  const usage = usageSoFar(heard);
  return usage === null ? fault : { ...fault, usage };
}

const SILENCE_MS = 5 * 60_000;

function toSilence(ms: number, heard: ClaudeHeard): TurnResult {
  const message = `Nothing was heard of Claude Code for ${ms / 1000} s.`;
  return { kind: "fault", fault: withUsage({ kind: "network", message }, heard) };
}

function toOptions(request: RunRequest, signal: AbortSignal): JsonObject {
  const { model, system, tools, cwd, maxTurns, session, output, call } = request;
  const completion = completionOf(request);
  const offered = toolOptions(tools, call, signal);
  const name = toModel(model);
  return {
    cwd,
    ...(name === "" ? {} : { model: name }),
    systemPrompt: completion === null ? system : `${system}\n\n${renamed(completion)}`,
    ...offered,
    toolAliases: { ...offered.toolAliases, ...(completion === null ? {} : { [completion]: ANSWER_TOOL }) },
    disallowedTools: ["Bash"],
    maxTurns: Math.max(1, maxTurns),
    ...(output === undefined
      ? {}
      : { outputFormat: { type: "json_schema", schema: toDraft07(output.schema ?? {}) } }),
    // A fork leaves the conversation it goes on from as it was: after a fault or a crash it can be gone on from again.
    ...(session === undefined ? {} : { resume: session, forkSession: true }),
    includePartialMessages: true,
    permissionMode: "default",
    permissionPrompts: "none",
    settingSources: [],
    strictMcpConfig: true,
    // Prompts quote issues and files: no @path in them is read, no /command in them is run.
    verbatimPrompts: true,
  };
}

function completionOf({ output }: RunRequest): string | null {
  return output?.channel.kind === "tool" ? output.channel.name : null;
}

function renamed(completion: string): string {
  return `When instructions name the tool ${completion}, call ${ANSWER_TOOL}: it is the same tool.`;
}

/** `opus`, `sonnet`, `haiku` and full names are known there as they are; a provider in front of the name is not. */
export function toModel(model: string): string {
  return model.replace(/^(?:anthropic|claude-agent)[:/]/, "");
}

/** Everything that the program, and the commands it starts, will see. */
export function toEnv(env: NodeJS.ProcessEnv, home: string, temp: string): Environment {
  return {
    ...passOn(env, (name) => /^ANTHROPIC_|^CLAUDE_CODE_OAUTH_TOKEN$/.test(name)),
    ...OURS,
    CLAUDE_CONFIG_DIR: home,
    TMPDIR: temp,
    CLAUDE_CODE_TMPDIR: temp,
  };
}

const OURS = {
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  // One short retry, so that a longer wait which the provider asks for is announced; then we end the query and wait.
  CLAUDE_CODE_MAX_RETRIES: "1",
  // A response that is not streamed could not be known as a whole before its calls are made.
  CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK: "1",
  CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: "1",
  // Else a tool that was not offered stands beside the step's own.
  ENABLE_TOOL_SEARCH: "false",
} as const;
