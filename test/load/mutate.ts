/** One change to the text or to a value of a JSON file, as an author, a merge or a bad tool may make it. */

const LITERALS: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1e308,
  "",
  "x",
  "initial.issue",
  "__proto__",
  "constructor",
  "../../etc/passwd",
  "#/definitions/base",
  "##",
  "{uv-x}",
  [],
  {},
  [null],
  [[]],
  { $ref: "#" },
  { target: null },
  { __proto__: 1 },
];

export function mutateText(text: string, next: () => number): string {
  const at = Math.floor(next() * text.length);
  return text.slice(0, at) + text.slice(at + 1 + Math.floor(next() * 20));
}

/** Sets, removes, renames or copies one member somewhere in the value. */
export function mutateValue(text: string, next: () => number, pick: <T>(list: readonly T[]) => T): string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return text;
  }
  const owners: { [key: string]: unknown }[] = [];
  collect(value, owners);
  const owner = pick(owners);
  if (owner === undefined) return text;
  const key = pick(Object.keys(owner));
  if (key === undefined) return text;
  const set = (name: string, member: unknown) =>
    Object.defineProperty(owner, name, {
      value: member,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  const way = next();
  if (way < 0.5) set(key, pick(LITERALS));
  else if (way < 0.7) delete owner[key];
  else if (way < 0.85) {
    const member = owner[key];
    delete owner[key];
    set(pick(["__proto__", `${key}x`, "default", "toString", ""]), member);
  } else set(key, structuredClone(pick(Object.values(pick(owners)))));
  return JSON.stringify(value, null, next() < 0.1 ? 2 : undefined);
}

function collect(value: unknown, owners: { [key: string]: unknown }[]): void {
  if (typeof value !== "object" || value === null) return;
  owners.push(value as { [key: string]: unknown });
  for (const member of Object.values(value)) collect(member, owners);
}
