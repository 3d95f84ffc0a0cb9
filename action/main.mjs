/** The step of action.yml: reads its inputs and the event that started the workflow, and starts the command without a shell. */
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const { env } = process;
const input = (name) => (env[`LOCKSTEP_INPUT_${name}`] ?? "").trim();
const lines = (name) =>
  input(name)
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");

/** Whose comments start runs, as GitHub names their relation to the repository. */
const WRITERS = new Set(["OWNER", "MEMBER", "COLLABORATOR"]);
/** Characters of an annotation. */
const LONGEST_REASON = 1000;
const COMMANDS = { check, test, run };

const command = Object.hasOwn(COMMANDS, input("COMMAND")) ? COMMANDS[input("COMMAND")] : null;
if (command === null)
  fail(`The input "command" must be check, test or run, not "${plain(input("COMMAND"))}".`);
process.exitCode = command();

function check() {
  const named = [...agent(), ...flags()];
  const file = input("SARIF");
  if (file !== "") {
    const { stdout } = quietly(() => lockstep(["check", ...named, "--strict", "--sarif"], "pipe"));
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, stdout);
  }
  return lockstep(["check", ...named, "--strict", "--format", "github"]).code;
}

function test() {
  const file = input("JUNIT");
  const junit = file === "" ? [] : ["--reporter", `junit=${file}`];
  const trusted = input("TRUST") === "" ? ["--memory"] : trust();
  const folder = mkdtempSync(join(tmpdir(), "lockstep-action-"));
  const marks = join(folder, "annotations");
  const reporters = ["--reporter", "pretty", "--reporter", `github=${marks}`, ...junit];
  const { code } = quietly(() => lockstep(["test", ...agent(), ...trusted, ...reporters, ...flags()]));
  if (existsSync(marks)) console.log(readFileSync(marks, "utf8").trimEnd());
  rmSync(folder, { recursive: true, force: true });
  return code;
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
  const { ok, parameters: known } = declared();
  if (!ok) {
    output("outcome", "failed");
    // Marks the places of its errors.
    return lockstep(["check", ...agent(), "--format", "github"]).code;
  }
  const parameters = lines("PARAMETERS").map((line) => {
    const [, name, value] = /^([A-Za-z][\w-]*)=(.*)$/.exec(line) ?? [];
    if (name === undefined)
      fail(`The input "parameters" has a line that is not NAME=VALUE: "${plain(line)}".`);
    if (!known.includes(name))
      fail(`"${name}" is not a parameter of the agent. It has: ${plain(known.join(", "))}.`);
    return `--${name}=${value}`;
  });
  const more = [...trust(), ...flags(), "--json"];
  const { code, stdout } = quietly(() => lockstep(["run", ...agent(), ...parameters, ...more], "pipe"));
  const document = read(stdout);
  if (document === null) return code === 0 ? 1 : code;
  output("outcome", String(document.outcome ?? ""));
  output("run", String(document.run ?? ""));
  output("result", JSON.stringify(document.result ?? null));
  if (code !== 0) mark(plain(`${input("AGENT")}: ${document.code}: ${document.reason}`, LONGEST_REASON));
  return code;
}

/** Why the event starts no run; null: it does. Only who may write to the repository starts one by a comment. */
function whyNot() {
  const [label, word] = [input("LABEL"), input("COMMENT")];
  if (label === "" && word === "") return null;
  const file = env.GITHUB_EVENT_PATH ?? "";
  if (!existsSync(file))
    fail("The event that started the workflow cannot be read: GITHUB_EVENT_PATH names no file.");
  const event = read(readFileSync(file, "utf8")) ?? {};
  const { action, label: added, comment } = event;
  if (label !== "" && action === "labeled" && added?.name === label) return null;
  if (word !== "" && comment !== undefined && action === "created") {
    const first = String(comment.body ?? "")
      .trimStart()
      .split(/\s/, 1)[0];
    if (first !== word) return "the comment does not begin with the word that starts one.";
    if (WRITERS.has(comment.author_association)) return null;
    return "the author of the comment is not an owner, a member or a collaborator.";
  }
  return "the event is not one of those that start a run.";
}

function agent() {
  const name = input("AGENT");
  if (name.startsWith("-")) fail('The input "agent" must be the name of an agent.');
  return name === "" ? [] : [name];
}

/** Whether the agent can run, and the names of its parameters: a line of "parameters" sets nothing else. */
function declared() {
  const { stdout } = quietly(() => lockstep(["list", "--json"], "pipe"));
  const agents = read(stdout)?.agents;
  if (!Array.isArray(agents)) fail("The agents of the project cannot be listed: see the message above.");
  const found = agents.find(({ agent: name }) => name === input("AGENT"));
  if (found === undefined) {
    const names = agents.map(({ agent: name }) => name).join(", ");
    fail(
      `There is no agent "${plain(input("AGENT"))}" in this project. It has: ${plain(names === "" ? "none" : names)}.`,
    );
  }
  return { ok: found.ok, parameters: (found.parameters ?? []).map(({ flag }) => flag.replace(/^--/, "")) };
}

/** A flag a line, with its value after a blank or "=". */
function flags() {
  return lines("FLAGS").flatMap((line) => /^(--?[\w-]+)\s+(.+)$/.exec(line)?.slice(1) ?? [line]);
}

/** What a model or a pull request wrote may be in the output: nothing in it is a command of GitHub. */
function quietly(work) {
  const end = randomUUID();
  console.log(`::stop-commands::${end}`);
  try {
    return work();
  } finally {
    console.log(`::${end}::`);
  }
}

function trust() {
  return input("TRUST") === "" ? [] : ["--trust", input("TRUST")];
}

/** The command that the project has, or the one of this action. Nothing is fetched by its name alone. */
function lockstep(args, stdout = "inherit") {
  const own = join(process.cwd(), "node_modules", "lockstep", "package.json");
  const main = existsSync(own)
    ? join(dirname(own), read(readFileSync(own, "utf8")).bin.lockstep)
    : ofThisAction();
  const ended = spawnSync(process.execPath, [main, ...args], {
    // All on one stream: what comes between two marks must not be read before or after them.
    stdio: ["ignore", stdout, 1],
    encoding: "utf8",
    maxBuffer: 256 * 1024 * 1024,
  });
  if (ended.error !== undefined) fail(`Lockstep cannot be started: ${plain(ended.error.message)}`);
  return { code: ended.status ?? 1, stdout: ended.stdout ?? "" };
}

/** From source, with the packages that its lock file names. */
function ofThisAction() {
  const root = fileURLToPath(new URL("..", import.meta.url));
  if (Number.parseInt(process.versions.node, 10) < 24)
    fail("Lockstep needs Node 24 or newer: add actions/setup-node with node-version 24 before this step.");
  if (!existsSync(join(root, "node_modules"))) {
    const install = ["ci", "--omit=dev", "--omit=peer", "--ignore-scripts", "--no-audit", "--no-fund"];
    const { status } = spawnSync("npm", install, { cwd: root, stdio: ["ignore", "ignore", 1] });
    if (status !== 0) fail("The packages of Lockstep cannot be installed: see the message of npm above.");
  }
  return join(root, "src", "cli", "main.ts");
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
function plain(text, most = 200) {
  return text.replaceAll(/[\p{Cc}%]/gu, " ").slice(0, most);
}

function mark(text) {
  console.log(`::error title=lockstep::${text}`);
}

function fail(text) {
  mark(text);
  process.exit(2);
}
