/** What a command can do in the sandbox: attempts at what it must not, things it must be able to, and what is left. */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer as createHttp } from "node:http";
import { createServer, type AddressInfo } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createBwrap } from "../../../src/boundaries/sandbox/bwrap.ts";
import { confine } from "../../../src/boundaries/sandbox/sandbox.ts";
import { childEnv, runProcess } from "../../../src/effects/process/process.ts";
import { createShell } from "../../../src/effects/process/shell.ts";
import { programsFor } from "../../../src/run/world/programs.ts";
import { sketchCheck } from "../../../src/testing/flows.ts";
import { needs } from "../../needs.ts";
import {
  createMachine,
  hasBwrap,
  HOME_FILES,
  NO_BWRAP,
  SECRET,
  type Confined,
  type Machine,
} from "../confined.ts";
import { until } from "../../until.ts";

/** Succeeds inside if the attempt does; what it reads is printed, and looked through for secrets. */
type Attempt = readonly [name: string, script: string];

const js = (code: string) => `"$NODE" -e '${code}'`;
const connect = (to: string) =>
  js(`const E = process.env; const s = require("node:net").connect(${to}); s.setTimeout(3000, () => process.exit(1));
      s.on("connect", () => process.exit(0)).on("error", () => process.exit(1))`);

const WRITES: readonly Attempt[] = [
  ["a new file beside the project", ": > $OUT/new"],
  ["an existing file", "echo x >> $OUT/file"],
  ["by the way of ..", ": > ../outside/new"],
  ["through a planted link to a folder", "ln -s $OUT link && : > link/new"],
  ["through a planted link to a file", "ln -s $OUT/file link && echo x > link"],
  ["through a hard link", "ln $OUT/file hard && echo x > hard"],
  ["by renaming over a file", "echo x > own && mv -f own $OUT/file"],
  ["deleting", "rm $OUT/file"],
  ["truncating", "truncate -s 0 $OUT/file"],
  ["changing the mode", "chmod 777 $OUT/file"],
  ["changing the times", "touch -d 2001-01-01 $OUT/file"],
  ["a new folder", "mkdir $OUT/folder"],
  ["a new named pipe", "mkfifo $OUT/pipe"],
  ["below the root", ": > /lockstep-probe"],
  ["in /etc", ": > /etc/lockstep-probe"],
  ["in /usr/local/bin", ": > /usr/local/bin/lockstep-probe"],
  ["through /proc/self/root", ": > /proc/self/root$OUT/new"],
  ["through /proc/1/root", ": > /proc/1/root$OUT/new"],
  ["through /proc/self/cwd", ": > /proc/self/cwd/../outside/new"],
  ["moving the project away", "mv $PROJECT $PROJECT-moved"],
  ["a link beside the project", "ln -s /etc $OUT/link"],
];

const HOME_WRITES: readonly Attempt[] = [
  ".bashrc",
  ".profile",
  ".gitconfig",
  ".config/autostart",
  ".ssh/authorized_keys",
  ".npmrc",
].map((name) => [name, `echo x >> $HOME/${name}`] as const);

const READS: readonly Attempt[] = [
  ...HOME_FILES.map((name) => [`~/${name}`, `grep ${SECRET} $HOME/${name}`] as const),
  ["the record of runs", `grep -r ${SECRET} .lockstep`],
  ["a secret through a planted link", `ln -s $HOME/.ssh link && grep -r ${SECRET} link/`],
  ["a secret through /proc/1/root", `grep -r ${SECRET} /proc/1/root$HOME/.ssh`],
  ["the password file", "grep -q . /etc/shadow"],
  ["everything in the home folder", `grep -rs ${SECRET} $HOME`],
];

