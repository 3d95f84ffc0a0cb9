import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { runInNewContext } from "node:vm";
import { matchesPattern } from "../../../src/effects/checks/match-pattern.ts";
import { IS_WHOLE } from "../../rounds.ts";

describe("patterns that behave", () => {
  const long = "x\n".repeat(100_000);
  const cases: readonly [pattern: string, text: string, ok: boolean][] = [
    ["^\\d+ passed$", "12 passed", true],
    ["^\\d+ passed$", "12 passed\n", true],
    ["^\\d+ passed$", "12 passed\r\n", true],
    ["^\\d+ passed$", "12 passed\n\n", false],
    ["^\\d+ passed$", "12 failed", false],
    ["passed\\n$", "12 passed\n", true],
    ["^$", "", true],
    ["^$", "\n", true],
    ["", "anything", true],
    ["^(?:\\d+) (passed|skipped)$", "3 skipped\n", true],
    ["(?<q>['\"])x\\k<q>", "'x'", true],
    ["(?<q>['\"])x\\k<q>", "'x\"", false],
    ["\\p{Lu}", "é", false],
    ["^.$", "🙂", true],
    ["y$", `${long}y`, true],
    ["y", long, false],
    ["(y)", long, false],
    ["^(?:x\\n)+$", "x\n".repeat(1_000), true],
  ];
  for (const [pattern, text, ok] of cases) {
    test(`${pattern} on ${JSON.stringify(text.slice(0, 20))} → ${ok}`, async () => {
      assert.deepEqual(await matchesPattern(pattern, text), { ok });
    });
  }

  const refused: readonly [pattern: string, why: RegExp][] = [
    ["(", /not a valid regular expression/],
    ["\\q", /not a valid regular expression/],
    ["(".repeat(100_000) + ")".repeat(100_000), /not a valid regular expression/],
  ];
  for (const [pattern, why] of refused) {
    test(`${pattern.slice(0, 20)} is told`, async () => {
      const result = await matchesPattern(pattern, "x");
      assert.equal(result.ok, false);
      assert.match(result.why ?? "", why);
    });
  }

  test("an interrupted match settles and is none", async () => {
    const evil = ["(a+)+$", `${"a".repeat(100)}!`] as const;
    const interrupted = { ok: false, why: "the match was interrupted" };
    assert.deepEqual(await matchesPattern(...evil, AbortSignal.abort()), interrupted);
    const controller = new AbortController();
    const result = matchesPattern(...evil, controller.signal);
    controller.abort();
    assert.deepEqual(await result, interrupted);
  });

  test("no listener stays on the signal", async () => {
    const { signal } = new AbortController();
    const warnings: Error[] = [];
    const note = (warning: Error) => warnings.push(warning);
    process.on("warning", note);
    for (let round = 0; round < 12; round += 1) await matchesPattern("(a)", "a", signal);
    await new Promise(setImmediate);
    process.off("warning", note);
    assert.deepEqual(warnings, []);
  });
});

type Evil = { readonly pattern: string; readonly text: string };

/** What matches a letter, and letters followed by what it does not match. */
const ATOMS: readonly [atom: string, text: string][] = [
  ["a", `${"a".repeat(80)}!`],
  ["\\w", `${"a".repeat(80)}!`],
  ["[a-z]", `${"q".repeat(80)}!`],
  ["\\d", `${"7".repeat(80)}x`],
  ["[^!]", `${"a b".repeat(30)}!`],
  ["\\p{L}", `${"ß".repeat(80)}!`],
  [".", `${"a".repeat(80)}\n\n\n`],
];

const NESTED: readonly ((atom: string) => string)[] = [
  (atom) => `(${atom}+)+$`,
  (atom) => `(${atom}*)*$`,
  (atom) => `^(?:${atom}+)*$`,
  (atom) => `^(?:${atom}+?)+?$`,
  (atom) => `^((${atom}+)+)+$`,
  (atom) => `^(?:${atom}{1,20}){1,50}$`,
  (atom) => `^(?:${atom}{2,}|${atom})+$`,
  (atom) => `^(?:${atom}+,?)+$`,
  (atom) => `~?(?:(?:${atom}*)+)+~`,
];

const OVERLAPPING: readonly ((atom: string) => string)[] = [
  (atom) => `^(?:${atom}|${atom})*$`,
  (atom) => `^(${atom}|${atom}${atom})+$`,
  (atom) => `^(?:${atom}|${atom}?${atom})+$`,
  (atom) => `^(?:${atom}?){40}${atom}{60}$`,
  (atom) => `^(?:|${atom}|${atom}${atom}){60}$`,
  (atom) => `^(?:(?:${atom}|)+)+$`,
  (atom) => `^(?:${atom}*|${atom}+|${atom})*$`,
];

