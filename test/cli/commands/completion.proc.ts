/** Completions in real shells: a line is typed with Tab at its end, and the program that it starts prints its arguments. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { needs } from "../../needs.ts";
import { createWorld, MAIN, onlyDocument, replies, script, start, writeAgent, type World } from "../world.ts";

let world: World;
let run = "";

/** What is typed; what the program gets. */
const LINES = (): readonly (readonly [typed: string, arguments_: string])[] => [
  ["gra\t notes", "graph notes"],
  ["graph no\t", "graph notes"],
  ["graph notes --format me\t", "graph notes --format mermaid"],
  ["graph notes --format=me\t", "graph notes --format=mermaid"],
  ["explain notes cl\t", "explain notes closure.note"],
  ["-C sub run oth\t", "-C sub run other"],
  ["run notes --to\t", "run notes --topic"],
  ["run notes --sandbox au\t", "run notes --sandbox auto"],
  ["init more --template fix\t", "init more --template fix-issue"],
  ["run notes --script repl\t", "run notes --script replies.json"],
  ["show @l\t", "show @last"],
  [`show ${run.slice(0, 6)}\t`, `show ${run}`],
  ["fork @last --at cl\t", "fork @last --at closure.note"],
  ["fork @last --edit out\tx", "fork @last --edit output=x"],
];

/** A program of the project: Tab completes its line and does not start it. */
const OWN = { typed: "./lockstep gra\t notes", line: "own graph notes" };
const expected = () => [...LINES().map(([, line]) => line), OWN.line];

before(async () => {
  world = createWorld();
  writeAgent(world, "notes");
  world.write("sub/.agent/other/agent.json", "{}");
  // A shell must never be offered what it would run.
  world.write(".agent/$(touch pwned)/agent.json", "{}");
  world.write(".agent/;touch pwned;/agent.json", "{}");
  world.write("replies.json", script(replies.initial(), replies.continuation(), replies.closure()));
  const args = ["run", "notes", "--topic", "t", "--script", "replies.json", "--json"];
  run = onlyDocument(await world.lockstep(args)).run as string;
  world.write(
    "bin/lockstep",
    `#!/bin/sh
case "$1" in
  __complete|completion) exec '${process.execPath}' '${MAIN}' "$@" ;;
  *) printf '<%s>\\n' "$*" ;;
esac
`,
  );
  chmodSync(join(world.root, "bin/lockstep"), 0o755);
  world.write(
    "lockstep",
    `#!/bin/sh\n[ "$1" != __complete ] || touch started-by-tab\nprintf '<own %s>\\n' "$*"\n`,
  );
  chmodSync(join(world.root, "lockstep"), 0o755);
});
after(() => world[Symbol.dispose]());

function there(program: string): boolean {
  return spawnSync("sh", ["-c", `command -v ${program}`]).status === 0;
}

/** Types all lines into the shell on a terminal of its own. */
async function typedInto(shell: string): Promise<readonly string[]> {
  const keys = [...LINES().map(([typed]) => `lockstep ${typed}\n`), `${OWN.typed}\n`];
  const ran = await start("script", ["-qec", shell, "/dev/null"], world.root, {
    env: { ...world.env, PATH: `${join(world.root, "bin")}:${process.env.PATH}`, TERM: "dumb" },
    input: `${keys.join("")}exit\n`,
  });
  return [...ran.stdout.matchAll(/^<(.*)>\r?$/gm)].map((match) => match[1]!);
}

test("bash completes what can stand at each place", needs(there("script"), "no script"), async () => {
  world.write("bashrc", "PS1='> '\nsource <(lockstep completion bash)\n");
  const typed = await typedInto("bash --noprofile --rcfile bashrc -i");
  assert.deepEqual(
    typed.map((line) => line.trim()),
    expected(),
  );
  assert.ok(!existsSync(join(world.root, "started-by-tab")));
});

test(
  "zsh completes what can stand at each place",
  needs(there("zsh") && there("script"), "no zsh"),
  async () => {
    world.writeHome(".zshrc", "autoload -U compinit; compinit -u\nsource <(lockstep completion zsh)\n");
    const typed = await typedInto("zsh -i");
    assert.deepEqual(
      typed.map((line) => line.trim()),
      expected(),
    );
    assert.ok(!existsSync(join(world.root, "started-by-tab")));
  },
);

test("fish completes what can stand at each place", needs(there("fish"), "no fish"), async () => {
  const begun = [...LINES().map(([typed]) => `lockstep ${typed}`), OWN.typed];
  const asked = begun.map((typed) => `complete -C '${typed.slice(0, typed.indexOf("\t"))}'; echo`);
  const ran = await start(
    "fish",
    ["-c", `lockstep completion fish | source; ${asked.join("; ")}`],
    world.root,
    {
      env: { ...world.env, PATH: `${join(world.root, "bin")}:${process.env.PATH}` },
    },
  );
  const offered = ran.stdout.split("\n\n").map((block) => block.trim().split("\t")[0]);
  const wanted = LINES().map(([typed, line]) => {
    const begun = typed.slice(0, typed.indexOf("\t"));
    const word = begun.slice(begun.lastIndexOf(" ") + 1);
    return line.slice(begun.length - word.length).split(/ |(?<==)x/)[0];
  });
  assert.deepEqual(offered.slice(0, wanted.length + 1), [...wanted, "graph"], ran.stderr);
  assert.ok(!existsSync(join(world.root, "started-by-tab")));
});

test("what an agent's folder is called is never run, and an unfinished line is never an error", async () => {
  for (const words of [
    ["graph", ""],
    ["-C", "/nowhere", "run", ""],
    ["run", "missing", "--"],
    ["show", "x"],
    [],
  ]) {
    const ran = await world.lockstep(["__complete", "--", ...words]);
    assert.deepEqual([ran.code, ran.stderr], [0, ""], words.join(" "));
    assert.doesNotMatch(ran.stdout, /pwned/);
  }
});

test("a name of the project is never offered where it would be a flag", async () => {
  using own = createWorld();
  writeAgent(own, "notes", {
    agent: (agent) => {
      agent.parameters = {
        topic: {
          type: "string",
          description: "d",
          required: false,
          cli: "--topic",
          validation: { enum: ["plain", "-C/", "--sandbox=off"] },
        },
        odd: { type: "string", description: "d", required: false, cli: "--sandbox=off" },
      };
    },
  });
  for (const name of ["--sandbox=off", "-C"]) own.write(`.agent/${name}/agent.json`, "{}");
  for (const [words, offered] of [
    [["graph", ""], "notes"],
    [["run", "notes", "--topic", ""], "plain"],
    [["run", "notes", "--topic="], "--topic=plain"],
    [["run", "notes", "--topic", "-"], ""],
    [["run", "notes", "--to"], "--topic"],
    [["run", "notes", "--sandbox"], "--sandbox"],
  ] as const) {
    const { stdout } = await own.lockstep(["__complete", "--", ...words]);
    const [, ...lines] = stdout.trimEnd().split("\n");
    assert.equal(lines.map((line) => line.split("\t")[0]).join(" "), offered, words.join(" "));
  }
});
