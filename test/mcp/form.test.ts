/** The form that a person sees: a call whole or not to be allowed, and nothing hidden in what can be chosen. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { permissionWish } from "../../src/boundaries/gate/permissions.ts";
import type { Step } from "../../src/flow/flow.ts";
import { choiceMeant, formChoices, formOf } from "../../src/mcp/form.ts";
import { isForModel } from "../../src/mcp/run-document.ts";

const STEP = { id: "initial.a" } as Step;
const FEW = ["allow", "deny", "stop"];
const ALL = ["allow", "allow-run", "deny", "stop"];

/** Characters of the command, and what may be chosen. */
for (const [length, choices, isWhole] of [
  [10, ALL, true],
  [9000, ALL, true],
  [99_000, ALL, true],
  [120_000, FEW, false],
] as const)
  test(`a call of ${length} characters offers ${choices.join(", ")}`, () => {
    const command = `${"word ".repeat(length / 5 - 1)}last!`;
    const wish = permissionWish(STEP, { name: "Bash", input: { command } } as never, 0);
    const asked = { step: "initial.a", question: wish.text, choices: wish.choices, free: false };
    const { message, schema } = formOf("notes", asked);
    assert.deepEqual(schema.properties.answer.enum, choices);
    assert.deepEqual(formChoices(asked), choices);
    assert.equal(message.includes("last!"), isWhole);
    assert.equal(message.includes("more characters"), !isWhole);
  });

/** A question that no form can show: what may be chosen without having seen it. */
for (const [choices, free, offered] of [
  [ALL, false, ["deny"]],
  [FEW, false, ["deny"]],
  [["proceed", "skip", "fail"], false, ["fail"]],
  [["retry", "fail"], false, ["fail"]],
  [["red", "blue"], true, ["red", "blue"]],
] as const)
  test(`of ${choices.join(", ")} a form that shows a part only offers ${offered.join(", ")}`, () => {
    const asked = { step: "a", question: "x".repeat(200_000), choices, free };
    const { message, schema } = formOf("notes", asked);
    assert.deepEqual(formChoices(asked), offered);
    if (!free) assert.deepEqual(schema.properties.answer.enum, offered);
    assert.match(message, /more characters\nSee all of it, and every choice, with: lockstep answer$/);
  });

const STRANGE = "re\u200bd\u{e0041}";

for (const free of [false, true])
  test(`nothing in a form is hidden, ${free ? "with" : "without"} words of one's own`, () => {
    const asked = { step: "a\u202e", question: `q\u2060 ${STRANGE}`, choices: [STRANGE, "blue\n"], free };
    const form = formOf("no\u200btes", asked);
    assert.match(JSON.stringify(form), /^[ -~]+$/);
    assert.match(JSON.stringify(form.schema), /re\\\\u\{200b\}d\\\\u\{e0041\}/);
    if (free) return;
    const [shown = ""] = form.schema.properties.answer.enum ?? [];
    assert.equal(choiceMeant(asked.choices, shown), STRANGE, "the choice is the one that was asked about");
  });

const secret = (text: string) => text.replaceAll(/s\dcret/g, "[redacted]");
for (const [choices, said, meant] of [
  [["red", "blue"], "red", "red"],
  [["red", "blue"], "green", "green"],
  [[STRANGE, "blue"], String.raw`re\u{200b}d\u{e0041}`, STRANGE],
  [["a\tb", "c"], "a\tb", "a\tb"],
  [["a s3cret", "c"], "a [redacted]", "a s3cret"],
  [["x\u200b", String.raw`x\u{200b}`], String.raw`x\u{200b}`, String.raw`x\u{200b}`],
  [["s3cret", "s4cret"], "[redacted]", "[redacted]"],
] as const)
  test(`${JSON.stringify(said)} of ${JSON.stringify(choices)} means ${JSON.stringify(meant)}`, () =>
    assert.equal(choiceMeant(choices, said, secret), meant));

for (const [about, isAnswered] of [
  ["user", true],
  ["permission", false],
  ["grant", false],
  ["gate", false],
  ["interrupted", false],
] as const)
  test(`a model ${isAnswered ? "passes on an answer" : "has no answer"} to a question about ${about}`, () =>
    assert.equal(isForModel({ about }), isAnswered));
