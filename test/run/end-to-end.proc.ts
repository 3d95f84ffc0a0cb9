/**
 * Two examples on every kind of backend, by the command that a user types: the same flow with the same answers takes the
 * same way whether the model is a script, a service behind HTTP or a coding agent, and leaves the same files and commits.
 *
 * Each run has a worktree of its own; what was edited there is merged at its end.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { parseScript, type ScriptReply } from "../../src/backends/scripted/script.ts";
import { modelServer, type Deed, type ModelServer, type Seen, type Wire } from "../backends/model-server.ts";
import { suiteOffline } from "../backends/loopback.ts";
import { MAIN, onlyDocument, start } from "../cli/world.ts";
import { needs } from "../needs.ts";

const packages = process.env.LOCKSTEP_PACKAGES ?? "";
const { skip } = needs(
  existsSync(join(packages, "node_modules/@anthropic-ai/claude-agent-sdk/package.json")),
  "the Claude Agent SDK not installed",
);

type Example = {
  readonly folder: string;
  readonly agent: string;
  readonly flags: readonly string[];
  /** Steps that run side by side, by words that only their own requests hold. */
  readonly lanes: { readonly [words: string]: string };
  readonly edited: readonly string[];
  readonly ways: readonly Way[];
};

/** `script`: in our own process. `claude`: the real program, whose model is on the Anthropic wire. */
type Way = "script" | "claude" | Wire;

const EXAMPLES: readonly Example[] = [
  {
    folder: "01-fix-a-test",
    agent: "fixer",
    flags: ["--issue", "7"],
    lanes: {},
    edited: ["cart.js"],
    ways: ["anthropic", "openai", "claude"],
  },
  {
    folder: "06-stage-machine",
    agent: "ship",
    flags: ["--task", "make the tests pass"],
    lanes: { "in slug.js and nowhere else": "build-slug", "in count.js and nowhere else": "build-count" },
    edited: ["slug.js", "count.js"],
    ways: ["anthropic", "openai", "openai-compatible", "google", "claude"],
  },
];

suiteOffline("the examples on every kind of backend", import.meta.url, { skip: false }, () => {
  for (const example of EXAMPLES) describeExample(example);
});

function describeExample(example: Example): void {
  describe(`example ${example.folder}`, () => {
    const scripted = travel(example, "script");
    for (const way of example.ways) {
      test(
        `goes the same way over ${way} as with its script`,
        { skip: way === "claude" && skip },
        async () => {
          assert.deepEqual(await travel(example, way), await scripted);
        },
      );
    }
  });
}

/** In the script of example 06 one stage calls another tool beside the one that completes it. */
const ALONE = "build_complete must be the only tool call in its response; nothing of this response was run.";

/** What is the same whoever says it. */
type Journey = {
  readonly path: readonly string[];
  readonly outcome: unknown;
  readonly handoff: unknown;
  readonly checks: readonly string[];
  readonly turns: number;
  readonly effects: readonly string[];
  readonly commits: string;
  readonly files: readonly string[];
};

