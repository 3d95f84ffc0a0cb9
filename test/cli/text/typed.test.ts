/** Which command a hint names: the one that can be pasted where the user is. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { aimed, asTyped, programName } from "../../../src/cli/text/typed.ts";

const LOCAL = "/p/node_modules/.bin/lockstep";

test("the program is called as it was started", () => {
  const cases: readonly (readonly [
    name: string,
    started: string,
    env: NodeJS.ProcessEnv,
    program: string,
  ])[] = [
    ["installed for all", "/usr/bin/lockstep", { PATH: "/usr/bin" }, "lockstep"],
    ["from source", "/src/cli/main.ts", {}, "lockstep"],
    ["npx", LOCAL, { npm_lifecycle_event: "npx", npm_command: "exec" }, "npx lockstep"],
    [
      "npx of something not installed",
      "/root/.npm/_npx/1/node_modules/.bin/lockstep",
      { npm_lifecycle_event: "npx" },
      "npx lockstep",
    ],
    [
      "its own script",
      LOCAL,
      { npm_lifecycle_event: "lockstep", npm_command: "run" },
      "npm run -s lockstep --",
    ],
    [
      "its own script, older npm",
      "/x/main.ts",
      { npm_lifecycle_event: "lockstep", npm_command: "run-script" },
      "npm run -s lockstep --",
    ],
    [
      "a name that is not a script",
      LOCAL,
      { npm_lifecycle_event: "lockstep", npm_command: "exec" },
      "npx lockstep",
    ],
    [
      "another script",
      LOCAL,
      { npm_lifecycle_event: "ci", npm_command: "run", PATH: "/p/node_modules/.bin" },
      "npx lockstep",
    ],
    [
      "another script, installed for all",
      "/usr/bin/lockstep",
      { npm_lifecycle_event: "ci", PATH: "/usr/bin" },
      "lockstep",
    ],
    ["by its path", LOCAL, { PATH: "/usr/bin" }, "npx lockstep"],
    ["on the user's PATH", LOCAL, { PATH: "/usr/bin:/p/node_modules/.bin" }, "lockstep"],
  ];
  for (const [name, started, env, program] of cases) assert.equal(programName(started, env), program, name);
});

test("commands in hints name the folders that the call was about, unless they look at none", () => {
  const flags = ["--state", "'a b'"];
  for (const [text, typed] of [
    ["with: lockstep salvage", "with: lockstep salvage --state 'a b'"],
    ["with: lockstep runs --prune r1", "with: lockstep runs --prune --state 'a b' r1"],
    ["lockstep doctor --journal lists all", "lockstep doctor --journal --state 'a b' lists all"],
    ["lockstep salvage --state other --json", "lockstep salvage --state other --json"],
    ['with "lockstep salvage", or', `with "lockstep salvage --state 'a b'", or`],
    ["lockstep salvages", "lockstep salvages"],
    ["./lockstep salvage", "./lockstep salvage"],
    ["lockstep runs", "lockstep runs --state 'a b'"],
    ["Go on with: lockstep resume 3f9", "Go on with: lockstep resume --state 'a b' 3f9"],
    ["next: lockstep resume 3f9 --cwd x --sandbox off", "next: lockstep resume 3f9 --cwd x --sandbox off"],
    ["See: lockstep run notes --help", "See: lockstep run --state 'a b' notes --help"],
    ["lockstep help run", "lockstep help run"],
    ["It says:\n  lockstep resume 3f9", "It says:\n  lockstep resume 3f9"],
  ] as const) {
    assert.equal(aimed(text, flags), typed);
    assert.equal(aimed(text, []), text);
  }
});

test("every command of ours in a text is named so, and what is quoted stays", () => {
  const cases: readonly (readonly [text: string, typed: string])[] = [
    ["See: lockstep run x --help", "See: npx lockstep run x --help"],
    [
      "`lockstep runs` lists them; `lockstep show @last`",
      "`npx lockstep runs` lists them; `npx lockstep show @last`",
    ],
    ["lockstep check notes", "npx lockstep check notes"],
    ["git diff | lockstep run reviewer", "git diff | npx lockstep run reviewer"],
    ["lockstep needs Node 24", "lockstep needs Node 24"],
    ["npm install lockstep", "npm install lockstep"],
    ["./lockstep run x", "./lockstep run x"],
    [
      "Its files do this:\n  $ lockstep check\n+ lockstep run x\n    | lockstep run y",
      "Its files do this:\n  $ lockstep check\n+ lockstep run x\n    | lockstep run y",
    ],
    [
      "--max-time needs a unit. See: lockstep run --help",
      "--max-time needs a unit. See: npx lockstep run --help",
    ],
    ["- lockstep check", "- lockstep check"],
    ["$ lockstep check", "$ lockstep check"],
    ["lockstep runner", "lockstep runner"],
  ];
  for (const [text, typed] of cases) {
    assert.equal(asTyped(text, "npx lockstep"), typed);
    assert.equal(asTyped(text, "lockstep"), text);
  }
});
