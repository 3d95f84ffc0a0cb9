import assert from "node:assert/strict";
import { test } from "node:test";
import { claimOf, parseLine, UsageError, type Flag, type Grammar } from "../../src/cli/args.ts";
import { commandNamed, GLOBAL_FLAGS } from "../../src/cli/commands.ts";
import type { Claim } from "../../src/flow/parameter-flag.ts";

const flags: readonly Flag[] = [
  { name: "json", help: "" },
  { name: "quiet", short: "q", help: "" },
  { name: "color", help: "" },
  { name: "cwd", short: "C", takes: "DIR", help: "" },
  { name: "script", takes: "FILE", yields: true, help: "" },
];
const declared: readonly Flag[] = [
  { name: "issue", takes: "NUMBER", help: "" },
  { name: "dry-run", help: "" },
  { name: "tag", takes: "ARRAY", help: "" },
  { name: "script", takes: "STRING", help: "" },
];

type Case = {
  readonly line: string;
  readonly grammar?: Partial<Grammar>;
  readonly words?: readonly string[];
  readonly flags?: { readonly [name: string]: readonly string[] };
  readonly declared?: { readonly [name: string]: readonly string[] };
};

const good: readonly Case[] = [
  { line: "", words: [] },
  { line: "run x", words: ["run", "x"] },
  { line: "--json run x", words: ["run", "x"], flags: { json: ["true"] } },
  { line: "run x --json", words: ["run", "x"], flags: { json: ["true"] } },
  { line: "run x -q", words: ["run", "x"], flags: { quiet: ["true"] } },
  { line: "run -C d x", words: ["run", "x"], flags: { cwd: ["d"] } },
  { line: "run -Cd x", words: ["run", "x"], flags: { cwd: ["d"] } },
  { line: "run -qC d x", words: ["run", "x"], flags: { quiet: ["true"], cwd: ["d"] } },
  { line: "--cwd=a=b run", words: ["run"], flags: { cwd: ["a=b"] } },
  { line: "--cwd= run", words: ["run"], flags: { cwd: [""] } },
  { line: "--no-color", flags: { color: ["false"] } },
  { line: "--json=false", flags: { json: ["false"] } },
  { line: "--json --no-json", flags: { json: ["true", "false"] } },
  { line: "run -- --json -q", words: ["run", "--json", "-q"] },
  { line: "run -", words: ["run", "-"] },
  { line: "run -5", words: ["run", "-5"] },
  { line: "--script - run", words: ["run"], flags: { script: ["-"] } },
  { line: "--cwd -5", flags: { cwd: ["-5"] } },
  { line: "--issue 12", grammar: { declared }, declared: { issue: ["12"] } },
  { line: "--issue=12 --issue 13", grammar: { declared }, declared: { issue: ["12", "13"] } },
  { line: "--tag a --tag b", grammar: { declared }, declared: { tag: ["a", "b"] } },
  { line: "--dry-run x", grammar: { declared }, words: ["x"], declared: { "dry-run": ["true"] } },
  { line: "--no-dry-run", grammar: { declared }, declared: { "dry-run": ["false"] } },
  { line: "--dry-run=maybe", grammar: { declared }, declared: { "dry-run": ["maybe"] } },
  { line: "--script a", grammar: { declared }, declared: { script: ["a"] } },
  { line: "--ls-script a", grammar: { declared }, flags: { script: ["a"] } },
  { line: "--ls-json", grammar: {}, flags: { json: ["true"] } },
  { line: "--ls-no-color", grammar: {}, flags: { color: ["false"] } },
  { line: "--what 5 run --cwd", grammar: { lenient: true }, words: ["5", "run"] },
  { line: "run --json=maybe", grammar: { lenient: true }, words: ["run"], flags: { json: ["maybe"] } },
  { line: "--cwd a --cwd b run", grammar: { lenient: true }, words: ["run"], flags: { cwd: ["a", "b"] } },
];

for (const { line, grammar, ...expected } of good) {
  test(`the line \`${line}\` is understood${grammar === undefined ? "" : ` with ${Object.keys(grammar).join()}`}`, () => {
    const read = parseLine(
      line.split(" ").filter((word) => word !== ""),
      { flags, ...grammar },
    );
    assert.deepEqual(
      {
        words: read.words,
        flags: Object.fromEntries(read.flags),
        declared: Object.fromEntries(read.declared),
      },
      { words: [], flags: {}, declared: {}, ...expected },
    );
  });
}

