/** Whether the services behind models can be reached from here, and take the keys. */
import { connectionTrouble } from "../backends/ai-sdk-connection.ts";
import { TOKENS, type ProviderId } from "../backends/providers.ts";
import { readConfig } from "./config.ts";
import { findModel, keyIn, withVersion } from "./models.ts";
import { proxyHint } from "./proxy.ts";

export type Reached =
  | { readonly ok: true; readonly detail: string }
  | { readonly ok: false; readonly detail: string; readonly fix: string };

/** Sends the key there, and nothing else. */
export async function reachModel(name: string, env: NodeJS.ProcessEnv): Promise<Reached> {
  const { provider, baseUrl, keyEnv } = findModel(name, { config: readConfig(env), env });
  const from = keyEnv.find((one) => keyIn([one], env) !== undefined);
  const key = from === undefined ? {} : keyHeaders(provider, from, keyIn([from], env)!);
  const url = `${withVersion(provider, baseUrl ?? "")}/models`;
  try {
    const { status } = await fetch(url, {
      headers: { "anthropic-version": "2023-06-01", ...key },
      redirect: "manual",
      signal: AbortSignal.timeout(LONGEST_MS),
    });
    if (status === 401 || status === 403)
      return {
        ok: false,
        detail: `${url} refuses the key (${status})`,
        fix: `set ${from ?? "its key"} to a valid key`,
      };
    return { ok: true, detail: `${url} answers ${status}` };
  } catch (error) {
    const isSlow = error instanceof Error && error.name === "TimeoutError";
    const lost = isSlow ? null : connectionTrouble(error, url, provider);
    const why = isSlow ? `no answer within ${LONGEST_MS / 1000} s` : (lost?.words ?? messageOf(error));
    const hints = [lost?.hint, lost === null || lost.isUnreached ? proxyHint(env) : null].filter(Boolean);
    return {
      ok: false,
      detail: `${url} cannot be reached: ${why.replace("the connection failed: ", "")}`,
      fix: hints.join(" ") || "check the base address and your network",
    };
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const LONGEST_MS = 10_000;

function keyHeaders(provider: ProviderId, from: string, key: string): { readonly [name: string]: string } {
  if (provider === "anthropic" && !TOKENS.includes(from)) return { "x-api-key": key };
  if (provider === "google") return { "x-goog-api-key": key };
  return { authorization: `Bearer ${key}` };
}
