/** Frames that come in pieces, some of them twice. */
import type { Frame } from "../../tell/frames.ts";

/** null: something is missing between them, and has to be asked for. */
export function joinedFrames(held: readonly Frame[], more: readonly Frame[]): readonly Frame[] | null {
  const last = held.at(-1)?.[0] ?? 0;
  const news = more.filter(([seq]) => seq > last);
  const [next] = news;
  if (next === undefined) return held;
  return next[0] === last + 1 ? [...held, ...news] : null;
}
