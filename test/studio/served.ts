/** A studio that was started as a command, and requests to it as a page makes them. */
import { once } from "node:events";
import type { Begun, World } from "../cli/world.ts";
import { until } from "../until.ts";
import type { StreamMessage } from "../../src/studio/wire.ts";

export type ServedStudio = {
  readonly child: Begun;
  readonly url: string;
  readonly origin: string;
  readonly host: string;
  readonly port: number;
  readonly token: string;
  readonly stderr: () => string;
  readonly get: (path: string) => Promise<{ readonly status: number; readonly document: Document }>;
  readonly post: (
    path: string,
    body: unknown,
  ) => Promise<{ readonly status: number; readonly document: Document }>;
  readonly listen: (query?: string) => Promise<Heard>;
  /** Interrupts it, and gives its exit code. */
  readonly stop: () => Promise<number | null>;
};

// oxlint-disable-next-line typescript/no-explicit-any -- documents are read at depth, and each test asserts what it reads
export type Document = any;

export type Heard = {
  readonly messages: readonly StreamMessage[];
  readonly until: (holds: (message: StreamMessage) => boolean, what: string) => Promise<StreamMessage>;
  readonly close: () => void;
  readonly isOver: () => boolean;
};

/** Flags, and variables of its environment besides. */
export async function serve(
  world: World,
  ...given: readonly (string | NodeJS.ProcessEnv)[]
): Promise<ServedStudio> {
  const flags = given.filter((one) => typeof one === "string");
  const env = Object.assign({}, ...given.filter((one) => typeof one !== "string")) as NodeJS.ProcessEnv;
  const child = world.begin(["studio", "--json", ...flags], env);
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  await until(() => stdout.endsWith("\n") || child.exitCode !== null, "the studio has an address");
  if (stdout === "") throw new Error(`The studio did not start: ${stderr}`);
  const { url, port, ...rest } = JSON.parse(stdout) as { readonly url?: string; readonly port: number };
  if (url === undefined) throw new Error(`The studio did not start: ${JSON.stringify(rest)}`);
  const { host, hash } = new URL(url);
  const origin = `http://127.0.0.1:${port}`;
  const token = hash.slice("#token=".length);
  const authorization = `Bearer ${token}`;
  const answered = async (answer: Response) => ({
    status: answer.status,
    document: (await answer.json()) as Document,
  });
  return {
    child,
    url,
    origin,
    host,
    port,
    token,
    stderr: () => stderr,
    get: async (path) => await answered(await fetch(`${origin}/api/${path}`, { headers: { authorization } })),
    post: async (path, body) =>
      await answered(
        await fetch(`${origin}/api/${path}`, {
          method: "POST",
          headers: { authorization, origin, "content-type": "application/json" },
          body: JSON.stringify(body),
        }),
      ),
    listen: async (query = "") => await listen(`${origin}/api/stream?${query}`, authorization),
    stop: async () => {
      if (child.exitCode !== null) return child.exitCode;
      const gone = once(child, "exit");
      child.kill("SIGINT");
      const [code] = (await gone) as [number | null];
      return code;
    },
  };
}

async function listen(url: string, authorization: string): Promise<Heard> {
  const stop = new AbortController();
  const answer = await fetch(url, { headers: { authorization }, signal: stop.signal });
  if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
  const messages: StreamMessage[] = [];
  let isOver = false;
  void (async () => {
    let rest = "";
    for await (const part of answer.body!.pipeThrough(new TextDecoderStream())) {
      const events = (rest + part).split("\n\n");
      rest = events.pop()!;
      for (const event of events) {
        const [, data] = /^data: (.*)$/m.exec(event) ?? [];
        if (data !== undefined) messages.push(JSON.parse(data) as StreamMessage);
      }
    }
  })()
    .catch(() => undefined)
    .finally(() => {
      isOver = true;
    });
  return {
    messages,
    until: async (holds, what) => {
      await until(() => messages.some(holds) || isOver, what);
      const found = messages.find(holds);
      if (found === undefined) throw new Error(`The stream ended before: ${what}`);
      return found;
    },
    close: () => stop.abort(),
    isOver: () => isOver,
  };
}
