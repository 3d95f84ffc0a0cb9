/** The step of action.yml: reads its inputs and the event that started the workflow, and starts the command without a shell. */
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const { env } = process;
const input = (name) => (env[`LOCKSTEP_INPUT_${name}`] ?? "").trim();
const lines = (name) =>
  input(name)
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");

/** Whose comments start runs: those who may write to the repository. */
const WRITERS = new Set(["OWNER", "MEMBER", "COLLABORATOR"]);
const COMMANDS = { check, test, run };

const command = Object.hasOwn(COMMANDS, input("COMMAND")) ? COMMANDS[input("COMMAND")] : null;
if (command === null)
  fail(`The input "command" must be check, test or run, not "${plain(input("COMMAND"))}".`);
process.exitCode = command();

function check() {
  const named = [...agent(), ...lines("FLAGS")];
  const file = input("SARIF");
  if (file !== "") {
    const { stdout } = lockstep(["check", ...named, "--strict", "--sarif"], "pipe");
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, stdout);
  }
  return lockstep(["check", ...named, "--strict", "--format", "github"]).code;
}

function test() {
  const file = input("JUNIT");
  const junit = file === "" ? [] : ["--reporter", `junit=${file}`];
  const trusted = input("TRUST") === "" ? ["--memory"] : trust();
  const reporters = ["--reporter", "pretty", "--reporter", "github", ...junit];
  return lockstep(["test", ...agent(), ...trusted, ...reporters, ...lines("FLAGS")]).code;
}

function run() {
  if (input("AGENT") === "") fail('The input "agent" is missing: it names the agent to run.');
  const why = whyNot();
  if (why !== null) {
    console.log(`No run was started: ${why}`);
    output("skipped", "true");
    return 0;
  }
  output("skipped", "false");
  const parameters = lines("PARAMETERS").map((line) => {
    const [, name, value] = /^([A-Za-z][\w-]*)=(.*)$/.exec(line) ?? [];
    if (name === undefined)
      fail(`The input "parameters" has a line that is not NAME=VALUE: "${plain(line)}".`);
    return `--${name}=${value}`;
  });
  const flags = [...trust(), ...lines("FLAGS"), "--json"];
  const { code, stdout } = lockstep(["run", ...agent(), ...parameters, ...flags], "pipe");
  const document = read(stdout);
  if (document === null) return code === 0 ? 1 : code;
  output("outcome", String(document.outcome ?? ""));
  output("run", String(document.run ?? ""));
  output("result", JSON.stringify(document.result ?? null));
  return code;
}

/** Why the event starts no run; null: it does. Only who may write to the repository starts one by a comment. */
function whyNot() {
  const [label, word] = [input("LABEL"), input("COMMENT")];
  if (label === "" && word === "") return null;
  const event = read(readFileSync(env.GITHUB_EVENT_PATH ?? "", "utf8")) ?? {};
  const { action, label: added, comment } = event;
  if (label !== "" && action === "labeled" && added?.name === label) return null;
  if (word !== "" && comment !== undefined && action === "created") {
    const first = String(comment.body ?? "")
      .trimStart()
      .split(/\s/, 1)[0];
    if (first !== word) return "the comment does not begin with the word that starts one.";
    if (WRITERS.has(comment.author_association)) return null;
    return "the author of the comment may not write to the repository.";
  }
  return "the event is not one of those that start a run.";
}

function agent() {
  const name = input("AGENT");
  if (name.startsWith("-")) fail('The input "agent" must be the name of an agent.');
  return name === "" ? [] : [name];
}

function trust() {
  return input("TRUST") === "" ? [] : ["--trust", input("TRUST")];
}

/** The command that the project has, or the version that is named here. */
function lockstep(args, stdout = "inherit") {
  const own = join(process.cwd(), "node_modules", "lockstep", "package.json");
  const [program, first] = existsSync(own)
    ? [process.execPath, [join(dirname(own), read(readFileSync(own, "utf8")).bin.lockstep)]]
    : ["npx", ["--yes", `lockstep@${versionWanted()}`]];
  const ended = spawnSync(program, [...first, ...args], {
    stdio: ["ignore", stdout, "inherit"],
    encoding: "utf8",
    maxBuffer: 256 * 1024 * 1024,
  });
  if (ended.error !== undefined) fail(`Lockstep cannot be started: ${plain(ended.error.message)}`);
  return { code: ended.status ?? 1, stdout: ended.stdout ?? "" };
}

function versionWanted() {
  const wanted = input("VERSION");
  if (/^[\w.^~-]+$/.test(wanted)) return wanted;
  if (wanted !== "") fail('The input "version" is not a version.');
  const own = fileURLToPath(new URL("../package.json", import.meta.url));
  return read(readFileSync(own, "utf8")).version;
}

/** The value may have any text in it: what ends it cannot be guessed. */
function output(name, value) {
  const end = randomUUID();
  const file = env.GITHUB_OUTPUT ?? "";
  if (file !== "") appendFileSync(file, `${name}<<${end}\n${value}\n${end}\n`);
}

function read(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** On one line, so that it cannot begin a command of GitHub. */
function plain(text) {
  return text.replaceAll(/[\p{Cc}%]/gu, " ").slice(0, 200);
}

function fail(text) {
  console.log(`::error title=lockstep::${text}`);
  process.exit(2);
}
