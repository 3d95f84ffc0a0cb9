/** What a run started outlives kill -9 of the process that owns the run: `resume` ends it before it begins the same again. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { hasBwrap, NO_BWRAP } from "../boundaries/confined.ts";
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

/** The first time it stays, in a session of its own too; later it says how many of the first time are left. */
const STAY = `if [ -e stays ]; then echo again >> log; else touch stays; setsid sleep 600 & echo up >> log; exec sleep 600; fi`;
const HOOK = `import { appendFileSync, existsSync, writeFileSync } from "node:fs";
  export default { a: { setup: () => {
    if (existsSync("stays")) return void appendFileSync("log", "again\\n");
    writeFileSync("stays", "");
    appendFileSync("log", "up\\n");
    for (;;);
  } } };`;

function writeWithBash(world: World): void {
  writeAgent(world, "a", {
    registry: (registry) => {
      const steps = registry.steps as { [id: string]: { permissionMode?: string } };
      steps["initial.note"]!.permissionMode = "acceptEdits";
    },
    agent: (agent) => {
      const { boundaries } = agent.runner as { boundaries: { allowedTools: readonly string[] } };
      boundaries.allowedTools = ["*"];
    },
  });
}

type Case = {
  readonly name: string;
  readonly names: RegExp;
  readonly prepare: (world: World) => readonly string[];
};
const ALL = [replies.initial(), replies.continuation(), replies.closure()];
const RUN = ["run", "a", "--topic", "t", "--script", "s.json"];
const CASES: readonly Case[] = [
  {
    name: "a command of a tool",
    names: /sleep/,
    prepare: (world) => {
      writeWithBash(world);
      world.write("s.json", script({ calls: [{ name: "Bash", input: { command: STAY } }] }, ...ALL));
      return RUN;
    },
  },
  {
    name: "a check",
    names: /sleep/,
    prepare: (world) => {
      writeCheckedAgent(world, "a", STAY);
      world.write("s.json", script(...ALL));
      return RUN;
    },
  },
  {
    name: "a hook that is busy without end",
    names: /node|MainThread/,
    prepare: (world) => {
      const files = machineFiles({ stages: { a: { next: "end" } }, hooks: HOOK });
      for (const [path, text] of Object.entries(files)) world.write(path, text);
      world.write("s.json", script({ output: {} }));
      return ["run", "m", "--script", "s.json"];
    },
  },
];

/** Processes that work in the folder of the world. */
function leftIn(root: string): readonly string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/cwd`) === root && !isZombie(pid);
    } catch {
      return false;
    }
  });
}

function environOf(pid: string): string {
  return readFileSync(`/proc/${pid}/environ`, "latin1");
}

function isZombie(pid: string): boolean {
  return /\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
}

async function until(holds: () => boolean, what: string): Promise<void> {
  for (let round = 0; round < 2400 && !holds(); round += 1) await delay(50);
  assert.ok(holds(), what);
}

/** Starts it, and kills the process that owns the run with its whole group as soon as what it started is up. */
async function killed(world: World, args: readonly string[], signal: NodeJS.Signals): Promise<void> {
  const child = spawn(process.execPath, [MAIN, ...args], {
    cwd: world.root,
    env: { ...world.env, LOCKSTEP_TRUST: "all" },
    stdio: "ignore",
    detached: true,
  });
  await until(() => existsSync(join(world.root, "log")), "it never came to it");
  process.kill(-child.pid!, signal);
  await until(() => child.exitCode !== null || child.signalCode !== null, "it does not end");
}

const SAYS = /were still running after the process that owned it had died\. They were ended: (.*)\.$/;

describe("kill -9", { skip: process.platform !== "linux", concurrency: 2 }, () => {
  for (const { name, names, prepare } of CASES) {
    test(`${name} is ended before it is begun again`, async () => {
      using world = createWorld();
      await killed(world, [...prepare(world), "--sandbox", "off"], "SIGKILL");
      assert.ok(leftIn(world.root).length > 0, "it goes on");
      const env = { LOCKSTEP_TRUST: "all" };
      const ran = await world.lockstep(["resume", "@last", "--json", "--sandbox", "off"], { env });
      assert.equal(ran.code, 0, ran.stderr);
      assert.equal(readFileSync(join(world.root, "log"), "utf8"), "up\nagain\n");
      assert.deepEqual(leftIn(world.root), []);
      const warning = (onlyDocument(ran).warnings as readonly string[]).find((text) => SAYS.test(text));
      assert.match(SAYS.exec(warning ?? "")?.[1] ?? "", names, ran.stderr);
      assert.ok(ran.stderr.includes(warning!), "it is said at once too");
      const events = await world.lockstep(["logs", "@last"]);
      assert.match(events.stdout, /Ended before the run went on: /);
    });

    test(`${name} ends with it in the sandbox`, needs(hasBwrap, NO_BWRAP), async () => {
      using world = createWorld();
      await killed(world, [...prepare(world), "--sandbox", "on"], "SIGKILL");
      await until(() => leftIn(world.root).length === 0, "it goes on");
      const env = { LOCKSTEP_TRUST: "all" };
      const ran = await world.lockstep(["resume", "@last", "--json", "--sandbox", "on"], { env });
      assert.equal(ran.code, 0, ran.stderr);
      assert.doesNotMatch(ran.stderr, /still running/);
    });
  }

  test("what has the mark in another variable only is left alone", async () => {
    using world = createWorld();
    const [{ prepare }] = CASES as readonly [Case];
    await killed(world, [...prepare(world), "--sandbox", "off"], "SIGKILL");
    const marks = leftIn(world.root).map((pid) => /LOCKSTEP_TREE=([^\0]*)/.exec(environOf(pid))?.[1] ?? "");
    const seen = { LOCKSTEP_TRUST: "all", NOTES: `see ${marks.join(" ")}` };
    const stranger = spawn("sleep", ["600"], { env: { ...world.env, ...seen }, stdio: "ignore" });
    try {
      const ran = await world.lockstep(["resume", "@last", "--json", "--sandbox", "off"], { env: seen });
      assert.equal(ran.code, 0, ran.stderr);
      assert.deepEqual([stranger.exitCode, stranger.signalCode], [null, null]);
      assert.deepEqual(leftIn(world.root), []);
    } finally {
      stranger.kill("SIGKILL");
    }
  });

  test("another run of the same project is left alone", async () => {
    using world = createWorld();
    const [{ prepare }] = CASES as readonly [Case];
    const args = [...prepare(world), "--sandbox", "off"];
    await killed(world, args, "SIGKILL");
    world.write("s.json", script({ calls: [{ name: "Bash", input: { command: "true" } }] }));
    await world.lockstep(args, { env: { LOCKSTEP_TRUST: "all" } });
    world.write("rest.json", script(...ALL));
    const flags = ["--json", "--sandbox", "off", "--script", "rest.json"];
    const ran = await world.lockstep(["resume", "@last", ...flags], { env: { LOCKSTEP_TRUST: "all" } });
    assert.equal(ran.code, 0, ran.stderr);
    const left = leftIn(world.root);
    for (const pid of left) process.kill(Number(pid), "SIGKILL");
    assert.ok(left.length > 0, "what belongs to the other run goes on");
  });
});