const PROCESSES: readonly Attempt[] = [
  ["the environment of any process", `cat /proc/[0-9]*/environ | tr "\\0" "\\n" | grep ${SECRET}`],
  ["the environment of process 1", `tr "\\0" "\\n" < /proc/1/environ | grep ${SECRET}`],
  [
    "the folder of a host process",
    "test -e /proc/$HOST_PID/cwd && readlink /proc/$HOST_PID/cwd | grep lockstep",
  ],
  ["signalling a host process", "kill -0 $HOST_PID"],
  ["ending a host process", "kill -9 $HOST_PID"],
  ["reading a host process' memory", "head -c 1 /proc/$HOST_PID/mem"],
  ["ending everything it can see", "kill -9 -1; false"],
];

const KERNEL: readonly Attempt[] = [
  ["mounting", "mount -t tmpfs none $OUT"],
  ["mounting a bind", "mount --bind /etc /tmp"],
  ["making the disk writable again", "mount -o remount,rw /"],
  ["making the project's control files writable", "mount -o remount,rw,bind $PROJECT/.git/config"],
  ["taking away what hides a secret", "umount $HOME/.ssh"],
  ["taking it away lazily", "umount -l $HOME/.ssh"],
  ["a user namespace of its own", "unshare -r true"],
  ["a mount namespace of its own", "unshare -m true"],
  ["joining another namespace", "nsenter -t 1 -m true"],
  ["another root", "mkdir -p jail && chroot jail /bin/true"],
  ["a device", "mknod device b 8 0"],
  ["a character device", "mknod zero c 1 5"],
  ["a disk of the host", "ls /dev/sd* /dev/vd* /dev/nvme* /dev/mem"],
  ["a setting of the kernel", "echo 1 > /proc/sys/kernel/sysrq"],
  ["a setting of the kernel by /sys", "echo 1 > /sys/kernel/profiling"],
  ["the name of the host", "hostname probe"],
  ["the clock", "date -s 2001-01-01"],
  ["new privileges", "! grep -q 'NoNewPrivs:.*1' /proc/self/status"],
  ["any capability", "! grep -q 'CapEff:.*0000000000000000' /proc/self/status"],
  ["more than its share of /tmp", "fallocate -l 1200M /tmp/fill"],
  ["more than its share of /dev/shm", "fallocate -l 1200M /dev/shm/fill"],
];

const NETWORK: readonly Attempt[] = [
  ["a server on the loopback of the host", connect("E.PORT")],
  ["by another name of it", connect('E.PORT, "0.0.0.0"')],
  ["by IPv6", connect('E.PORT, "::ffff:127.0.0.1"')],
  [
    "by a decimal address",
    js('fetch("http://2130706433:" + process.env.PORT).then(() => process.exit(0), () => process.exit(1))'),
  ],
  ["by an address of the host", connect("E.PORT, E.ADDRESS")],
  ["an address far away", connect('53, "1.1.1.1"')],
  ["looking up a name", js('require("node:dns").lookup("example.com", (e) => process.exit(e ? 1 : 0))')],
  [
    "asking a name server",
    js(
      'const d = require("node:dns"); d.setServers(["1.1.1.1"]); d.resolve4("example.com", (e) => process.exit(e ? 1 : 0))',
    ),
  ],
  ["a socket in a hidden folder", connect('E.HOME + "/.docker/run.sock"')],
  ["a socket beside the project", connect('E.OUT + "/service.sock"')],
  ["a socket in the project", connect('E.PROJECT + "/service.sock"')],
  ["an abstract socket", connect('"\\0lockstep-probe"')],
  ["a service of the system", "ls /run/* /var/run/*"],
];

