/** What the screen writes: colours, the live line, signs, and what --quiet leaves out. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createProgress } from "../../src/cli/text/progress.ts";
import { createScreen } from "../../src/cli/screen.ts";
import { createPaint } from "../../src/cli/text/text.ts";
import { entry, manners, state, stream } from "./rendered.ts";

const colours: readonly (readonly [
  isTTY: boolean,
  env: { readonly [name: string]: string },
  color: boolean | null,
  on: boolean,
])[] = [
  [true, {}, null, true],
  [false, {}, null, false],
  [true, { NO_COLOR: "1" }, null, false],
  [true, { NO_COLOR: "" }, null, true],
  [true, { CI: "true" }, null, false],
  [true, { TERM: "dumb" }, null, false],
  [false, { FORCE_COLOR: "1" }, null, true],
  [false, { FORCE_COLOR: "1", CI: "1" }, null, true],
  [true, { FORCE_COLOR: "0" }, null, false],
  [true, {}, false, false],
  [false, { NO_COLOR: "1" }, true, true],
];

for (const [isTTY, env, color, on] of colours) {
  test(`colours are ${on ? "on" : "off"}: terminal ${isTTY}, ${JSON.stringify(env)}, flag ${color}`, () => {
    const screen = createScreen(
      { stdin: { isTTY }, stdout: stream(isTTY), stderr: stream(isTTY), env },
      { ...manners, color },
    );
    assert.equal(screen.out("red", "x") !== "x", on);
    assert.equal(screen.err("red", "x") !== "x", on);
  });
}

for (const [text, written] of [
  ["a\u001b]0;PWN\u0007b", "a\\x1b]0;PWN\\x07b"],
  ["a\u001b[2J\u001b[8mb\r\u202e\u009b2J", "a\\x1b[2J\\x1b[8mb\\r\\u202e\\x9b2J"],
  ["control: a\n\tb é ✓", "control: a\n\tb é ✓"],
  ["“.git\u200c/config” a\u00adb \ufeffc", "“.git\\u200c/config” a\\u00adb \\ufeffc"],
  ["control: می\u200cخواهم 👩\u200d🔬", "control: می\u200cخواهم 👩\u200d🔬"],
  [`ours or not: ${createPaint(true)("red", "a")}`, "ours or not: \\x1b[31ma\\x1b[39m"],
  ["\u001b[31;1ma\u001b[0m", "\\x1b[31;1ma\\x1b[0m"],
] as const) {
  test(`whatever a line is made of, the terminal obeys only our colours: ${JSON.stringify(text)}`, async () => {
    const [stdout, stderr] = [stream(true), stream(true)];
    const screen = createScreen(
      { stdin: { isTTY: true }, stdout, stderr, env: { LANG: "C.UTF-8" } },
      manners,
    );
    screen.print(text);
    screen.tell(text);
    screen.complain(text);
    await screen.ask(text, () => Promise.resolve("y"));
    assert.deepEqual(stdout.written, [`${written}\n`]);
    assert.deepEqual(stderr.written, [`${written}\n`, `${written}\n`, `${written}\n> `]);
  });
}

for (const [out, err] of [
  [true, true],
  [true, false],
  [false, true],
  [false, false],
] as const)
  test(`colours of foreign text are spelled out, with and without colours of our own: stdout ${out}, stderr ${err}`, () => {
    const [stdout, stderr] = [stream(out), stream(err)];
    const env = { LANG: "C.UTF-8" };
    const screen = createScreen({ stdin: { isTTY: false }, stdout, stderr, env }, manners);
    screen.print(`ev\u001b[31mil ${screen.out("red", "ours")}`);
    screen.tell(`ev\u001b[31mil ${screen.err("red", "ours")}`);
    const [painted, plain] = ["ev\\x1b[31mil \u001b[31mours\u001b[39m\n", "ev\\x1b[31mil ours\n"];
    assert.deepEqual([stdout.written, stderr.written], [[out ? painted : plain], [err ? painted : plain]]);
  });

test("the live line is taken away before anything else is written, and put back", () => {
  const stderr = stream(true);
  const screen = createScreen(
    { stdin: { isTTY: true }, stdout: stream(false), stderr, env: { NO_COLOR: "1" } },
    manners,
  );
  screen.status("x".repeat(100));
  screen.tell("hello");
  screen.status(null);
  assert.deepEqual(stderr.written, ["x".repeat(39), "\r\u001b[K", "hello\n", "x".repeat(39), "\r\u001b[K"]);
});

test("while a person types, their line is theirs: no live line, and what is told comes afterwards", async () => {
  const stderr = stream(true);
  const screen = createScreen(
    { stdin: { isTTY: true }, stdout: stream(true), stderr, env: { NO_COLOR: "1" } },
    manners,
  );
  screen.status("live");
  const answer = await screen.ask("Really?", () => {
    screen.status("live again");
    screen.tell("told meanwhile");
    screen.complain("at once");
    return Promise.resolve("y");
  });
  assert.equal(answer, "y");
  screen.status("and again");
  assert.deepEqual(stderr.written, [
    "live",
    "\r\u001b[K",
    "Really?\n> ",
    "\nat once\n> ",
    "told meanwhile\n",
    "and again",
  ]);
  await assert.rejects(screen.ask("Once more?", () => Promise.reject(new Error("gone"))));
  assert.deepEqual(stderr.written.slice(6), ["\r\u001b[K", "Once more?\n> ", "\n"]);
});

for (const [isAnswering, shows] of [
  [true, false],
  [false, true],
] as const) {
  test(`a question is ${shows ? "told" : "not told as well"} where somebody ${isAnswering ? "is" : "cannot be"} asked, and time begins with the run`, () => {
    const stderr = stream(true);
    const screen = createScreen(
      { stdin: { isTTY: isAnswering }, stdout: stream(false), stderr, env: { NO_COLOR: "1" } },
      manners,
    );
    let now = 0;
    const progress = createProgress(screen, false, () => now);
    now = 60_000;
    const question = { id: "q1", text: "May I?" };
    const flow = { agent: "x", steps: {} } as never;
    progress.observe(entry({ type: "step.asked", step: "a", question }), state, flow, []);
    progress.stop();
    assert.equal(stderr.written.join("").includes("May I?"), shows);
    assert.match(stderr.written.join(""), /a #2 · checking · 0 ms/);
  });
}

const SIGNS = "✓ a → b … ✗ c · ×2 ■ │ ╭─╮";
const PLAIN_SIGNS = "+ a > b ... x c - x2 # | +-+";
for (const [env, isAscii] of [
  [{}, false],
  [{ LANG: "C" }, true],
  [{ LANG: "POSIX" }, true],
  [{ LANG: "de_DE.ISO-8859-1" }, true],
  [{ LANG: "C.UTF-8" }, false],
  [{ LANG: "en_US.utf8" }, false],
  [{ LANG: "C", LC_CTYPE: "en_US.UTF-8" }, false],
  [{ LANG: "en_US.UTF-8", LC_ALL: "C" }, true],
  [{ LANG: "en_US.UTF-8", LC_ALL: "" }, false],
  [{ LANG: "en_US.UTF-8", TERM: "dumb" }, true],
] as const) {
  test(`signs are ${isAscii ? "ASCII" : "Unicode"} with ${JSON.stringify(env)}, and programs get what they always get`, () => {
    const [stdout, stderr] = [stream(false), stream(false)];
    const screen = createScreen({ stdin: {}, stdout, stderr, env }, manners);
    screen.print(SIGNS);
    screen.tell(SIGNS);
    screen.complain(SIGNS);
    const shown = isAscii ? PLAIN_SIGNS : SIGNS;
    assert.deepEqual([stdout.written, stderr.written], [[`${shown}\n`], [`${shown}\n`, `${shown}\n`]]);
    screen.emit(SIGNS);
    screen.document({ SIGNS });
    assert.deepEqual(stdout.written.slice(1), [`${SIGNS}\n`, `${JSON.stringify({ SIGNS })}\n`]);
  });
}

for (const [name, isTTY, env, quiet, isAnswering] of [
  ["off a terminal", false, {}, false, false],
  ["under CI", true, { CI: "1" }, false, false],
  ["on a dumb terminal", true, { TERM: "dumb" }, false, true],
  ["on a dumb terminal under CI", true, { TERM: "dumb", CI: "1" }, true, false],
  ["under --quiet", true, {}, true, true],
] as const) {
  test(`there is no live line ${name}`, () => {
    const stderr = stream(isTTY);
    const screen = createScreen(
      { stdin: { isTTY }, stdout: stream(isTTY), stderr, env },
      { quiet, color: null },
    );
    screen.status("x");
    assert.deepEqual(stderr.written, []);
    assert.equal(screen.isLive, false);
    assert.equal(screen.isAnswering, isAnswering);
  });
}

test("--quiet leaves out what is only told, not what must be said", () => {
  const stderr = stream(false);
  const screen = createScreen(
    { stdin: {}, stdout: stream(false), stderr, env: {} },
    { quiet: true, color: null },
  );
  screen.tell("a");
  screen.complain("b");
  assert.deepEqual(stderr.written, ["b\n"]);
});
