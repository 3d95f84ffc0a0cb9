/** What runs of the same turn of the event loop read of the machine: read once, and forgotten when the turn is over. */

type Known = { readonly parts: readonly unknown[]; readonly value: unknown };

let known = new Map<unknown, Known[]>();

/**
 * `parts` name what is read, which comes first, and everything that the value depends on and that this process can change
 * within a turn; objects are compared by identity. Runs that begin together mostly have the same parts.
 */
export function inThisTurn<T>(parts: readonly unknown[], read: () => T): T {
  const named = known.get(parts[0]) ?? [];
  for (const one of named) if (isSame(one.parts, parts)) return one.value as T;
  if (known.size === 0) setImmediate(forget);
  known.set(parts[0], named);
  const value = read();
  named.push({ parts, value });
  return value;
}

function isSame(parts: readonly unknown[], others: readonly unknown[]): boolean {
  return parts.length === others.length && parts.every((part, place) => part === others[place]);
}

/** A new map, not the old one emptied: measured over thousands of runs, less is then left in old space (decision 0049). */
function forget(): void {
  known = new Map();
}
