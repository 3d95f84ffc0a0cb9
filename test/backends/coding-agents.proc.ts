/**
 * Six coding agents, the real programs, each with a model on loopback: example 01 by the command that a user types. In the
 * middle of the first query the command is killed with SIGKILL; then nothing may be left of the agent, and a resumed run
 * goes on to the end of the flow.
 *
 * Needs the agents in the folder that LOCKSTEP_AGENTS names; `npm run test:all` installs them.
 */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import {
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { MAIN, onlyDocument, start } from "../cli/world.ts";
import { needs } from "../needs.ts";
import { CODING_AGENTS, missingIn, writeAll, type CodingAgent } from "./coding-agents.ts";
import { suiteOffline } from "./loopback.ts";
import { modelServer, type Deed, type Seen } from "./model-server.ts";

const packages = process.env.LOCKSTEP_PACKAGES ?? "";
const agents = process.env.LOCKSTEP_AGENTS ?? "";
const folderOf = ({ command }: CodingAgent) => (command === undefined ? packages : agents);
const missing = CODING_AGENTS.flatMap((agent) => missingIn(folderOf(agent), [agent]));
const { skip } = needs(missing.length === 0, `coding agents (${missing.join(", ")}) not installed`);

const example = fileURLToPath(new URL("../../examples/01-fix-a-test/", import.meta.url));
/** In every request of the conversation that is meant, and in none that an agent makes for itself. */
const WORDS = "call the tool submit";

suiteOffline("coding agents", import.meta.url, { skip, curious: true }, () => {
  describe("example 01", { concurrency: 2 }, () => CODING_AGENTS.forEach(complete));
});

function complete(agent: CodingAgent): void {
  test(`${agent.name} is killed with its runner, and completes the flow when it is resumed`, async () => {
    await using w = await world(agent);
    const killed = w.start(["run", "fixer", "--issue", "7", ...w.flags]);
    await w.reached;
    killed.kill("SIGKILL");
    await nothingLeft(w.root);

    const ran = await w.run(["resume", "@last", "--json", "--sandbox", "off"]);
    assert.equal(ran.code, 0, `${ran.stdout}\n${ran.stderr}\n${JSON.stringify(w.asked(), null, 1)}`);
    const { path } = onlyDocument(ran) as { path: { step: string; label: string }[] };
    assert.deepEqual(
      path.map(({ step, label }) => `${step} ${label}`),
      [
        "initial.issue next",
        "continuation.issue handoff",
        "closure.issue closing",
        "continuation.issue handoff",
        "closure.issue closing",
      ],
    );
    assert.equal(w.git("log", "--format=%s"), "Two\nOne\nBegin\n");
    assert.equal(w.git("status", "--porcelain").replace("?? .lockstep/\n", ""), "");
    assert.equal(w.git("tag"), "", "what the gate denied was not done");
    await nothingLeft(w.root);
  });
}

async function world(agent: CodingAgent) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "lockstep-agents-")));
  const [cwd, home, temp] = [join(root, "work"), join(root, "home"), join(root, "tmp")];
  for (const folder of [home, temp]) mkdirSync(folder);
  cpSync(join(example, "project"), cwd, { recursive: true });
  cpSync(join(example, ".agent"), join(cwd, ".agent"), { recursive: true });
  const git = (...args: string[]) => spawnSync("git", args, { cwd, encoding: "utf8" }).stdout;
  git("init", "-q", "-b", "main");
  git("config", "user.name", "T");
  git("config", "user.email", "t@example.invalid");
  git("add", "-A");
  git("commit", "-qm", "Begin");

  const reached = Promise.withResolvers<void>();
  const deeds = script(agent);
  let isKilled = false;
  const server = await modelServer(agent.wire, (seen) => {
    if (!isMeant(seen, agent)) return { text: "ok" };
    if (isKilled) return withServer(deeds.shift(), seen);
    isKilled = true;
    reached.resolve();
    return { hang: 0 };
  });
  const [command, ...args] = agent.command?.(agents) ?? [];
  const own = agent.env(server.url);
  writeAll(home, agent.files?.(server.url) ?? {});
  const config = { acp: { command, args, pass: Object.keys(own) } };
  if (command !== undefined) writeAll(home, { ".config/lockstep/config.json": JSON.stringify(config) });
  const env = {
    ...own,
    PATH: process.env.PATH,
    HOME: home,
    TMPDIR: temp,
    XDG_CACHE_HOME: join(tmpdir(), "lockstep-test-cache"),
    LOCKSTEP_PACKAGES: packages,
    LOCKSTEP_TRUST: "all",
  };
  return {
    root,
    git,
    reached: reached.promise,
    asked: () => server.seen.map(({ path }) => path),
    flags: ["--backend", command === undefined ? "claude-agent" : "acp", "--sandbox", "off"],
    start: (words: readonly string[]) =>
      spawn(process.execPath, [MAIN, ...words], { cwd, env, stdio: "ignore" }),
    run: (words: readonly string[]) => start(process.execPath, [MAIN, ...words], cwd, { env }),
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      rmSync(root, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** What the model says, one entry for each request of the conversation. */
function script(agent: CodingAgent): Deed[] {
  const { bash, read, edit, submit, goesOn } = agent;
  const calls = (...list: readonly ReturnType<typeof bash>[]) => ({ calls: list }) as Deed;
  const next = (stepId: string, action: string, more: object = {}) => [
    calls(submit({ stepId, ...more, next_action: { action, reason: "scripted" } })),
    ...(goesOn ? [{ text: "Done." }] : []),
  ];
  const change = (old: string, text: string) => [
    ...(read === undefined ? [] : [calls(read("cart.js"))]),
    calls(edit("cart.js", old, text)),
  ];
  const denied = calls(bash("gh pr merge 1 || git tag denied"));
  return [
    calls(bash("node --test")),
    ...(agent.stopsWhenDenied ? [] : [denied]),
    ...next("initial.issue", "next", { analysis: { understanding: "no quantity", approach: "multiply" } }),
    ...change(
      "  return items.reduce((sum, item) => sum + item.price, 0);",
      "  return items.reduce((sum, item) => sum + item.price * item.quantity, 0);",
    ),
    calls(bash("git commit -qam One")),
    ...next("continuation.issue", "handoff", { summary: "one bug less" }),
    ...next("closure.issue", "closing"),
    ...change("  return sum - percent;", "  return sum * (1 - percent / 100);"),
    calls(bash("git commit -qam Two")),
    ...next("continuation.issue", "handoff", { summary: "both are fixed" }),
    ...next("closure.issue", "closing"),
  ];
}

/** The server for the answer has another name in each session: the model finds it in what it is asked. */
function withServer(deed: Deed | undefined, { body }: Seen): Deed | undefined {
  const server = JSON.stringify(body)
    .match(/lockstep[0-9a-f]{12}/g)
    ?.at(-1);
  if (deed === undefined || server === undefined) return deed;
  const said = JSON.stringify(deed).replaceAll(/(mcp__|mcp_|")lockstep(?=__|_|\/)/g, `$1${server}`);
  return JSON.parse(said) as Deed;
}

/** Agents ask models for titles, routes and suggestions, too. */
function isMeant({ body }: Seen, { bash, command }: CodingAgent): boolean {
  const [tools, text] = [JSON.stringify(body.tools ?? []), JSON.stringify(body)];
  if (command === undefined) return tools.includes('"mcp__lockstep__Bash"');
  return (
    tools.includes(`"${bash("").name}"`) && text.includes(WORDS) && !text.includes("ONLY the suggestion")
  );
}

/** Of processes: whatever was started with something of this world. Of files: what Lockstep made for the agent. */
async function nothingLeft(root: string): Promise<void> {
  for (let round = 0; round < 600 && leftIn(root).length > 0; round += 1) await delay(100);
  assert.deepEqual(leftIn(root), []);
  const temp = readdirSync(join(root, "tmp"), { recursive: true, withFileTypes: true });
  const ours = temp.filter((entry) => entry.name.startsWith("lockstep-") || entry.isSocket());
  assert.deepEqual(
    ours.map(({ name }) => name),
    [],
  );
  const kept = globSync("work/.lockstep/runs/*/claude/*", { cwd: root }).map((path) => basename(path));
  assert.deepEqual(
    kept.filter((name) => name !== "projects"),
    [],
    "of what Claude Code keeps only the conversations stay",
  );
}

function leftIn(root: string): readonly string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      const about = [`${pid}/cmdline`, `${pid}/environ`].map(readProc);
      return [...about, cwdOf(pid)].some((text) => text.includes(root)) ? [`${pid} ${about[0]}`] : [];
    });
}

function readProc(file: string): string {
  try {
    return readFileSync(`/proc/${file}`, "latin1").replaceAll("\0", " ");
  } catch {
    return "";
  }
}

function cwdOf(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return "";
  }
}
