/** Proxies that the usual variables of the environment name: used for everything that Lockstep itself asks. */

export type ProxyState =
  | { readonly kind: "none" }
  /** `by` names the variables that hold. */
  | { readonly kind: "used"; readonly by: readonly string[] }
  | { readonly kind: "unused"; readonly by: readonly string[]; readonly why: string };

const NAMES = ["https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"] as const;

/** What is on this machine is never asked through a proxy. */
const LOCAL = "localhost,127.0.0.1,[::1]";

let used: ProxyState | null = null;

/** Makes this whole process use the proxies; only for a process that is Lockstep's own. */
export async function useProxies(env: NodeJS.ProcessEnv): Promise<void> {
  const by = namedIn(env);
  // Whoever sets this variable has decided, and Node has acted on it.
  if (by.length === 0 || env.NODE_USE_ENV_PROXY) return;
  const http = await import("node:http");
  if (typeof http.setGlobalProxyFromEnv !== "function") return;
  const named = Object.fromEntries(by.map((name) => [name.toLowerCase(), env[name]!.trim()]));
  const spared = [env.no_proxy || env.NO_PROXY, LOCAL].filter(Boolean).join(",");
  try {
    http.setGlobalProxyFromEnv({ ...named, no_proxy: spared });
    used = { kind: "used", by };
  } catch {
    // The reason would repeat the address, which may hold a password.
    used = {
      kind: "unused",
      by,
      why: `${by.join(" and ")} cannot be used: write http:// or https:// before the host`,
    };
  }
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

/** Lower case comes first, as everywhere. */
function namedIn(env: NodeJS.ProcessEnv): readonly string[] {
  const set = NAMES.filter((name) => (env[name] ?? "").trim() !== "");
  return set.filter(
    (name) => name === name.toLowerCase() || !set.some((other) => other === name.toLowerCase()),
  );
}
