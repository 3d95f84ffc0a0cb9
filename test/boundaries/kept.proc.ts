/** What a confined command cannot reach around: folders on the way to what is kept, sockets, pipes, and files with keys. */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { createGround } from "../../src/boundaries/gate/paths.ts";
import { createToolbox } from "../../src/boundaries/tools/toolbox.ts";
import { runProcess } from "../../src/effects/process/process.ts";
import { decideSandbox } from "../../src/run/world/sandbox-decision.ts";
import { settle } from "../../src/run/world/sandbox.ts";
import { needs } from "../needs.ts";
import { createMachine, hasBwrap, NO_BWRAP, SECRET } from "./confined.ts";
import { stepWith } from "./step.ts";
import { until } from "../until.ts";

const bwrap = needs(hasBwrap, NO_BWRAP);
const has = (name: string) =>
  (process.env.PATH ?? "").split(":").some((folder) => existsSync(join(folder, name)));
const socat = needs(has("socat"), "socat is not installed (apt install socat)");

test(
  "a command that may not write hears that it is the sandbox, and no other does",
  { skip: bwrap.skip },
  async () => {
    using machine = createMachine();
    const { project, outside } = machine;
    const { sh, close } = await machine.open({ filesystem: { allowedPaths: ["out"] } });
    mkdirSync(join(project, "out"));
    const rows: readonly (readonly [command: string, isHinted: boolean])[] = [
      [`touch ${outside}/file2`, true],
      ["touch .agent/x", true],
      ["git config a.b c", true],
      ["mv .git/hooks .git/gone", true],
      [`node -e 'fs.writeFileSync("${outside}/file2", "")'`, true],
      // It did what it was to do.
      ["touch .agent/x || true", false],
      ["touch mine", false],
      // It failed for another reason.
      ["cat none", false],
      ["false", false],
    ];
    for (const [command, isHinted] of rows) {
      const { stderr, exitCode } = await sh(command);
      const hint = `[This is the sandbox: commands may write in ${project}, ${project}/out, /tmp, but not to .agent`;
      assert.equal(stderr.includes(hint), isHinted, `${command}: ${exitCode} ${stderr}`);
    }
    await close();
  },
);

