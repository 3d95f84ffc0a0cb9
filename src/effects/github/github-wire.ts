/** Requests to GitHub: patient where it helps, one write after the other, and nothing is ever thrown. */
import type { Octokit } from "@octokit/core";
import type { Clock } from "../../engine/ports.ts";
import { isObject, own, type Json, type JsonObject, type Path } from "../../flow/json.ts";
import { fetchWhole } from "./github-fetch.ts";
import {
  githubFailure,
  judgeReply,
  type GithubRequest,
  type GithubFailure,
  type GithubOutcome,
  type GithubReply,
} from "./github-faults.ts";
import { answerIn, faultInGraph } from "./github-graph.ts";
import type { GithubPlace, Token } from "./github-where.ts";

export type GithubPatience = {
  /** How long one request may take. */
  readonly requestMs: number;
  /** How long one question may wait in all, for limits to end and for troubles to pass. */
  readonly waitMs: number;
  /** How often a read is tried again. */
  readonly retries: number;
  /** GitHub asks for a pause between two writes. */
  readonly betweenWritesMs: number;
};

export const PATIENCE: GithubPatience = {
  requestMs: 30_000,
  waitMs: 120_000,
  retries: 3,
  betweenWritesMs: 1000,
};

export type WireOptions = {
  readonly place: GithubPlace;
  readonly token: Token;
  readonly clock: Clock;
  readonly patience: GithubPatience;
};

/** `route` is a method and a template as GitHub documents it: `GET /repos/{owner}/{repo}/issues`. */
export type GithubQuery = {
  /** What it is about, for the sentence that says what went wrong: `issue 12`. */
  readonly what: string;
  readonly route: string;
  readonly with?: JsonObject;
  /** Another form of the answer than JSON. */
  readonly accept?: string;
};

export type Pages<T> = {
  readonly items: readonly T[];
  /** There are more than were asked for. */
  readonly more: boolean;
};

export type GithubWire = {
  /** The answer may be one from before, if GitHub says that nothing has changed. */
  readonly read: (question: GithubQuery) => Promise<GithubOutcome<Json>>;
  /** Items from all pages, none twice, up to a limit; null leaves one out. */
  readonly readPages: <T extends { readonly key: string }>(
    question: GithubQuery,
    limit: number,
    parse: (item: JsonObject) => T | null,
    how?: {
      readonly listIn?: string;
      /** No page is read after the one that holds such an item. */
      readonly until?: (item: JsonObject) => boolean;
    },
  ) => Promise<GithubOutcome<Pages<T>>>;
  /** The last items of a list, read from its end, in the order of the list; `until` ends the reading as above. */
  readonly readLast: <T extends { readonly key: string }>(
    question: GithubQuery,
    limit: number,
    parse: (item: JsonObject) => T,
    until?: (item: T) => boolean,
  ) => Promise<GithubOutcome<Pages<T>>>;
  /** One request; tried again only where GitHub said that it did nothing. */
  readonly write: (question: GithubQuery) => Promise<GithubOutcome<Json>>;
  /** A query that changes nothing; `root` leads to the part of its data that is the answer. */
  readonly graph: (
    what: string,
    query: string,
    variables: JsonObject,
    root: Path,
  ) => Promise<GithubOutcome<Json>>;
};

/** The same for everybody: what is known already, and whose turn it is to write. The signal is each one's own. */
export function createGithubWire(options: WireOptions): (signal: AbortSignal) => GithubWire {
  let octokit: Promise<Octokit> | null = null;
  /** Runs that do not use GitHub never load its client. */
  const client = () =>
    (octokit ??= import("@octokit/core").then(({ Octokit }) => new Octokit(clientOptions(options))));
  const shared = { ...options, known: new Map<string, Known>(), inTurn: createTurns(options), client };
  return (signal) => wireFor(shared, signal);
}

type Shared = WireOptions & {
  readonly known: Map<string, Known>;
  readonly inTurn: ReturnType<typeof createTurns>;
  readonly client: () => Promise<Octokit>;
};

