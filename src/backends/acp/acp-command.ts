/** The command that an agent asks permission for, as the line that really runs. Pure. */
import { shellWord } from "../../flow/text/harmless.ts";
import { isObject, own, type Json, type JsonObject } from "../../flow/json.ts";
import { memberAt, listIn, textIn } from "../untyped.ts";

/**
 * `said`: everything the agent said of the call, the request last. A command that is to run elsewhere is judged with the
 * way there. null: not known, as with a field that may change what runs.
 */
export function commandIn(said: readonly JsonObject[], isGemini: boolean, cwds: readonly string[]): Json {
  const call = said.at(-1) ?? {};
  const inputs = said.map(({ rawInput }) => (isObject(rawInput) ? rawInput : {}));
  const input = inputs.at(-1) ?? {};
  const isInTitle = isGemini && call.rawInput === undefined;
  const command = isInTitle ? (call.title ?? null) : lineOf(input);
  const folders = isInTitle ? geminiFolders(call) : foldersIn(said, inputs);
  if (typeof command !== "string" || folders === null || !Object.keys(input).every(isKnown(input)))
    return null;
  const elsewhere = folders.filter((folder) => !cwds.includes(folder));
  return [...elsewhere.map((folder) => `cd ${quoted(folder)}`), command].join(" && ");
}

/** Fields that say nothing, or only what is harmless. */
function isKnown(input: JsonObject): (field: string) => boolean {
  return (field) =>
    FOLDERS.includes(field) ||
    HARMLESS.has(field) ||
    own(input, field) === null ||
    own(input, field) === false;
}

const FOLDERS = [
  "cwd",
  "workdir",
  "dir_path",
  "directory",
  "working_directory",
  "workingDirectory",
  "working_dir",
  "workingDir",
];

/** Codex repeats its event: what it made of the command, and what else could be answered. */
const HARMLESS: ReadonlySet<string> = new Set(
  (
    "command cmd description reason justification timeout timeout_ms timeoutMs run_in_background is_background " +
    "background yield_time_ms max_output_tokens call_id turn_id approval_id process_id parsed_cmd source started_at_ms " +
    "available_decisions proposed_execpolicy_amendment proposed_network_policy_amendments"
  ).split(" "),
);

/** null: one of them is not a text. Some programs name the folder only when they announce the call. */
function foldersIn(said: readonly JsonObject[], inputs: readonly JsonObject[]): readonly string[] | null {
  const fields = inputs.flatMap((input) => FOLDERS.map((field) => own(input, field)));
  const named = [...fields, ...said.map((one) => memberAt(one, "_meta", "terminal_info", "cwd"))];
  const folders = named.filter((folder) => folder !== undefined && folder !== null);
  return folders.every((folder) => typeof folder === "string") ? [...new Set(folders)] : null;
}

/** Gemini CLI says where before anything else, so no word of the model can stand there. */
function geminiFolders({ toolCallId, content }: JsonObject): readonly string[] | null {
  if (textIn(toolCallId).startsWith("mcp_")) return null;
  const named = textIn(memberAt(listIn(content)[0], "content", "text"));
  if (named === "" || named.startsWith("[current working directory ")) return [];
  const folder = /^\[in (.*)\]/s.exec(named)?.[1];
  return folder === undefined ? null : [folder];
}

/** null: there is none, or there are two. */
function lineOf({ command, cmd }: JsonObject): Json {
  const [line, other] = [command, cmd].filter((one) => one !== undefined && one !== null);
  if (line === undefined || other !== undefined) return null;
  if (!Array.isArray(line)) return line;
  const words = listIn(line);
  if (words.length === 0 || !words.every((word) => typeof word === "string")) return null;
  // `bash -lc LINE` is the line; other words are put together again.
  const isShell = words.length === 3 && SHELL.test(words[0]!) && /^-l?c$/.test(words[1]!);
  return isShell ? words[2]! : words.map(shellWord).join(" ");
}

/** Of the system, and not one that lies in a project. */
const SHELL = /^(?:\/bin\/|\/usr\/bin\/)?(?:ba|z)?sh$/;

function quoted(path: string): string {
  return `'${path.replaceAll("'", String.raw`'\''`)}'`;
}
