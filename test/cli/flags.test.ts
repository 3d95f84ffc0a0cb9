/** Every flag that help, hints and docs name exists, and every flag that a command declares is read by it. */
import assert from "node:assert/strict";
import { globSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parseLine, type Flag } from "../../src/cli/args.ts";
import { createCall, type Host } from "../../src/cli/call.ts";
import { COMMANDS, commandNamed, GLOBAL_FLAGS, PARTS } from "../../src/cli/commands.ts";
import { mainHelp } from "../../src/cli/help.ts";
import { createPaint } from "../../src/cli/text/text.ts";
import { EXIT, EXIT_MEANINGS } from "../../src/flow/verdict.ts";

const root = join(import.meta.dirname, "../..");
const cli = join(root, "src/cli");

/** Parameters of the agents that examples and docs run. */
const PARAMETERS = ["issue", "topic", "ticket", "tag", "task", "item", "name", "since"];
const declared = PARAMETERS.map((name): Flag => ({ name, takes: "TEXT", help: "" }));

const grammar = (name: string) => ({
  flags: [...GLOBAL_FLAGS, ...commandNamed(name).flags],
  ...(name === "run" && { declared }),
});

test("every example of the help is a line that its command takes", () => {
  for (const { name, examples } of COMMANDS) {
    assert.notEqual(examples.length, 0, name);
    for (const example of examples) {
      const line = /(?:^|\| )lockstep (.*?)(?: > \S+)?$/.exec(example)?.[1];
      assert.ok(line !== undefined && line.startsWith(name), example);
      const words = line.match(/(?:[^\s']|'[^']*')+/g)!.map((word) => word.replaceAll("'", ""));
      assert.doesNotThrow(() => parseLine(words, grammar(name)), example);
      const host = { env: {}, stdin: {}, stdout: {}, stderr: {}, cwd: () => "/" } as unknown as Host;
      const reading = { kind: "strict", declared: name === "run" ? declared : [] } as const;
      assert.doesNotThrow(() => createCall(commandNamed(name), words, host, reading, () => {}), example);
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
          name === "run" && (parameters.has(flag) || PARAMETERS.includes(flag) || flag.startsWith("ls-"));
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
        [...chunk.matchAll(/["']([a-z][a-z-]*)["']|^ {2}([a-z]+):/gm)].map((m) => m[1] ?? m[2]!),
      );
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

test("a flag that a command reads without declaring it is a mistake that no run survives", () => {
  const host = { env: {}, stdin: {}, stdout: {}, stderr: {}, cwd: () => "/" } as unknown as Host;
  const call = createCall(commandNamed("runs"), ["runs"], host, { kind: "strict", declared: [] }, () => {});
  assert.equal(call.text("limit"), undefined);
  for (const read of [call.text, call.all, call.on])
    assert.throws(() => read("script"), /runs reads --script and does not declare it/);
});

test("every flag with a value says what a shell can offer for it, or is one of those that take anything", () => {
  const free = new Set(
    "input trust expire max-turns max-tokens max-cost max-time branch base-branch push-remote pr-target issues label limit concurrency text max older-than keep as".split(
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
