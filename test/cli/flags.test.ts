/** Every flag that help, hints and docs name exists, and every flag that a command declares is read by it. */
import assert from "node:assert/strict";
import { globSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parseLine, UsageError, type Flag } from "../../src/cli/args.ts";
import { createCall, lineOf, type CommandCall, type Host } from "../../src/cli/call.ts";
import {
  COMMANDS,
  commandNamed,
  everyFlag,
  GLOBAL_FLAGS,
  PARTS,
  type CallOf,
  type CommandName,
} from "../../src/cli/commands.ts";
import { EXIT_MEANINGS, mainHelp } from "../../src/cli/help.ts";
import { createPaint } from "../../src/cli/text/text.ts";
import { EXIT } from "../../src/flow/verdict.ts";

const root = join(import.meta.dirname, "../..");
const cli = join(root, "src/cli");

/** Parameters of the agents that examples and docs run. */
const PARAMETERS = [
  "issue",
  "topic",
  "ticket",
  "tag",
  "task",
  "item",
  "name",
  "since",
  "plan",
  "scope",
  "subject",
];
const declared = PARAMETERS.map((name): Flag => ({ name, takes: "TEXT", help: "" }));

const host = { env: {}, stdin: {}, stdout: {}, stderr: {}, cwd: () => "/" } as unknown as Host;

const grammar = (name: string) => ({
  flags: [...GLOBAL_FLAGS, ...commandNamed(name).flags],
  ...(commandNamed(name).takesParameters && { declared }),
});

test("every example of the help is a line that its command takes", () => {
  for (const { name, examples } of COMMANDS) {
    assert.notEqual(examples.length, 0, name);
    for (const example of examples) {
      const line = /(?:^|\| )lockstep (.*?)(?: > \S+)?$/.exec(example)?.[1];
      assert.ok(line !== undefined && line.startsWith(name), example);
      const words = line.match(/(?:[^\s']|'[^']*')+/g)!.map((word) => word.replaceAll("'", ""));
      assert.doesNotThrow(() => parseLine(words, grammar(name)), example);
      const command = commandNamed(name);
      const read = lineOf(command, words, command.takesParameters ? declared : []);
      assert.doesNotThrow(() => createCall(command, words, host, read, () => {}), example);
    }
  }
});

function textsBelow(folder: string, ending: string): readonly string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(ending) && !name.includes("node_modules"))
    .map((name) => join(folder, name));
}

test("every flag that docs, messages and hints name after a command is one of that command", () => {
  const names = COMMANDS.map(({ name }) => name).join("|");
  const files = [
    "README.md",
    ...textsBelow("docs", ".md").filter((file) => !file.includes("decisions")),
    ...textsBelow("examples", ".md"),
    ...textsBelow("src", ".ts"),
  ];
  const texts = [...files, ...textsBelow("examples", ".json")].map((file) =>
    readFileSync(join(root, file), "utf8"),
  );
  const parameters = new Set(
    texts.flatMap((text) => [...text.matchAll(/"cli": "--([a-z-]+)"/g)].map((match) => match[1]!)),
  );
  let seen = 0;
  const strange: string[] = [];
  for (const file of files) {
    const text = readFileSync(join(root, file), "utf8");
    for (const [, name = "", rest = ""] of text.matchAll(
      new RegExp(`\\blockstep (${names})\\b((?: (?:[^\\s\`"|;&<>()#]|"[^"\\n]*")+)*)`, "g"),
    )) {
      const known = new Set([...GLOBAL_FLAGS, ...commandNamed(name).flags].map((flag) => flag.name));
      for (const [, flag = ""] of rest.matchAll(/ --(?:no-)?([a-z][a-z-]*)/g)) {
        seen += 1;
        const isParameter =
          ["run", "fleet submit"].includes(name) &&
          (parameters.has(flag) || PARAMETERS.includes(flag) || flag.startsWith("ls-"));
        if (!known.has(flag) && !isParameter) strange.push(`${file}: lockstep ${name} … --${flag}`);
      }
    }
  }
  assert.deepEqual(strange, []);
  assert.ok(seen > 100, `only ${seen} flags were found`);
});

