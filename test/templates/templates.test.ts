/** Every template of `init`: what it writes passes `check --strict`, and its tests take every way and notice nearly every change. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, describe, test } from "node:test";
import { TEMPLATES, type AgentTemplate } from "../../src/cli/commands.ts";
import { hasBlank, initFiles } from "../../src/cli/commands/init-files.ts";
import { projectFacts } from "../../src/cli/commands/init-project.ts";
import { TEMPLATE_FACTS } from "../../src/cli/commands/init-templates.ts";
import { readTests } from "../../src/load/tests.ts";
import { load } from "../../src/run/load.ts";
import { createFiles } from "../../src/run/world/files.ts";
import { agentTests } from "../../src/testing/agent-tests.ts";
import { prepareFlow } from "../../src/testing/flow-tests.ts";
import { baseOf, mutate, scoreOf } from "../../src/testing/mutate.ts";

const root = join(import.meta.dirname, "../..");
const base = mkdtempSync(join(tmpdir(), "lockstep-templates-"));
after(() => rmSync(base, { recursive: true, force: true }));

/** The plain ones are there to be changed; the others are used as they are. */
const READY = TEMPLATES.filter((name) => name !== "steps" && name !== "stages");
const BLANKS = { TESTS: 'probe "it"', ABOUT: "a", OUTDATED: "npm outdated", DOCS: "docs" };

/** A project with the agent `mine`, made from the template. */
function projectWith(template: AgentTemplate): string {
  const cwd = mkdtempSync(join(base, `${template}-`));
  for (const [path, text] of Object.entries(initFiles("mine", undefined, template, BLANKS))) {
    const file = join(cwd, ".agent/mine", path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  return cwd;
}

test("the folders of templates/ that hold an agent are those that can be chosen", () => {
  const folders = readdirSync(join(root, "templates")).filter((name) => name !== "completion");
  assert.deepEqual(folders.toSorted(), [...TEMPLATES].toSorted());
});

for (const template of READY)
  describe(template, () => {
    test("passes check --strict and leaves no blank", async () => {
      const { problems } = await load("mine", { cwd: projectWith(template) });
      assert.deepEqual(problems, []);
      const files = Object.entries(initFiles("mine", undefined, template, BLANKS));
      const open = files.filter(([, text]) => /@[A-Z]+@/.test(text)).map(([path]) => path);
      assert.deepEqual(open, []);
      const whole = files.map(([, text]) => text).join("\n");
      assert.equal(whole.includes("probe "), hasBlank(template, "TESTS"));
    });

    test("its tests pass, take every transition, and notice nearly every change", async () => {
      const cwd = projectWith(template);
      const { flow, problems } = await load("mine", { cwd });
      assert.deepEqual(problems, []);
      const prepared = await prepareFlow(flow!);
      const { tests, problems: inTests } = readTests(flow!, createFiles(cwd));
      assert.deepEqual(inTests, []);
      const found = await baseOf(prepared, tests);
      assert.deepEqual(
        found.failing.map(({ test: { name }, unmet }) => ({ name, unmet })),
        [],
      );
      const { coverage } = await agentTests("mine", { cwd, memory: true, isCi: true });
      const { steps, transitions, checks } = coverage(found.results).totals;
      for (const { covered, of } of [steps, transitions, checks]) assert.equal(covered, of);
      assert.ok(transitions.of > 5);
      assert.ok(checks.of > 0, "a command or a file decides about the end");
      const score = scoreOf((await mutate(prepared, found)).mutants)!;
      assert.ok(score >= 0.85, `${score}`);
    });

    test("has a page with its picture, which says how its script is run", () => {
      const page = readFileSync(join(root, `docs/templates/${template}.md`), "utf8");
      assert.ok(page.includes(`../pictures/template-${template}.svg`));
      assert.ok(page.includes(`--template ${template}`));
      assert.ok(page.includes(TEMPLATE_FACTS[template].example));
      assert.ok(readFileSync(join(root, "docs/templates.md"), "utf8").includes(`templates/${template}.md`));
    });

    test("asks before it does anything that cannot be undone, and has no more than it needs", async () => {
      const { flow } = await load("mine", { cwd: projectWith(template) });
      const { worktree, finalize, github, actions } = flow!.settings;
      if (worktree.enabled) assert.equal(finalize.autoMerge, false);
      assert.deepEqual([finalize.push, finalize.createPr, actions.enabled], [false, false, false]);
      if (github.enabled) assert.equal(github.defaultClosureAction, "label-only");
      for (const { id, tools } of Object.values(flow!.steps)) {
        assert.ok(!tools.allow.includes("*"), `${id} may call any tool`);
        assert.notEqual(tools.mode, "bypassPermissions");
      }
    });
  });

/** The files at the root, and what is found out from them. */
const PROJECTS: readonly [
  name: string,
  files: { readonly [path: string]: string },
  facts: Partial<ReturnType<typeof projectFacts>>,
][] = [
  ["nothing", {}, { tests: null, outdated: "npm outdated", docs: "docs" }],
  ["a test script", { "package.json": '{"scripts":{"test":"x"}}' }, { tests: "npm test" }],
  [
    "the script that npm init writes",
    { "package.json": '{"scripts":{"test":"echo \\"Error: no test specified\\" && exit 1"}}' },
    { tests: null },
  ],
  ["a script that is not a text", { "package.json": '{"scripts":{"test":1}}' }, { tests: null }],
  ["scripts that are not an object", { "package.json": '{"scripts":null}' }, { tests: null }],
  ["a package.json that is not JSON", { "package.json": "{" }, { tests: null, outdated: "npm outdated" }],
  [
    "pnpm",
    { "package.json": '{"scripts":{"test":"x"}}', "pnpm-lock.yaml": "" },
    { tests: "pnpm test", outdated: "pnpm outdated" },
  ],
  ["yarn", { "package.json": '{"scripts":{"test":"x"}}', "yarn.lock": "" }, { tests: "yarn test" }],
  [
    "bun",
    { "package.json": '{"scripts":{"test":"x"}}', "bun.lock": "" },
    { tests: "bun run test", outdated: "bun outdated" },
  ],
  ["Rust", { "Cargo.toml": "" }, { tests: "cargo test", outdated: "cargo update --dry-run" }],
  ["Go", { "go.mod": "" }, { tests: "go test ./...", outdated: "go list -m -u all" }],
  ["Python", { "pyproject.toml": "" }, { tests: "python3 -m pytest" }],
  ["uv", { "pyproject.toml": "", "uv.lock": "" }, { tests: "uv run pytest" }],
  ["a Makefile with tests", { Makefile: "all:\n\ntest: all\n\t./t\n" }, { tests: "make test" }],
  ["a Makefile without", { Makefile: "all:\n\t./test: 1\n" }, { tests: null }],
  [
    "Rust with a package.json that has no tests",
    { "Cargo.toml": "", "package.json": "{}" },
    { tests: "cargo test", outdated: "npm outdated" },
  ],
  ["a folder doc", { "doc/a.md": "" }, { docs: "doc" }],
  ["a file docs", { docs: "" }, { docs: "docs" }],
  ["orders in a test script", { "package.json": '{"scripts":{"test":"$(touch x)"}}' }, { tests: "npm test" }],
];

for (const [name, files, facts] of PROJECTS)
  test(`a project with ${name}`, () => {
    const cwd = mkdtempSync(join(base, "project-"));
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(cwd, path)), { recursive: true });
      writeFileSync(join(cwd, path), text);
    }
    assert.partialDeepStrictEqual(projectFacts(cwd), facts);
  });
