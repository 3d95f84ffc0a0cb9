/** `init`: the schemas that its files name for editors are there, and the template is the one that was chosen. */
import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { TEMPLATES } from "../../../src/cli/commands.ts";
import { terminal } from "../../shell.ts";
import { createWorld, onlyDocument, typedAt } from "../world.ts";

/** Every path of a schema that files below the folder name. */
function schemasIn(folder: string): readonly string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  return files.flatMap(({ parentPath, name }) => {
    const text = readFileSync(join(parentPath, name), "utf8");
    return [...text.matchAll(/\$schema(?:": "|=)(\.[^"\n]*)/g)].map((match) =>
      resolve(parentPath, match[1]!),
    );
  });
}

test("the schemas that are named exist, wherever the package is", async () => {
  // Where the package is, if anywhere; and the project.
  for (const [place, project, isCopied] of [
    [null, "p", true],
    ["p", "p", false],
    [".", "workspace/p", false],
  ] as const)
    for (const flags of [[], ["--stages"]]) {
      using world = createWorld();
      mkdirSync(join(world.root, project), { recursive: true });
      if (place !== null)
        for (const name of ["agent", "steps_registry", "machine", "script", "tests"]) {
          const file = join(world.root, place, `node_modules/lockstep/schemas/${name}.schema.json`);
          mkdirSync(dirname(file), { recursive: true });
          writeFileSync(file, "{}");
        }
      const made = await world.lockstep(["init", "notes", "--cwd", project, ...flags]);
      assert.equal(made.code, 0, made.stderr);
      const named = schemasIn(join(world.root, project, ".agent/notes"));
      assert.equal(named.length, flags.length === 0 ? 4 : 3, `${place} ${flags.join()}`);
      for (const file of named) assert.ok(existsSync(file), file);
      assert.equal(existsSync(join(world.root, project, ".agent/.schemas")), isCopied);
      assert.equal(made.stdout.includes(".agent/.schemas (JSON Schemas for editors)"), isCopied);
      assert.equal((await world.lockstep(["check", "notes", "--cwd", project, "--strict"])).code, 0);
    }
});

test("copies of an older version are brought up to date by init and by schema --write, and links are not followed", async () => {
  using world = createWorld();
  const copy = join(world.root, ".agent/.schemas/agent.schema.json");
  const text = readFileSync(join(import.meta.dirname, "../../../schemas/agent.schema.json"), "utf8");
  const refused = await world.lockstep(["schema", "--write", "--json"]);
  assert.deepEqual([refused.code, /no folder \.agent here/.test(refused.stdout)], [2, true], refused.stdout);
  assert.equal((await world.lockstep(["init", "one"])).code, 0);
  for (const line of [
    ["init", "two", "--json"],
    ["schema", "--write", "--json"],
  ]) {
    writeFileSync(copy, "{}");
    const { schemas, files } = onlyDocument(await world.lockstep(line));
    assert.equal(readFileSync(copy, "utf8"), text);
    const written = (schemas ?? files) as readonly string[];
    assert.ok(written.includes(".agent/.schemas/agent.schema.json"), JSON.stringify(written));
  }
  const { agents } = onlyDocument(await world.lockstep(["list", "--json"]));
  assert.deepEqual(
    (agents as readonly { readonly agent: string }[]).map(({ agent }) => agent),
    ["one", "two"],
  );
  const elsewhere = join(world.root, "elsewhere");
  for (const link of [copy, dirname(copy)]) {
    rmSync(link, { recursive: true });
    mkdirSync(elsewhere, { recursive: true });
    symlinkSync(link === copy ? join(elsewhere, "file") : elsewhere, link);
    for (const line of [
      ["init", "three"],
      ["schema", "--write"],
    ]) {
      const ran = await world.lockstep(line);
      assert.deepEqual(
        [ran.code, /is a link, and links are not followed/.test(ran.stderr)],
        [3, true],
        ran.stderr,
      );
    }
    assert.deepEqual(readdirSync(elsewhere), []);
    assert.ok(!existsSync(join(world.root, ".agent/three")));
  }
});

test("tests that a command writes name the schemas where there are any", async () => {
  using world = createWorld();
  assert.equal((await world.lockstep(["init", "notes"])).code, 0);
  const written = async () => {
    const ran = await world.lockstep(["test", "notes", "--generate"]);
    assert.equal(ran.code, 0, ran.stderr);
    return ran.stdout.split("\n")[0];
  };
  assert.equal(await written(), "# yaml-language-server: $schema=../../.schemas/tests.schema.json");
  rmSync(join(world.root, ".agent/.schemas"), { recursive: true });
  assert.match(String(await written()), /^# Written by lockstep/);
});

test("a folder that cannot be written is exit 3, and names a way out", async () => {
  using world = createWorld();
  world.write(".agent", "a file");
  const ran = await world.lockstep(["init", "notes", "--json"]);
  const { code, reason } = onlyDocument(ran);
  assert.deepEqual([ran.code, code], [3, "NOT_WRITABLE"], ran.stderr);
  assert.match(String(reason), /cannot be written: .* or choose another folder with --cwd DIR/);
});

test("a runtime without a cache for compiled code runs the command all the same", async () => {
  using world = createWorld();
  world.write("without.mjs", 'import module from "node:module";\ndelete module.enableCompileCache;\n');
  const env = { NODE_OPTIONS: `--import=${pathToFileURL(join(world.root, "without.mjs")).href}` };
  const ran = await world.lockstep(["list"], { env });
  assert.deepEqual([ran.code, /There is no agent/.test(ran.stderr)], [0, true], ran.stderr);
});

test("a template that is not there, and help, list all of them with exit 2", async () => {
  using world = createWorld();
  for (const [word, begin] of [
    ["help", "The templates are:"],
    ["review-lop", 'There is no template "review-lop".'],
    ["../steps", 'There is no template "../steps".'],
  ] as const) {
    const ran = await world.lockstep(["init", "notes", "--template", word]);
    assert.equal(ran.code, 2, ran.stdout);
    assert.ok(ran.stderr.includes(begin), ran.stderr);
    for (const name of TEMPLATES) assert.match(ran.stderr, new RegExp(`^ +${name} {2,}\\w`, "m"));
    assert.ok(!existsSync(join(world.root, ".agent")), "nothing is written");
  }
});

test("without a name the templates are listed with exit 0, and nothing else is done", async () => {
  using world = createWorld();
  const listed = await world.lockstep(["init", "--template", "help"]);
  assert.deepEqual([listed.code, listed.stderr], [0, ""]);
  for (const name of TEMPLATES) assert.match(listed.stdout, new RegExp(`^ +${name} {2,}\\w`, "m"));
  const { templates } = onlyDocument(await world.lockstep(["init", "--template", "help", "--json"]));
  assert.deepEqual(
    (templates as { readonly name: string }[]).map(({ name }) => name),
    TEMPLATES,
  );
  for (const [flags, why] of [
    [["--template", "review-lop"], /There is no template "review-lop"/],
    [["--template", "steps"], /init needs NAME/],
    [[], /init needs NAME/],
  ] as const) {
    const ran = await world.lockstep(["init", ...flags]);
    assert.equal(ran.code, 2, ran.stdout);
    assert.match(ran.stderr, why);
  }
  assert.ok(!existsSync(join(world.root, ".agent")));
});

/** Flags, the template that is written, and what is refused. */
const CHOICES: readonly [flags: readonly string[], template: string | RegExp][] = [
  [[], "steps"],
  [["--stages"], "stages"],
  [["--template", "steps"], "steps"],
  [["--template", "stages", "--stages"], "stages"],
  [["--template", "review-loop"], "review-loop"],
  [["--template", "review-loop", "--stages"], /leave one of them out/],
  [["--check", "make test"], /--check is for templates that run the tests of the project: steps runs none/],
  [["--template", "review-loop", "--check", "x"], /review-loop runs none/],
  [["--template", "fix-issue", "--check", "x"], "fix-issue"],
  [["--template", "fix-issue", "--check", " "], /--check needs a command/],
];
test("the document says which template it is, and what does not fit together is refused", async () => {
  for (const [flags, template] of CHOICES) {
    using world = createWorld();
    const ran = await world.lockstep(["init", "notes", "--json", ...flags]);
    const document = onlyDocument(ran);
    if (typeof template === "string") assert.deepEqual([ran.code, document.template], [0, template]);
    else {
      assert.equal(ran.code, 2);
      assert.match(String(document.reason), template);
      assert.ok(!existsSync(join(world.root, ".agent")));
    }
  }
});

test("an agent that is named like a template is created, and the template is mentioned", async () => {
  for (const [name, flags, isMentioned] of [
    ["review-loop", [], true],
    ["review-loop", ["--template", "review-loop"], false],
    ["review-loop", ["--stages"], true],
    ["notes", [], false],
  ] as const) {
    using world = createWorld();
    const { code, stdout } = await world.lockstep(["init", name, ...flags]);
    assert.equal(code, 0);
    assert.equal(/lockstep init NAME --template review-loop$/m.test(stdout), isMentioned, stdout);
  }
});

/** What is typed at the question, and the file that only the chosen template has. */
const TYPED: readonly [typed: string, code: number, file: string][] = [
  ["\n", 0, "steps_registry.json"],
  ["review-loop\n", 0, "stages/4-settle.md"],
  [" stages \n", 0, "stages/3-review.md"],
  ["nothing\n", 2, ""],
  ["\u0003", 130, ""],
  ["\u0004", 2, ""],
];
test("a person at a terminal chooses, and Enter is the plain one", { ...terminal }, async () => {
  for (const [typed, code, file] of TYPED) {
    using world = createWorld();
    const screen = await typedAt(world, ["init", "notes"], [typed]);
    assert.match(screen, /Which template\?[^]*review-loop {2,}writes a text[^]*Enter for steps:/);
    assert.match(screen, new RegExp(`exit ${code}\\b`));
    assert.equal(existsSync(join(world.root, ".agent")), file !== "");
    if (file !== "") assert.ok(existsSync(join(world.root, ".agent/notes", file)), screen);
  }
  for (const flags of [["--template", "review-loop"], ["--stages"], ["--json"]]) {
    using world = createWorld();
    const screen = await typedAt(world, ["init", "notes", ...flags], ["\n"]);
    assert.doesNotMatch(screen, /Which template/);
    assert.match(screen, /exit 0/);
  }
});
