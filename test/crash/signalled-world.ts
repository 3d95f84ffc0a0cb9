/** A project with agents of every kind that starts something: what is stopped by a signal while any of it is under way. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { modelServer, type ModelServer } from "../backends/model-server.ts";
import { agentFiles, stepTo } from "../run/project.ts";
import { machineFiles } from "../run/stage-project.ts";

export type Line = {
  readonly name: string;
  /** What begins the run. */
  readonly args: readonly string[];
};

export type Signalled = {
  readonly root: string;
  readonly env: NodeJS.ProcessEnv;
  readonly lines: readonly Line[];
  readonly server: ModelServer;
};

const HANDLER = `import { setTimeout as sleep } from "node:timers/promises";
export default async ({ content }) => { await sleep(30); return content; };
export const wasDone = () => false;
`;
const HOOKS = `import { setTimeout as sleep } from "node:timers/promises";
const wait = async () => { await sleep(20); };
export default { first: { setup: wait, teardown: wait }, second: { setup: wait, teardown: wait } };
`;
const VERDICT = `import { setTimeout as sleep } from "node:timers/promises";
export default async (definition, args, { iteration }) => { await sleep(30); return { finished: iteration >= 2 }; };
`;

const answer = (step: string, action: string, more: object = {}) => ({
  step,
  output: { stepId: step, next_action: { action } },
  ...more,
});
const block = (value: object) => `\`\`\`json\n${JSON.stringify(value)}\n\`\`\``;
const bash = (command: string) => ({ step: "initial.x", calls: [{ name: "Bash", input: { command } }] });
const SCRIPTS = {
  acts: [
    answer("initial.x", "handoff", { text: block({ type: "shout", content: "one" }) }),
    answer("closure.x", "closing", { text: block({ type: "shout", content: "two" }) }),
  ],
  tools: [
    bash("sleep 0.1; echo one"),
    bash("sleep 0.05 & wait; echo two"),
    answer("initial.x", "handoff"),
    answer("closure.x", "closing"),
  ],
  looked: [answer("initial.x", "next"), answer("initial.x", "next"), answer("initial.x", "next")],
  m: [
    { step: "first", output: {} },
    { step: "second", output: {} },
  ],
  works: [
    bash('date > "work-$(git branch --show-current | tr / -)"'),
    answer("initial.x", "handoff"),
    answer("closure.x", "closing"),
  ],
};
const STEPS = {
  "initial.x": stepTo("work", { handoff: "closure.x", next: "initial.x" }),
  "closure.x": stepTo("closure", { closing: null }),
};
const ISSUE = { parameters: { issue: { type: "number", cli: "--issue" } } };

export async function signalledWorld(root: string): Promise<Signalled> {
  const server = await modelServer("openai-compatible", ({ body }) => {
    const isLast = JSON.stringify(body.messages).includes("Do closure.x");
    const output = isLast ? answer("closure.x", "closing") : answer("initial.x", "handoff");
    return { ...output, pauseMs: 5 };
  });
  const put = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  const runner = {
    flow: { systemPromptPath: "prompts/system.md" },
    verdict: { type: "detect:graph", config: { maxIterations: 5 } },
    boundaries: { allowedTools: ["*"], permissionMode: "acceptEdits" },
  };
  const actions = {
    enabled: true,
    types: ["shout"],
    outputFormat: "json",
    handlers: { shout: "./shout.mjs" },
  };
  const custom = { type: "meta:custom", config: { handlerPath: "./verdict.mjs", maxIterations: 5 } };
  const files = {
    ...agentFiles("acts", STEPS, { runner: { ...runner, actions } }),
    ".agent/acts/shout.mjs": HANDLER,
    ...agentFiles("tools", STEPS, { runner }),
    ...agentFiles("asks", STEPS, { runner }),
    ...agentFiles("looked", STEPS, { runner: { ...runner, verdict: custom } }),
    ".agent/looked/verdict.mjs": VERDICT,
    ...agentFiles("works", STEPS, {
      runner: { ...runner, execution: { worktree: { enabled: true } } },
      agent: ISSUE,
    }),
    ...machineFiles({
      stages: { first: { next: "second" }, second: {} },
      hooks: HOOKS,
    }),
  };
  for (const [path, text] of Object.entries(files)) put(`project/${path}`, text);
  for (const [name, replies] of Object.entries(SCRIPTS)) put(`${name}.json`, JSON.stringify({ replies }));
  put("user/.gitconfig", "[user]\n\tname = t\n\temail = t@example.invalid\n[init]\n\tdefaultBranch = main\n");
  const model = { provider: "openai-compatible", model: "m", baseUrl: `${server.url}/v1` };
  put("user/.config/lockstep/config.json", JSON.stringify({ models: { near: model } }));
  const env: NodeJS.ProcessEnv = {
    PATH: process.env.PATH,
    HOME: join(root, "user"),
    XDG_CACHE_HOME: join(root, "cache"),
    GIT_CONFIG_NOSYSTEM: "1",
    LOCKSTEP_TRUST: "all",
  };
  const git = "git init -q; git add -A; git commit -qm start";
  const made = spawnSync("sh", ["-ec", git], { cwd: join(root, "project"), env, encoding: "utf8" });
  assert.equal(made.status, 0, made.stderr);
  const scripted = (name: keyof typeof SCRIPTS, ...more: readonly string[]): Line => {
    const args = ["run", name, ...more, "--script", join(root, `${name}.json`)];
    return { name: [name, ...more].join(" "), args };
  };
  const lines = [
    scripted("m"),
    scripted("acts"),
    scripted("looked"),
    scripted("tools"),
    { name: "asks a model over HTTP", args: ["run", "asks", "--model", "near"] },
    scripted("works", "--issue", "1"),
    scripted("works", "--issues", "1,2,3"),
  ];
  return { root, env, lines, server };
}
