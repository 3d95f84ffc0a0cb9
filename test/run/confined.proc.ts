/** Whatever a confined run starts is in the sandbox: code of the project, and the commands of a coding agent. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { createMemoryJournal, run, type Backend, type Result } from "../../src/run/index.ts";
import { startServer, type Served } from "../backends/anthropic-server.ts";
import { hasBwrap, NO_BWRAP } from "../boundaries/confined.ts";
import { needs } from "../needs.ts";
import { agentFiles, projectWith } from "./project.ts";
import { machineFiles } from "./stage-project.ts";

const packages = process.env.LOCKSTEP_PACKAGES ?? "";
const bwrap = needs(hasBwrap, NO_BWRAP);
const claude = needs(
  existsSync(join(packages, "node_modules/@anthropic-ai/claude-agent-sdk/package.json")),
  "the Claude Agent SDK not installed",
);

const made: string[] = [];
after(() => made.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

/** A home with a key in it, not below a folder that is empty inside anyway. */
function newHome(): string {
  const home = realpathSync(mkdtempSync(join(homedir(), ".lockstep-home-")));
  made.push(home);
  mkdirSync(join(home, ".ssh"));
  writeFileSync(join(home, ".ssh/id"), "the-key-of-the-user");
  return home;
}

/** Somebody on this machine who counts those that reach him. */
async function listener() {
  let reached = 0;
  const server = createServer((socket) => {
    reached += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { port, reached: () => reached, [Symbol.dispose]: () => void server.close() };
}

/** The text of a function that tries what it must not be able to do, and tells how far it got. */
const attempts = (home: string, port: number) => `
  const attempt = async (what) => { try { await what(); return "got through"; } catch { return "failed"; } };
  const fs = await import("node:fs");
  const net = await import("node:net");
  const tried = {
    write: await attempt(() => fs.writeFileSync(${JSON.stringify(join(home, "reached"))}, "x")),
    key: await attempt(() => { if (fs.readFileSync(${JSON.stringify(join(home, ".ssh/id"))}, "utf8") === "") throw 0; }),
    agents: await attempt(() => fs.writeFileSync(".agent/planted", "x")),
    parent: await attempt(() => process.kill(${process.pid}, 0)),
    network: await attempt(() => new Promise((yes, no) => net.connect(${port}, "127.0.0.1").on("connect", yes).on("error", no))),
    work: await attempt(() => fs.writeFileSync("work.txt", "x")),
  };
`;

const FREE = { write: "got through", key: "got through", agents: "got through", parent: "got through" };
const HELD = { write: "failed", key: "failed", agents: "failed", parent: "failed", network: "failed" };
const EXPECTED = {
  off: { ...FREE, network: "got through", work: "got through" },
  on: { ...HELD, work: "got through" },
} as const;

const answer: Backend = {
  spec: { id: "test", options: null },
  turn: ({ output }) => {
    const usage = { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: null };
    const reply = { kind: "reply", text: "", usage } as const;
    return Promise.resolve(
      output?.channel.kind === "tool"
        ? { ...reply, calls: [{ id: "1", name: output.channel.name, input: {} }] }
        : { ...reply, calls: [], output: { stepId: "work.t", next_action: { action: "next" } } },
    );
  },
};

for (const sandbox of ["on", "off"] as const) {
  describe(`with the sandbox ${sandbox}`, bwrap, () => {
    test("the hooks of a machine", async () => {
      using service = await listener();
      const home = newHome();
      const hooks = `export default { a: { setup: async (ctx) => { ${attempts(home, service.port)} ctx.tried = tried; } } };`;
      const cwd = projectWith(machineFiles({ stages: { a: { body: "{{ctx.tried}}" } }, hooks }));
      let tried: unknown;
      const backend: Backend = {
        ...answer,
        turn: async (request) => {
          tried = JSON.parse(/\{.*\}/s.exec(request.system)![0]);
          return await answer.turn!(request);
        },
      };
      const result = await go({ agent: "m", cwd, home, sandbox, backend });
      assert.equal(result.success, true, result.reason);
      assert.deepEqual(tried, EXPECTED[sandbox]);
      assert.equal(existsSync(join(home, "reached")), sandbox === "off");
      assert.equal(service.reached(), sandbox === "off" ? 1 : 0);
    });

    test("a module that decides about the end", async () => {
      using service = await listener();
      const home = newHome();
      const module = `export default async () => { ${attempts(home, service.port)} return { finished: true, reason: JSON.stringify(tried) }; };`;
      const files = agentFiles(
        "t",
        { "work.t": { kind: "work", intents: ["next"], transitions: { next: { target: "work.t" } } } },
        { runner: { verdict: { type: "meta:custom", config: { handlerPath: "./verdict.mjs" } } } },
      );
      const cwd = projectWith({ ...files, ".agent/t/verdict.mjs": module });
      const result = await go({ agent: "t", cwd, home, sandbox, backend: answer });
      assert.equal(result.success, true, result.reason);
      assert.deepEqual(JSON.parse(/\{.*\}/s.exec(result.reason)![0]), EXPECTED[sandbox]);
    });

    test("the commands of Claude Code", claude, async () => {
      using service = await listener();
      const home = newHome();
      const command = `node --input-type=module -e '${attempts(home, service.port)} process.stdout.write(JSON.stringify(tried))' > tried.json; env > env.txt; cat /proc/*/environ 2>/dev/null | tr "\\0" "\\n" | grep -c "the-key-of-the-model" > keys.txt`;
      const done = (name: string, input: object): Served => ({ calls: [{ name, input }] });
      const server = await startServer([
        done("Bash", { command }),
        done("Write", { file_path: join(home, "other"), content: "x" }),
        done("Read", { file_path: "tried.json" }),
        done("Bash", { command: "cat env.txt keys.txt" }),
        done("submit", {}),
      ]);
      try {
        const cwd = projectWith(
          machineFiles({ stages: { a: { allowedTools: ["Bash", "Write", "Read"], turnCap: 9 } } }),
        );
        const model = { ANTHROPIC_BASE_URL: server.url, ANTHROPIC_API_KEY: "the-key-of-the-model" };
        const result = await go({ agent: "m", cwd, home, sandbox, use: "claude-agent", env: model });
        assert.equal(result.success, true, result.reason);
        const [, , wrote, read, env] = server.asked.map(({ last }) => last);
        assert.match(wrote!, /outside the working directory/);
        const tried = /\{.*?\}/.exec(
          (JSON.parse(read!) as { content: [{ content: string }] }).content[0].content,
        );
        assert.deepEqual(JSON.parse(tried![0]), EXPECTED[sandbox]);
        assert.doesNotMatch(env!, /the-key-of-the-model|ANTHROPIC|CLAUDE/);
        assert.equal(/\\n0"/.test(env!), sandbox === "on", "whether it could read the key out of a process");
        assert.equal(service.reached(), sandbox === "off" ? 1 : 0);
      } finally {
        await server.close();
      }
    });
  });
}

test("an agent that starts its own commands is refused where a sandbox is wanted, and said so", async () => {
  const cwd = projectWith(
    agentFiles("t", {
      "work.t": { kind: "closure", intents: ["closing"], transitions: { closing: { target: null } } },
    }),
  );
  const backend: Backend = {
    spec: { id: "foreign", options: null },
    unconfinable: true,
    run: () =>
      Promise.resolve({
        kind: "reply",
        text: "",
        calls: [],
        output: { stepId: "work.t", next_action: { action: "closing" } },
        usage: { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: null },
      }),
  };
  const home = newHome();
  const refused = await go({ agent: "t", cwd, home, sandbox: "on", backend });
  assert.deepEqual([refused.code, refused.exitCode, refused.run], ["SANDBOX_UNAVAILABLE", 3, null]);
  assert.match(refused.reason, /the agent behind "foreign" starts its commands itself.*--sandbox off/);
  const allowed = await go({ agent: "t", cwd, home, sandbox: "off", backend });
  assert.equal(allowed.success, true, allowed.reason);
});

type Go = {
  readonly agent: string;
  readonly cwd: string;
  readonly home: string;
  readonly sandbox: "on" | "off";
  readonly backend?: Backend;
  readonly use?: string;
  readonly env?: NodeJS.ProcessEnv;
};

async function go({ home, env, ...options }: Go): Promise<Result> {
  const { NODE_TEST_CONTEXT: _, ...inherited } = process.env;
  const own = { HOME: home, XDG_CONFIG_HOME: "", LOCKSTEP_TRUST: "all" };
  return await run({ ...options, journal: createMemoryJournal(), env: { ...inherited, ...own, ...env } });
}
