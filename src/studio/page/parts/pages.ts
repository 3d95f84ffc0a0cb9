/** A long list that comes in pages: which of them are there, and asking for those that are looked at. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, refusedOf, type RefusedRequest } from "../ask.ts";
import { missingPages } from "../window.ts";

export type Paged<D> = {
  /** By the place of their first item. */
  readonly pages: ReadonlyMap<number, D>;
  readonly total: number | null;
  readonly error: RefusedRequest | null;
  /** Asks for what lies between these places, as far as it is not there. */
  readonly need: (first: number, end: number) => void;
  readonly again: () => void;
};

/** @param path of a page, given the place of its first item; `version`: grows when there is more, and the last page is asked for again */
export function usePages<D extends { readonly total: number }>(
  path: (from: number) => string,
  size: number,
  version: unknown,
): Paged<D> {
  const key = path(0);
  const [state, setState] = useState<{
    readonly pages: ReadonlyMap<number, D>;
    readonly total: number | null;
    readonly error: RefusedRequest | null;
  }>({ pages: new Map(), total: null, error: null });
  const asked = useRef(new Set<number>());
  const stop = useRef(new AbortController());
  const [round, setRound] = useState(0);
  const load = (from: number) => {
    if (asked.current.has(from)) return;
    asked.current.add(from);
    const { signal } = stop.current;
    ask<D>(path(from), signal).then(
      (page) =>
        !signal.aborted &&
        setState((now) => ({ pages: new Map([...now.pages, [from, page]]), total: page.total, error: null })),
      (error: unknown) => {
        asked.current.delete(from);
        if (!signal.aborted) setState((now) => ({ ...now, error: refusedOf(error) }));
      },
    );
  };
  useEffect(() => {
    stop.current = new AbortController();
    asked.current = new Set();
    setState({ pages: new Map(), total: null, error: null });
    load(0);
    return () => stop.current.abort();
  }, [key, round]);
  useEffect(() => {
    if (state.total === null) return;
    const last = Math.floor(state.total / size) * size;
    asked.current.delete(last);
    load(last);
  }, [version]);
  return {
    ...state,
    need: (first, end) => {
      for (const from of missingPages(first, end, size, asked.current)) load(from);
    },
    again: () => setRound(round + 1),
  };
}