const GIT: readonly Attempt[] = [
  ["a new hook", "echo x > .git/hooks/pre-commit"],
  ["a hook by renaming", "echo x > own && mv own .git/hooks/post-commit"],
  ["another folder of hooks", "mv .git/hooks .git/hooks-old && mkdir .git/hooks"],
  ["the configuration", "echo x >> .git/config"],
  ["the configuration by git itself", "git config core.fsmonitor /bin/true"],
  ["the configuration of the user", "git config --global alias.x '!id'"],
  ["the configuration by renaming", "cp .git/config own && mv own .git/config"],
  ["attributes", "echo '* filter=x' > .git/info/attributes"],
  ["another info folder", "mv .git/info .git/info-old"],
  ["another repository in its place", "mv .git .git-old && git init -q"],
  ["the hooks of a module", "echo x > .git/modules/sub/hooks/pre-commit"],
  ["the configuration of a module", "echo x >> .git/modules/sub/config"],
  ["another module in its place", "mv .git/modules/sub .git/modules/old"],
  ["other modules in their place", "mv .git/modules .git/modules-old"],
  ["one more module", "mkdir .git/modules/lib && echo x > .git/modules/lib/config"],
  ["the record of a worktree", "echo /tmp > .git/worktrees/wt/commondir"],
  ["the settings of a worktree", "echo x > .git/worktrees/wt/config.worktree"],
];

const OURS: readonly Attempt[] = [
  ["the agent that runs", "echo x >> .agent/worker/agent.json"],
  ["another agent", "mkdir .agent/other"],
  ["agents in their place", "mv .agent .agent-old"],
  ["the record of runs", "echo x > .lockstep/runs.db"],
  ["deleting the record of runs", "rm .lockstep/runs.db"],
  ["another record", "mv .lockstep .lockstep-old"],
  ["what is trusted", "echo '{}' > $HOME/.config/lockstep/trust.json"],
];

/** What succeeds inside and must leave no trace outside. */
const TRACELESS: readonly Attempt[] = [
  ["another common folder for the repository", "mkdir -p evil && echo $PROJECT/evil > .git/commondir"],
  ["settings for one worktree", "git config extensions.worktreeConfig; echo x > .git/config.worktree"],
  ["a file in /tmp", "echo x > /tmp/lockstep-probe-file"],
  ["a file in /var/tmp", "echo x > /var/tmp/lockstep-probe-file"],
];

