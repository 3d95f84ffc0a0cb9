/** JSON pointers: `["a/b", "c"]` is `/a~1b/c`. */
import type { Path } from "./json.ts";

export function pointerOf(path: Path): string {
  return path.map((segment) => `/${escapeSegment(segment)}`).join("");
}

export function escapeSegment(segment: string): string {
  return segment.includes("~") || segment.includes("/")
    ? segment.replaceAll("~", "~0").replaceAll("/", "~1")
    : segment;
}

export function unescapeSegment(segment: string): string {
  return segment.includes("~") ? segment.replaceAll("~1", "/").replaceAll("~0", "~") : segment;
}
