/**
 * An agent that speaks the Agent Client Protocol for real, and does what its script says: one list of acts a prompt.
 * It calls the tool for its answer through the official MCP client.
 */
import { spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

export type Act =
  | { readonly say: string }
  /** Asks leave for a tool call, and runs the command if it gets it. SERVER stands for the server for its answer. */
  | { readonly ask: object; readonly run?: string; readonly options?: readonly object[] }
  | { readonly submit: object }
  /** Calls a tool of a server that it was handed, without asking anybody, and says what came of it. */
  | { readonly use: string; readonly of: string; readonly input: object }
  | { readonly cost: number }
  /** To stderr. */
  | { readonly print: string }
  /** Starts a program in a session of its own, with its environment or without, and says its process id. */
  | { readonly leave: "marked" | "bare" }
  /** Makes an empty file where it works. */
  | { readonly touch: string }
  /** It does not end when its input does. */
  | { readonly stay: true }
  | { readonly tell: "prompt" | "environment" }
  | { readonly fail: number }
  | { readonly hang: true }
  /** In the first place: nothing is answered at all. */
  | { readonly deaf: true }
  | { readonly exit: true };

type Server = { name: string; command: string; args: string[] };
type Context = {
  params: { sessionId: string; cwd: string; mcpServers: Server[]; prompt: { text: string }[] };
  client: {
    request: (method: string, params: object) => Promise<{ outcome: { outcome: string; optionId?: string } }>;
    notify: (method: string, params: object) => Promise<void>;
  };
};

const OPTIONS = [
  { optionId: "always", name: "Always", kind: "allow_always" },
  { optionId: "yes", name: "Yes", kind: "allow_once" },
  { optionId: "no", name: "No", kind: "reject_once" },
];

if (process.argv[2] === "act") {
  const acp = (await load("@agentclientprotocol/sdk")) as {
    agent: (about: object) => {
      onRequest: (
        method: string,
        answer: (context: Context) => Promise<object>,
      ) => ReturnType<typeof acp.agent>;
      onNotification: (method: string, hear: (context: Context) => void) => ReturnType<typeof acp.agent>;
      connect: (stream: unknown) => void;
    };
    ndJsonStream: (output: WritableStream, input: ReadableStream) => unknown;
    RequestError: new (code: number, message: string) => Error;
  };
  const script = JSON.parse(process.argv[3]!) as Act[][];
  const sessions = new Map<string, { cwd: string; servers: Server[]; cancel: () => void }>();
  let prompts = 0;

  acp
    .agent({ name: "scripted" })
    .onRequest("initialize", async () => {
      if (script[0]?.some((act) => "deaf" in act)) {
        writeFileSync("ready", "");
        await new Promise(() => undefined);
      }
      return {
        protocolVersion: 1,
        agentInfo: { name: "stand-in", version: "1" },
        agentCapabilities: { loadSession: false },
      };
    })
    .onRequest("session/new", ({ params: { cwd, mcpServers } }) => {
      const sessionId = `s-${sessions.size + 1}`;
      sessions.set(sessionId, { cwd, servers: mcpServers, cancel: () => undefined });
      return Promise.resolve({ sessionId, models: { currentModelId: "a-model", availableModels: [] } });
    })
    .onNotification("session/cancel", ({ params }) => sessions.get(params.sessionId)?.cancel())
    .onRequest("session/prompt", async ({ params: { sessionId, prompt }, client }) => {
      const session = sessions.get(sessionId)!;
      const cancelled = new Promise<"cancelled">((resolve) => {
        session.cancel = () => resolve("cancelled");
      });
      const update = (what: object) => client.notify("session/update", { sessionId, update: what });
      const say = (text: string) =>
        update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
      for (const [nth, act] of script[prompts++]!.entries()) {
        if ("say" in act) await say(act.say);
        if ("cost" in act) {
          const cost = { amount: act.cost, currency: "USD" };
          await update({ sessionUpdate: "usage_update", used: 1, size: 2, cost });
        }
        if ("print" in act) await new Promise((resolve) => process.stderr.write(act.print, resolve));
        if ("touch" in act) writeFileSync(join(session.cwd, act.touch), "");
        if ("stay" in act) setInterval(() => undefined, 60_000);
        if ("leave" in act) {
          const env = act.leave === "bare" ? {} : process.env;
          const left = spawn("sleep", ["600"], {
            detached: true,
            stdio: "ignore",
            env: { PATH: process.env.PATH, ...env },
          });
          await say(`${left.pid} `);
        }
        if ("tell" in act) await say(act.tell === "prompt" ? prompt[0]!.text : JSON.stringify(process.env));
        if ("ask" in act) {
          const said = JSON.stringify(act.ask).replaceAll("SERVER", session.servers[0]!.name);
          const asked = JSON.parse(said) as object;
          const toolCall = { toolCallId: `t-${nth}`, title: "a call", status: "pending", ...asked };
          await update({ sessionUpdate: "tool_call", ...toolCall });
          const { outcome } = await client.request("session/request_permission", {
            sessionId,
            toolCall,
            options: act.options ?? OPTIONS,
          });
          await say(`[${outcome.optionId ?? outcome.outcome}]`);
          if (outcome.optionId === "yes") spawnSync("sh", ["-c", act.run ?? ":"], { cwd: session.cwd });
        }
        if ("submit" in act) await submit(session.servers[0]!, act.submit);
        if ("use" in act) {
          const server = session.servers.find(({ name }) => name === act.of);
          await say(server === undefined ? "[no server]" : await use(server, act.use, act.input));
        }
        if ("fail" in act) throw new acp.RequestError(act.fail, "scripted");
        if ("hang" in act) return { stopReason: await cancelled };
        if ("exit" in act) process.exit(3);
      }
      return { stopReason: "end_turn", usage: { inputTokens: 30, outputTokens: 6 } };
    })
    .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
}

async function submit(server: Server, input: object): Promise<void> {
  await use(server, null, input);
}

/** Its first tool, unless one is named. */
async function use({ command, args }: Server, tool: string | null, input: object): Promise<string> {
  const { Client } = (await load("@modelcontextprotocol/client")) as {
    Client: new (about: object) => {
      connect: (transport: object) => Promise<void>;
      listTools: () => Promise<{ tools: { name: string }[] }>;
      callTool: (call: object) => Promise<{ content: { text?: string }[] }>;
      close: () => Promise<void>;
    };
  };
  const { StdioClientTransport } = (await load("@modelcontextprotocol/client/stdio")) as {
    StdioClientTransport: new (server: object) => object;
  };
  const client = new Client({ name: "scripted", version: "1" });
  await client.connect(new StdioClientTransport({ command, args }));
  const { tools } = await client.listTools();
  const { content } = await client.callTool({ name: tool ?? tools[0]!.name, arguments: input });
  await client.close();
  return content.map(({ text }) => text ?? "").join("");
}

async function load(name: string): Promise<unknown> {
  const from = createRequire(join(process.env.LOCKSTEP_PACKAGES!, "package.json"));
  return (await import(pathToFileURL(from.resolve(name)).href)) as unknown;
}
