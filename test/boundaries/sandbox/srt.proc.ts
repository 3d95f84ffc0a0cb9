/**
 * Hosts through the filtering proxy. The part that filters is an optional peer, which this repository does not install: it
 * is looked for where LOCKSTEP_PACKAGES points.
 */
import assert from "node:assert/strict";
import { copyFileSync, existsSync, readdirSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { createBwrap } from "../../../src/boundaries/sandbox/bwrap.ts";
import { policyOf } from "../../../src/boundaries/sandbox/policy.ts";
import { openBridge, type Srt } from "../../../src/boundaries/sandbox/srt.ts";
import { confine, type SandboxEngine } from "../../../src/boundaries/sandbox/sandbox.ts";
import { childEnv, runProcess } from "../../../src/effects/process/process.ts";
import { programsFor } from "../../../src/run/world/programs.ts";
import { needs } from "../../needs.ts";
import { createMachine, hasBwrap, type Machine } from "../confined.ts";

const packages = process.env.LOCKSTEP_PACKAGES ?? "";
const entry = join(packages, "node_modules/@anthropic-ai/sandbox-runtime/dist/index.js");
const isThere = hasBwrap && packages !== "" && existsSync(entry);
const needed = needs(isThere, "bubblewrap or @anthropic-ai/sandbox-runtime not installed");
const load = () => import(pathToFileURL(entry).href) as Promise<Srt>;

describe("hosts through the proxy", needed, () => {
  let machine: Machine;
  let engine: SandboxEngine;
  const servers: Server[] = [];
  const ports: number[] = [];
  let sh: (command: string) => Promise<{ readonly stdout: string; readonly stderr: string }>;

  before(async () => {
    machine = createMachine();
    for (const name of ["listed", "other"]) {
      const server = createServer((_, response) => response.end(name));
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      servers.push(server);
      ports.push((server.address() as AddressInfo).port);
    }
    const node = join(machine.base, "node");
    copyFileSync(process.execPath, node);
    const { project, home } = machine;
    const places = {
      cwd: project,
      root: project,
      agentsDir: join(project, ".agent"),
      stateDir: join(project, ".lockstep"),
      configDir: join(home, ".config/lockstep"),
      home,
    };
    const hosts = [`127.0.0.1:${ports[0]}`];
    const policy = policyOf({ hosts, allowedPaths: [] }, places);
    const opened = await openBridge(hosts, load);
    assert.equal(opened.kind, "open");
    const env = childEnv({ ...process.env, HOME: home });
    const programs = programsFor(process.env, [project]);
    const bridge = opened.kind === "open" && { bridge: opened.bridge };
    engine = createBwrap({ exec: runProcess, env, programs, ...bridge });
    assert.equal(await engine.selfTest(policy), null);
    const exec = confine(runProcess, engine, policy);
    const limits = { timeoutMs: 30_000, maxOutputBytes: 1 << 16, signal: new AbortController().signal };
    sh = (command) => exec({ command, cwd: project, env: { ...env, NODE: node }, ...limits });
  });
  after(async () => {
    await engine.close();
    for (const server of servers) server.close();
    machine[Symbol.dispose]();
  });

  const get = (url: string) =>
    `env -u NO_PROXY -u no_proxy "$NODE" -e 'fetch("${url}").then(async (r) => console.log(r.status, await r.text()), () => console.log("none"))'`;

  test("a listed host is reached", async () => {
    assert.equal((await sh(get(`http://127.0.0.1:${ports[0]}/`))).stdout, "200 listed\n");
  });
  test("another port of it is not", async () => {
    assert.match((await sh(get(`http://127.0.0.1:${ports[1]}/`))).stdout, /^(?:403|none)/);
  });
  test("another name of it is not", async () => {
    assert.match((await sh(get(`http://2130706433:${ports[1]}/`))).stdout, /^(?:403|none)/);
  });
  test("an unlisted host is not", async () => {
    assert.match((await sh(get("http://example.com/"))).stdout, /^(?:403|none)/);
  });
  test("nothing is reached past the proxy", async () => {
    const direct = `"$NODE" -e 'require("node:net").connect(${ports[0]}, "127.0.0.1").on("connect", () => console.log("reached")).on("error", () => console.log("none"))'`;
    assert.equal((await sh(direct)).stdout, "none\n");
  });
  test("the project stays clean, and commits work", async () => {
    const names = readdirSync(machine.project).toSorted();
    const { stdout, stderr } = await sh(
      "git status --porcelain && echo 1 > one && git add . && git commit -qm one && git status --porcelain",
    );
    assert.equal(stdout, "", stderr);
    assert.deepEqual(readdirSync(machine.project).toSorted(), [...names, "one"].toSorted());
  });
  test("a program that waits for all of its children comes to an end", async () => {
    assert.equal((await sh("sleep 0.05 & wait; echo done")).stdout, "done\n");
  });
  test("other hosts need another process", async () => {
    const other = await openBridge(["example.com"], load);
    assert.match(other.kind === "closed" ? other.why : "", /another run in this process/);
  });
});

test("without it, what to do is said", async () => {
  const opened = await openBridge(["example.com"], () => Promise.reject(new Error("not found")));
  assert.match(opened.kind === "closed" ? opened.why : "", /npm install @anthropic-ai\/sandbox-runtime@/);
});
