/** Requests to the studio that must be refused, and a few that must not: for the guard alone, and for a socket. */
import { connect } from "node:net";
import { routesOf } from "../../src/studio/routes.ts";
import { createStreams } from "../../src/studio/streams.ts";

export type Place = { readonly host: string; readonly token: string };

/** One request before it is written down. `status` null: the guard lets it pass. */
export type RequestRow = {
  readonly name: string;
  readonly method: string;
  readonly target: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
  readonly status: number | null;
  readonly code: string | null;
};

type Change = {
  readonly method?: string;
  readonly target?: string;
  /** Headers that are left out. */
  readonly without?: readonly string[];
  readonly with?: readonly (readonly [name: string, value: string])[];
  readonly body?: string;
};

/** Every route of the table, with names where its path has places: a route that is added is among them. */
export const ROUTES = routesOf(createStreams()).map(({ method, path }) => ({
  method,
  path: path
    .replace(":run", "@last")
    .replace(":seq", "1")
    .replace(":target", "initial.note@1")
    .replace(":name", "notes")
    .replace(":step", "initial.note")
    .replace(":question", "q1")
    .replace(/:[ab]/g, "@last"),
}));

/** What can be looked at and comes to an end. */
export const DOCUMENTS = ROUTES.filter(({ method, path }) => method === "GET" && path !== "stream").map(
  ({ path }) => path,
);

export function requestRows({ host, token }: Place): readonly RequestRow[] {
  const bearer = ["Authorization", `Bearer ${token}`] as const;
  const origin = ["Origin", `http://${host}`] as const;
  const row = (
    name: string,
    status: number | null,
    code: string | null,
    { method = "GET", target = "/api/project", without = [], with: more = [], body = "" }: Change,
  ): RequestRow => {
    const usual = [
      ["Host", host] as const,
      bearer,
      ...(method === "POST" ? [origin, ["Content-Type", "application/json"] as const] : []),
      ...(body === "" ? [] : [["Content-Length", String(Buffer.byteLength(body))] as const]),
    ];
    const kept = usual.filter(([header]) => !without.includes(header.toLowerCase()));
    return { name, method, target, headers: [...kept, ...more], body, status, code };
  };
  const post: Change = { method: "POST", target: "/api/runs", body: "{}" };
  const port = host.split(":").at(-1)!;
  const tokenRows = ROUTES.flatMap(({ method, path: named }) => {
    const target = `/api/${named}`;
    const path = `${method} ${named}`;
    const body = method === "POST" ? "{}" : "";
    const no = { method, target, body, without: ["authorization"] };
    return [
      row(`${path} without a token`, 401, "TOKEN_NEEDED", no),
      row(`${path} with another token`, 401, "TOKEN_NEEDED", {
        ...no,
        with: [["Authorization", `Bearer ${"A".repeat(token.length)}`]],
      }),
      row(`${path} with the token in the query`, 401, "TOKEN_NEEDED", {
        ...no,
        target: `${target}?token=${token}&authorization=${token}`,
      }),
      row(`${path} with the token as a cookie`, 401, "TOKEN_NEEDED", {
        ...no,
        with: [["Cookie", `token=${token}; lockstep-token=${token}; Authorization=Bearer ${token}`]],
      }),
    ];
  });
  const odd = (value: string, status = 421, code = "WRONG_HOST") =>
    row(`host ${JSON.stringify(value).slice(0, 60)}`, status, code, {
      without: ["host"],
      with: [["Host", value]],
    });
  const target = (path: string, status = 400, code = "BAD_TARGET") =>
    row(`target ${path.slice(0, 60)}`, status, code, { target: path });
  const authorization = (value: string) =>
    row(`authorization ${value.slice(0, 30)}`, 401, "TOKEN_NEEDED", {
      without: ["authorization"],
      with: [["Authorization", value]],
    });
  const site = (value: string, status: number | null = 403, code: string | null = "FOREIGN_SITE") =>
    row(`sec-fetch-site ${value}`, status, code, { with: [["Sec-Fetch-Site", value]] });
  const from = (value: string, status: number | null = 403, code: string | null = "FOREIGN_ORIGIN") =>
    row(`origin ${value}`, status, code, { with: [["Origin", value]] });
  const type = (value: string, status: number | null = 415, code: string | null = "WRONG_TYPE") =>
    row(`content-type ${value}`, status, code, {
      ...post,
      without: ["content-type"],
      with: [["Content-Type", value]],
    });
  return [
    ...tokenRows,
    row("the document", null, null, {}),
    row("its address by name", null, null, { without: ["host"], with: [["Host", `localhost:${port}`]] }),
    row("its address in capitals", null, null, { without: ["host"], with: [["HOST", `LOCALHOST:${port}`]] }),
    row("a word in another case", null, null, {
      without: ["authorization"],
      with: [["authorization", `bearer ${token}`]],
    }),
    row("no host", 400, "BAD_HOST", { without: ["host"] }),
    row("two hosts", 400, "BAD_HOST", { with: [["Host", "evil.example"]] }),
    row("the same host twice", 400, "BAD_HOST", { with: [["host", host]] }),
    odd("", 400, "BAD_HOST"),
    odd("evil.example"),
    odd(`evil.example:${port}`),
    odd("127.0.0.1"),
    odd("localhost"),
    odd("127.0.0.1:1"),
    odd(`127.0.0.2:${port}`),
    odd(`0.0.0.0:${port}`),
    odd(`127.0.0.1.evil.example:${port}`),
    odd(`localhost.:${port}`),
    odd(`user@127.0.0.1:${port}`),
    odd(`127.1:${port}`),
    odd(`2130706433:${port}`),
    odd(`[::ffff:127.0.0.1]:${port}`),
    target("//evil.example/api/project"),
    target(`http://evil.example/api/project`),
    target(`http://${host}/api/project`),
    target("*"),
    target("api/project"),
    target("/\\evil.example/api/project"),
    target("/api/project#x"),
    target("/api/%"),
    target("/api/%c3%28"),
    target("/api/%00"),
    target("/api/%0d%0aX-Evil:%201"),
    target("/api/../project"),
    target("/api/%2e%2e/project"),
    target("/./api/project"),
    target("/api/runs?limit=1&limit=2"),
    target("/api/runs?__proto__=1"),
    target(`/api/${"a".repeat(9000)}`, 414),
    authorization("Bearer"),
    authorization("Bearer "),
    authorization(token),
    authorization(`Basic ${Buffer.from(`x:${token}`).toString("base64")}`),
    authorization(`Bearer ${token} `.trim() + "x"),
    authorization(`Bearer ${token.slice(0, -1)}`),
    authorization(`Bearer  ${token}`),
    authorization(`Bearer ${token.toUpperCase()}`),
    authorization(`Token ${token}`),
    row("two authorizations", 400, "BAD_HEADER", { with: [["Authorization", "Bearer x"]] }),
    site("same-origin", null, null),
    site("cross-site"),
    site("same-site"),
    site("none"),
    site("Same-Origin"),
    row("two sites", 400, "BAD_HEADER", {
      with: [
        ["Sec-Fetch-Site", "same-origin"],
        ["Sec-Fetch-Site", "cross-site"],
      ],
    }),
    from(`http://${host}`, null, null),
    from(`http://localhost:${port}`, null, null),
    from("null"),
    from(`https://${host}`),
    from("http://127.0.0.1"),
    from("http://127.0.0.1:1"),
    from("http://evil.example"),
    from(`http://evil.example:${port}`),
    from(`http://${host}.evil.example`),
    from(`http://${host}/`),
    from("file://"),
    row("two origins", 400, "BAD_HEADER", { with: [origin, ["Origin", "http://evil.example"]] }),
    row("HEAD of a document", 405, "METHOD_NOT_ALLOWED", { method: "HEAD" }),
    ...["OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND"].map((method) =>
      row(method, 405, "METHOD_NOT_ALLOWED", { method }),
    ),
    row("a preflight", 405, "METHOD_NOT_ALLOWED", {
      method: "OPTIONS",
      with: [
        ["Origin", "http://evil.example"],
        ["Access-Control-Request-Method", "POST"],
        ["Access-Control-Request-Headers", "authorization"],
      ],
    }),
    row("GET with a body", 400, "BODY_UNEXPECTED", { body: "{}" }),
    row("a POST outside of /api/", 405, "METHOD_NOT_ALLOWED", { ...post, target: "/runs" }),
    row("a POST without a token", 401, "TOKEN_NEEDED", { ...post, without: ["authorization"] }),
    row("a POST without an origin", 403, "FOREIGN_ORIGIN", { ...post, without: ["origin"] }),
    row("a POST of another origin", 403, "FOREIGN_ORIGIN", {
      ...post,
      without: ["origin"],
      with: [["Origin", "http://evil.example"]],
    }),
    row("a POST from a sandboxed frame", 403, "FOREIGN_ORIGIN", {
      ...post,
      without: ["origin"],
      with: [["Origin", "null"]],
    }),
    row("a POST without a type", 415, "WRONG_TYPE", { ...post, without: ["content-type"] }),
    type("text/plain"),
    type("application/x-www-form-urlencoded"),
    type("multipart/form-data; boundary=x"),
    type("application/json, text/plain"),
    type("application/json; charset=utf-7"),
    type("application/jsonp"),
    row("a POST that says it is too large", 413, "BODY_TOO_LARGE", {
      ...post,
      body: "",
      with: [["Content-Length", "1048577"]],
    }),
  ];
}

