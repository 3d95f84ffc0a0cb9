/** Commands in our own words, as this user types them: `lockstep`, `npx lockstep` or `npm run -s lockstep --`. */
import { delimiter, dirname, join } from "node:path";
import { COMMANDS } from "../commands.ts";

/** `started`: the file that Node was started with. */
export function programName(
  started: string | undefined,
  env: { readonly [name: string]: string | undefined },
): string {
  const { npm_lifecycle_event: script, npm_command: npm = "", PATH = "" } = env;
  if (script === "npx") return "npx lockstep";
  if (script === "lockstep" && npm.startsWith("run")) return "npm run -s lockstep --";
  const folder = dirname(started ?? "");
  if (!folder.endsWith(join("node_modules", ".bin"))) return "lockstep";
  // A script of npm has the folder on its PATH, and the user's shell has not.
  return script === undefined && PATH.split(delimiter).includes(folder) ? "lockstep" : "npx lockstep";
}

const NAMES = [...COMMANDS.map(({ name }) => name), "COMMAND"].join("|");
const COMMAND = new RegExp(`(?<![\\w./@$-] ?)lockstep (?=(?:${NAMES})\\b|--help)`, "g");

const OF_PROJECT = COMMANDS.filter(({ anywhere }) => !anywhere).map(({ name }) => name);
const AIMED = new RegExp(
  `(?<![\\w./@$-] ?)lockstep (?:doctor --journal|runs --prune|${OF_PROJECT.join("|")})(?![\\w-]|[^\\n]* --(?:cwd|state) )`,
  "g",
);

/** Commands with the flags that were given to say where: without them they would look at another project or record. */
export function aimed(text: string, flags: readonly string[]): string {
  return flags.length === 0
    ? text
    : ours(text, (line) => line.replaceAll(AIMED, (command) => [command, ...flags].join(" ")));
}

export function asTyped(text: string, program: string): string {
  return program === "lockstep" ? text : ours(text, (line) => line.replaceAll(COMMAND, `${program} `));
}

/** Lines that begin with a blank or a mark quote what files and models say, and stay as they are. A flag is not a mark. */
function ours(text: string, change: (line: string) => string): string {
  return text
    .split("\n")
    .map((line) => (/^(?:[\s+|]|-(?!-))/.test(line) ? line : change(line)))
    .join("\n");
}
