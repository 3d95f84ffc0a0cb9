/** Names that recur in the entries of a run, held once. */
import type { Entry } from "../flow/event.ts";

/** The parts of an entry that hold names. */
type Named = {
  event: { type: string; step?: string | null };
  led?: { step: string; to: string | null };
};

/**
 * The same entry, just parsed, with names that other entries have too. A text that was parsed is a new object: in a run of
 * many entries the names are a quarter of all objects, and each of them is slow as a key.
 */
export function withSharedNames(entry: Entry): Entry {
  const { event, led } = entry as Named;
  // To compare two texts takes less than to look one up, and most events are of the type of the one before.
  event.type = event.type === lastType ? lastType : (lastType = shared(event.type));
  if (typeof event.step === "string") event.step = shared(event.step);
  if (led !== undefined) {
    led.step = led.step === event.step ? event.step : shared(led.step);
    if (led.to !== null) led.to = shared(led.to);
  }
  return entry;
}

let lastType = "";

const names = new Map<string, string>();
/** A journal that came from elsewhere may hold any number of names. */
const MOST_NAMES = 1000;

function shared(name: string): string {
  const known = names.get(name);
  if (known !== undefined) return known;
  // V8 keeps one copy of each property name, and compares such names by address.
  const [member = name] = Object.keys({ [name]: null });
  if (names.size < MOST_NAMES) names.set(name, member);
  return member;
}