function wireFor(
  { place, token, clock, patience, known, inTurn, client }: Shared,
  signal: AbortSignal,
): GithubWire {
  const where = `${place.owner}/${place.repo}`;

  async function send(
    { what, route, with: params, accept }: GithubQuery,
    etag?: string,
  ): Promise<GithubReply | GithubFailure> {
    const timeout = AbortSignal.timeout(patience.requestMs);
    const headers = {
      "x-github-api-version": API_VERSION,
      accept: accept ?? "application/vnd.github+json",
      ...(etag === undefined ? {} : { "if-none-match": etag }),
    };
    const request = { signal: AbortSignal.any([signal, timeout]) };
    try {
      return await (await client()).request(route, { ...params, headers, request });
    } catch (error) {
      const reply = replyIn(error);
      if (reply !== null) return reply;
      if (signal.aborted)
        return githubFailure("network", `The request about ${what} was interrupted: go on with the run.`);
      if (timeout.aborted) {
        const why = `GitHub did not answer about ${what} within ${patience.requestMs} ms: try again later.`;
        return githubFailure("timeout", why);
      }
      return githubFailure(
        "network",
        `GitHub was not reached at ${place.api} (${causeOf(error, token)}): try again later.`,
      );
    }
  }

  /** Goes on until there is an answer, or no more patience. `tries` is for what may be asked twice without harm. */
  async function ask(question: GithubQuery, tries: number, how: How): Promise<GithubOutcome<GithubReply>> {
    const asked: GithubRequest = { what: question.what, where, tokenFrom: token.from };
    const { budget = { leftMs: patience.waitMs }, inspect = () => null } = how;
    for (let attempt = 1; ; attempt += 1) {
      const reply = await send(question, how.etag);
      const isReply = !("ok" in reply);
      const failure = isReply
        ? (judgeReply(reply, asked, clock.now()) ?? unreadable(reply, question) ?? inspect(reply))
        : reply;
      if (isReply && failure === null) return { ok: true, value: reply };
      const pause = pauseAfter(failure as GithubFailure, attempt, tries, clock.now());
      if (pause === null || pause > budget.leftMs || signal.aborted) return failure as GithubFailure;
      budget.leftMs -= pause;
      await clock.sleep(pause, signal);
    }
  }

  async function get(question: GithubQuery, budget: Budget): Promise<GithubOutcome<Known>> {
    const { route, with: params, accept = "" } = question;
    const { url } = (await client()).request.endpoint(route, { ...params });
    const key = `${accept} ${url}`;
    const before = known.get(key);
    const answer = await ask(question, patience.retries, { budget, etag: before?.etag });
    if (!answer.ok) return answer;
    const { status, headers, data } = answer.value;
    if (status === 304 && before !== undefined) return { ok: true, value: before };
    const [etag, link] = [headers["etag"], headers["link"]];
    const now: Known = {
      url,
      data: data as Json,
      link: String(link ?? ""),
      etag: etag === undefined ? undefined : String(etag),
    };
    known.delete(key);
    // What is not JSON may be long, and is hardly asked for twice.
    if (now.etag !== undefined && question.accept === undefined) known.set(key, now);
    for (const oldest of [...known.keys()].slice(0, Math.max(0, known.size - MOST_KNOWN)))
      known.delete(oldest);
    return { ok: true, value: now };
  }

  return {
    read: async (question) => {
      const got = await get(question, { leftMs: patience.waitMs });
      return got.ok ? { ok: true, value: got.value.data } : got;
    },
    readPages: async (question, limit, parse, { listIn, until = () => false } = {}) => {
      const budget = { leftMs: patience.waitMs };
      const items = new Map<string, ReturnType<typeof parse> & object>();
      const seen = new Set<string>();
      const size = Math.min(limit, PAGE);
      const most = Math.ceil(limit / size) + SPARE_PAGES;
      let here: GithubQuery = { ...question, with: { ...question.with, per_page: size } };
      for (let page = 1; ; page += 1) {
        const got = await get(here, budget);
        if (!got.ok) return got;
        const list = itemsIn(got.value.data, listIn);
        if (list === null) return notWhatWasAsked(question);
        for (const item of list) {
          const parsed = isObject(item) ? parse(item) : null;
          if (parsed !== null && !items.has(parsed.key)) items.set(parsed.key, parsed);
        }
        const next = linkIn(got.value, "next");
        const isOver = list.some((item) => isObject(item) && until(item));
        const isLast = next === null || list.length === 0 || isOver || seen.has(next);
        if (isLast || items.size >= limit || page >= most) {
          const all = [...items.values()];
          return { ok: true, value: { items: all.slice(0, limit), more: !isLast || all.length > limit } };
        }
        seen.add(next);
        here = { what: question.what, route: `GET ${next}` };
      }
    },
    readLast: async (question, limit, parse, until = () => false) => {
      const budget = { leftMs: patience.waitMs };
      const seen = new Set<string>();
      const at = (url: string | null): GithubQuery | null =>
        url === null || seen.has(url) || seen.size === MOST_PAGES
          ? null
          : (seen.add(url), { what: question.what, route: `GET ${url}` });
      let here: GithubQuery | null = { ...question, with: { ...question.with, per_page: PAGE } };
      let got = await get(here, budget);
      // A list without a link to its end is followed to it.
      while (got.ok && (here = at(linkIn(got.value, "last") ?? linkIn(got.value, "next"))) !== null)
        got = await get(here, budget);
      seen.clear();
      const items = new Map<string, ReturnType<typeof parse>>();
      for (;;) {
        if (!got.ok) return got;
        const list = itemsIn(got.value.data, undefined);
        if (list === null) return notWhatWasAsked(question);
        const page = list.filter((item) => isObject(item)).map(parse);
        // Whatever is removed meanwhile moves the others to pages that are read later: none is missed.
        for (const item of page.toReversed()) items.set(item.key, item);
        const before = linkIn(got.value, "prev");
        here = page.some(until) || items.size >= limit ? null : at(before);
        if (here === null) {
          const all = [...items.values()].toReversed();
          return {
            ok: true,
            value: { items: all.slice(-limit), more: before !== null || all.length > limit },
          };
        }
        got = await get(here, budget);
      }
    },
    write: (question) =>
      inTurn(async () => {
        const answer = await ask(question, 0, {});
        return answer.ok ? { ok: true, value: answer.value.data as Json } : answer;
      }, signal),
    graph: async (what, query, variables, root) => {
      const question = { what, route: `POST ${place.graph}`, with: { query, variables } };
      const asked = { what, where: place.owner, tokenFrom: token.from };
      const inspect = (reply: GithubReply) => faultInGraph(reply, root, asked, clock.now());
      const answer = await ask(question, patience.retries, { inspect });
      return answer.ok ? { ok: true, value: answerIn(answer.value, root) } : answer;
    },
  };
}