type Part = { readonly words: ReadonlySet<string>; readonly leadsTo: readonly string[] };

/** The functions and tables of src/cli, each with the texts in it and the others that it names. */
function partsOfCli(): ReadonlyMap<string, Part> {
  const parts = new Map<string, Part>();
  for (const file of globSync("**/*.ts", { cwd: cli }).filter(
    (name) => name !== "commands.ts" && name !== "help.ts",
  )) {
    const text = readFileSync(join(cli, file), "utf8");
    const resolved = (from: string) => join(file, "..", from);
    const imported = new Map<string, string>();
    for (const [, names = "", from = ""] of text.matchAll(/import \{([^}]+)\} from "(\.[\w/.-]+\.ts)"/g))
      for (const name of names.split(",").map((one) => one.trim())) imported.set(name, resolved(from));
    for (const [, names = "", from = ""] of text.matchAll(
      /\{ ([\w, ]+) \} = await import\("(\.[\w/.-]+\.ts)"\)/g,
    ))
      for (const name of names.split(",").map((one) => one.trim())) imported.set(name, resolved(from));
    for (const [, from = "", name = ""] of text.matchAll(/import\("(\.[\w/.-]+\.ts)"\)\)\.(\w+)/g))
      imported.set(name, resolved(from));
    const chunks = text.split(/^(?=(?:export )?(?:async )?(?:function\*?|const) \w)/m).slice(1);
    const nameOf = (chunk: string) => /^(?:export )?(?:async )?(?:function\*?|const) (\w+)/.exec(chunk)![1]!;
    const own = new Set(chunks.map(nameOf));
    for (const chunk of chunks) {
      const names = [...new Set(chunk.match(/\b[A-Za-z_]\w*\b/g))];
      const leadsTo = names.flatMap((name) => {
        const from = own.has(name) ? file : imported.get(name);
        return from === undefined ? [] : [`${from}#${name}`];
      });
      const words = new Set(
        [...chunk.matchAll(/["']([a-z][a-z-]*)["']|\bflags\.([a-z]+)/g)].map((m) => m[1] ?? m[2]!),
      );
      for (const [, one, other] of chunk.matchAll(/\{([^{}]*)\} = (?:call\.)?flags|\bflags: \{([^{}]*)\}/g))
        for (const name of (one ?? other ?? "").match(/[a-z]+/g) ?? []) words.add(name);
      parts.set(`${file}#${nameOf(chunk)}`, { words, leadsTo });
    }
  }
  return parts;
}

test("every flag that a command declares is read by what the command does", () => {
  const parts = partsOfCli();
  for (const { name, flags, load } of COMMANDS) {
    if (name === "help") continue;
    const [, file, entry] = /import\("\.\/([\w/-]+\.ts)"\)\)\.(\w+)/.exec(String(load)) ?? [];
    const reached = new Set<string>();
    const open = [`${file}#${entry}`];
    for (let part = open.pop(); part !== undefined; part = open.pop()) {
      if (reached.has(part)) continue;
      reached.add(part);
      open.push(...(parts.get(part)?.leadsTo ?? []));
    }
    assert.ok(parts.has(`${file}#${entry}`), name);
    const isRead = (flag: string) => [...reached].some((part) => parts.get(part)?.words.has(flag) === true);
    const idle = flags.filter((flag) => !isRead(flag.name)).map((flag) => `--${flag.name}`);
    assert.deepEqual(idle, [], `lockstep ${name} declares flags that nothing reads`);
  }
});

/** A line of a command as that command receives it. */
function callOf<Name extends CommandName>(name: Name, ...words: readonly string[]): CallOf<Name> {
  const command = commandNamed(name);
  const argv = [...name.split(" "), ...words];
  const line = lineOf(command, argv);
  return createCall(command, argv, host, line, () => {}) as CallOf<Name>;
}

