/** A newcomer: the README, the tutorial and pages of the docs, typed into a real terminal word for word. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { LLMock } from "@copilotkit/aimock";
import { FOLLOWED } from "../scripts/pages.ts";
import { follow, openShell, terminal, type Shell } from "./shell.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const home = mkdtempSync(join(tmpdir(), "lockstep-newcomer-"));
const clone = join(home, "lockstep");
const project = join(home, "my-project");
after(() => rmSync(home, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }));

/** A model that does as the tutorial asks, behind the protocol of Anthropic. */
const mock = new LLMock({ port: 0, logLevel: "silent" });
// The tutorial limits the cost, so that the answers have to come with what they took.
const usage = { input_tokens: 100, output_tokens: 20 };
const answer = (output: object) => ({ content: JSON.stringify(output), usage });
const replies = [
  answer({
    stepId: "initial.note",
    plan: { angle: "why", points: ["the moon"] },
    next_action: { action: "next" },
  }),
  {
    content: "",
    usage,
    toolCalls: [
      { name: "Write", arguments: JSON.stringify({ file_path: "note.md", content: "Two tides a day.\n" }) },
    ],
  },
  answer({ stepId: "continuation.note", draft: { text: "short" }, next_action: { action: "handoff" } }),
  answer({ stepId: "closure.note", note: "Two tides a day.", next_action: { action: "closing" } }),
];
mock.on({}, () => replies.shift() ?? { error: { message: "no reply is left", type: "test" }, status: 400 });

let shell: Shell | undefined;

function withDependencies(name: string, found = new Set<string>()): ReadonlySet<string> {
  if (found.has(name)) return found;
  found.add(name);
  const text = readFileSync(join(root, "node_modules", name, "package.json"), "utf8");
  const { dependencies, peerDependencies } = JSON.parse(text) as {
    readonly dependencies?: object;
    readonly peerDependencies?: object;
  };
  for (const other of Object.keys({ ...dependencies, ...peerDependencies })) withDependencies(other, found);
  return found;
}

describe("a newcomer at a terminal", { ...terminal }, () => {
  before(async () => {
    // What a clone has: the files of the repository, without what was built or recorded in it.
    cpSync(root, clone, {
      recursive: true,
      filter: (from) =>
        !/^(?:\.git|node_modules|dist|\.lockstep[^/]*|[^/]+\.tgz)$/.test(from.slice(root.length)),
    });
    // Stands for `npm ci`, which the first npm script of a fresh clone does.
    symlinkSync(join(root, "node_modules"), join(clone, "node_modules"));
    writeFileSync(join(home, ".gitconfig"), "[user]\n  name = A Newcomer\n  email = new@example.invalid\n");
    await mock.start();
    const npm = (key: string) => spawnSync("npm", ["config", "get", key], { encoding: "utf8" }).stdout.trim();
    shell = await openShell(clone, {
      PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
      HOME: home,
      LANG: "C.UTF-8",
      npm_config_cache: npm("cache"),
      npm_config_userconfig: npm("userconfig"),
      npm_config_prefer_offline: "true",
      npm_config_progress: "false",
      npm_config_loglevel: "error",
      npm_config_update_notifier: "false",
      ANTHROPIC_BASE_URL: `${mock.url}/v1`,
    });
  });
  after(async () => {
    await shell?.[Symbol.asyncDispose]();
    await mock.stop();
  });

  for (const name of FOLLOWED)
    test(`${name}, word for word`, async () => {
      await shell!.type(`cd ${name === "README.md" ? clone : project}`);
      const folder = () => (name === "docs/first-hour.md" ? join(home, "announcement") : project);
      await follow(shell!, join(clone, name), { folder, typed: withoutNetwork });
    });

  test("the page that a message names is in the installed package", async () => {
    const { screen } = await shell!.type("npx lockstep models");
    const [, path = ""] = /\((\S+\/docs\/models\.md)\)/.exec(screen) ?? [];
    assert.equal(path, join(project, "node_modules/lockstep/docs/models.md"), screen);
    assert.ok(existsSync(path));
  });

  test("the model was asked all that the tutorial has it asked", () => assert.deepEqual(replies, []));
});

/** The packages of providers are here already: a copy stands for fetching them once more. */
function withoutNetwork(command: string): string | null {
  const install = /^npm install --save-dev (@ai-sdk\/[a-z]+)@4$/.exec(command);
  if (install === null) return command;
  for (const name of withDependencies(install[1]!))
    cpSync(join(root, "node_modules", name), join(project, "node_modules", name), { recursive: true });
  return null;
}