async function travel(example: Example, way: Way): Promise<Journey> {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-journey-"));
  const project = join(folder, "project");
  const git = (...args: readonly string[]) => {
    const { status, stdout, stderr } = spawnSync("git", args, { cwd: project, encoding: "utf8" });
    assert.equal(status, 0, `git ${args.join(" ")}: ${stderr}`);
    return stdout;
  };
  const from = fileURLToPath(new URL(`../../examples/${example.folder}/`, import.meta.url));
  const script = join(from, "script.yaml");
  try {
    cpSync(join(from, "project"), project, { recursive: true });
    cpSync(join(from, ".agent"), join(project, ".agent"), { recursive: true });
    git("init", "-q", "-b", "main");
    git("config", "user.name", "Test");
    git("config", "user.email", "test@example.invalid");
    git("add", "-A");
    git("commit", "-qm", "Begin");

    await using model = await modelFor(way, example, await parseScript(readFileSync(script, "utf8"), script));
    const { flags, env } = surroundings(way, model, folder, script);
    const ran = await start(
      process.execPath,
      [MAIN, "run", example.agent, ...example.flags, "--worktree", "--json", ...flags],
      project,
      { env },
    );
    assert.equal(ran.code, 0, ran.stdout + ran.stderr);
    if (model !== null) assert.equal(model.left(), 0, "every reply was asked for");
    const result = onlyDocument(ran) as {
      readonly run: string;
      readonly path: readonly { readonly step: string; readonly label: string }[];
      readonly checks: readonly { readonly name: string; readonly ok: boolean }[];
      readonly effects: readonly { readonly kind: string; readonly state: string }[];
      readonly warnings: readonly string[];
      readonly usage: { readonly turns: number };
      readonly outcome: unknown;
      readonly handoff: unknown;
    };
    // An agent with a loop of its own is told so by our gate, others by the engine: only the former is a denial.
    const denied = ["Edit", "build_complete"].map((tool) => `build-count@1: ${tool} was denied: ${ALONE}`);
    assert.deepEqual(result.warnings, way === "claude" && example.agent === "ship" ? denied : []);
    assert.equal(
      git("status", "--porcelain").replace("?? .lockstep/\n", ""),
      "",
      "the merge left a clean tree",
    );
    assert.equal(git("worktree", "list").trim().split("\n").length, 1, "the worktree is gone");
    const { NODE_TEST_CONTEXT: _, ...plain } = process.env;
    assert.equal(spawnSync(process.execPath, ["--test"], { cwd: project, env: plain }).status, 0);
    return {
      path: result.path.map(({ step, label }) => `${step} ${label}`),
      outcome: result.outcome,
      handoff: JSON.parse(JSON.stringify(result.handoff).replaceAll(result.run, "RUN")) as unknown,
      // Steps side by side are checked in the order they get there: only each check's own order is fixed.
      checks: result.checks
        .toSorted((a, b) => a.name.localeCompare(b.name))
        .map(({ name, ok }) => `${name} ${ok}`),
      turns: result.usage.turns,
      effects: result.effects.map(({ kind, state }) => `${kind} ${state}`),
      commits: git("log", "--topo-order", "--format=%s").replace(/\b\w+\/\w{6,}\b|run \w{10}/g, "RUN"),
      files: example.edited.map((file) => readFileSync(join(project, file), "utf8")),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function surroundings(way: Way, model: Model | null, folder: string, script: string) {
  const { NODE_TEST_CONTEXT: _, ...inherited } = process.env;
  const env = { ...inherited, HOME: join(folder, "home"), XDG_CONFIG_HOME: "", LOCKSTEP_TRUST: "all" };
  mkdirSync(join(env.HOME, ".config/lockstep"), { recursive: true });
  if (model === null) return { flags: ["--script", script], env };
  const { provider, model: name, baseUrl } = model.server.target;
  if (way === "claude") {
    // With a path and its version, as Lockstep's own requests would take it.
    const own = { ANTHROPIC_BASE_URL: `${model.server.url}/api/v1`, ANTHROPIC_API_KEY: "the-key" };
    return { flags: ["--backend", "claude-agent"], env: { ...env, ...own } };
  }
  const opus = { provider, model: name, baseUrl, apiKeyEnv: "THE_KEY" };
  writeFileSync(join(env.HOME, ".config/lockstep/config.json"), JSON.stringify({ models: { opus } }));
  return { flags: [], env: { ...env, THE_KEY: "the-key" } };
}

type Model = {
  readonly server: ModelServer;
  readonly left: () => number;
  readonly [Symbol.asyncDispose]: () => Promise<void>;
};

/** A model behind HTTP that answers by the script: the next reply, or the next of the step that is asked. */
async function modelFor(
  way: Way,
  { lanes }: Example,
  replies: readonly ScriptReply[],
): Promise<Model | null> {
  if (way === "script") return null;
  const left = [...replies];
  const next = ({ body, path }: Seen): Deed | undefined => {
    if (way === "claude" && !path.startsWith("/api/v1/messages")) return { status: 404 };
    const text = JSON.stringify(body);
    const step = Object.entries(lanes).find(([words]) => text.includes(words))?.[1];
    const at = step === undefined ? 0 : left.findIndex((reply) => reply.step === step);
    const [reply] = left.splice(at, 1);
    return way === "claude" && reply !== undefined ? inItsWords(reply) : reply;
  };
  const server = await modelServer(way === "claude" ? "anthropic" : way, next);
  return { server, left: () => left.length, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

/** What Claude Code says itself where another backend says it in our words. */
function inItsWords(reply: ScriptReply): ScriptReply {
  const saw = reply.saw?.map((words) =>
    words === "does not fit its schema" ? "does not match required schema" : words,
  );
  return saw === undefined ? reply : { ...reply, saw };
}
