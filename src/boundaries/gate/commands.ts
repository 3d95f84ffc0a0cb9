/** Reading shell commands as far as the gate needs it; whatever is not understood for certain counts as dangerous. */
import { matchesWildcard } from "./glob.ts";

/**
 * The commands of a line that only runs plain commands one after another (`;`, `&&`, `||`, `|`, `&`, newline); null when
 * it does more: substitutions, redirections to files, subshells, comments, open quotes.
 */
export function simpleCommands(line: string): readonly string[] | null {
  if (line.length > MAX_LENGTH) return null;
  const parts: string[] = [];
  let part = "";
  let index = 0;
  while (index < line.length) {
    PLAIN.lastIndex = index;
    const plain = PLAIN.exec(line)?.[0];
    if (plain !== undefined) {
      part += plain;
      index += plain.length;
      continue;
    }
    const rest = line.slice(index, index + LOOKAHEAD);
    const text = tokenIn(rest) ?? quoted(line, index);
    if (text === null) return null;
    if (SEPARATOR.test(text)) {
      parts.push(part);
      part = "";
    } else if (!HARMLESS_REDIRECTION.test(text)) part += text;
    index += text.length;
  }
  return [...parts, part].map((text) => text.replace(/[ \t]+/g, " ").trim()).filter((text) => text !== "");
}

function tokenIn(rest: string): string | undefined {
  for (const pattern of TOKENS) {
    const found = pattern.exec(rest)?.[0];
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * `git status:*` covers `git status` and what begins with it and a space; `npm run *` is a wildcard; anything else is
 * the command itself.
 */
export function matchesCommand(limit: string, command: string): boolean {
  if (!limit.endsWith(":*")) return matchesWildcard(limit, command);
  const prefix = limit.slice(0, -2).trim();
  return prefix !== "" && (command === prefix || command.startsWith(`${prefix} `));
}

/**
 * What the command would write to GitHub, or null. The runner does such things itself, when and how the flow says.
 * This reads text and can be outwitted; it is there to tell an honest model, the sandbox is there for the others.
 */
export function writesToGitHub(command: string): string | null {
  const bare = command.replaceAll("\\", "");
  const words = bare.replace(/["']/g, "").split(/[\s;&|()<>`{}]+/);
  const called = words.flatMap((word, index) =>
    GH.test(word) ? [blockedCall(words.slice(index + 1, index + 1 + MAX_WORDS))] : [],
  );
  const call = called.find((found) => found !== null);
  if (call !== undefined) return call;
  if (/["']state["']\s*:\s*["']closed["']/i.test(bare)) return "setting the state to closed";
  const isRequest = /api\.github\.com/i.test(bare) && words.some((word) => CLIENT.test(word));
  return isRequest ? "a request to the GitHub API" : null;
}

/** A longer command is not worth the reading. */
const MAX_LENGTH = 10_000;
/** Nothing that is looked for at one place is longer. */
const LOOKAHEAD = 32;

const SEPARATOR = /^(?:&&|\|\||\|&|[;|&\n])/;
const HARMLESS_REDIRECTION = /^[ \t](?:[12]?>&[12]|[12&]?> ?\/dev\/null)(?=$|[ \t\n;&|])/;

/** Characters that mean nothing to a shell. A `#` is safe only inside a word. */
const PLAIN = /(?:[^ \t\n\\"'`$#()<>;&|]#?)+/y;
/** What else may stand at the start of the rest of a line, in order of preference. */
const TOKENS: readonly RegExp[] = [
  HARMLESS_REDIRECTION,
  SEPARATOR,
  /^[ \t](?!#)/,
  /^\\[^\n]/,
  /^\$(?![('"[{])/,
];

/** A whole quotation from here on, or null if there is none that can be read. */
function quoted(line: string, start: number): string | null {
  const quote = line[start];
  if (quote !== "'" && quote !== '"') return null;
  for (let index = start + 1; index < line.length; index += 1) {
    if (line[index] === quote) return line.slice(start, index + 1);
    if (quote === "'") continue;
    if (line[index] === "`" || (line[index] === "$" && "({[".includes(line[index + 1] ?? " "))) return null;
    if (line[index] === "\\") index += 1;
  }
  return null;
}

/** How far behind `gh` its subcommand can stand. */
const MAX_WORDS = 64;
const GH = /(?:^|\/)gh(?:\.exe)?$/i;
const CLIENT = /(?:^|\/)(?:curl|wget|python[\d.]*|node|ruby|perl|deno)(?:\.exe)?$/i;

const BLOCKED: ReadonlyMap<string, readonly string[]> = new Map([
  ["issue", ["close", "delete", "transfer", "reopen"]],
  ["pr", ["close", "merge", "ready"]],
  ["release", ["create", "edit"]],
]);

/** The words behind `gh`: options may stand anywhere, and one of them takes a value. */
function blockedCall(words: readonly string[]): string | null {
  const plain = words.filter(
    (word, index) => !word.startsWith("-") && !/^(?:-R|--repo)$/.test(words[index - 1] ?? ""),
  );
  const [group = "", verb = ""] = plain;
  if (group === "api") return "gh api";
  if (BLOCKED.get(group)?.includes(verb)) return `gh ${group} ${verb}`;
  const closes = /(?:^| )(?:--state|-s)[ =]closed(?: |$)/.test(words.join(" "));
  return group === "issue" && verb === "edit" && closes ? "gh issue edit --state closed" : null;
}
