/** What a route of the studio is: which requests it answers, what it is given, and what it may answer with. */
import type { Journal } from "../engine/ports.ts";
import { RunnerError } from "../run/errors.ts";
import type { JsonObject } from "../flow/json.ts";
import { RequestRefusal } from "../serve/refusal.ts";
import type { Project } from "../run/world/project.ts";
import type { Desk } from "./desk.ts";
import type { StudioNews } from "./news.ts";
import type { FoldShelf } from "./shelf.ts";
import type { ProjectDocument } from "./wire.ts";

/** `path` without `/api/`: `runs/:run/why/:target`. What changes anything is a POST; a studio that is read only has none. */
export type StudioRoute = {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly answer: (asked: StudioRequest, studio: Studio) => Promise<StudioAnswer>;
};

export type StudioRequest = {
  /** The parts of the path that the route names with a colon, decoded. */
  readonly params: { readonly [name: string]: string };
  readonly query: { readonly [name: string]: string };
  /** Of a POST: a JSON object. */
  readonly body: JsonObject;
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal;
};

export type StudioAnswer =
  | { readonly kind: "document"; readonly status: number; readonly document: object }
  /** A document that was made JSON already, without secrets. */
  | { readonly kind: "json"; readonly body: Buffer }
  /** A file, piece by piece. */
  | { readonly kind: "file"; readonly type: string; readonly pieces: AsyncIterable<string> }
  /** Messages until the client goes; `open` is given the way to it, and gives back what to do then. */
  | { readonly kind: "stream"; readonly open: (line: Wire) => () => void };

/** A stream to one client. */
export type Wire = {
  readonly send: (text: string) => void;
  /** Bytes that the client has not taken yet. */
  readonly held: () => number;
  readonly close: () => void;
};

/** What the routes work on. */
export type Studio = {
  readonly project: Project;
  /** The folder that commands are started in. */
  readonly cwd: string;
  /** Words that lead a command to this project, wherever it is typed. */
  readonly where: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly version: string;
  /** How this user types the command, and the file and arguments that it is started by. */
  readonly command: string;
  readonly readOnly: ProjectDocument["readOnly"];
  /** Epoch milliseconds. */
  readonly began: number;
  readonly now: () => number;
  /** null: nothing is recorded yet. Reading it gives other requests their turn. */
  readonly journal: () => Promise<Journal | null>;
  /** Takes secrets out of what is sent. */
  readonly redact: <T>(value: T) => T;
  readonly shelf: FoldShelf;
  readonly news: StudioNews;
  readonly desk: Desk;
  /** Aborted when the studio closes. */
  readonly signal: AbortSignal;
};

/** A document as the answer. */
export function reply(document: object, status = 200): StudioAnswer {
  return { kind: "document", status, document };
}

/** The journal for a request about a run. RUN_UNKNOWN where nothing is recorded. */
export async function journalFor(studio: Studio, ref: string): Promise<Journal> {
  const journal = await studio.journal();
  if (journal !== null) return journal;
  throw new RunnerError("RUN_UNKNOWN", `There is no run "${ref}": no runs are recorded yet.`);
}

/** A number of the query; `otherwise` where it is not given. */
export function queryNumber(query: StudioRequest["query"], name: string, otherwise: number): number {
  const text = query[name];
  if (text === undefined) return otherwise;
  if (!/^\d{1,15}$/.test(text)) throw new RequestRefusal(400, "USAGE", `"${name}" must be a number.`);
  return Number(text);
}

/** The route of a request and the parts that its path names; null: there is none. */
export function findRoute(
  routes: readonly StudioRoute[],
  segments: readonly string[],
): { readonly routes: readonly StudioRoute[]; readonly params: StudioRequest["params"] } | null {
  for (const path of new Set(routes.map((route) => route.path))) {
    const params = paramsOf(path.split("/"), segments);
    if (params !== null) return { routes: routes.filter((route) => route.path === path), params };
  }
  return null;
}

function paramsOf(parts: readonly string[], segments: readonly string[]): StudioRequest["params"] | null {
  if (parts.length !== segments.length) return null;
  const params: [string, string][] = [];
  for (const [place, part] of parts.entries()) {
    const segment = segments[place]!;
    if (part.startsWith(":") && segment !== "") params.push([part.slice(1), segment]);
    else if (part !== segment) return null;
  }
  return Object.fromEntries(params);
}

type Answering = StudioRoute["answer"];

/** A route whose code is loaded with the first request that needs it: a studio that nobody looks at stays small. */
export function get(path: string, load: () => Promise<Answering>): StudioRoute {
  return { method: "GET", path, answer: late(load) };
}

export function post(path: string, load: () => Promise<Answering>): StudioRoute {
  return { method: "POST", path, answer: late(load) };
}

function late(load: () => Promise<Answering>): Answering {
  return async (asked, studio) => await (await load())(asked, studio);
}
