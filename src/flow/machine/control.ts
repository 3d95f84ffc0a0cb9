/** Paths of a working tree that Lockstep, git or npm obey: what a run changes there is for a person to look at. */

/** `path` has forward slashes and begins at the top of the tree. At any depth: a folder inside may be a project too. */
export function isControlPath(path: string): boolean {
  const parts = path.split(/[\\/]/).map(foldedName);
  return parts.some(
    (part, index) => CONTROL.has(part) || (part === ".bin" && parts[index - 1] === "node_modules"),
  );
}

const CONTROL: ReadonlySet<string> = new Set([".agent", ".lockstep", ".git"]);

/** As careless file systems compare names: case, invisible characters, endings and streams do not count. */
export function foldedName(part: string): string {
  if (PLAIN.test(part)) return part.toLowerCase();
  const plain = part.normalize("NFKC").replace(/\p{Default_Ignorable_Code_Point}/gu, "");
  const name = plain
    .replace(/:.*$/s, "")
    .replace(/[. ]+$/, "")
    .toLowerCase();
  return SHORT_NAMES.get(name) ?? name;
}

/** Names of which only the case does not count. */
const PLAIN = /^[\w.-]*[\w-]$/;

/** As Windows also calls them. */
const SHORT_NAMES: ReadonlyMap<string, string> = new Map([
  ["git~1", ".git"],
  ["lockst~1", ".lockstep"],
  ["agent~1", ".agent"],
]);
