/** What the ready-made flows do when something is in the way: a person is asked, an upgrade is set aside, a check refuses. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { onlyDocument, script } from "../cli/world.ts";
import { repository, type Repository } from "./repository.ts";

async function made(world: Repository, template: string, ...flags: readonly string[]): Promise<void> {
  const ran = await world.lockstep("init", "mine", "--template", template, ...flags);
  assert.equal(ran.code, 0, ran.stderr);
}

const draft = { name: "Write", input: { file_path: "draft.md", content: "Buy it.\n" } };
const finding = { where: "Buy it.", problem: "too short", change: "say why" };

test("review-loop: a person settles what writer and reviewer do not agree on, also from another process", async () => {
  const world = repository({});
  await made(world, "review-loop");
  const replies = [
    { step: "write", calls: [draft] },
    { step: "write", output: { summary: "s" } },
    { step: "review", output: { agreed: false, findings: [finding] } },
    { step: "revise", output: { disputed: true, summary: "short was asked for" } },
    { step: "settle", calls: [{ name: "AskUserQuestion", input: { question: "Keep it short?" } }] },
    { step: "settle", saw: ["Keep it."], output: { findings: [] } },
    { step: "revise", output: { disputed: false, summary: "kept" } },
    { step: "review", output: { agreed: true, findings: [] } },
  ];
  writeFileSync(join(world.cwd, "replies.json"), script(...replies));
  const args = ["--task", "t", "--script", "replies.json", "--on-permission", "halt", "--json"];
  const waiting = await world.lockstep("run", "mine", ...args);
  assert.equal(waiting.code, 5, waiting.stdout + waiting.stderr);
  assert.match(JSON.stringify(onlyDocument(waiting).questions), /Keep it short\?/);
  const answered = await world.lockstep("answer", "@last", "--text", "Keep it.", "--json");
  assert.deepEqual([answered.code, onlyDocument(answered).outcome], [0, "completed"], answered.stderr);
});

test("upgrade-dependencies: an upgrade that breaks the tests is in a stash, and nothing of it in the tree", async () => {
  const world = repository({ "package.json": '{ "version": 1 }\n' });
  await made(world, "upgrade-dependencies", "--check", "! grep 2 package.json");
  const stash =
    "git stash push --include-untracked -m 'Upgrade that did not work' -- . ':!.agent' ':!.lockstep'";
  const page = readFileSync(join(world.cwd, ".agent/mine/stages/5-set-aside.md"), "utf8");
  assert.ok(page.includes(stash.replaceAll("'Upgrade that did not work'", '"Upgrade that did not work"')));
  const upgrades = [{ name: "a", from: "1", to: "2", risk: "r" }];
  const upgraded = { step: "upgrade", output: { summary: "s", upgraded: ["a 2"] } };
  const write = (file_path: string) => ({ name: "Write", input: { file_path, content: '{ "version": 2 }\n' } });
  const replies = [
    { step: "survey", output: { found: true, upgrades } },
    { step: "upgrade", calls: [write("package.json"), write("package-lock.json")] },
    upgraded,
    upgraded,
    upgraded,
    { step: "set-aside", calls: [{ name: "Bash", input: { command: stash } }] },
    { step: "set-aside", output: { kept: false, reason: "the tests fail" } },
  ];
  writeFileSync(join(world.cwd, ".git/replies.json"), script(...replies));
  const ran = await world.lockstep("run", "mine", "--script", ".git/replies.json", "--json");
  assert.equal(ran.code, 0, ran.stdout + ran.stderr);
  assert.equal(world.git("status", "--porcelain"), "?? .agent/\n");
  assert.equal(readFileSync(join(world.cwd, "package.json"), "utf8"), '{ "version": 1 }\n');
  const saved = world.git("stash", "show", "--include-untracked", "--name-only", "stash@{0}");
  assert.deepEqual(saved.trim().split("\n").toSorted(), ["package-lock.json", "package.json"]);
});

test("implement-plan and upgrade-dependencies do not begin beside work that is not committed", async () => {
  for (const [template, flags, why] of [
    ["implement-plan", ["--plan", "plan.md"], /gate of stage "plan" is not resolved/],
    ["upgrade-dependencies", [], /a\.txt/],
  ] as const) {
    const world = repository({ "a.txt": "one\n" });
    await made(world, template);
    writeFileSync(join(world.cwd, "a.txt"), "two\n");
    const ran = await world.lockstep("run", "mine", ...flags, "--script", ".agent/mine/script.yaml", "--json");
    assert.equal(ran.code, 1, ran.stdout + ran.stderr);
    assert.match(String(onlyDocument(ran).reason), why);
    assert.ok(!existsSync(join(world.cwd, "lockstep-demo")));
  }
});

/** Files of the working tree, and what the check says; null: it passes. */
type Row = readonly [name: string, files: { readonly [path: string]: string }, says: RegExp | null];

