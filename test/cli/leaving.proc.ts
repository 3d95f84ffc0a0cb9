/** Ctrl-C at every moment: the first one before there is a run and the second one in a run leave at once. */
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { alive } from "../alive.ts";
import { needs } from "../needs.ts";
import { machineFiles } from "../run/stage-project.ts";
import {
  createWorld,
  MAIN,
  onlyDocument,
  replies,
  script,
  writeAgent,
  writeCheckedAgent,
  type World,
} from "./world.ts";
import { until } from "../until.ts";

type Moment = {
  readonly name: string;
  readonly prepare: (world: World) => readonly string[] | Promise<readonly string[]>;
  /** When it is there: what was said, or a file that was written by what is under way. */
  readonly isThere: (world: World, heard: string) => boolean;
};

const SAY = "echo $$ $(readlink /proc/self/ns/pid) > pid";
const STUBBORN = `trap '' TERM INT; ${SAY}; while :; do sleep 1; done`;
const COMMIT = "echo new > new.txt; git add -A; git commit -qm new";
const ALL = script(replies.initial(), replies.continuation(), replies.closure());
const BUSY_HOOK = `import { readlinkSync, writeFileSync } from "node:fs";
  export default { a: { setup: () => {
    writeFileSync("pid", process.pid + " " + readlinkSync("/proc/self/ns/pid") + "\\n");
    for (;;) {}
  } } };`;
const written = (world: World) =>
  existsSync(join(world.root, "pid")) && readFileSync(join(world.root, "pid"), "utf8").endsWith("\n");

function writeWithTools(world: World, mode: string): void {
  writeAgent(world, "a", {
    registry: (registry) => {
      const steps = registry.steps as { [id: string]: { permissionMode?: string } };
      steps["initial.note"]!.permissionMode = mode;
    },
    agent: (agent) => {
      const { boundaries } = agent.runner as { boundaries: { allowedTools: readonly string[] } };
      boundaries.allowedTools = ["*"];
    },
  });
}

const servers: Server[] = [];
after(() => servers.forEach((server) => server.close()));

/** A server that takes a connection and says nothing. */
async function silent(onConnection: () => void): Promise<number> {
  const server = createServer((socket) => {
    socket.on("error", () => undefined).resume();
    onConnection();
  });
  servers.push(server);
  server.listen(0, "127.0.0.1").unref();
  await once(server, "listening");
  return (server.address() as { readonly port: number }).port;
}

const MOMENTS: readonly Moment[] = [
  {
    name: "a model is waited for",
    prepare: (world) => {
      writeAgent(world, "a");
      world.write("s.json", script({ error: { kind: "rate-limit", retryAfterMs: 60_000 } }));
      return ["run", "a", "--topic", "t", "--script", "s.json"];
    },
    isThere: (_, heard) => /trying again/.test(heard),
  },
  {
    name: "a tool runs a command",
    prepare: (world) => {
      writeWithTools(world, "acceptEdits");
      world.write("s.json", script({ calls: [{ name: "Bash", input: { command: STUBBORN } }] }));
      return ["run", "a", "--topic", "t", "--script", "s.json"];
    },
    isThere: written,
  },
  {
    name: "a check runs a command",
    prepare: (world) => {
      writeCheckedAgent(world, "a", STUBBORN);
      world.write("s.json", ALL);
      return ["run", "a", "--topic", "t", "--script", "s.json"];
    },
    isThere: written,
  },
  {
    name: "a hook is busy without end",
    prepare: (world) => {
      const files = machineFiles({ stages: { a: { next: "end" } }, hooks: BUSY_HOOK });
      for (const [path, text] of Object.entries(files)) world.write(path, text);
      world.write("s.json", script());
      return ["run", "m", "--script", "s.json"];
    },
    isThere: written,
  },
  {
    name: "somebody is asked",
    prepare: (world) => {
      writeWithTools(world, "default");
      const write = { calls: [{ name: "Write", input: { file_path: "made.txt", content: "hi" } }] };
      world.write("s.json", script(write));
      return ["run", "a", "--topic", "t", "--script", "s.json", "--wait"];
    },
    isThere: (_, heard) => /wants to call Write/.test(heard),
  },
  {
    name: "the branch is pushed",
    prepare: async (world) => {
      writeWithTools(world, "acceptEdits");
      const commit = { calls: [{ name: "Bash", input: { command: COMMIT } }] };
      world.write("s.json", script(commit, replies.initial(), replies.continuation(), replies.closure()));
      const port = await silent(() => world.write("pid", "0 none\n"));
      const git = (...args: string[]) => execFileSync("git", args, { cwd: world.root, env: world.env });
      world.writeHome(".gitconfig", "[user]\nname = T\nemail = t@example.org\n");
      git("init", "-q", "-b", "main");
      git("add", "-A");
      git("commit", "-qm", "x");
      git("remote", "add", "origin", `https://127.0.0.1:${port}/x`);
      return ["run", "a", "--topic", "t", "--script", "s.json", "--worktree", "--push"];
    },
    isThere: written,
  },
];