describe("the sandbox", needs(hasBwrap, NO_BWRAP), () => {
  let machine: Machine;
  let confined: Confined;
  let around: { readonly [name: string]: string };
  const closing: (() => unknown)[] = [];

  before(async () => {
    machine = createMachine();
    closing.push(() => machine[Symbol.dispose]());
    const { project, outside, home } = machine;
    addWorktreeAndModule(machine);
    const server = createHttp((_, response) => response.end("reached")).listen(0, "::");
    await once(server, "listening");
    const sockets = [
      `${home}/.docker/run.sock`,
      `${outside}/service.sock`,
      `${project}/service.sock`,
      "\0lockstep-probe",
    ];
    const services = sockets.map((path) => createServer((socket) => socket.end()).listen(path));
    await Promise.all(services.map(async (service) => await once(service, "listening")));
    const bystander = spawn("sleep", ["1000"], {
      cwd: outside,
      env: { PATH: process.env.PATH, CANARY: SECRET },
    });
    closing.push(
      () => server.close(),
      ...services.map((service) => () => service.close()),
      () => bystander.kill("SIGKILL"),
    );
    const address = Object.values(networkInterfaces())
      .flat()
      .find((one) => one?.internal === false && one.family === "IPv4");
    // Below a scratch folder of the host, commands would not see it.
    const node = join(machine.base, "node");
    copyFileSync(process.execPath, node);
    around = {
      NODE: node,
      OUT: outside,
      PROJECT: project,
      PORT: String((server.address() as AddressInfo).port),
      ADDRESS: address?.address ?? "127.0.0.2",
      HOST_PID: String(bystander.pid),
    };
    confined = await machine.open();
  });
  after(async () => {
    await confined.close();
    for (const close of closing.toReversed()) close();
  });

  for (const [about, attempts] of Object.entries({
    WRITES,
    HOME_WRITES,
    READS,
    PROCESSES,
    KERNEL,
    NETWORK,
    GIT,
    OURS,
  })) {
    describe(`keeps from ${about.toLowerCase().replace("_", " ")}:`, () => {
      for (const [name, script] of attempts) {
        test(name, async () => {
          const was = print(machine);
          const { stdout } = await confined.sh(`( ${script} ) 2>/dev/null && echo GOT || echo NO`, around);
          // Whatever kills the whole sandbox has not got anywhere either.
          assert.doesNotMatch(stdout, /GOT/);
          assert.ok(!stdout.includes(SECRET), stdout);
          assert.deepEqual(print(machine), was);
          execFileSync("git", ["clean", "-fdq"], { cwd: machine.project });
        });
      }
    });
  }

  test("without it, such attempts do succeed", async () => {
    const harmless = new Set([
      "a new file beside the project",
      "a new hook",
      "another agent",
      "by a decimal address",
    ]);
    const ofHost = (name: string) =>
      name.startsWith("a socket") || name.startsWith("a server") || harmless.has(name);
    const attempts = [
      ...READS.slice(0, HOME_FILES.length),
      ...[...WRITES, ...NETWORK, ...GIT, ...OURS].filter(([name]) => ofHost(name)),
    ];
    assert.ok(attempts.length > 20);
    const env = { PATH: process.env.PATH, HOME: machine.home, ...around };
    const limits = { timeoutMs: 30_000, maxOutputBytes: 4096, signal: new AbortController().signal };
    for (const [name, command] of attempts) {
      const { exitCode, stderr } = await runProcess({ command, cwd: machine.project, env, ...limits });
      assert.equal(exitCode, 0, `${name}: ${stderr}`);
    }
    const made = ["outside/new", "project/.git/hooks/pre-commit", "project/.agent/other"];
    for (const path of made) rmSync(join(machine.base, path), { recursive: true });
  });

  describe("leaves no trace of", () => {
    for (const [name, script] of TRACELESS) {
      test(name, async () => {
        const was = print(machine);
        await confined.sh(script, around);
        assert.deepEqual(print(machine), was);
        for (const path of [".git/commondir", ".git/config.worktree"])
          assert.ok(!existsSync(join(machine.project, path)), path);
        for (const folder of ["/tmp", "/var/tmp"]) assert.ok(!existsSync(`${folder}/lockstep-probe-file`));
        execFileSync("git", ["clean", "-fdq"], { cwd: machine.project });
      });
    }

    test("what it sends by UDP", async () => {
      const socket = createSocket("udp4");
      let heard = 0;
      socket.on("message", () => (heard += 1)).bind(0, "127.0.0.1");
      await once(socket, "listening");
      const send = js(
        `const s = require("node:dgram").createSocket("udp4"); s.send("x", ${socket.address().port}, "127.0.0.1", () => s.close())`,
      );
      await confined.sh(send, around);
      await sleep(50);
      socket.close();
      assert.equal(heard, 0);
    });

    test("a folder that a link was made of behind our back", async () => {
      const opened = await machine.open({ filesystem: { allowedPaths: ["cache"] } });
      await opened.sh("ln -s $HOME/.ssh cache");
      const { stdout } = await opened.sh(
        `grep -r ${SECRET} cache/; echo x > cache/authorized_keys; echo done`,
      );
      assert.equal(stdout, "done\n");
      assert.ok(!existsSync(join(machine.home, ".ssh/authorized_keys")));
      execFileSync("git", ["clean", "-fdq"], { cwd: machine.project });
    });
  });

  describe("leaves nothing running:", () => {
    const marker = (n: number) => `98765${n}`;
    const survivors = (text: string) =>
      readdirSync("/proc")
        .filter((name) => /^\d+$/.test(name))
        .filter((pid) => read(`/proc/${pid}/cmdline`).includes(text));
    const cases: readonly [name: string, script: string, timeoutMs: number][] = [
      ["a daemon", `setsid sleep ${marker(1)} >/dev/null 2>&1 &`, 30_000],
      ["a daemon that forgets its environment", `env -i setsid sleep ${marker(2)} >/dev/null 2>&1 &`, 30_000],
      ["300 processes", `for i in $(seq 300); do sleep ${marker(3)} & done; exit 0`, 30_000],
      ["what does not end in time", `setsid sleep ${marker(4)} & sleep ${marker(4)}`, 300],
      [
        "what does not heed signals",
        `trap "" TERM INT HUP; sleep ${marker(5)} & while :; do sleep 1; done`,
        300,
      ],
    ];
    for (const [index, [name, script, timeoutMs]] of cases.entries()) {
      test(name, async () => {
        await confined.sh(script, around, timeoutMs);
        assert.deepEqual(survivors(marker(index + 1)), []);
      });
    }

    test("when the runner itself is killed", async () => {
      const url = new URL("../confined.ts", import.meta.url).href;
      const code = `const { createMachine } = await import(${JSON.stringify(url)});
        const machine = createMachine(); const { sh } = await machine.open();
        console.log(machine.base); await sh("setsid sleep ${marker(9)} & sleep ${marker(9)}");`;
      const runner = spawn(process.execPath, ["--input-type=module", "-e", code], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      const [base] = (await once(runner.stdout.setEncoding("utf8"), "data")) as [string];
      // Not before all is set up: what ties the command to its runner is among the last things that are.
      const asleep = () =>
        survivors(marker(9)).filter((pid) => read(`/proc/${pid}/cmdline`).startsWith("sleep"));
      await until(() => asleep().length >= 2, "both commands sleep");
      await sleep(200);
      runner.kill("SIGKILL");
      await once(runner, "exit");
      await until(() => survivors(marker(9)).length === 0, "both commands have ended");
      execFileSync("rm", ["-rf", base.trim()]);
    });
  });

  describe("lets a command", () => {
    const cases: readonly [name: string, script: string, stdout: RegExp | string][] = [
      ["read the project", "cat readme.md", "A project.\n"],
      ["write in the project", "mkdir -p build && echo made > build/out && cat build/out", "made\n"],
      ["use /tmp", "echo x > /tmp/a && cat /tmp/a", "x\n"],
      ["make temporary files", 'f=$(mktemp) && case "$f" in /tmp/*) echo ok; esac', "ok\n"],
      ["run node", `"$NODE" -p 1+1`, "2\n"],
      [
        "start processes from node",
        js('console.log(require("node:child_process").execSync("echo hi").toString().trim())'),
        "hi\n",
      ],
      [
        "serve and fetch on its own loopback",
        js(
          'const s = require("node:http").createServer((q, r) => r.end("own")).listen(0, async () => { console.log(await (await fetch("http://127.0.0.1:" + s.address().port)).text()); s.close() })',
        ),
        "own\n",
      ],
      [
        "listen at a socket of its own",
        js(
          'const n = require("node:net"); const s = n.createServer((c) => c.end("own")).listen("/tmp/s", () => n.connect("/tmp/s").on("data", (d) => { console.log(String(d)); s.close() }))',
        ),
        "own\n",
      ],
      ["see a clean repository", "git status --porcelain", ""],
      [
        "commit",
        "echo 1 > one && git add one && git commit -qm one && git log --oneline | wc -l && git status --porcelain",
        "2\n",
      ],
      [
        "branch, stash and diff",
        "git checkout -qb side && echo 2 >> one && git stash -q && git stash pop -q && git diff --stat | tail -1 && git checkout -q one && git checkout -q main",
        / 1 file changed/,
      ],
      ["read other repositories' history", "git log -1 --format=%s", "one\n"],
      ["pass its exit code on", "exit 7", ""],
      ["know what does not exist", "/no/such/command; echo $?", "127\n"],
      ["use pipes and background jobs", "(sleep 0.05; echo b) & echo a; wait", "a\nb\n"],
      [
        "run a script of the project",
        "printf '#!/bin/sh\\necho ran' > run.sh && chmod +x run.sh && ./run.sh",
        "ran\n",
      ],
      ["read what is installed", "test -r /usr/bin/env && ls / | grep -c usr", "1\n"],
      ["ask who it is", "id -u", `${process.getuid?.()}\n`],
    ];
    for (const [name, script, expected] of cases) {
      test(name, async () => {
        const { stdout, stderr } = await confined.sh(script, around);
        if (typeof expected === "string") assert.equal(stdout, expected, stderr);
        else assert.match(stdout, expected, stderr);
        execFileSync("git", ["clean", "-fdq"], { cwd: machine.project });
      });
    }

    test("run npm test of a small project", async () => {
      const folder = join(machine.project, "small");
      mkdirSync(folder);
      writeFileSync(
        join(folder, "package.json"),
        JSON.stringify({ name: "small", scripts: { test: "node --test" } }),
      );
      writeFileSync(join(folder, "a.test.mjs"), 'import { test } from "node:test"; test("a", () => {});');
      const { stdout, exitCode } = await confined.sh("cd small && npm test", around);
      assert.match(stdout, /pass 1/);
      assert.equal(exitCode, 0);
      execFileSync("git", ["clean", "-fdq"], { cwd: machine.project });
    });

    test("start in a folder that is known by a link of a scratch folder", async () => {
      const folder = mkdtempSync(join(tmpdir(), "lockstep-link-"));
      symlinkSync(machine.project, join(folder, "link"));
      const inside = await machine.open({}, join(folder, "link"));
      assert.equal((await inside.sh("pwd -P && cat readme.md")).stdout, `${machine.project}\nA project.\n`);
      rmSync(folder, { recursive: true });
    });

    test("see the values of a check, which what confines it does not obey", async () => {
      const traces = join(machine.outside, "loaded");
      const env = { LD_DEBUG: "libs", LD_DEBUG_OUTPUT: traces, LD_PRELOAD: "./missing.so", word: "a b'\n$c" };
      const command = 'printf "%s|%s" "$LD_PRELOAD" "$word"; exit 3';
      const { signal } = new AbortController();
      const shell = createShell({ cwd: machine.project, env: process.env, exec: confined.exec });
      const { params } = await shell.check({ ...sketchCheck("values", command), env }, signal);
      assert.match(params.stdout as string, /\.\/missing\.so\|a b'\n\$c$/);
      assert.deepEqual(
        readdirSync(machine.outside).filter((name) => name.startsWith("loaded")),
        [],
      );
      // Without a sandbox they are the command's too; so the loader would have written.
      const open = createShell({ cwd: machine.project, env: process.env, exec: runProcess });
      assert.equal((await open.check({ ...sketchCheck("values", command), env }, signal)).ok, false);
      const written = readdirSync(machine.outside).filter((name) => name.startsWith("loaded"));
      assert.notDeepEqual(written, []);
      for (const name of written) rmSync(join(machine.outside, name));
    });

    test("take an argument vector, and end with what a shell would say", async () => {
      const { stdout } = await confined.sh(["printf", "%s|", "a b", "$HOME", "'"]);
      assert.equal(stdout, "a b|$HOME|'|");
      assert.equal((await confined.sh(["/no/such/command"])).exitCode, 127);
      assert.equal((await confined.sh("exit 7")).exitCode, 7);
    });

    test("start also when a socket of somebody else goes away in that moment", async () => {
      const { engine, policy } = confined.inside!;
      const path = join(machine.outside, "gone.sock");
      const kept = join(machine.outside, "kept.sock");
      const says = (name: string) => `echo "bwrap: Can't create file at ${name}: x" >&2; exit 1`;
      const listening = createServer().listen(kept).unref();
      await once(listening, "listening");
      const limits = { timeoutMs: 30_000, maxOutputBytes: 4096, signal: new AbortController().signal };
      const env = childEnv(process.env);
      const started = (exec: typeof runProcess, command: string) =>
        confine(exec, engine, policy)({ command, cwd: policy.cwd, env, ...limits });
      try {
        for (const { line, goesAway, starts, exit } of [
          { line: "echo x", goesAway: 0, starts: 1, exit: 0 },
          { line: "echo x", goesAway: 1, starts: 2, exit: 0 },
          { line: "echo x", goesAway: 12, starts: 13, exit: 0 },
          // What a command says itself is its own end.
          { line: says(path), goesAway: 0, starts: 1, exit: 1 },
          { line: says(kept), goesAway: 0, starts: 1, exit: 1 },
          { line: null, goesAway: 0, starts: 1, exit: null },
          { line: null, goesAway: 12, starts: 13, exit: null },
        ]) {
          let server = createServer().listen(path).unref();
          await once(server, "listening");
          let count = 0;
          const exec: typeof runProcess = async (options) => {
            count += 1;
            if (count > goesAway) return await runProcess(options);
            await new Promise((resolve) => server.close(resolve));
            const result = await runProcess(options);
            server = createServer().listen(`${path}${count}`).unref();
            await once(server, "listening");
            return result;
          };
          const programs = programsFor(process.env, [policy.cwd]);
          const ended =
            line === null
              ? await createBwrap({ exec, env, programs }).selfTest(policy)
              : (await started(exec, line)).exitCode;
          assert.deepEqual([ended, count], [exit, starts], String(line));
          await new Promise((resolve) => server.close(resolve));
        }
      } finally {
        listening.close();
      }
    });

    test("write to a folder that the agent file opens, and to nothing beside it", async () => {
      const shared = join(machine.base, "shared");
      mkdirSync(shared);
      const opened = await machine.open({ filesystem: { allowedPaths: ["../shared"] } });
      const { stderr } = await opened.sh("echo x > ../shared/new; echo x > ../outside/new");
      assert.equal(readFileSync(join(shared, "new"), "utf8"), "x\n");
      assert.match(stderr, /Read-only file system/);
      assert.ok(!existsSync(join(machine.outside, "new")));
    });
  });

  describe("in a worktree", () => {
    const escapes: readonly Attempt[] = [
      ["the pointer", "echo 'gitdir: /tmp' > .git"],
      ["another pointer in its place", "mv .git .git-old"],
      ["a hook of the repository", `echo x > $COMMON/hooks/pre-commit`],
      ["other hooks in their place", `mv $COMMON/hooks $COMMON/old`],
      ["the configuration", `echo x >> $COMMON/config`],
      ["where the repository is", `echo /tmp > $COMMON/worktrees/wt/commondir`],
      ["where the worktree is", `echo /tmp > $COMMON/worktrees/wt/gitdir`],
      ["another record in its place", `mv $COMMON/worktrees/wt $COMMON/worktrees/old`],
      ["the repository in its place", `mv $COMMON $COMMON-old`],
      ["the files of the main worktree", "echo x >> $PROJECT/readme.md"],
      ["attributes", "echo '* filter=x' > $COMMON/info/attributes"],
    ];
    test("commits work, and git's own files stay", async () => {
      const worktree = join(machine.base, "wt");
      const inside = await machine.open({}, worktree);
      const env = { ...around, COMMON: join(machine.project, ".git") };
      assert.equal((await inside.sh("git status --porcelain")).stdout, "");
      const made = await inside.sh(
        "echo w > w && git add . && git commit -qm w && git log -1 --format=%s && git status --porcelain",
      );
      assert.equal(made.stdout, "w\n", made.stderr);
      for (const [name, script] of escapes) {
        const was = print(machine);
        const { stdout } = await inside.sh(`( ${script} ) 2>/dev/null && echo GOT || echo NO`, env);
        assert.equal(stdout, "NO\n", name);
        assert.deepEqual(print(machine), was, name);
      }
      await inside.sh("echo x > $COMMON/worktrees/wt/config.worktree", env);
      assert.ok(!existsSync(join(machine.project, ".git/worktrees/wt/config.worktree")));
      await inside.close();
    });

    test("a pointer that leads astray opens nothing", async () => {
      const folder = join(machine.base, "astray");
      mkdirSync(folder);
      const targets = [
        machine.outside,
        join(machine.project, ".git"),
        join(machine.project, ".git/worktrees/wt"),
        machine.home,
      ];
      for (const target of targets) {
        writeFileSync(join(folder, ".git"), `gitdir: ${target}\n`);
        const inside = await machine.open({}, folder);
        const { stdout } = await inside.sh(
          `( echo x > ${target}/planted ) 2>/dev/null && echo GOT || echo NO`,
        );
        assert.equal(stdout, "NO\n", target);
        await inside.close();
      }
    });

    test("links among records of worktrees, where there were none, are set aside; records stay", async () => {
      const folder = join(machine.base, "planted-records");
      mkdirSync(folder);
      execFileSync("git", ["init", "-q"], { cwd: folder });
      const inside = await machine.open({}, folder);
      const records = join(folder, ".git/worktrees");
      const linked = await inside.sh(`ln -s ${machine.home} .git/worktrees`);
      assert.match(linked.stderr, /worktrees is not for commands to make/);
      assert.ok(!existsSync(records));
      const made = await inside.sh(
        `mkdir -p .git/worktrees/x && echo y > .git/worktrees/x/HEAD && ln -s ${machine.home}/f .git/worktrees/x/commondir.new`,
      );
      assert.match(made.stderr, /commondir\.new is not for commands to make/);
      assert.deepEqual(readdirSync(join(records, "x")).toSorted(), [
        "HEAD",
        "lockstep-refused-commondir.new",
      ]);
      await inside.close();
    });

    test("a link in place of the hooks is put back", async () => {
      const folder = join(machine.base, "linked");
      mkdirSync(join(folder, "git-hooks"), { recursive: true });
      execFileSync("git", ["init", "-q"], { cwd: folder });
      execFileSync("rm", ["-rf", ".git/hooks"], { cwd: folder });
      symlinkSync("../git-hooks", join(folder, ".git/hooks"));
      const inside = await machine.open({}, folder);
      const { stderr } = await inside.sh(
        "rm .git/hooks && mkdir .git/hooks && echo x > .git/hooks/pre-commit",
      );
      assert.match(stderr, /hooks is not for commands to make/);
      assert.equal(readlinkSync(join(folder, ".git/hooks")), "../git-hooks");
      await inside.close();
    });
  });
});

/** Everything outside that a command must leave as it is, in one value. */
function print({ project, outside, home }: Machine): { readonly [path: string]: string } {
  const control = [
    "config",
    "hooks",
    "info",
    "worktrees/wt/commondir",
    "worktrees/wt/gitdir",
    "modules/sub/config",
    "modules/sub/hooks",
  ];
  const kept = [
    outside,
    home,
    join(project, ".agent"),
    join(project, ".lockstep"),
    join(project, "readme.md"),
  ];
  const paths = [...kept, ...control.map((name) => join(project, ".git", name))];
  const found: { [path: string]: string } = {};
  for (const path of paths) collect(path, found);
  return found;
}

function collect(path: string, found: { [path: string]: string }): void {
  try {
    const names = readdirSync(path).toSorted();
    found[path] = names.join();
    for (const name of names) collect(join(path, name), found);
  } catch {
    found[path] = createHash("sha1").update(read(path)).digest("hex");
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}

function addWorktreeAndModule({ base, project, home }: Machine): void {
  const env = { PATH: process.env.PATH, HOME: home };
  const git = (...args: readonly string[]) => execFileSync("git", args, { cwd: project, env, stdio: "pipe" });
  git("worktree", "add", "-q", join(base, "wt"), "-b", "wt");
  git("clone", "-q", "--bare", ".", ".git/modules/sub");
}