const PAGES: readonly Row[] = [
  ["no page", {}, /no page below docs\/ was written/],
  ["a page that was there before", { "docs/old.md": "# Old\n" }, /no page below docs/],
  ["a page elsewhere", { "notes/a.md": "# A\n" }, /no page below docs/],
  ["a file that is not a page", { "docs/a.txt": "TODO" }, /no page below docs/],
  ["a page", { "docs/a.md": "# A\n" }, null],
  ["a change", { "docs/old.md": "# Older\n" }, null],
  ["a link to a page", { "docs/a.md": "[o](old.md) [o](./old.md#old) [o](<old.md> \"t\")\n" }, null],
  ["a link to nowhere", { "docs/a.md": "\n[o](new.md)\n" }, /docs\/a\.md:2: error: the link to new\.md leads nowhere/],
  ["a link to nowhere with a title", { "docs/a.md": '[o](new.md "t")' }, /link to new\.md/],
  ["a picture that is missing", { "docs/a.md": "![o](new.png)" }, /link to new\.png/],
  ["two links to nowhere", { "docs/a.md": "[o](x.md) [o](y.md)" }, /x\.md[^]*y\.md/],
  ["a link from the root", { "docs/a.md": "[o](/docs/old.md)" }, null],
  ["a link from the root to nowhere", { "docs/a.md": "[o](/old.md)" }, /link to \/old\.md/],
  ["a heading and other sites", { "docs/a.md": "[o](#a) [o](https://x.invalid/) [o](mailto:a@b) [o](//x/y)" }, null],
  ["a name with a space", { "docs/a b.md": "x", "docs/a.md": "[o](a%20b.md) [o](%zz.md)" }, /link to %zz\.md/],
  ["links and placeholders in code", { "docs/a.md": "```\n[o](x.md) TODO\n```\n" }, null],
  ["a block that is not closed", { "docs/a.md": "a\n~~~\nb\n" }, /docs\/a\.md:2: error: the block of code is not closed/],
  ["a placeholder", { "docs/a.md": "Install TBD" }, /docs\/a\.md:1: error: the placeholder TBD is left/],
  ["a word that holds a placeholder", { "docs/a.md": "TODOS and xxx" }, null],
];

test("write-docs: what its check says about pages", async () => {
  const world = repository({ "docs/old.md": "# Old\n" });
  await made(world, "write-docs");
  const words = /command: "(node [^"]+)"/.exec(readFileSync(join(world.cwd, ".agent/mine/machine.yaml"), "utf8"));
  for (const [name, files, says] of PAGES) assertSays(world, words![1]!, name, files, says);
});

const REPORTS: readonly Row[] = [
  ["no files", { "triage.md": "# Issue\n" }, null],
  ["files that exist", { "triage.md": "- file: a b.js\n- file: docs\n" }, null],
  ["a file that does not", { "triage.md": "- file: a b.js\n- file: c.js\n" }, /^there is no c\.js in this project\n$/],
  ["two that do not", { "triage.md": "- file: c.js\n- file: d.js" }, /c\.js[^]*d\.js/],
  ["a file of the machine", { "triage.md": "- file: /etc/hostname\n" }, /no \/etc\/hostname/],
  ["a file outside", { "triage.md": "- file: docs/../../work/a b.js\n- file: ../work\n" }, /docs\/\.\.[^]*\.\.\/work/],
  ["nothing in the place of a file", { "triage.md": "- file: \n" }, /there is no {2}in this project/],
  ["orders", { "triage.md": "- file: $(touch x); touch y `touch z`\n" }, /there is no \$\(touch x\)/],
  ["an option", { "triage.md": "- file: -e\n" }, /there is no -e/],
];

test("triage: what its check says about the files of a report", async () => {
  const world = repository({ "a b.js": "", "docs/old.md": "" });
  await made(world, "triage");
  const registry = readFileSync(join(world.cwd, ".agent/mine/steps_registry.json"), "utf8");
  const { validators } = JSON.parse(registry) as { readonly validators: { readonly [name: string]: { command: string } } };
  for (const [name, files, says] of REPORTS)
    assertSays(world, validators["files-exist"]!.command, name, files, says);
  for (const name of ["x", "y", "z"]) assert.ok(!existsSync(join(world.cwd, name)), "no text becomes a command");
});

function assertSays({ cwd, git }: Repository, command: string, name: string, files: Row[1], says: RegExp | null): void {
  git("clean", "-qfd", "-e", ".agent");
  git("checkout", "-q", ".");
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(cwd, path)), { recursive: true });
    writeFileSync(join(cwd, path), text);
  }
  const env = { PATH: `${dirname(process.execPath)}:${process.env.PATH}` };
  const { status, stderr } = spawnSync("sh", ["-c", command], { cwd, encoding: "utf8", env });
  assert.deepEqual([status === 0, says === null ? stderr : says.test(stderr)], [says === null, says === null ? "" : true], `${name}: ${stderr}`);
}