const LOOKING: readonly ((atom: string) => string)[] = [
  (atom) => `^(?=(?:${atom}+)+$)`,
  (atom) => `^(?!(?:${atom}+)+$)${atom}*$`,
  (atom) => `^(?=(?:${atom}|${atom})*$)(?=${atom})`,
  (atom) => `^(?=${atom})(?=(?=(?:${atom}*)*~)|${atom}*~)`,
  (atom) => `(?<=~(?:${atom}+)+)(?:.|\\n)$`,
];

const BACKREFERENCES: readonly ((atom: string) => string)[] = [
  (atom) => `^(${atom}*)(${atom}*)(${atom}*)(${atom}*)(${atom}*)(${atom}*)\\1\\2\\3\\4\\5\\6$`,
  (atom) => `^(?:(${atom}+)\\1?)+$`,
  (atom) => `^(?:(?<x>${atom})|\\k<x>|${atom})+$`,
];

/** No group at all, but a long text: every quantifier multiplies by its length. */
const POLYNOMIAL: readonly ((atom: string) => string)[] = [
  (atom) => `${atom}*${atom}*${atom}*${atom}*${atom}*$`,
  (atom) => `${atom}+?${atom}+?${atom}+?${atom}+?$`,
  (atom) => `${atom}*${atom}*${atom}*${atom}*~`,
  (atom) => `^${atom}*${atom}*${atom}*${atom}*${atom}*~`,
  (atom) => `(?:${atom}*,?)*~`,
];

/** Each takes a quarter of a second of a core: every shape with another atom, and in CI every shape with every atom. */
function atomsFor(at: number): typeof ATOMS {
  return IS_WHOLE ? ATOMS : [ATOMS[at % ATOMS.length]!];
}

const EVIL: readonly Evil[] = [
  ...[...NESTED, ...OVERLAPPING, ...LOOKING, ...BACKREFERENCES].flatMap((shape, at) =>
    atomsFor(at).map(([atom, text]) => ({ pattern: shape(atom), text })),
  ),
  ...POLYNOMIAL.flatMap((shape, at) =>
    atomsFor(at).map(([atom, text]) => ({
      pattern: shape(atom),
      text: text.slice(0, 30).repeat(200) + text.slice(-1).repeat(3),
    })),
  ),
  { pattern: "\\s+$", text: `${" ".repeat(1_000_000)}x` },
  { pattern: "^(\\S+\\s?)+$", text: `${"word ".repeat(40)}\n\n\n` },
  { pattern: "^([a-zA-Z0-9._-]+)+@([a-z0-9]+\\.?)+$", text: "a".repeat(80) },
  { pattern: "^(?:\\+?\\d+[ -]?)+$", text: `${"1".repeat(80)}x` },
  { pattern: "((a{1000}){1000}){1000}", text: "a".repeat(1_000_000) },
];

describe("patterns that would not end", { concurrency: 4 }, () => {
  test("are many, each another, and in CI 200 and more", () => {
    const patterns = new Set(EVIL.map(({ pattern }) => pattern));
    assert.equal(patterns.size, EVIL.length);
    assert.ok(patterns.size >= (IS_WHOLE ? 200 : 30), `${patterns.size}`);
  });

  for (const { pattern, text } of EVIL) {
    test(pattern, async () => {
      const { result, turns } = await countingTurns(() => matchesPattern(pattern, text));
      assert.deepEqual(result, { ok: false, why: "the pattern took too long" });
      assert.ok(turns > 0, "the loop was held up");
    });
  }

  test("the count would show a loop that was held up", async () => {
    const { turns } = await countingTurns(() => {
      assert.throws(() => runInNewContext(`/(a+)+$/.test("${"a".repeat(80)}!")`, {}, { timeout: 250 }));
      return Promise.resolve();
    });
    assert.equal(turns, 0);
  });
});

/** How often a timer fires meanwhile: never while the loop is held up; once at least before a longer timer does. */
async function countingTurns<T>(work: () => Promise<T>): Promise<{ result: T; turns: number }> {
  let turns = 0;
  const timer = setInterval(() => (turns += 1), 5);
  try {
    return { result: await work(), turns };
  } finally {
    clearInterval(timer);
  }
}
