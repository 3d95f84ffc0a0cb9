/**
 * Any coding agent that speaks the Agent Client Protocol, as a backend with a loop of its own. Experimental.
 *
 * Our gate answers the permissions that the agent asks for; what it does without asking, it does by its own rules. The
 * answer comes through a tool of ours, which the agent is handed as an MCP server.
 */
import { randomBytes } from "node:crypto";
import { readFile, realpath, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import type { ReadableStream, WritableStream } from "node:stream/web";
import { setTimeout as delay } from "node:timers/promises";
import type { Backend, Gate, RunRequest, ToolSpec, TurnResult } from "../../engine/ports.ts";
import type { Usage } from "../../flow/event.ts";
import { parseJson, type Json, type JsonObject } from "../../flow/json.ts";
import {
  choose,
  hearAcp,
  modelIn,
  modeToAsk,
  NOTHING_FROM_ACP,
  SERVER,
  SUBMIT,
  toCalls,
  toAcpFault,
  acpTokens,
  type AcpHeard,
} from "./acp-read.ts";
import { SUBMIT_SERVER } from "./acp-submit.ts";
import type { AgentProcess, AgentProcesses } from "../../flow/machine/agent-process.ts";
import { conversationText, INTERRUPTED, INTERRUPTED_FAULT, runOf, type AgentChild } from "../agent-child.ts";
import { passOn } from "../environment.ts";
import type { McpBridge, BridgedCall } from "../mcp/mcp-bridge.ts";
import { loadPeer } from "../peer.ts";
import { memberAt, textIn } from "../untyped.ts";

export type AcpOptions = {
  /** The agent, from the user's own settings: a project must not choose what is started here. */
  readonly command: string;
  readonly args?: readonly string[];
  /** The user's environment, and the names of what the agent needs of it beside the usual: its key. */
  readonly env: NodeJS.ProcessEnv;
  readonly pass?: readonly string[];
  /** How it is started, and ended with everything that it started. */
  readonly processes: AgentProcesses<AgentChild>;
  /** How long it may take to answer after it was started; a minute unless said. */
  readonly startMs?: number;
};

/** What we use of the SDK. */
type Sdk = {
  readonly PROTOCOL_VERSION: number;
  readonly ndJsonStream: (output: WritableStream, input: ReadableStream) => unknown;
  readonly client: (about: { readonly name: string }) => App;
};
type App = {
  readonly onRequest: (
    method: string,
    answer: (context: { params: JsonObject }) => Promise<JsonObject>,
  ) => App;
  readonly onNotification: (method: string, hear: (context: { params: JsonObject }) => void) => App;
  readonly connect: (stream: unknown) => Connection;
};
type Connection = {
  readonly agent: {
    readonly request: (method: string, params: JsonObject) => Promise<JsonObject>;
    readonly notify: (method: string, params: JsonObject) => Promise<void>;
  };
  readonly close: () => void;
};

/** A conversation of the agent, with what it is being asked at the moment. */
type Session = {
  readonly id: string;
  readonly submitted: string;
  /** The name of the server for its answer. */
  readonly server: string;
  readonly cwds: readonly string[];
  /** The model that the agent chose for it; empty: it does not say. */
  readonly model: string;
  gate: Gate;
  served: readonly ToolSpec[] | undefined;
  call: BridgedCall;
  heard: AcpHeard;
  costUsd: number | null;
  onCall: () => void;
};

type Agent = {
  readonly process: AgentProcess<AgentChild>;
  readonly connection: Connection;
  readonly canLoad: boolean;
  /** What the program calls itself. */
  readonly name: string;
  /** Settles when the process has ended, with why. */
  readonly gone: Promise<Error>;
};

/** BACKEND_UNAVAILABLE if the SDK is not installed. */
export async function createAcp(options: AcpOptions): Promise<Backend> {
  const { command, args = [], pass = [], processes, startMs = START_MS } = options;
  const sdk = (await loadPeer(SDK, options.env)) as Sdk;
  const env = passOn(options.env, (name) => pass.includes(name));
  const sessions = new Map<string, Session>();
  let agent: Promise<Agent> | null = null;
  let started: AgentProcess<AgentChild> | null = null;
  const bridges: McpBridge[] = [];
  let opened = 0;

  async function start(run: string, cwd: string): Promise<Agent> {
    await processes.open(run);
    const process = processes.start({ file: command, args, cwd, env });
    started = process;
    const { stdin, stdout } = process.child;
    const forget = () => {
      agent = null;
      sessions.clear();
    };
    process.child.once("exit", forget).once("error", forget);
    const gone = process.gone.then((how) => new Error(`${command} ${how}`));
    const connection = sdk
      .client({ name: SERVER })
      .onRequest("session/request_permission", ({ params }) => permit(params))
      .onNotification("session/update", ({ params }) => note(params))
      .connect(sdk.ndJsonStream(Writable.toWeb(stdin), Readable.toWeb(stdout)));
    const hello = { protocolVersion: sdk.PROTOCOL_VERSION, clientCapabilities: {} };
    const asked = orGone(connection.agent.request("initialize", hello), gone);
    const { agentCapabilities, agentInfo } = await inTime(asked, startMs, () => {
      agent = null;
      process.kill();
      return new Error(`${command} was started and has not answered for ${startMs / 1000} s`);
    });
    const canLoad = memberAt(agentCapabilities, "loadSession") === true;
    const name = textIn(memberAt(agentInfo, "name"));
    return { process, connection, canLoad, name, gone };
  }

  /** Closed unless each call that is asked for passes; a session without a request gets nothing. */
  async function permit({ sessionId, toolCall, options, _meta: meta }: JsonObject): Promise<JsonObject> {
    try {
      const session = sessions.get(textIn(sessionId));
      if (session === undefined || agent === null) return choose(options, false);
      const { name } = await agent;
      const { cwds, served, server, heard } = session;
      const announced = heard.calls.get(textIn(memberAt(toolCall, "toolCallId")));
      const asking = { agent: name, cwds, served, server, announced, meta };
      for (const call of toCalls(toolCall as JsonObject, asking)) {
        if (!(await session.gate(call, null)).allow) return choose(options, false);
      }
      return choose(options, true);
    } catch {
      return choose(options, false);
    }
  }

  function note({ sessionId, update }: JsonObject): void {
    const session = sessions.get(textIn(sessionId));
    if (session === undefined) return;
    session.heard = hearAcp(session.heard, update as JsonObject);
    session.onCall();
  }

  async function open(
    at: Agent,
    { asker, cwd, session: id, gate, served, call: callTool, signal }: RunRequest,
  ): Promise<Session> {
    const known = id === undefined ? undefined : sessions.get(id);
    if (known !== undefined) return known;
    const temp = await processes.open(runOf(asker));
    const submitted = join(temp, `${++opened}.json`);
    if (id !== undefined && !at.canLoad) {
      throw new Error(
        "the conversation is gone with the process that held it, and this agent cannot load one",
      );
    }
    const request = (method: string, params: JsonObject) =>
      orGone(at.connection.agent.request(method, params), at.gone);
    const call: BridgedCall = (name, input) => callTool({ name, input }, signal);
    const others =
      served === undefined ? [] : await bridged(temp, served, () => sessions.get(session.id)?.call ?? call);
    const server = SERVER + randomBytes(6).toString("hex");
    const place = { cwd, mcpServers: [submitServer(server, submitted), ...others] };
    const found =
      id === undefined
        ? await request("session/new", place)
        : await request("session/load", { ...place, sessionId: id });
    const sessionId = id ?? textIn(found.sessionId);
    const modeId = modeToAsk(at.name, found.modes);
    if (modeId !== null) await request("session/set_mode", { sessionId, modeId });
    const session: Session = {
      id: sessionId,
      submitted,
      server,
      cwds: [cwd, await realpath(cwd).catch(() => cwd)],
      model: modelIn(found),
      gate,
      served,
      call,
      heard: NOTHING_FROM_ACP,
      costUsd: null,
      onCall: () => undefined,
    };
    sessions.set(session.id, session);
    return session;
  }

  /** An agent keeps its servers for the whole session, so they have all tools; the gate knows which step is asked. */
  async function bridged(
    temp: string,
    served: readonly ToolSpec[],
    now: () => BridgedCall,
  ): Promise<readonly Json[]> {
    const { openMcpBridge } = await import("../mcp/mcp-bridge.ts");
    const bridge = await openMcpBridge(temp, served, now);
    bridges.push(bridge);
    return bridge.servers.map(({ name, command: program, args: words }) => {
      return { name, command: program, args: words, env: [] };
    });
  }

  async function run(request: RunRequest): Promise<TurnResult> {
    const { signal, maxTurns } = request;
    if (signal.aborted) return INTERRUPTED;
    let stopped: "cap" | null = null;
    // Before it has a conversation there is nothing that could be cancelled.
    const giveUp = () => started?.kill();
    signal.addEventListener("abort", giveUp);
    try {
      agent ??= start(runOf(request.asker), request.cwd);
      const at = await agent;
      const isNew = request.session === undefined;
      const session = await open(at, request);
      signal.removeEventListener("abort", giveUp);
      // An abort that came too late for the listener above, and too early for the one below.
      if (signal.aborted) return INTERRUPTED;
      const cancel = () => void at.connection.agent.notify("session/cancel", { sessionId: session.id });
      Object.assign(session, {
        gate: request.gate,
        served: request.served,
        call: (name: string, input: JsonObject) => request.call({ name, input }, signal),
        heard: NOTHING_FROM_ACP,
        onCall: () => {
          if (stopped !== null || session.heard.calls.size < maxTurns) return;
          stopped = "cap";
          cancel();
        },
      });
      const settled = new AbortController();
      signal.addEventListener("abort", cancel, { signal: settled.signal });
      try {
        const prompt = [{ type: "text", text: toPrompt(request, session.server, isNew) }];
        const asked = at.connection.agent.request("session/prompt", { sessionId: session.id, prompt });
        const response = await orGone(Promise.race([asked, unanswered(signal, settled.signal)]), at.gone);
        if (response === null) at.process.kill();
        if (signal.aborted || response === null) return interrupted(session, response);
        const by = { provider: at.name || "acp", ...(session.model !== "" && { model: session.model }) };
        return { ...(await toResult(session, response, stopped === "cap")), by };
      } finally {
        settled.abort();
      }
    } catch (error) {
      if (signal.aborted) return INTERRUPTED;
      return { kind: "fault", fault: toAcpFault(error, started?.printed()) };
    } finally {
      signal.removeEventListener("abort", giveUp);
    }
  }

  async function close(): Promise<void> {
    const at = await agent?.catch(() => null);
    at?.connection.close();
    for (const bridge of bridges) await bridge.close();
    await processes.close();
  }

  // Its tool calls cannot be held back until a response is whole, so it is not for stages.
  return {
    // What is started is never taken from a journal: it lies in the project.
    spec: { id: "acp", options: null },
    run,
    close,
    toolCalling: false,
  };
}

const SDK = { name: "@agentclientprotocol/sdk", version: "2", whose: "The acp backend" };

/** An agent loads itself first, and may fetch something. */
const START_MS = 60_000;

/** It counts with what is known of its cost so far. */
function interrupted(session: Session, response: JsonObject | null): TurnResult {
  const usage = usageOf(session, response ?? {});
  const isFree =
    usage.inputTokens + usage.outputTokens === 0 && !usage.costUsd && session.heard.calls.size === 0;
  return isFree ? INTERRUPTED : { kind: "fault", fault: { ...INTERRUPTED_FAULT, usage } };
}

/** The agent reports the cost of the whole session. Without a report, what a prompt cost is unknown, and not nothing. */
function usageOf(session: Session, response: JsonObject): Usage {
  const { calls, costUsd } = session.heard;
  const spent = costUsd === null ? null : Math.max(0, costUsd - (session.costUsd ?? 0));
  session.costUsd = costUsd ?? session.costUsd;
  return { turns: Math.max(1, calls.size), ...acpTokens(response), costUsd: spent };
}

async function toResult(session: Session, response: JsonObject, capped: boolean): Promise<TurnResult> {
  const { text } = session.heard;
  const usage = usageOf(session, response);
  const output = await takeSubmitted(session.submitted);
  return {
    kind: "reply",
    text,
    calls: [],
    ...(output === undefined ? {} : { output }),
    usage,
    session: session.id,
    ...(capped || response.stopReason === "max_turn_requests" ? { capped: true } : {}),
  };
}

const MOST_SUBMITTED = 8 * 1024 * 1024;

async function takeSubmitted(file: string): Promise<unknown> {
  const found = await stat(file).catch(() => null);
  // An agent could put anything there: only a file of a size that an answer may have is read.
  const isReadable = found !== null && found.isFile() && found.size <= MOST_SUBMITTED;
  const text = isReadable ? await readFile(file, "utf8").catch(() => null) : null;
  await rm(file, { force: true, recursive: true });
  return text === null ? undefined : parseJson(text);
}

/** The protocol has no place for a system prompt or a schema: both are part of the prompt. */
function toPrompt({ system, messages, output }: RunRequest, server: string, isNew: boolean): string {
  const news = conversationText(messages);
  const parts = isNew ? [system, news] : [news];
  if (output === undefined) return parts.join("\n\n");
  const schema = JSON.stringify(output.schema ?? { type: "object" });
  const how = `When you are done, call the tool ${SUBMIT} of the MCP server ${server}, once and with nothing beside it. Its input is your answer and fits this JSON Schema:\n${schema}`;
  return [...parts, how].join("\n\n");
}

function submitServer(name: string, file: string): Json {
  const args = ["--input-type=module", "--eval", SUBMIT_SERVER, file];
  return { name, command: process.execPath, args, env: [] };
}

const LINE_BREAKS_MS = 2000;

/** What was asked for, unless the process ends first; then why it did. */
async function orGone<T>(work: Promise<T>, gone: Promise<Error>): Promise<T> {
  try {
    return await Promise.race([work, gone.then((error) => Promise.reject(error))]);
  } catch (error) {
    // Its line breaks a moment before it ends.
    if (typeof error === "object" && error !== null && "code" in error) throw error;
    throw (await Promise.race([gone, delay(LINE_BREAKS_MS, null)])) ?? error;
  }
}

async function inTime<T>(work: Promise<T>, ms: number, late: () => Error): Promise<T> {
  const over = new AbortController();
  const timer = delay(ms, undefined, { signal: over.signal, ref: false });
  try {
    return await Promise.race([work, timer.then(() => Promise.reject(late()))]);
  } finally {
    over.abort();
    timer.catch(() => undefined);
    work.catch(() => undefined);
  }
}

/** null, some time after an abort that was not heeded. */
async function unanswered(abort: AbortSignal, settled: AbortSignal): Promise<null> {
  await new Promise((resolve) => abort.addEventListener("abort", resolve, { signal: settled }));
  await delay(2000, undefined, { ref: false });
  return null;
}