describe("the sandbox keeps", { skip: bwrap.skip }, () => {
  test("the folders on the way to records and to what Lockstep loads", async () => {
    using machine = createMachine();
    const { project, home } = machine;
    const write = (path: string, text: string) => {
      mkdirSync(dirname(join(project, path)), { recursive: true });
      writeFileSync(join(project, path), text);
    };
    write("deep/er/state/runs.db", SECRET);
    write("tools/lib/own/index.js", "ours");
    write("tools/lib/free.txt", "free");
    symlinkSync("own", join(project, "tools/lib/link"));
    const places = {
      cwd: project,
      root: project,
      agentsDir: join(project, ".agent"),
      stateDir: join(project, "deep/er/state"),
      configDir: join(home, ".config", "lockstep"),
      home,
      own: () => ({
        there: [{ path: join(project, "tools/lib/own") }],
        missing: [{ path: join(project, "tools/lib/later") }, { path: join(project, "absent/inner") }],
        links: [{ path: join(project, "tools/lib/link"), to: "own" }],
      }),
    };
    const sandbox = {
      asked: true,
      enabled: true,
      network: { mode: "none", trustedDomains: [] },
      filesystem: { allowedPaths: [] },
      excludedCommands: [],
      allowUnsandboxedCommands: false,
    } as const;
    const asked = { sandbox, wish: "auto", network: null, starts: true, unconfinable: null } as const;
    await using settled = await settle(decideSandbox(asked), places, process.env);
    const ground = await settled.groundAt(project);
    const sh = async (command: string) =>
      await ground.exec({
        command,
        cwd: project,
        env: { PATH: process.env.PATH },
        timeoutMs: 30_000,
        maxOutputBytes: 1 << 16,
        signal: new AbortController().signal,
      });
    for (const command of [
      "mv deep gone",
      "mv deep/er deep/gone",
      "mv deep/er/state deep/er/gone",
      "rm -rf deep",
      "mv tools gone",
      "mv tools/lib tools/gone",
      "rm -rf tools",
      "echo x > tools/lib/own/index.js",
      "ln tools/lib/own/index.js mine && echo x > mine",
    ])
      await sh(`${command} 2>/dev/null; true`);
    assert.equal(readFileSync(join(project, "deep/er/state/runs.db"), "utf8"), SECRET);
    assert.equal(readFileSync(join(project, "tools/lib/own/index.js"), "utf8"), "ours");
    assert.deepEqual(readdirSync(join(project, "deep/er")), ["state"]);
    assert.equal((await sh("cat deep/er/state/runs.db")).stdout, "");

    // What is missing, or a link, is as it was after each command.
    const made = await sh("mkdir tools/lib/later; echo x > tools/lib/later/index.js; ln -s tools absent");
    assert.match(made.stderr, /tools\/lib\/later is not for commands to make/);
    assert.match(made.stderr, /absent is not for commands to make/);
    await sh("rm tools/lib/link; mkdir tools/lib/link; true");
    assert.deepEqual(
      readdirSync(join(project, "tools/lib")).filter((name) => !name.startsWith("lockstep-refused")),
      ["link", "own"],
    );
    assert.equal(readFileSync(join(project, "tools/lib/link/index.js"), "utf8"), "ours");
    // And beside all that, work goes on.
    const free = await sh(
      "echo a > tools/lib/mine; echo b > deep/mine; mkdir absent; echo c > absent/other; cat tools/lib/own/index.js",
    );
    assert.equal(free.stdout, "ours");
    assert.equal(readFileSync(join(project, "deep/mine"), "utf8"), "b\n");
    assert.equal(readFileSync(join(project, "absent/other"), "utf8"), "c\n");
  });

  test("agents and records that are links or are not there", async () => {
    using machine = createMachine();
    const { project, outside } = machine;
    mkdirSync(join(project, "sub"));
    const { sh, close } = await machine.open({}, join(project, "sub"));
    const { stderr } = await sh(
      "mkdir -p .agent/evil .lockstep/answers; echo {} > .agent/evil/agent.json; echo mine > file",
    );
    assert.match(stderr, /sub\/\.agent is not for commands to make/);
    assert.match(stderr, /sub\/\.lockstep is not for commands to make: it was moved away, to \S+\/refused\]/);
    const inGit = { cwd: project, encoding: "utf8" } as const;
    execFileSync("git", ["add", "-A"], inGit);
    assert.doesNotMatch(execFileSync("git", ["ls-files"], inGit), /lockstep-refused/);
    assert.deepEqual(
      readdirSync(join(project, "sub")).filter((name) => !name.startsWith("lockstep-refused")),
      ["file"],
    );
    await close();

    const linked = join(machine.base, "linked");
    mkdirSync(join(linked, "real-agents/a"), { recursive: true });
    symlinkSync("real-agents", join(linked, ".agent"));
    symlinkSync(outside, join(linked, ".lockstep"));
    const other = await machine.open({}, linked);
    await other.sh("rm .agent .lockstep; mkdir .agent .lockstep; echo x > .agent/x; true");
    await other.close();
    assert.deepEqual(readdirSync(join(linked, ".agent")), ["a"]);
    assert.deepEqual(readdirSync(join(linked, ".lockstep")), ["file"]);
  });

  test("sockets of every kind to itself", { skip: socat.skip }, async () => {
    using machine = createMachine();
    const socket = (name: string) => join(machine.outside, name);
    const started = [
      spawn("socat", ["-u", `UNIX-RECV:${socket("datagrams")}`, `CREATE:${socket("heard-datagrams")}`]),
      spawn("socat", ["-u", `UNIX-LISTEN:${socket("stream")}`, `CREATE:${socket("heard-stream")}`]),
      spawn("socat", [
        "-u",
        `UNIX-LISTEN:${socket("packets")},socktype=5`,
        `CREATE:${socket("heard-packets")}`,
      ]),
    ];
    try {
      for (const name of ["datagrams", "stream", "packets"])
        await until(() => existsSync(socket(name)), `the socket ${name}`);
      const { sh, close } = await machine.open();
      const commands = [
        `echo hi | socat -u - UNIX-SENDTO:${socket("datagrams")}`,
        `echo hi | socat -u - UNIX-CONNECT:${socket("stream")}`,
        `echo hi | socat -u - UNIX-CONNECT:${socket("packets")},socktype=5`,
      ];
      for (const command of commands) assert.notEqual((await sh(command)).exitCode, 0, command);
      await close();
      // The same from outside gets through.
      execFileSync("sh", ["-c", commands[0]!]);
      await until(() => existsSync(socket("heard-datagrams")), "the datagram");
      assert.ok(!existsSync(socket("heard-stream")));
    } finally {
      for (const child of started) {
        const ended = child.exitCode === null ? once(child, "exit") : null;
        child.kill("SIGKILL");
        await ended;
      }
    }
  });

  test("pipes in the home folder to itself", async () => {
    using machine = createMachine();
    mkdirSync(join(machine.home, ".config"), { recursive: true });
    for (const name of ["orders", ".config/player.fifo"]) {
      const path = join(machine.home, name);
      execFileSync("mkfifo", [path]);
      const reader = spawn("cat", [path], { stdio: ["ignore", "pipe", "ignore"] });
      let heard = "";
      reader.stdout.on("data", (data: Buffer) => (heard += data.toString()));
      try {
        const { sh, close } = await machine.open();
        await sh(`echo obey > ${path}`, {}, 5_000);
        await close();
        assert.equal(heard, "");
      } finally {
        const ended = reader.exitCode === null ? once(reader, "exit") : null;
        reader.kill("SIGKILL");
        await ended;
      }
    }
  });

  const WITH_KEYS = [
    ".bashrc .zshrc .profile .composer/auth.json .config/sops/age/keys.txt .pulumi/credentials.json .databrickscfg",
    ".boto .config/solana/id.json .cloudflared/cert.pem .wrangler/config/default.toml .local/share/opencode/auth.json",
    ".config/fish/fish_variables .viminfo .mysql_history .zshenv .envrc .s3cfg .kaggle/kaggle.json .config/stripe/config.toml",
    ".cursor/mcp.json .config/hcloud/cli.toml .android/adbkey .curlrc .terraformrc .ollama/id_ed25519 .lesshst",
  ].flatMap((names) => names.split(" "));
  test("files of the home folder that hold keys to itself", async () => {
    using machine = createMachine();
    for (const name of WITH_KEYS) {
      mkdirSync(dirname(join(machine.home, name)), { recursive: true });
      writeFileSync(join(machine.home, name), SECRET);
    }
    const { sh, close } = await machine.open();
    const { stdout } = await sh(
      `cd ${machine.home} && cat ${WITH_KEYS.join(" ")}; grep -rs ${SECRET} . ; cat .gitconfig`,
    );
    assert.ok(!stdout.includes(SECRET), stdout);
    // Who commits is known inside.
    assert.match(stdout, /name = Tester/);
    await close();
  });
});

