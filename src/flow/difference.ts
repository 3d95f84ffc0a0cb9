/** Where two JSON values differ. */
import { isObject, own, type Json } from "./json.ts";
import { escapeSegment } from "./json-pointer.ts";

/** `pointer` as in JSON Pointer; "" is the whole. Undefined: there is nothing at this place. */
export type Difference = {
  readonly pointer: string;
  readonly before: Json | undefined;
  readonly after: Json | undefined;
};

/** The deepest places that differ, in the order of the members. */
export function differences(
  before: Json | undefined,
  after: Json | undefined,
  pointer = "",
): readonly Difference[] {
  if (before === after) return [];
  if (isObject(before) && isObject(after)) {
    const names = new Set([...Object.keys(before), ...Object.keys(after)]);
    return [...names].flatMap((name) =>
      differences(own(before, name), own(after, name), `${pointer}/${escapeSegment(name)}`),
    );
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    const [a, b] = [before as readonly Json[], after as readonly Json[]];
    const places = Array.from({ length: Math.max(a.length, b.length) }, (_, place) => place);
    return places.flatMap((place) => differences(a[place], b[place], `${pointer}/${place}`));
  }
  return [{ pointer, before, after }];
}
