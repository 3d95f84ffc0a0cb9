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

const ABOUT_STATE =
  /(?<![\w./@$-] ?)lockstep (?:salvage|doctor --journal|runs --prune)(?![\w-]|[^\n]* --(?:cwd|state) )/g;

/** The commands that repair or remove what is recorded, with the flags that say where: without them they would find another record. */
export function aimed(text: string, flags: readonly string[]): string {
  return flags.length === 0 ? text : text.replaceAll(ABOUT_STATE, (line) => [line, ...flags].join(" "));
}

/** Lines that begin with a blank or a mark quote what files and models say, and stay as they are. A flag is not a mark. */
export function asTyped(text: string, program: string): string {
  if (program === "lockstep") return text;
  return text
    .split("\n")
    .map((line) => (/^(?:[\s+|]|-(?!-))/.test(line) ? line : line.replaceAll(COMMAND, `${program} `)))
    .join("\n");
}
