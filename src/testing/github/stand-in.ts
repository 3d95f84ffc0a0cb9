/**
 * A stand-in of GitHub on loopback: a real server with a real state. Faults can be scripted, and everything that was asked
 * is written down.
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Json } from "../../flow/json.ts";
import { answerTo, type ServedAnswer } from "./answers.ts";
import { createWorld, type World } from "./world.ts";

export type Asked = {
  readonly method: string;
  readonly path: string;
  readonly query: { readonly [name: string]: string };
  readonly body: Json;
  /** What it was answered with; 0: not at all. */
  status: number;
};

/** What happens instead of an answer; what is said of `after` happens when the request has had its effect. */
export type ServedFault =
  | {
      readonly kind: "status";
      readonly status: number;
      readonly headers?: { readonly [name: string]: string };
      readonly body?: Json;
    }
  | { readonly kind: "drop" | "hang" | "truncate" | "no-json"; readonly after?: true };

export type When = {
  /** `POST`, or any. */
  readonly method?: string;
  readonly path?: RegExp;
  /** Which of the requests that fit, counted from 1; all from there on unless `times` says how many. */
  readonly nth?: number;
  readonly times?: number;
};

export type GithubStandIn = {
  readonly url: string;
  readonly token: string;
  /** An environment that leads to this. */
  readonly env: { readonly [name: string]: string };
  readonly world: World;
  readonly log: Asked[];
  readonly fault: (fault: ServedFault, when?: When) => void;
  /** The faults are over. */
  readonly calm: () => void;
  /** Lists have no link to their last page, as those have that GitHub pages by a cursor. */
  hidesLast: boolean;
  /** Called after each request has had its effect. */
  onRequest: (asked: Asked) => void;
  readonly close: () => Promise<void>;
};

export type StandInOptions = {
  readonly owner?: string;
  readonly repo?: string;
  readonly token?: string;
  /** The answer as it is sent; GitHub says more than the stand-in knows. */
  readonly hold?: (asked: Asked, answer: ServedAnswer) => Json;
};

export async function serveGithub(options: StandInOptions = {}): Promise<GithubStandIn> {
  const { owner = "octo", repo = "demo", token = TOKEN, hold = (_asked, { data }) => data } = options;
  const world = createWorld(owner, repo);
  const faults: { readonly fault: ServedFault; readonly when: When; count: number }[] = [];
  const log: Asked[] = [];
  let remaining = 5000;

  const server = createServer((request, response) => void respond(request, response));
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const env = { GITHUB_API_URL: url, GH_TOKEN: token, GH_REPO: `${owner}/${repo}` };

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", url: target = "" } = request;
    const here = new URL(target, url);
    const body = await bodyOf(request);
    const asked: Asked = {
      method,
      // As an enterprise host has it, too.
      path: here.pathname.replace(/^\/api\/v3(?=\/)|^\/api(?=\/graphql$)/, ""),
      query: Object.fromEntries(here.searchParams),
      body,
      status: 0,
    };
    log.push(asked);
    const fault = faultFor(asked);
    if (fault !== null && fault.kind !== "status" && fault.after !== true) return strike(fault, "", response);
    if (fault?.kind === "status") {
      asked.status = fault.status;
      const said = fault.body ?? { message: `Scripted ${fault.status}` };
      response.writeHead(fault.status, {
        "content-type": "application/json; charset=utf-8",
        ...fault.headers,
      });
      response.end(JSON.stringify(said));
      return;
    }
    const answer = mayAsk(request, token)
      ? answerTo(world, asked, request.headers.accept ?? "")
      : BAD_CREDENTIALS;
    const text = typeof answer.data === "string" ? answer.data : JSON.stringify(hold(asked, answer));
    stand.onRequest(asked);
    if (fault !== null) return strike(fault, text, response);
    send(request, response, asked, answer, text);
  }

  function send(
    request: IncomingMessage,
    response: ServerResponse,
    asked: Asked,
    answer: ServedAnswer,
    text: string,
  ): void {
    const etag = `"${createHash("sha1").update(text).digest("hex")}"`;
    const isSame = asked.method === "GET" && request.headers["if-none-match"] === etag;
    if (!isSame) remaining -= 1;
    asked.status = isSame ? 304 : answer.status;
    response.writeHead(asked.status, {
      "content-type": answer.type ?? "application/json; charset=utf-8",
      "x-ratelimit-limit": "5000",
      "x-ratelimit-remaining": String(remaining),
      "x-ratelimit-reset": "1767229200",
      ...(asked.method === "GET" && answer.status === 200 ? { etag } : {}),
      ...linksTo(`${url}${asked.path}`, asked.query, stand.hidesLast ? numberless(answer) : answer.pages),
    });
    response.end(isSame ? undefined : text);
  }

  function faultFor({ method, path }: Asked): ServedFault | null {
    let struck: ServedFault | null = null;
    for (const entry of faults) {
      const { when } = entry;
      if (when.method !== undefined && when.method !== method) continue;
      if (when.path !== undefined && !when.path.test(path)) continue;
      entry.count += 1;
      const first = when.nth ?? 1;
      if (entry.count >= first && entry.count < first + (when.times ?? Infinity)) struck ??= entry.fault;
    }
    return struck;
  }

  const stand: GithubStandIn = {
    url,
    token,
    env,
    world,
    log,
    fault: (fault, when = {}) => void faults.push({ fault, when, count: 0 }),
    calm: () => void faults.splice(0),
    hidesLast: false,
    onRequest: () => {},
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return stand;
}

const TOKEN = `ghp_${"s".repeat(36)}`;

const BAD_CREDENTIALS: ServedAnswer = { status: 401, data: { message: "Bad credentials" } };

function mayAsk({ headers }: IncomingMessage, token: string): boolean {
  return headers.authorization === `token ${token}` || headers.authorization === `Bearer ${token}`;
}

async function bodyOf(request: IncomingMessage): Promise<Json> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString("utf8");
  return text === "" ? null : (JSON.parse(text) as Json);
}

function strike(
  fault: Exclude<ServedFault, { kind: "status" }>,
  text: string,
  response: ServerResponse,
): void {
  switch (fault.kind) {
    case "drop":
      response.destroy();
      return;
    case "hang":
      return;
    case "truncate": {
      const half = (text || '{"number":1,"title":"abc"}').slice(0, 12);
      response.writeHead(200, { "content-type": "application/json", "content-length": "1000" });
      response.write(half, () => response.destroy());
      return;
    }
    case "no-json":
      response.writeHead(200, { "content-type": "application/json" }).end('{"number":1,"tit');
  }
}

function numberless({ pages = {} }: ServedAnswer): ServedAnswer["pages"] {
  const { last: _, ...rest } = pages;
  return rest;
}

function linksTo(
  address: string,
  query: Asked["query"],
  pages: ServedAnswer["pages"] = {},
): { link?: string } {
  const links = Object.entries(pages).map(([rel, page]) => {
    const there = new URL(address);
    for (const [name, value] of Object.entries(query)) there.searchParams.set(name, value);
    there.searchParams.set("page", String(page));
    return `<${there.href}>; rel="${rel}"`;
  });
  return links.length === 0 ? {} : { link: links.join(", ") };
}
