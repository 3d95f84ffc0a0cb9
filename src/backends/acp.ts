/**
 * Any coding agent that speaks the Agent Client Protocol, as a backend with a loop of its own. Experimental.
 *
 * Our gate answers the permissions that the agent asks for; what it does without asking, it does by its own rules. The
 * answer comes through a tool of ours, which the agent is handed as an MCP server.
 */
import { spawn, type ChildProcess, type ChildProcessByStdio } from "node:child_process";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { Backend, Gate, Message, RunRequest, ToolSpec, TurnResult } from "../engine/ports.ts";
import type { Stdio } from "../flow/descriptors.ts";
import type { Json, JsonObject } from "../flow/json.ts";
import { choose, hear, NOTHING, SERVER, SUBMIT, toCalls, toFault, tokensOf, type Heard } from "./acp-read.ts";
import { SUBMIT_SERVER } from "./acp-submit.ts";
import { passOn } from "./environment.ts";
import type { Bridge, BridgedCall } from "./mcp-bridge.ts";
import { loadPeer } from "./peer.ts";
import { textIn } from "./untyped.ts";

export type AcpOptions = {
  /** The agent, from the user's own settings: a project must not choose what is started here. */
  readonly command: string;
  readonly args?: readonly string[];
  /** The user's environment, and the names of what the agent needs of it beside the usual: its key. */
  readonly env: NodeJS.ProcessEnv;
  readonly pass?: readonly string[];
  /** The descriptors that the agent is given; those three, unless said. */
  readonly stdioOf?: (own: readonly Stdio[]) => Stdio[];
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
  gate: Gate;
  served: readonly ToolSpec[] | undefined;
  call: BridgedCall;
  heard: Heard;
  costUsd: number | null;
  onCall: () => void;
};

type Child = ChildProcessByStdio<Writable, Readable, null>;

type Agent = {
  readonly child: ChildProcess;
  readonly connection: Connection;
  readonly canLoad: boolean;
  /** Settles when the process has ended, with why. */
  readonly gone: Promise<Error>;
};