test("a command receives its flags with their types, and cannot read any other", () => {
  const { flags, written } = callOf("runs", "--limit", "12", "--older-than", "8w", "--no-watch");
  const limit: number | undefined = flags.limit;
  const [age, keep]: readonly (number | undefined)[] = [flags["older-than"], flags.keep];
  assert.deepEqual([limit, age, keep, flags.watch], [12, 8 * 604_800_000, undefined, false]);
  assert.deepEqual([written.limit, written.keep, written.watch], [["12"], [], ["false"]]);
  // @ts-expect-error -- runs does not declare it, so that no code of it can read it
  assert.equal(flags.script, undefined);
  // @ts-expect-error -- a count is a number
  const text: string | undefined = flags.limit;
  assert.equal(text, 12);
});

test("every kind of value is read, or refused in one form that names the flag, what it needs and what was given", () => {
  type Read = readonly [CommandName, flag: string, written: string, value: unknown];
  const good: readonly Read[] = [
    ["runs", "limit", "1", 1],
    ["runs", "keep", "0", 0],
    ["run", "limit", "999", 999],
    ["run", "max-cost", "$0.50", 0.5],
    ["run", "max-time", "90s", 90_000],
    ["runs", "older-than", "0d", 0],
    ["resume", "expire", "2w", 1_209_600_000],
    ["run", "sandbox", "off", "off"],
    ["logs", "level", "warn", "warn"],
    ["graph", "format", "svg", "svg"],
    ["run", "trust", "", ""],
    ["run", "color", "true", undefined],
    ["run", "merge", "", true],
  ];
  for (const [name, flag, written, value] of good) {
    const words = ["color", "merge"].includes(flag)
      ? value === true
        ? [`--${flag}`]
        : []
      : [`--${flag}=${written}`];
    const { flags } = callOf(name, "x", ...words) as { readonly flags: { readonly [name: string]: unknown } };
    assert.equal(flags[flag], value, `${name} --${flag}`);
  }
  const bad: readonly (readonly [CommandName, flag: string, written: string, needs: string])[] = [
    ["runs", "limit", "x", "a whole number of at least 1"],
    ["runs", "limit", "0", "a whole number of at least 1"],
    ["runs", "keep", "-1", "a whole number of at least 0"],
    ["run", "limit", "1000", "a whole number from 1 to 999"],
    ["run", "concurrency", "0", "a whole number from 1 to 999"],
    ["check", "max-turns", "1.5", "a whole number of at least 0"],
    ["run", "max-tokens", "1e3", "a whole number of at least 1"],
    ["run", "max-cost", "free", "an amount in US dollars, such as 0.50"],
    ["run", "max-time", "20", "a unit, such as 20s, 20m or 20h"],
    ["run", "max-time", "0s", "a time with a unit (ms, s, m, h, d, w), such as 90s or 5m"],
    ["runs", "older-than", "soon", "a time with a unit (ms, s, m, h, d, w), such as 90s or 5m"],
    ["resume", "expire", "0h", "a time with a unit (ms, s, m, h, d, w), such as 90s or 5m"],
    ["run", "sandbox", "maybe", "auto, on or off"],
    ["resume", "on-permission", "ask", "deny, halt or allow"],
    ["logs", "level", "loud", "debug, info, warn or error"],
    ["graph", "format", "png", "text, mermaid, dot, svg or json"],
    ["runs", "cwd", "", "a folder"],
    ["salvage", "out", "", "a folder"],
    ["export", "out", "", "a file"],
  ];
  for (const [name, flag, written, needs] of bad) {
    const takes = commandNamed(name).words.some(({ optional }) => optional === undefined);
    assert.throws(
      () => callOf(name, ...(takes ? ["x"] : []), `--${flag}=${written}`),
      (error) =>
        error instanceof UsageError && error.message === `--${flag} needs ${needs}, not "${written}".`,
      `${name} --${flag}=${written}`,
    );
  }
});

