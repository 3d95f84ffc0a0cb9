/**
 * What is left of a coding agent when the command that drives it ends in any way: nothing. By the command that a user
 * types, with an agent that does not end with its input and has started a program in a session of its own.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { MAIN, onlyDocument, start } from "../cli/world.ts";
import { needs } from "../needs.ts";
import { agentFiles, stepTo, writeFiles } from "../run/project.ts";
import type { Act } from "./acp-agent.ts";
import { until } from "../until.ts";

const packages = process.env.LOCKSTEP_PACKAGES ?? "";
const { skip } = needs(
  existsSync(join(packages, "node_modules/@agentclientprotocol/sdk/package.json")),
  "@agentclientprotocol/sdk not installed",
);
const script = fileURLToPath(new URL("acp-agent.ts", import.meta.url));
const STUBBORN: readonly Act[] = [{ leave: "marked" }, { stay: true }, { touch: "ready" }, { hang: true }];
const ANSWER = { stepId: "closure.t", next_action: { action: "closing" } };

describe("the end of a command that drives an agent", { skip, concurrency: 2 }, () => {
  const signals: readonly [signal: NodeJS.Signals, code: number | null][] = [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
    ["SIGKILL", null],
  ];
  for (const [signal, code] of signals) {
    test(`by ${signal}: nothing is left`, async () => {
      using w = world(STUBBORN);
      const child = w.start(["run", "t", ...FLAGS]);
      await until(() => existsSync(join(w.cwd, "ready")), "the agent is ready");
      assert.equal(w.left("sleep 600").length, 1);
      child.kill(signal);
      await until(() => child.exitCode !== null || child.signalCode !== null, "the runner has ended");
      assert.equal(child.exitCode, code);
      await until(() => w.left("").length === 0, "all processes have ended");
      assert.deepEqual(readdirSync(w.temp), []);
    });
  }

  test("by SIGKILL together with what watches over it: a resumed run ends the agent before it starts another", async () => {
    using w = world(STUBBORN);
    const child = w.start(["run", "t", ...FLAGS]);
    await until(() => existsSync(join(w.cwd, "ready")), "the agent is ready");
    const [watcher] = w.left("trap '' HUP INT TERM");
    process.kill(Number(watcher!.split(" ", 1)[0]), "SIGKILL");
    child.kill("SIGKILL");
    await until(() => w.left("trap ''").length === 0 && child.signalCode !== null, "both have ended");
    assert.equal(w.left("acp-agent.ts").length, 1, "the agent is still there");
    assert.equal(w.left("sleep 600").length, 1);

    w.configure([{ submit: ANSWER }]);
    const ran = await w.run(["resume", "@last", "--json", "--sandbox", "off"]);
    assert.equal(ran.code, 0, ran.stderr);
    assert.deepEqual(w.left(""), []);
  });

  test("by a failure of the agent: nothing is left, and what it printed is told without its key", async () => {
    using w = world([{ leave: "marked" }, { print: "bad key sk-the-secret-key-of-it\n" }, { exit: true }]);
    const ran = await w.run(["run", "t", "--json", ...FLAGS]);
    const { reason } = onlyDocument(ran) as { reason: string };
    assert.match(reason, /ended \(3\)\nIt printed:\n  \| bad key /);
    assert.doesNotMatch(ran.stdout + ran.stderr, /sk-the-secret-key-of-it/);
    assert.deepEqual(w.left(""), []);
    assert.deepEqual(readdirSync(w.temp), []);
  });
});

const FLAGS = ["--backend", "acp", "--sandbox", "off"];

function world(acts: readonly Act[]) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "lockstep-left-")));
  const [cwd, home, temp] = [join(root, "work"), join(root, "home"), join(root, "tmp")];
  for (const folder of [cwd, home, temp]) mkdirSync(folder);
  writeFiles(cwd, agentFiles("t", { "closure.t": stepTo("closure", { closing: null }) }));
  const configure = (list: readonly Act[]) => {
    const args = [script, "act", JSON.stringify([list])];
    const acp = { command: process.execPath, args, pass: ["LOCKSTEP_PACKAGES", "AGENT_API_KEY"] };
    writeFiles(home, { ".config/lockstep/config.json": JSON.stringify({ acp }) });
  };
  configure(acts);
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    TMPDIR: temp,
    XDG_CACHE_HOME: join(tmpdir(), "lockstep-test-cache"),
    LOCKSTEP_PACKAGES: packages,
    LOCKSTEP_TRUST: "all",
    AGENT_API_KEY: "sk-the-secret-key-of-it",
  };
  return {
    cwd,
    temp,
    configure,
    start: (words: readonly string[]) =>
      spawn(process.execPath, [MAIN, ...words], { cwd, env, stdio: "ignore" }),
    run: (words: readonly string[]) => start(process.execPath, [MAIN, ...words], cwd, { env }),
    /** Processes with anything of this world about them, and these words in their command. */
    left: (words: string) => leftIn(root).filter((line) => line.includes(words)),
    [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true, maxRetries: 5 }),
  };
}

function leftIn(root: string): readonly string[] {
  return readdirSync("/proc").flatMap((pid) => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return [];
    const [command = "", environment = ""] = ["cmdline", "environ"].map((file) => readProc(`${pid}/${file}`));
    return (command + environment).includes(root) ? [`${pid} ${command}`] : [];
  });
}

function readProc(file: string): string {
  try {
    return readFileSync(`/proc/${file}`, "latin1").replaceAll("\0", " ");
  } catch {
    return "";
  }
}
