/** What runs of the same turn of the event loop read of the machine: read once, and forgotten when the turn is over. */

const known = new Map<string, unknown>();

/** `key` names everything that the value depends on and that this process can change within a turn. */
export function inThisTurn<T>(key: string, read: () => T): T {
  if (known.has(key)) return known.get(key) as T;
  if (known.size === 0) setImmediate(() => known.clear());
  const value = read();
  known.set(key, value);
  return value;
}