test("a line whose values cannot be read is answered as it asks to be, and a first look passes over them", () => {
  const command = commandNamed("runs");
  const argv = ["runs", "--json", "--limit", "x"];
  const seen: boolean[] = [];
  const hear = ({ flags }: CommandCall) => void seen.push(flags.json);
  assert.throws(() => createCall(command, argv, host, lineOf(command, argv), hear), UsageError);
  assert.deepEqual(seen, [true]);
  const run = commandNamed("run");
  const line = parseLine(["run", "x", "--sandbox", "maybe", "--json"], { flags: everyFlag(), lenient: true });
  const { flags } = createCall(run, [], host, line, () => {}) as CallOf<"run">;
  assert.deepEqual([flags.sandbox, flags.json], [undefined, true]);
});

test("every flag with a value says what a shell can offer for it, or is one of those that take anything", () => {
  const free = new Set(
    "input trust expire max-turns max-tokens max-cost max-time branch base-branch push-remote pr-target issues label limit concurrency text max older-than keep as min since test bail shard jobs covers runs budget task resume for seed port host name check reply-within queue within group priority not-before key burst".split(
      " ",
    ),
  );
  for (const { name, flags } of COMMANDS)
    for (const flag of [...flags, ...GLOBAL_FLAGS])
      if (flag.takes !== undefined && flag.offers === undefined)
        assert.ok(free.has(flag.name), `${name} --${flag.name}`);
});

test("help and docs give every exit code the same meaning", () => {
  assert.deepEqual(
    EXIT_MEANINGS.flatMap(([codes]) => codes).toSorted((a, b) => a - b),
    Object.values(EXIT).toSorted((a, b) => a - b),
  );
  const help = mainHelp(createPaint(false));
  const docs = readFileSync(join(root, "docs/cli.md"), "utf8");
  for (const [codes, meaning] of EXIT_MEANINGS) {
    assert.ok(docs.includes(`| ${codes.join(", ")} | ${meaning} |`), meaning);
    assert.match(help, new RegExp(`^ {2}${codes.join(", ")} +${meaning.replaceAll(/[()]/g, "\\$&")}$`, "m"));
  }
});

test("the help of bench names every part that can be measured", () => {
  const source = readFileSync(join(root, "bench/measure.ts"), "utf8");
  const measured = [...source.matchAll(/case "(\w+)":/g)].map(([, part]) => part!);
  assert.deepEqual([...PARTS].toSorted(), [...new Set(measured)].toSorted());
  const part = commandNamed("bench").flags.find(({ name }) => name === "part");
  for (const name of measured) assert.match(part?.help ?? "", new RegExp(`\\b${name}\\b`));
});

test("no command has two flags of one name", () => {
  for (const { name, flags } of COMMANDS) {
    const names = [...GLOBAL_FLAGS, ...flags].map((flag) => flag.name);
    assert.deepEqual(
      names.filter((flag, place) => names.indexOf(flag) !== place),
      [],
      name,
    );
  }
});

test("a word of a closed list is refused with the words that can stand there", () => {
  const closed = COMMANDS.flatMap((command) =>
    command.words.flatMap(({ is }, place) => (typeof is === "string" ? [] : [{ command, place, is }])),
  );
  assert.ok(closed.length >= 3);
  for (const { command, place, is } of closed) {
    const line = (word: string) => [
      ...command.name.split(" "),
      ...command.words.slice(0, place).map(() => "x"),
      word,
    ];
    const call = (argv: readonly string[]) =>
      createCall(command, argv, host, lineOf(command, argv), () => {});
    for (const word of is) assert.doesNotThrow(() => call(line(word)), `${command.name} ${word}`);
    assert.throws(
      () => call(line(`${is[0]}x`)),
      (error: UsageError) => error.near?.candidates === is && error.message.includes(`takes ${is[0]}`),
      command.name,
    );
  }
});
