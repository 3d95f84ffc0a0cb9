/** Whether the services behind models can be reached from here, and take the keys. */
import { connectionTrouble } from "../../backends/ai-sdk/connection.ts";
import { readBody, reportsError } from "../../backends/ai-sdk/error-text.ts";
import { TOKENS, type ProviderId } from "../../backends/ai-sdk/providers.ts";
import { errorText, shownInLine } from "../../flow/text/harmless.ts";
import { parseJson } from "../../flow/json.ts";
import { configFile, readConfig } from "./config.ts";
import { filledHeaders, findModel, keyIn, withVersion } from "./models.ts";
import { proxiesOf, proxyHint } from "./proxy.ts";

export type ReachReport =
  | { readonly ok: true; readonly detail: string }
  | { readonly ok: false; readonly detail: string; readonly fix: string };

/** What came back for one request: a status and the beginning of the body, or the error. */
type Answer =
  | { readonly kind: "answer"; readonly status: number; readonly body: string }
  | { readonly kind: "none"; readonly error: unknown };

/** Requests that were sent, by everything that is in them: models of the same service share one. */
export type ReachQuery = Map<string, Promise<Answer>>;

/** Sends the key and the configured headers there, and nothing else. */
export async function reachModel(
  name: string,
  env: NodeJS.ProcessEnv,
  asked: ReachQuery,
): Promise<ReachReport> {
  const { provider, baseUrl, keyEnv, settings } = findModel(name, { config: readConfig(env), env });
  const from = keyEnv.find((one) => keyIn([one], env) !== undefined);
  const key = from === undefined ? {} : keyHeaders(provider, from, keyIn([from], env)!);
  const own = filledHeaders(settings.headers ?? {}, env);
  const url = `${withVersion(provider, baseUrl ?? "")}/models`;
  const headers = { "anthropic-version": "2023-06-01", ...key, ...own };
  const request = JSON.stringify([url, headers]);
  const sent = asked.get(request) ?? ask(url, headers);
  asked.set(request, sent);
  const answer = await sent;
  if (answer.kind === "none") return unreached(answer.error, url, provider, env);
  const secrets = [...Object.values(key), ...Object.values(own)].flatMap((value) => value.split(/\s+/));
  const noKey = `add "apiKeyEnv": "NAME" to it in ${configFile(env) ?? "your config.json"}, and set the variable NAME to a valid key`;
  return judge(url, answer, {
    keyFix: from === undefined ? noKey : `set ${from} to a valid key`,
    hide: (text) =>
      secrets.filter((one) => one.length >= 8).reduce((all, one) => all.replaceAll(one, "***"), text),
  });
}

async function ask(url: string, headers: { readonly [name: string]: string }): Promise<Answer> {
  try {
    const response = await fetch(url, {
      headers,
      redirect: "manual",
      signal: AbortSignal.timeout(LONGEST_MS),
    });
    return { kind: "answer", status: response.status, body: await beginning(response) };
  } catch (error) {
    return { kind: "none", error };
  }
}

async function beginning({ body }: Response): Promise<string> {
  if (body === null) return "";
  const decoder = new TextDecoder();
  let text = "";
  for await (const part of body) {
    text += decoder.decode(part as Uint8Array, { stream: true });
    if (text.length > MOST_CHARS) break;
  }
  return text;
}

const CHECK_ADDRESS = "check the base address (most end in /v1)";

/** Only a list of models shows that the address, the server and the key are right. */
function judge(
  url: string,
  { status, body }: Answer & { kind: "answer" },
  { keyFix, hide }: { readonly keyFix: string; readonly hide: (text: string) => string },
): ReachReport {
  const said = readBody(body);
  const bad = (what: string, fix: string): ReachReport => ({ ok: false, detail: `${url} ${what}`, fix });
  const words = said.words === null ? "" : `: ${shownInLine(hide(said.words), 150)}`;
  if (status === 401 || status === 403)
    return bad(
      keyFix.startsWith("add") ? `requires a key (${status})` : `refuses the key (${status})`,
      keyFix,
    );
  if (status === 429) return bad(`answers 429${words}`, "wait, or check the limits of the account");
  if (status >= 500)
    return bad(
      `answers ${status}${words}`,
      "the server has an internal error: see its log or status page, and try again later",
    );
  if (said.isPage)
    return bad(
      `answers ${status}${words}`,
      `${CHECK_ADDRESS}, and whether you have to log in to the network first`,
    );
  if (status === 404 || status === 405)
    return bad(
      `answers ${status}: a server is there, but it does not list models, so the address and the key are not confirmed`,
      `${CHECK_ADDRESS}; a server without this route can still work: try a run`,
    );
  if (status >= 300 && status < 400)
    return bad(
      `answers ${status}, a redirect, which is not followed`,
      "set the base address to where it leads",
    );
  if (status >= 400) return bad(`answers ${status}${words}`, `${CHECK_ADDRESS} and the key`);
  const value = parseJson(body);
  if (value === undefined ? !/^\s*[[{]/.test(body) : reportsError(value))
    return bad(
      `answers ${status}, but not with a list of models${words}`,
      `${CHECK_ADDRESS}; a server of another kind may be there`,
    );
  return { ok: true, detail: `${url} answers ${status}` };
}

function unreached(error: unknown, url: string, provider: ProviderId, env: NodeJS.ProcessEnv): ReachReport {
  const isSlow = error instanceof Error && error.name === "TimeoutError";
  const lost = isSlow ? null : connectionTrouble(error, url, provider, proxiesOf(env));
  const why = isSlow ? `no answer within ${LONGEST_MS / 1000} s` : (lost?.words ?? errorText(error));
  const hints = [lost?.hint, lost === null || lost.isUnreached ? proxyHint(env) : null].filter(Boolean);
  return {
    ok: false,
    detail: `${url} cannot be reached: ${why.replace("the connection failed: ", "")}`,
    fix: hints.join(" ") || "check the base address and your network",
  };
}

const LONGEST_MS = 10_000;
const MOST_CHARS = 256 * 1024;

function keyHeaders(provider: ProviderId, from: string, key: string): { readonly [name: string]: string } {
  if (provider === "anthropic" && !TOKENS.includes(from)) return { "x-api-key": key };
  if (provider === "google") return { "x-goog-api-key": key };
  return { authorization: `Bearer ${key}` };
}
