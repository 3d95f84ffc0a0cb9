/** The studio of a world, started as a user starts it, and asked over real sockets. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { World } from "../cli/world.ts";
import { until } from "../until.ts";

export type Told<T> = { readonly status: number; readonly document: T; readonly text: string };

export type StudioClient = {
  readonly pid: number;
  readonly get: <T>(path: string) => Promise<Told<T>>;
  readonly post: <T>(path: string, body?: object) => Promise<Told<T>>;
  /** Messages of the stream until the signal. */
  readonly listen: (signal: AbortSignal, hear: (message: { readonly type: string }) => void) => Promise<void>;
  readonly close: () => Promise<number | null>;
};

export async function openIn(
  world: World,
  args: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
): Promise<StudioClient> {
  const child = world.begin(["studio", "--port", "0", "--json", ...args], env);
  let said = "";
  let out = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said += text));
  child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
  await until(() => out.includes("\n") || child.exitCode !== null, "the studio serves");
  assert.ok(out.includes("\n"), said);
  const { url, port } = JSON.parse(out) as { readonly url: string; readonly port: number };
  const base = `http://127.0.0.1:${port}`;
  const headers = { Authorization: `Bearer ${new URL(url).hash.replace("#token=", "")}` };

  const told = async <T>(response: Response): Promise<Told<T>> => {
    const text = await response.text();
    return { status: response.status, document: JSON.parse(text) as T, text };
  };
  return {
    pid: child.pid!,
    get: async (path) => await told(await fetch(`${base}/api/${path}`, { headers })),
    post: async (path, body = {}) =>
      await told(
        await fetch(`${base}/api/${path}`, {
          method: "POST",
          headers: { ...headers, Origin: base, "Content-Type": "application/json" },
          body: JSON.stringify(body),
        }),
      ),
    listen: async (signal, hear) => {
      const response = await fetch(`${base}/api/stream`, { headers, signal });
      const decoder = new TextDecoder();
      let held = "";
      try {
        for await (const part of response.body!) {
          held += decoder.decode(part as Uint8Array, { stream: true });
          const events = held.split("\n\n");
          held = events.pop() ?? "";
          for (const event of events) {
            const data = /^data: ?(.*)$/m.exec(event)?.[1];
            if (data !== undefined) hear(JSON.parse(data) as { readonly type: string });
          }
        }
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    },
    close: async () => {
      if (child.exitCode !== null) return child.exitCode;
      const closed = once(child, "close");
      child.kill("SIGINT");
      const [code] = (await closed) as [number | null];
      return code;
    },
  };
}