/** The version of GitHub's interface that this was written for. */
const API_VERSION = "2022-11-28";
const PAGE = 100;
/** Beyond those that a limit needs, for items that are left out. */
const SPARE_PAGES = 20;
/** A list that is longer is not read to its beginning. GitHub takes 25 pages of comments on an issue. */
const MOST_PAGES = 1000;
/** How many answers are kept, to be used again where GitHub says that nothing has changed. */
const MOST_KNOWN = 100;

type Known = {
  readonly url: string;
  readonly data: Json;
  readonly link: string;
  readonly etag: string | undefined;
};
type Budget = { leftMs: number };
type How = {
  readonly budget?: Budget;
  readonly etag?: string | undefined;
  /** What is wrong with an answer that looks right. */
  readonly inspect?: (reply: GithubReply) => GithubFailure | null;
};

function clientOptions({ place, token }: WireOptions): object {
  const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
  return {
    auth: token.value,
    baseUrl: place.api,
    userAgent: "lockstep",
    log: silent,
    request: { fetch: fetchWhole, log: silent },
  };
}

/** One write after the other, with a pause between them. */
function createTurns({ clock, patience }: WireOptions) {
  let before: Promise<unknown> = Promise.resolve();
  let endedAt = Number.NEGATIVE_INFINITY;
  return <T>(run: () => Promise<T>, signal: AbortSignal): Promise<T> => {
    const mine = before.then(async () => {
      const pause = endedAt + patience.betweenWritesMs - clock.now();
      if (pause > 0) await clock.sleep(pause, signal);
      const result = await run();
      endedAt = clock.now();
      return result;
    });
    before = mine.catch(() => undefined);
    return mine;
  };
}

/** null: it would not help to ask again. */
function pauseAfter(
  { kind, until }: GithubFailure,
  attempt: number,
  tries: number,
  now: number,
): number | null {
  // A request that a limit has stopped was not acted on, so it may be made again, whatever it was.
  if (kind === "limited" && until !== undefined) return Math.max(until - now, LEAST_PAUSE_MS);
  const isPassing = kind === "server" || kind === "network" || kind === "unreadable";
  const most = kind === "timeout" ? Math.min(tries, 1) : isPassing ? tries : 0;
  return attempt > most ? null : LEAST_PAUSE_MS * 2 ** (attempt - 1);
}

const LEAST_PAUSE_MS = 1000;

/** What was thrown for a status is a reply like any other. */
function replyIn(error: unknown): GithubReply | null {
  if (!(error instanceof Error) || !("response" in error) || !isRecord(error.response)) return null;
  return error.response as GithubReply;
}

function isRecord(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** JSON that is none comes as text. */
function unreadable({ status, data }: GithubReply, question: GithubQuery): GithubFailure | null {
  const isText = typeof data === "string" && question.accept !== undefined;
  if (status === 304 || status === 204 || isRecord(data) || isText) return null;
  return notWhatWasAsked(question);
}

function notWhatWasAsked({ what }: GithubQuery): GithubFailure {
  return githubFailure(
    "unreadable",
    `What came back about ${what} cannot be read: look whether the address of GitHub is right.`,
  );
}

function causeOf(error: unknown, token: Token): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
  const words = inner instanceof Error ? inner.message || inner.name : String(inner);
  return words.replaceAll(token.value, "the token").slice(0, 200);
}

function itemsIn(data: Json, listIn: string | undefined): readonly Json[] | null {
  const list = listIn === undefined ? data : isObject(data) ? own(data, listIn) : undefined;
  return Array.isArray(list) ? list : null;
}

/** The address of another page: always at our own host, whatever the link says besides its query. */
function linkIn({ url, link }: Known, rel: "next" | "prev" | "last"): string | null {
  const target = new RegExp(`<([^<>]+)>;\\s*rel="${rel}"`).exec(link)?.[1];
  const there = target === undefined ? null : URL.parse(target, url);
  if (there === null) return null;
  const here = new URL(url);
  here.search = there.search;
  return here.href;
}
