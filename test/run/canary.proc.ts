/** Keys that come in by every way a run hears of anything: none of them is recorded, logged, printed or in a result. */
import assert from "node:assert/strict";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { BLOCKS, CARRIED, SHAPES } from "../boundaries/secrets.ts";
import { createWorld, replies, script, writeCheckedAgent, type Ran, type World } from "../cli/world.ts";

/** Without any shape of its own: only its name in the environment says that it is a secret. */
const KNOWN = "correct horse battery staple/7";
/** Nothing but letters: the user's settings say that it is a key. */
const LETTERS = "canaryofthegateway";
/** As a checkout on a build machine leaves it in .git/config. */
const CHECKOUT = Buffer.from("x-access-token:canary/of/checkout").toString("base64");
const HEADER = `\textraheader = AUTHORIZATION: basic ${CHECKOUT}`;
const KEYS = [...Object.values(SHAPES).slice(0, 22), ...CARRIED.map(([, , secret]) => secret), KNOWN];
const LINES = [
  ...Object.values(SHAPES).slice(0, 22),
  ...CARRIED.map(([, ...parts]) => parts.join("").trimEnd()),
  ...BLOCKS,
  KNOWN,
  Buffer.from(`user:${KNOWN}`).toString("base64"),
  encodeURIComponent(KNOWN),
  Buffer.from(KNOWN).toString("hex").toUpperCase(),
  Buffer.from(KNOWN).toString("hex").replaceAll(/../g, "%$&"),
  LETTERS,
  HEADER,
].join("\n");

/** What must not be seen of them anywhere: some of the middle, as it is or in another form. */
const TRACES = [
  ...KEYS.map((key) => key.slice(-14, -2)),
  ...BLOCKS.map((block) => block.split("\n")[3]!.slice(8, 24)),
  KNOWN,
  "horse battery",
  Buffer.from(`user:${KNOWN}`).toString("base64").slice(12, 30),
  "horse%20battery",
  Buffer.from("horse battery").toString("hex").toUpperCase(),
  Buffer.from("horse battery").toString("hex").replaceAll(/../g, "%$&"),
  LETTERS,
  CHECKOUT,
];

describe("canaries", () => {
  let world: World;
  const said: { [surface: string]: string } = {};
  const tell = (name: string, { stdout, stderr }: Ran) => {
    said[`stdout of ${name}`] = stdout;
    said[`stderr of ${name}`] = stderr;
  };

  before(async () => {
    world = createWorld();
    world.write("keys.txt", LINES);
    // Each line in two halves, a moment apart.
    world.write(
      "halves.sh",
      'while IFS= read -r l; do n=$((${#l} / 2)); printf %s "$(printf %s "$l" | cut -c1-$n)"; sleep 0.003; printf "%s\\n" "$(printf %s "$l" | cut -c$((n + 1))-)"; done < keys.txt\n',
    );
    writeCheckedAgent(
      world,
      "spy",
      "test -e shown || { : > shown; cat keys.txt; cat keys.txt >&2; exit 1; }",
    );
    const file = join(world.root, ".agent/spy/agent.json");
    const agent = JSON.parse(readFileSync(file, "utf8")) as { runner: { boundaries: object } };
    agent.runner.boundaries = { allowedTools: ["*"], permissionMode: "acceptEdits" };
    writeFileSync(file, JSON.stringify(agent));
    const calls = [
      { name: "Read", input: { file_path: "keys.txt" } },
      { name: "Grep", input: { pattern: ".", path: "keys.txt", output_mode: "content" } },
      { name: "Bash", input: { command: "cat keys.txt; cat keys.txt >&2" } },
      { name: "Bash", input: { command: "sh halves.sh" } },
      { name: "Read", input: { file_path: ".git/config" } },
      { name: "Bash", input: { command: "cat .git/config" } },
      { name: "Bash", input: { command: "env; cat /proc/self/environ" } },
      { name: "Bash", input: { command: `: ${LINES.replaceAll(/['"\n]/g, " ")}` } },
      { name: "NoSuchTool", input: { [KEYS[0]!]: LINES } },
    ];
    const draft = { ...replies.continuation(), text: LINES };
    const note = { stepId: "closure.note", note: LINES, next_action: { action: "closing", reason: LINES } };
    const answers = [
      { step: "initial.note", text: LINES, calls },
      { ...replies.initial(), text: LINES },
      draft,
      { step: "closure.note", output: note },
      draft,
      replies.closure("closing", LINES),
    ];
    world.write("script.json", script(...answers));
    const env = {
      LOCKSTEP_TRUST: "all",
      MY_SERVICE_PASSWORD: KNOWN,
      CORP_GATEWAY: LETTERS,
      CI: "1",
      XDG_CONFIG_HOME: join(world.root, "config"),
    };
    const corp = { provider: "openai", model: "x", apiKeyEnv: "CORP_GATEWAY" };
    world.write("config/lockstep/config.json", JSON.stringify({ models: { corp } }));
    world.write(".git/config", `[http "https://github.com/"]\n${HEADER}\n`);
    const run = ["run", "spy", "--topic", "x", "--script", "script.json"];
    const input = `piped: ${LINES}`;
    tell("run --verbose", await world.lockstep([...run, "--verbose", "--input", "-"], { env, input }));
    world.write("shown", "");
    tell("run --json", await world.lockstep([...run, "--json", "--log", "logs"], { env }));
    tell("run --events", await world.lockstep([...run, "--events"], { env }));
    for (const flags of [[], ["--json"], ["--events"], ["--verbose"]]) {
      tell(`show ${flags.join("")}`, await world.lockstep(["show", "@last", ...flags], { env }));
    }
    for (const command of ["why", "effects", "logs", "export"])
      tell(command, await world.lockstep([command, "@last"], { env }));
    tell("logs --json", await world.lockstep(["logs", "@last", "--json"], { env }));
    tell("runs", await world.lockstep(["runs", "--json"], { env }));
    tell(
      "a script that ends early",
      await world.lockstep([...run.slice(0, 4), "--script", "short.json", "--json"], { env }),
    );
    for (const file of globSync(["{.lockstep,logs}/**/*"], { cwd: world.root })) {
      try {
        said[file] = readFileSync(join(world.root, file), "latin1");
      } catch {
        // a folder
      }
    }
  });
  after(() => world[Symbol.dispose]());

  test("the runs went as they should, so there was something to keep", () => {
    assert.match(said["stdout of run --verbose"]!, /"outcome":"success"/, said["stderr of run --verbose"]);
    assert.match(said["stdout of show --events"]!, /\[redacted:github\].*\[redacted:private-key\]/);
    assert.ok(
      Object.keys(said).some((name) => name.endsWith("runs.db") && said[name]!.includes("step.called")),
    );
    assert.ok(
      Object.keys(said).some((name) => name.startsWith("logs/") && said[name]!.includes("[redacted")),
    );
    for (const command of ["why", "logs", "export"])
      assert.match(said[`stdout of ${command}`]!, /\[redacted/, command);
    assert.ok(TRACES.every((trace) => trace.length >= 8));
  });

  test("no key is seen anywhere", () => {
    for (const [surface, text] of Object.entries(said)) {
      for (const trace of TRACES) assert.ok(!text.includes(trace), `${surface} holds ${trace}`);
    }
  });
});
