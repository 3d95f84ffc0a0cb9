/** Requests to the server of the page: each with the token, and each refusal as a value that a screen can show. */
import { useEffect, useState } from "preact/hooks";
import type { InParts } from "../wire-agents.ts";
import { useLive } from "./listen.ts";
import { authorized } from "./token.ts";

/** Why a request was refused: `code` and `reason` are the server's. */
export class RefusedRequest extends Error {
  override readonly name = "RefusedRequest";
  readonly status: number;
  readonly code: string;
  /** The whole document of the refusal: some routes add members, such as a sentence for each field. */
  readonly document: unknown;
  constructor(status: number, code: string, reason: string, document: unknown = null) {
    super(reason);
    this.status = status;
    this.code = code;
    this.document = document;
  }
}

/** @param path below `/api/`, its parts written by `encodeURIComponent` */
export async function ask<T>(path: string, signal?: AbortSignal): Promise<T> {
  return request<T>(path, signal === undefined ? {} : { signal });
}

/** What changes something. */
export async function act<T>(path: string, body: unknown): Promise<T> {
  return request<T>(path, { method: "POST", body: JSON.stringify(body) });
}

async function request<T>(path: string, options: RequestInit): Promise<T> {
  const isPost = options.body !== undefined;
  const headers = { ...authorized(), ...(isPost && { "content-type": "application/json" }) };
  const answer = await fetch(`/api/${path}`, { ...options, headers, cache: "no-store" }).catch(
    (error: unknown) => {
      if (error instanceof DOMException && error.name === "AbortError") throw error;
      throw new RefusedRequest(
        0,
        "STUDIO_GONE",
        "The studio does not answer. Start it again: lockstep studio",
      );
    },
  );
  const document: unknown = await answer.json().catch(() => null);
  if (answer.ok) return document as T;
  const { code, reason } = (document ?? {}) as { readonly code?: unknown; readonly reason?: unknown };
  throw new RefusedRequest(
    answer.status,
    typeof code === "string" ? code : `HTTP_${answer.status}`,
    typeof reason === "string" ? reason : "The studio refused the request.",
    document,
  );
}

/** What was asked for: `value` stays while it is asked for again. */
export type Fetched<T> = {
  readonly value: T | null;
  readonly error: RefusedRequest | null;
  readonly isLoading: boolean;
  readonly again: () => void;
};

/** Asks when the part appears, when `path` or `version` changes, and when the server says so. null: nothing is asked. */
export function useAsk<T>(path: string | null, version: unknown = 0): Fetched<T> {
  const [round, setRound] = useState(0);
  const everything = useLive((now) => now.round);
  const [state, setState] = useState<{
    readonly path: string | null;
    readonly value: T | null;
    readonly error: RefusedRequest | null;
    readonly isLoading: boolean;
  }>({ path, value: null, error: null, isLoading: path !== null });
  useEffect(() => {
    if (path === null) return;
    const stop = new AbortController();
    setState((now) => ({ path, value: now.path === path ? now.value : null, error: null, isLoading: true }));
    ask<T>(path, stop.signal).then(
      (value) => setState({ path, value, error: null, isLoading: false }),
      (error: unknown) => {
        if (stop.signal.aborted) return;
        setState((now) => ({
          path,
          value: now.path === path ? now.value : null,
          error: refusedOf(error),
          isLoading: false,
        }));
      },
    );
    return () => stop.abort();
  }, [path, version, round, everything]);
  const isStale = state.path !== path;
  return {
    value: isStale ? null : state.value,
    error: isStale ? null : state.error,
    isLoading: isStale ? path !== null : state.isLoading,
    again: () => setRound((now) => now + 1),
  };
}

/** How long the server may work before it answers with what there is. */
const WITHIN_MS = 400;

/** The same for a document that comes in parts: the next one is asked for until all is there. */
export function useAskInParts<T extends InParts>(path: string, version: unknown = 0): Fetched<T> {
  const asked = useAsk<T>(`${path}${path.includes("?") ? "&" : "?"}within=${WITHIN_MS}`, version);
  const { value, isLoading, error, again } = asked;
  const isOwed = value !== null && !value.isAll && !isLoading && error === null;
  useEffect(() => {
    if (isOwed) again();
  }, [isOwed, value]);
  return asked;
}

export function refusedOf(error: unknown): RefusedRequest {
  if (error instanceof RefusedRequest) return error;
  return new RefusedRequest(0, "PAGE_ERROR", error instanceof Error ? error.message : String(error));
}
