/** Proxies that the usual variables of the environment name: used for everything that Lockstep itself asks. */
import type { Proxy } from "../../backends/ai-sdk/connection.ts";
import { isLocal } from "../../backends/ai-sdk/providers.ts";

export type ProxyState =
  | { readonly kind: "none" }
  /** `by` names the variables that hold. */
  | { readonly kind: "used"; readonly by: readonly string[] }
  /** This process does not use proxies, so a server may be reached without them. */
  | { readonly kind: "unused"; readonly by: readonly string[]; readonly why: string }
  /** The proxies cannot be used, so nothing is sent that should have gone through them. */
  | { readonly kind: "unusable"; readonly by: readonly string[]; readonly why: string };

const NAMES = ["https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"] as const;

/** What is on this machine is never asked through a proxy. */
const LOCAL = "localhost,127.0.0.1,[::1]";

let used: ProxyState | null = null;

/** Makes this whole process use the proxies; only for a process that is Lockstep's own. */
export async function useProxies(env: NodeJS.ProcessEnv): Promise<void> {
  const by = namedIn(env);
  // If this variable is set, the user has decided, and Node has acted on it.
  if (by.length === 0 || env.NODE_USE_ENV_PROXY) return;
  const faults = by.flatMap((name) => faultOf(name, env[name]!.trim()) ?? []);
  if (faults.length > 0) {
    used = { kind: "unusable", by, why: faults.join("; ") };
    return;
  }
  const http = await import("node:http");
  if (typeof http.setGlobalProxyFromEnv !== "function") return;
  const named = Object.fromEntries(by.map((name) => [name.toLowerCase(), env[name]!.trim()]));
  const spared = [env.no_proxy || env.NO_PROXY, LOCAL].filter(Boolean).join(",");
  try {
    http.setGlobalProxyFromEnv({ ...named, no_proxy: spared });
    used = { kind: "used", by };
  } catch {
    // The reason would repeat the address, which may hold a password.
    used = { kind: "unusable", by, why: `${by.join(" and ")} cannot be used: ${WRITE_IT}` };
  }
}

const WRITE_IT = "write it as http://HOST:PORT";

/** The value is not repeated: it may hold a password. */
function faultOf(name: string, value: string): string | null {
  if (/^socks/i.test(value))
    return `${name} is a SOCKS proxy, which is not supported: set it to an HTTP proxy (http://HOST:PORT), or unset it`;
  return /^https?:\/\//i.test(value) && URL.canParse(value) ? null : `${name} cannot be used: ${WRITE_IT}`;
}

export function proxyState(env: NodeJS.ProcessEnv): ProxyState {
  const by = namedIn(env);
  if (by.length === 0) return { kind: "none" };
  if (used !== null) return used;
  if (env.NODE_USE_ENV_PROXY === "1" || process.execArgv.includes("--use-env-proxy"))
    return { kind: "used", by };
  const why = `${by.join(" and ")} ${by.length === 1 ? "is" : "are"} set, but this process does not use proxies: set NODE_USE_ENV_PROXY=1`;
  return { kind: "unused", by, why };
}

/** What to add to a message about a server that cannot be reached; null: no proxy is missing. */
export function proxyHint(env: NodeJS.ProcessEnv): string | null {
  const state = proxyState(env);
  return state.kind === "unused" ? `${state.why}.` : null;
}

/** Why nothing can be sent to an address; null: no proxy prevents it. */
export function proxyFault(url: string, env: NodeJS.ProcessEnv): string | null {
  const state = proxyState(env);
  return state.kind !== "unusable" || isLocal(url) || isSpared(url, env) ? null : state.why;
}

/** Whether NO_PROXY lists the host of an address. */
export function isSpared(url: string, env: NodeJS.ProcessEnv): boolean {
  if (!URL.canParse(url)) return false;
  const { hostname, port, protocol } = new URL(url);
  const at = port || (protocol === "https:" ? "443" : "80");
  return (env.no_proxy || env.NO_PROXY || "")
    .toLowerCase()
    .split(/[\s,]+/)
    .some((entry) => {
      const [, name = "", only = at] = /^(?:\*?\.)?(.*?)(?::(\d+))?$/.exec(entry) ?? [];
      const isNamed = hostname === name || hostname.endsWith(`.${name}`);
      return name !== "" && only === at && (name === "*" || isNamed);
    });
}

/** The proxies that this process uses. */
export function proxiesOf(env: NodeJS.ProcessEnv): readonly Proxy[] {
  const state = proxyState(env);
  if (state.kind !== "used") return [];
  return state.by.flatMap((variable) => {
    const url = URL.parse(env[variable]!.trim());
    if (url === null) return [];
    const port = Number(url.port) || (url.protocol === "https:" ? 443 : 80);
    return [{ variable, hostname: url.hostname, port, hasLogin: url.username !== "" }];
  });
}

/** Lower case comes first, as everywhere. */
function namedIn(env: NodeJS.ProcessEnv): readonly string[] {
  const set = NAMES.filter((name) => (env[name] ?? "").trim() !== "");
  return set.filter(
    (name) => name === name.toLowerCase() || !set.some((other) => other === name.toLowerCase()),
  );
}