/** As it goes over the wire; the server is asked to close the connection after its answer. */
export function textOf({ method, target, headers, body }: RequestRow): string {
  const lines = [`${method} ${target} HTTP/1.1`, ...headers.map(([name, value]) => `${name}: ${value}`)];
  return `${lines.join("\r\n")}\r\nConnection: close\r\n\r\n${body}`;
}

export type RawAnswer = {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
  readonly text: string;
};

/** Sends bytes and reads until the server closes. Status 0: nothing came back. */
export async function sendRaw(port: number, text: string | Buffer): Promise<RawAnswer> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const socket = connect({ port, host: "127.0.0.1" }, () => socket.write(text));
  let said = "";
  socket.setEncoding("utf8");
  socket.on("data", (part: string) => {
    said += part;
    // A stream does not end by itself.
    if (/content-type: text\/event-stream/i.test(said)) socket.destroy();
  });
  socket.on("error", () => undefined);
  socket.on("close", () => resolve(said));
  const all = await promise;
  const [head = "", ...rest] = all.split("\r\n\r\n");
  const [first = "", ...lines] = head.split("\r\n");
  const headers = lines.map((line) => {
    const at = line.indexOf(":");
    return [line.slice(0, at).toLowerCase(), line.slice(at + 1).trim()] as const;
  });
  return {
    status: Number(first.split(" ")[1] ?? 0),
    headers: new Map(headers),
    body: rest.join("\r\n\r\n"),
    text: all,
  };
}