/** BACKEND_UNAVAILABLE if the SDK is not installed. */
export async function createAcp(options: AcpOptions): Promise<Backend> {
  const { command, args = [], pass = [], stdioOf = (own) => [...own] } = options;
  const sdk = (await loadPeer(SDK, options.env)) as Sdk;
  const env = passOn(options.env, (name) => pass.includes(name));
  const temp = await mkdtemp(join(tmpdir(), "lockstep-acp-"));
  const sessions = new Map<string, Session>();
  let agent: Promise<Agent> | null = null;
  let started: ChildProcess | null = null;
  const bridges: Bridge[] = [];
  let opened = 0;

  async function start(cwd: string): Promise<Agent> {
    const stdio = stdioOf(["pipe", "pipe", "ignore"]);
    const child = spawn(command, args, { cwd, env, stdio }) as Child;
    started = child;
    const gone = new Promise<Error>((resolve) => {
      const end = (why: string) => {
        agent = null;
        sessions.clear();
        resolve(new Error(`${command} ${why}`));
      };
      child.once("error", (error) => end(`could not be started: ${error.message}`));
      child.once("exit", (code, signal) => end(`ended (${signal ?? code})`));
    });
    const connection = sdk
      .client({ name: SERVER })
      .onRequest("session/request_permission", ({ params }) => permit(params))
      .onNotification("session/update", ({ params }) => note(params))
      .connect(sdk.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));
    const hello = { protocolVersion: sdk.PROTOCOL_VERSION, clientCapabilities: {} };
    const { agentCapabilities } = await orGone(connection.agent.request("initialize", hello), gone);
    const canLoad = (agentCapabilities as JsonObject | undefined)?.loadSession === true;
    return { child, connection, canLoad, gone };
  }

  /** Closed unless each call that is asked for passes; a session that nobody asked anything gets nothing. */
  async function permit({ sessionId, toolCall, options }: JsonObject): Promise<JsonObject> {
    try {
      const session = sessions.get(textIn(sessionId));
      if (session === undefined) return choose(options, false);
      for (const call of toCalls(toolCall as JsonObject, session.served)) {
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
    session.heard = hear(session.heard, update as JsonObject);
    session.onCall();
  }

  async function open(
    at: Agent,
    { cwd, session: id, gate, served, call: callTool, signal }: RunRequest,
  ): Promise<Session> {
    const known = id === undefined ? undefined : sessions.get(id);
    if (known !== undefined) return known;
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
      served === undefined ? [] : await bridged(served, () => sessions.get(session.id)?.call ?? call);
    const place = { cwd, mcpServers: [submitServer(submitted), ...others] };
    const found =
      id === undefined
        ? await request("session/new", place)
        : await request("session/load", { ...place, sessionId: id });
    const session: Session = {
      id: id ?? textIn(found.sessionId),
      submitted,
      gate,
      served,
      call,
      heard: NOTHING,
      costUsd: null,
      onCall: () => undefined,
    };
    sessions.set(session.id, session);
    return session;
  }

  /** An agent keeps its servers for the whole session, so they have all tools; the gate knows which step is asked. */
  async function bridged(served: readonly ToolSpec[], now: () => BridgedCall): Promise<readonly Json[]> {
    const { openBridge } = await import("./mcp-bridge.ts");
    const bridge = await openBridge(temp, served, now);
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
    const giveUp = () => void started?.kill("SIGKILL");
    signal.addEventListener("abort", giveUp);
    try {
      agent ??= start(request.cwd);
      const at = await agent;
      const isNew = request.session === undefined;
      const session = await open(at, request);
      signal.removeEventListener("abort", giveUp);
      // Who came too late to be heard by those who listen below.
      if (signal.aborted) return INTERRUPTED;
      const cancel = () => void at.connection.agent.notify("session/cancel", { sessionId: session.id });
      Object.assign(session, {
        gate: request.gate,
        served: request.served,
        call: (name: string, input: JsonObject) => request.call({ name, input }, signal),
        heard: { ...NOTHING, costUsd: session.costUsd },
        onCall: () => {
          if (stopped !== null || session.heard.calls.size < maxTurns) return;
          stopped = "cap";
          cancel();
        },
      });
      const settled = new AbortController();
      signal.addEventListener("abort", cancel, { signal: settled.signal });
      try {
        const prompt = [{ type: "text", text: toPrompt(request, isNew) }];
        const asked = at.connection.agent.request("session/prompt", { sessionId: session.id, prompt });
        const response = await orGone(Promise.race([asked, unanswered(signal, settled.signal)]), at.gone);
        if (response === null) at.child.kill("SIGKILL");
        if (signal.aborted || response === null) return INTERRUPTED;
        return await toResult(session, response, stopped === "cap");
      } finally {
        settled.abort();
      }
    } catch (error) {
      return signal.aborted ? INTERRUPTED : { kind: "fault", fault: toFault(error) };
    } finally {
      signal.removeEventListener("abort", giveUp);
    }
  }

  async function close(): Promise<void> {
    const at = await agent?.catch(() => null);
    at?.connection.close();
    at?.child.kill();
    for (const bridge of bridges) await bridge.close();
    await rm(temp, { recursive: true, force: true });
  }

  // Its tool calls cannot be held back until a response is whole, so it is not for stages.
  return {
    // What is started is never taken from a journal: it lies in the project.
    spec: { id: "acp", options: null },
    run,
    close,
    toolCalling: false,
    unconfinable: true,
  };
}

const SDK = { name: "@agentclientprotocol/sdk", whose: "The acp backend" };

const INTERRUPTED: TurnResult = {
  kind: "fault",
  fault: { kind: "other", message: "The query was interrupted." },
};

async function toResult(session: Session, response: JsonObject, capped: boolean): Promise<TurnResult> {
  const { text, calls, costUsd } = session.heard;
  const spent = costUsd === null ? null : costUsd - (session.costUsd ?? 0);
  session.costUsd = costUsd;
  const output = await takeSubmitted(session.submitted);
  return {
    kind: "reply",
    text,
    calls: [],
    ...(output === undefined ? {} : { output }),
    usage: { turns: Math.max(1, calls.size), ...tokensOf(response), costUsd: spent },
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
  try {
    return text === null ? undefined : (JSON.parse(text) as unknown);
  } catch {
    return undefined;
  }
}

/** The protocol has no place for a system prompt or a schema: both are told. */
function toPrompt({ system, messages, output }: RunRequest, isNew: boolean): string {
  const told = messages.map(textOf).join("\n\n");
  const parts = isNew ? [system, told] : [told];
  if (output === undefined) return parts.join("\n\n");
  const schema = JSON.stringify(output.schema ?? { type: "object" });
  const how = `When you are done, call the tool ${SUBMIT} of the MCP server ${SERVER}, once and with nothing beside it. Its input is your answer and fits this JSON Schema:\n${schema}`;
  return [...parts, how].join("\n\n");
}

function textOf(message: Message): string {
  return message.role === "tool" ? message.results.map(({ content }) => content).join("\n") : message.text;
}

function submitServer(file: string): Json {
  const args = ["--input-type=module", "--eval", SUBMIT_SERVER, file];
  return { name: SERVER, command: process.execPath, args, env: [] };
}

/** What was asked for, unless the process ends first; then why it did. */
async function orGone<T>(work: Promise<T>, gone: Promise<Error>): Promise<T> {
  try {
    return await Promise.race([work, gone.then((error) => Promise.reject(error))]);
  } catch (error) {
    // Its line breaks a moment before it ends.
    if (typeof error === "object" && error !== null && "code" in error) throw error;
    throw (await Promise.race([gone, delay(500, null)])) ?? error;
  }
}

/** null, some time after an abort that was not heeded. */
async function unanswered(abort: AbortSignal, settled: AbortSignal): Promise<null> {
  await new Promise((resolve) => abort.addEventListener("abort", resolve, { signal: settled }));
  await delay(2000, undefined, { ref: false });
  return null;
}
