/** Tables of a test: each list is used in order, and its last item holds from then on. */
import { own } from "../flow/json.ts";

/** `used`: how much of a list was used before. */
export function inOrder<T>(
  lists: { readonly [name: string]: readonly T[] },
  used: (name: string) => number,
): (name: string) => T | undefined {
  const counts = new Map<string, number>();
  return (name) => {
    const list = own(lists, name);
    if (list === undefined) return undefined;
    const at = counts.get(name) ?? used(name);
    counts.set(name, at + 1);
    return list[Math.min(at, list.length - 1)];
  };
}