test("a process that swaps a folder for a link all the time", async () => {
  using machine = createMachine();
  const { project, outside } = machine;
  const d = join(project, "d");
  mkdirSync(d);
  writeFileSync(join(d, "file.txt"), "inside\n");
  writeFileSync(join(outside, "file.txt"), SECRET);
  symlinkSync(outside, join(project, "link"));
  const before = readdirSync(outside);
  const code = `
    const { renameSync } = require("node:fs");
    const swap = (a, b) => { try { renameSync(a, b); } catch {} };
    for (const end = Date.now() + 3000; Date.now() < end; ) {
      swap("d", "kept"); swap("link", "d"); swap("d", "link"); swap("kept", "d");
    }`;
  const swapper = spawn(process.execPath, ["-e", code], { cwd: project, stdio: "ignore" });
  const ended = once(swapper, "exit");
  const toolbox = createToolbox({
    cwd: project,
    protect: [],
    env: () => ({}),
    autoResponse: "",
    exec: runProcess,
  });
  const step = stepWith({ mode: "bypassPermissions" });
  const tally = { ok: 0, not: 0 };
  for (let n = 0; swapper.exitCode === null && swapper.signalCode === null; n += 1) {
    const calls = [
      { id: `r${n}`, name: "Read", input: { file_path: "d/file.txt" } },
      { id: `w${n}`, name: "Write", input: { file_path: `d/new-${n % 50}.txt`, content: "x" } },
      { id: `m${n}`, name: "Write", input: { file_path: `d/made-${n % 50}/new.txt`, content: "x" } },
      {
        id: `e${n}`,
        name: "Edit",
        input: { file_path: "d/file.txt", old_string: "inside", new_string: "inside" },
      },
      { id: `g${n}`, name: "Grep", input: { pattern: "canary", path: "d", output_mode: "content" } },
    ];
    const results = await toolbox.call(step, calls, new AbortController().signal);
    for (const { ok, content } of results) {
      assert.ok(!content.includes(SECRET), content);
      tally[ok ? "ok" : "not"] += 1;
    }
  }
  await ended;
  // Both of it has to have happened, or nothing was tried.
  assert.ok(tally.ok > 0 && tally.not > 0, JSON.stringify(tally));
  assert.deepEqual(readdirSync(outside), before);
  assert.equal(createGround(project, []).reading("../outside/file.txt").kind, "refused");
});