const bad: readonly (readonly [line: string, says: RegExp])[] = [
  ["--jsn", /Unknown flag --jsn/],
  ["-x", /Unknown flag -x/],
  ["-qx", /Unknown flag -x/],
  ["--cwd", /--cwd needs a value/],
  ["--cwd --json", /write --cwd=--json/],
  ["-C", /-C needs a value/],
  ["--json=maybe", /--json takes no value/],
  ["--no-color=x", /--no-color takes no value/],
  ["--no-cwd", /Unknown flag --no-cwd/],
  ["--cwd a --cwd b", /--cwd is given more than once/],
  ["--ls-what", /Unknown flag --ls-what/],
  ["--__proto__", /Unknown flag --__proto__/],
];

for (const [line, says] of bad) {
  test(`the line \`${line}\` is refused`, () => {
    assert.throws(
      () => parseLine(line.split(" "), { flags }),
      (error) => error instanceof UsageError && says.test(error.message),
    );
  });
}

test("a refused flag brings along what would have been right", () => {
  assert.throws(
    () => parseLine(["--isue", "1"], { flags, declared }),
    (error) =>
      error instanceof UsageError &&
      error.near?.word === "--isue" &&
      error.near.candidates.includes("--issue"),
  );
});

test("a declared flag never takes the place of a reserved one", () => {
  const reserved: readonly Flag[] = [
    { name: "sandbox", takes: "WHEN", help: "" },
    { name: "merge", help: "" },
    { name: "branch", takes: "NAME", yields: true, help: "" },
  ];
  const names = ["sandbox", "merge", "no-merge", "branch", "ls-sandbox", "ls-branch"];
  const taking = names.map((name): Flag => ({ name, takes: "STRING", help: "" }));
  const cases = [
    ["--sandbox on", { sandbox: ["on"] }, {}],
    ["--sandbox=on", { sandbox: ["on"] }, {}],
    ["--no-merge", { merge: ["false"] }, {}],
    ["--merge", { merge: ["true"] }, {}],
    ["--ls-sandbox on", { sandbox: ["on"] }, {}],
    ["--ls-branch b", { branch: ["b"] }, {}],
    ["--branch b", {}, { branch: ["b"] }],
  ] as const;
  for (const [line, given, declaredGiven] of cases) {
    const read = parseLine(line.split(" "), { flags: reserved, declared: taking });
    assert.deepEqual(
      [Object.fromEntries(read.flags), Object.fromEntries(read.declared)],
      [given, declaredGiven],
      line,
    );
  }
});

/** A new flag of `run` is reserved, or stands here because a parameter may well have its name. */
test("every flag of run is reserved but those that a parameter may have", () => {
  const all = [...GLOBAL_FLAGS, ...commandNamed("run").flags];
  const free = all.filter(({ yields }) => yields).map(({ name }) => name);
  const expected = [
    "input",
    "wait",
    "summary",
    "expire",
    "branch",
    "base-branch",
    "issues",
    "label",
    "limit",
    "concurrency",
  ];
  assert.deepEqual(free.toSorted(), expected.toSorted());
});

test("a flag is judged by all ways to write it", () => {
  const all = [...GLOBAL_FLAGS, ...commandNamed("run").flags];
  const cases: readonly (readonly [flag: string, kind: Claim["kind"]])[] = [
    ["--issue", "free"],
    ["--max-iterations", "free"],
    ["--sandbox", "reserved"],
    ["--Sandbox", "reserved"],
    ["--dry_run", "reserved"],
    ["--no-sandbox", "reserved"],
    ["--no-no-push", "reserved"],
    ["--ls-anything", "reserved"],
    ["--max", "reserved"],
    ["--branch", "shadows"],
    ["--no-wait", "shadows"],
    ["--push-notes", "free"],
    ["--non-push", "free"],
  ];
  for (const [flag, kind] of cases) assert.equal(claimOf(flag, all).kind, kind, flag);
});
