/** The frames of the run that is looked at: asked for once, then continued by the stream. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Frame } from "../../tell/frames.ts";
import type { FramesDocument, StreamMessage } from "../wire.ts";
import { ask, refusedOf, type RefusedRequest } from "./ask.ts";
import { useFramesOf, useLive } from "./listen.ts";
import { joinedFrames } from "./frames.ts";

export type Film = {
  readonly frames: readonly Frame[];
  readonly error: RefusedRequest | null;
  readonly damage: FramesDocument["damage"];
  /** Everything that was recorded when it was asked for is there. */
  readonly isWhole: boolean;
};

const EMPTY: Film = { frames: [], error: null, damage: null, isWhole: false };

/** null: no run is looked at. */
export function useFilm(run: string | null): Film {
  const epoch = useLive((now) => now.epoch);
  const [film, setFilm] = useState(EMPTY);
  const [gap, setGap] = useState(0);
  const held = useRef<readonly Frame[]>([]);
  const take = (frames: readonly Frame[], more: Partial<Film>) => {
    const joined = joinedFrames(held.current, frames);
    if (joined === null) return setGap((now) => now + 1);
    held.current = joined;
    setFilm((now) =>
      joined === now.frames && Object.keys(more).length === 0 ? now : { ...now, ...more, frames: joined },
    );
  };
  useEffect(() => {
    held.current = [];
    setFilm(EMPTY);
  }, [run, epoch]);
  useEffect(() => {
    if (run === null) return;
    const stop = new AbortController();
    const load = async () => {
      for (;;) {
        const after = held.current.at(-1)?.[0] ?? 0;
        const page = await ask<FramesDocument>(
          `runs/${encodeURIComponent(run)}/frames?after=${after}`,
          stop.signal,
        );
        take(page.frames, { damage: page.damage, isWhole: page.isAll, error: null });
        if (page.isAll || page.frames.length === 0) return;
      }
    };
    load().catch((error: unknown) => {
      if (!stop.signal.aborted) setFilm((now) => ({ ...now, error: refusedOf(error) }));
    });
    return () => stop.abort();
  }, [run, epoch, gap]);
  // Of a stream that another window reads only the rows of the list come here: they say when there is more.
  const isShared = useLive((now) => now.isShared);
  const events = useLive((now) => (run === null ? 0 : (now.runs.get(run)?.events ?? 0)));
  useEffect(() => {
    if (isShared && film.isWhole && events > (held.current.at(-1)?.[0] ?? 0)) setGap((now) => now + 1);
  }, [isShared, events, film.isWhole]);
  useFramesOf(run, (message: StreamMessage) => {
    if (message.type === "frames" && message.run === run) take(message.frames, {});
  });
  return film;
}
