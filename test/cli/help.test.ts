/** What --help prints. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { UsageError } from "../../src/cli/args.ts";
import { commandNamed, COMMANDS } from "../../src/cli/commands.ts";
import { commandHelp, mainHelp } from "../../src/cli/help.ts";
import type { Parameter } from "../../src/flow/flow.ts";
import { plain } from "./rendered.ts";

test("every command has help with its flags and an example", () => {
  for (const command of COMMANDS) {
    const help = commandHelp(command, plain);
    assert.match(mainHelp(plain), new RegExp(`^  ${command.name} `, "m"));
    assert.match(help, new RegExp(`lockstep ${command.name}`));
    assert.match(help, /^Examples$/m);
    for (const flag of command.flags) assert.ok(help.includes(`--${flag.name}`), flag.name);
    for (const example of command.examples) assert.ok(help.includes(example));
  }
});

const parameter = (more: Partial<Parameter>): Parameter => ({
  name: "x",
  type: "string",
  description: "An x",
  flag: "--x",
  required: false,
  ...more,
});

for (const [one, expected] of [
  [parameter({ required: true }), "--x STRING  An x (string, required)"],
  [
    parameter({ type: "number", default: 3, validation: { min: 1, max: 9 } }),
    "--x NUMBER  An x (number, default 3, min 1, max 9)",
  ],
  [parameter({ type: "boolean" }), "--x, --no-x  An x (boolean, optional)"],
  [parameter({ type: "array" }), "--x VALUE …  An x (array, optional, may be repeated)"],
  [parameter({ validation: { enum: ["a", "b"] } }), '--x STRING  An x (string, optional, one of "a", "b")'],
  [parameter({ description: "\u001b[2J" }), "--x STRING  \\x1b[2J (string, optional)"],
] as const) {
  test(`help lists ${expected}`, () => {
    const help = commandHelp(COMMANDS[0]!, plain, [one]);
    assert.ok(help.includes(`\n  ${expected}\n`), help);
  });
}

test("help shows a built-in flag under its other name where a parameter took its own", () => {
  const help = commandHelp(COMMANDS[0]!, plain, [
    parameter({ flag: "--script" }),
    parameter({ flag: "--json" }),
  ]);
  assert.match(help, /--ls-script FILE/);
  assert.match(help, /--ls-json/);
  assert.doesNotMatch(help, / --script FILE {2}/);
});

test("the name of a command can be two words, and a missing or wrong second one is answered with those there are", () => {
  assert.equal(commandNamed("fleet", "init").name, "fleet init");
  assert.equal(commandNamed("runs", "init").name, "runs");
  for (const [verb, says] of [
    [undefined, /^fleet needs init\b[^"]*\.$/],
    ["inti", /^fleet needs init\b.*, not "inti"\.$/],
  ] as const)
    assert.throws(
      () => commandNamed("fleet", verb),
      (error: UsageError) => says.test(error.message) && error.near?.candidates.includes("init") === true,
    );
  assert.throws(() => commandNamed("flet"), /There is no command "flet"/);
});