function begin(world: World, args: readonly string[]) {
  const child = world.begin(args, { LOCKSTEP_TRUST: "all" });
  const heard = { text: "", stdout: "" };
  child.stderr.setEncoding("utf8").on("data", (text: string) => (heard.text += text));
  child.stdout.setEncoding("utf8").on("data", (text: string) => (heard.stdout += text));
  const over = once(child, "close") as Promise<[code: number | null, signal: string | null]>;
  const comesTo = async (isThere: () => boolean) => {
    await until(() => isThere() || child.exitCode !== null, `what is waited for in: ${heard.text}`);
    assert.ok(isThere(), `it never came to it: ${heard.text}`);
  };
  // A hang is ended here, and shows as SIGKILL.
  const limit = setTimeout(() => child.kill("SIGKILL"), 120_000);
  void over.then(() => clearTimeout(limit));
  return { child, heard, over, comesTo };
}

describe("a second Ctrl-C leaves at once while", { concurrency: 2 }, () => {
  for (const { name, prepare, isThere } of MOMENTS) {
    test(name, async () => {
      using world = createWorld();
      const args = await prepare(world);
      const { child, heard, over, comesTo } = begin(world, [...args, "--json"]);
      await comesTo(() => isThere(world, heard.text));
      child.kill("SIGINT");
      await comesTo(() => /Stopping: /.test(heard.text));
      child.kill("SIGINT");
      assert.deepEqual(await over, [130, null], heard.text);
      const { stdout } = heard;
      const { outcome, run, resumable, exitCode, reason } = onlyDocument({ stdout, stderr: "", code: 130 });
      assert.deepEqual([outcome, resumable, exitCode], ["interrupted", true, 130], stdout);
      assert.match(String(run), /^\w{10}$/);
      assert.match(
        String(reason),
        new RegExp(`(?:continue|go on) with: lockstep resume ${String(run)}$`, "i"),
      );
      if (!written(world)) return;
      const left = () => alive([readFileSync(join(world.root, "pid"), "utf8")]);
      await until(() => left().length === 0, "nothing outlives it");
    });
  }
});

test("once the end of a run is recorded, signals do not change its outcome", async () => {
  using world = createWorld();
  // It does not end when it is asked to, so that closing takes a while.
  const hooks = `process.on("SIGTERM", () => {}); export default { a: { setup: () => {} } };`;
  const files = machineFiles({ stages: { a: { next: "end" } }, hooks });
  for (const [path, text] of Object.entries(files)) world.write(path, text);
  world.write("s.json", script({ output: {} }));
  const { child, heard, over, comesTo } = begin(world, ["run", "m", "--script", "s.json", "--events"]);
  await comesTo(() => heard.stdout.includes("run.ended"));
  child.kill("SIGINT");
  child.kill("SIGTERM");
  assert.deepEqual(await over, [0, null], heard.text);
});

/** On a terminal nobody but the kernel can end a process that is too busy to hear a signal. */
const TERMINAL = needs(spawnSync("script", ["--version"]).status === 0, "util-linux `script` is missing");
describe("before there is a run, the first one leaves a terminal:", { ...TERMINAL, concurrency: 2 }, () => {
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const) {
    test(`${signal} while the process is too busy to hear it`, async () => {
      using world = createWorld();
      writeAgent(world, "a");
      world.write("s.json", ALL);
      // Loading the agent reads this file, and the process stands still until the test has had its say.
      const preload = `data:text/javascript,${encodeURIComponent(STANDSTILL)}`;
      const args = [MAIN, "run", "a", "--topic", "t", "--script", "s.json"];
      const words = [process.execPath, "--import", preload, ...args].map((word) => `'${word}'`).join(" ");
      const line = `sh -c 'echo $$ > pid; exec "$@"' sh ${words}; echo $? > code`;
      const child = spawn("script", ["-qec", line, "/dev/null"], {
        cwd: world.root,
        env: { ...world.env, STAND_STILL: join(world.root, "s.json") },
        stdio: ["pipe", "ignore", "ignore"],
      });
      const over = once(child, "close");
      await until(() => existsSync(join(world.root, "s.json.read")), "the file is being read");
      const busy = Number(readFileSync(join(world.root, "pid"), "utf8"));
      process.kill(busy, signal);
      const limit = setTimeout(() => process.kill(busy, "SIGKILL"), 60_000);
      await over;
      clearTimeout(limit);
      assert.equal(Number(readFileSync(join(world.root, "code"), "utf8")), code);
      assert.equal(existsSync(join(world.root, ".lockstep")), false);
    });
  }
});

/** Makes reading one file take without end, in the main thread. */
const STANDSTILL = `
  import fs from "node:fs";
  import { syncBuiltinESMExports } from "node:module";
  const { readFileSync, openSync } = fs;
  const stop = (path) => {
    if (String(path) !== process.env.STAND_STILL) return;
    fs.writeFileSync(path + ".read", "");
    for (;;) {}
  };
  fs.readFileSync = (path, ...rest) => (stop(path), readFileSync(path, ...rest));
  fs.openSync = (path, ...rest) => (stop(path), openSync(path, ...rest));
  syncBuiltinESMExports();
`;
