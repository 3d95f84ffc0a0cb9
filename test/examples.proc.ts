/** Every example runs as its page says. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { builtCommand } from "./built.ts";
import { homeBeside } from "./run/project.ts";
import { follow, openShell, terminal } from "./shell.ts";

const MAIN = await builtCommand();

const root = fileURLToPath(new URL("..", import.meta.url));
const EXAMPLES = readdirSync(join(root, "examples"), { withFileTypes: true }).filter((one) =>
  one.isDirectory(),
);

test("npm start: the agent closes too early, is sent back, and ends with a green suite", () => {
  const home = mkdtempSync(join(tmpdir(), "lockstep-start-"));
  try {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const { status, stdout, stderr } = spawnSync(process.execPath, ["examples/demo.ts"], {
      cwd: root,
      encoding: "utf8",
      env: { ...env, TMPDIR: home },
    });
    assert.equal(status, 0, stderr);
    assert.match(stdout.trim().split("\n").at(-1) ?? "", /^\{"outcome":"success"[,}]/);
    assert.match(stderr, /Its tests: 0 pass, 2 fail/);
    assert.match(stderr, /tests-pass/);
    assert.match(stderr, /Its tests now: 2 pass, 0 fail/);
    assert.match(stderr, /Try next/);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});

test("02: prompts are made of parameters, sections, handed-on values and stdin, and one may be missing", () => {
  const home = mkdtempSync(join(tmpdir(), "lockstep-prompts-"));
  try {
    cpSync(join(root, "examples/02-prompt-files"), home, { recursive: true });
    const lockstep = (args: readonly string[], input = "") =>
      spawnSync(process.execPath, [MAIN, ...args], {
        cwd: home,
        encoding: "utf8",
        input,
      });
    const run = ["run", "digest", "--audience", "children", "--script", "script.yaml"];

    const piped = lockstep(run, readFileSync(join(home, "notes.txt"), "utf8"));
    assert.equal(piped.status, 0, piped.stderr);
    const unpiped = lockstep(run);
    assert.equal(unpiped.status, 1);
    assert.match(unpiped.stderr, /PR-RESOLVE-003[^]*"initial\.digest" needs the text of stdin/);

    rmSync(join(home, ".agent/digest/prompts/steps/initial/digest/f_default.md"));
    const warned = lockstep(["check", "digest"]);
    assert.equal(warned.status, 0);
    assert.match(warned.stdout, /warning +PROMPT-FALLBACK-USED[^]*"initial_iterate" is used instead/);
    assert.equal(lockstep(["check", "digest", "--strict"]).status, 2);
    assert.equal(lockstep([...run, "--strict"], "text").status, 2);
    const { stdout } = lockstep(["explain", "digest", "initial.digest"]);
    assert.match(
      stdout,
      /prompt +built-in:initial_iterate, because there is no file:\n +│ This is iteration/,
    );
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});

test("03: both checks send the run back once, and then it completes", () => {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-example-"));
  try {
    const example = join(root, "examples/03-checks-and-retries");
    cpSync(join(example, "project"), folder, { recursive: true });
    cpSync(join(example, ".agent"), join(folder, ".agent"), { recursive: true });
    for (const args of [
      ["init", "-q"],
      ["config", "user.name", "t"],
      ["config", "user.email", "t@example.invalid"],
      ["add", "-A"],
      ["commit", "-qm", "start"],
    ])
      assert.equal(spawnSync("git", args, { cwd: folder }).status, 0, args.join(" "));
    const lockstep = (...args: readonly string[]) =>
      spawnSync(process.execPath, [MAIN, ...args], {
        cwd: folder,
        encoding: "utf8",
        env: { PATH: process.env.PATH, HOME: homeBeside(), LOCKSTEP_TRUST: "all" },
      });
    const script = join(example, "script.yaml");
    const ran = lockstep("run", "writer", "--topic", "tides", "--script", script, "--json");
    assert.equal(ran.status, 0, ran.stdout);
    const { checks } = JSON.parse(ran.stdout) as { checks: readonly { pattern: string; ok: boolean }[] };
    assert.deepEqual(
      checks.map(({ pattern, ok }) => [pattern, ok]),
      [
        ["broken-links", false],
        ["broken-links", true],
        ["badly-described", false],
        ["broken-links", true],
        ["badly-described", true],
      ],
    );
    const page = readFileSync(join(root, "docs/checks.md"), "utf8");
    const shown = lockstep("show", "@last").stdout.split("\n").slice(0, 6);
    for (const line of shown) assert.ok(page.includes(line.trim()), line);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("05: one stage file is an agent", () => {
  const state = mkdtempSync(join(tmpdir(), "lockstep-stage-"));
  try {
    const args = ["run", "planner", "--input", "task=rename the module", "--script", "script.yaml", "--json"];
    const { status, stdout } = spawnSync(process.execPath, [MAIN, ...args, "--state", state], {
      cwd: join(root, "examples/05-plan-stage"),
      encoding: "utf8",
    });
    assert.equal(status, 0, stdout);
    const { handoff } = JSON.parse(stdout) as { handoff: { plan: { parsed: { steps: readonly string[] } } } };
    assert.deepEqual(handoff.plan.parsed.steps, ["rename the file", "fix the imports"]);
  } finally {
    rmSync(state, { recursive: true, force: true });
  }
});

test("06: six stages, two of them side by side, with checks and a repair, end in a commit", () => {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-machine-"));
  try {
    const example = join(root, "examples/06-stage-machine");
    cpSync(join(example, "project"), folder, { recursive: true });
    cpSync(join(example, ".agent"), join(folder, ".agent"), { recursive: true });
    for (const args of [
      ["init", "-q"],
      ["config", "user.name", "t"],
      ["config", "user.email", "t@example.invalid"],
      ["add", "-A"],
      ["commit", "-qm", "start"],
    ])
      assert.equal(spawnSync("git", args, { cwd: folder }).status, 0, args.join(" "));
    const lockstep = (...args: readonly string[]) =>
      spawnSync(process.execPath, [MAIN, ...args], {
        cwd: folder,
        encoding: "utf8",
        env: { PATH: process.env.PATH, HOME: homeBeside(), LOCKSTEP_TRUST: "all" },
      });
    const script = join(example, "script.yaml");
    const ran = lockstep("run", "ship", "--task", "make the tests pass", "--script", script, "--json");
    assert.equal(ran.status, 0, ran.stdout);
    const { path, warnings } = JSON.parse(ran.stdout) as {
      path: readonly { step: string; label: string; to: string | null }[];
      warnings: readonly string[];
    };
    assert.deepEqual(
      path.map(({ step, label }) => `${step}:${label}`),
      "discover decompose build-slug build-count review repair complete"
        .split(" ")
        .map((step) => `${step}:ok`),
    );
    assert.deepEqual(warnings, []);
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    assert.equal(spawnSync(process.execPath, ["--test"], { cwd: folder, env }).status, 0);
    assert.equal(spawnSync("git", ["status", "--porcelain"], { cwd: folder, encoding: "utf8" }).stdout, "");
    for (const words of [
      ["show", "@last", "--audit"],
      ["why", "@last", "review"],
      ["explain", "ship", "review"],
      ["graph", "ship"],
    ])
      assert.equal(lockstep(...words).status, 0, words.join(" "));
    const drawn = JSON.parse(lockstep("graph", "ship", "--format", "json").stdout) as {
      edges: readonly { from: string; label: string; to: { step?: string } }[];
    };
    const ways = drawn.edges.map(({ from, label, to }) => `${from} ${label} ${to.step ?? null}`);
    for (const { step, label, to } of path)
      assert.ok(ways.includes(`${step} ${label} ${to}`), `${step} → ${to}`);
    for (const sibling of ["build-slug", "build-count"])
      assert.deepEqual(
        ways.filter((way) => way.startsWith(`${sibling} ok `)),
        [`${sibling} ok review`, `${sibling} ok ${sibling}`],
      );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("07: the work of a run comes as one merge, and a dry run only says so", () => {
  const temp = mkdtempSync(join(tmpdir(), "lockstep-own-worktree-"));
  try {
    const example = join(root, "examples/07-worktree");
    const folder = join(temp, "project");
    cpSync(join(example, "project"), folder, { recursive: true });
    cpSync(join(example, ".agent"), join(folder, ".agent"), { recursive: true });
    const env = { PATH: process.env.PATH, HOME: temp };
    const git = (...args: readonly string[]) => {
      const { status, stdout, stderr } = spawnSync("git", args, { cwd: folder, env, encoding: "utf8" });
      assert.equal(status, 0, `${args.join(" ")}: ${stderr}`);
      return stdout.trim();
    };
    git("init", "-q", "-b", "main");
    git("config", "user.name", "t");
    git("config", "user.email", "t@example.invalid");
    git("add", "-A");
    git("commit", "-qm", "start");
    git("init", "-q", "--bare", "../remote.git");
    git("remote", "add", "origin", "../remote.git");
    writeFileSync(join(folder, "sources.local.md"), "Twice a day: the moon pulls, the earth turns.\n");
    const lockstep = (...args: readonly string[]) =>
      spawnSync(process.execPath, [MAIN, ...args], {
        cwd: folder,
        env,
        encoding: "utf8",
      });
    const run = ["run", "scribe", "--input", "topic=tides", "--script", join(example, "script.yaml")];
    type Told = { effects: readonly { kind: string; state: string }[]; warnings: readonly string[] };

    const asked = lockstep(...run, "--dry-run", "--json");
    const { code, reason } = JSON.parse(asked.stdout) as { code: string; reason: string };
    assert.deepEqual([asked.status, code], [3, "NOT_TRUSTED"], reason);
    assert.match(
      reason,
      /git: copies sources\.local\.md.*git: keeps worktrees in \.\.\/worktrees.*git: pushes/s,
    );
    const digest = /--trust ([0-9a-f]{64})/.exec(reason)?.[1] ?? "";

    // Given once, it holds for the run after it.
    const dry = lockstep(...run, "--dry-run", "--json", "--trust", digest);
    assert.equal(dry.status, 0, dry.stdout + dry.stderr);
    const held = (JSON.parse(dry.stdout) as Told).effects;
    assert.deepEqual(new Set(held.map(({ state }) => state)), new Set(["held"]));
    assert.equal(git("rev-list", "--count", "--all"), "1");
    assert.match(lockstep("worktree", "list").stdout, /scribe\/\w+ → main .*2 .*worktrees\/scribe-/);

    const ran = lockstep(...run, "--json");
    assert.equal(ran.status, 0, ran.stdout + ran.stderr);
    const { effects, warnings } = JSON.parse(ran.stdout) as Told;
    assert.deepEqual(
      effects.map(({ kind, state }) => `${kind}:${state}`),
      ["commit:applied", "merge:applied", "push:applied", "remove:applied"],
    );
    assert.deepEqual(warnings, []);
    assert.match(readFileSync(join(folder, "guide.md"), "utf8"), /Tides/);
    assert.equal(git("status", "--porcelain"), "?? sources.local.md");
    assert.equal(git("ls-remote", "origin", "main").split("\t")[0], git("rev-parse", "main"));
  } finally {
    rmSync(temp, { recursive: true, force: true });
  }
});

test("the example agents pass check", () => {
  for (const example of EXAMPLES) {
    const main = MAIN;
    const cwd = join(root, "examples", example.name);
    const { status, stdout } = spawnSync(process.execPath, [main, "check", "--strict", "--json"], {
      cwd,
      encoding: "utf8",
    });
    assert.equal(status, 0, `${example.name}: ${stdout}`);
  }
});

const ENDS: readonly [agent: string, iterations: number, reason: RegExp, flags?: readonly string[]][] = [
  ["counted", 3, /Completed 3\/3 iterations/],
  ["checked", 2, /Completed 2\/2 status checks/],
  ["polled", 2, /launch\.md holds/, ["--topic", "launch"]],
  ["spoken", 2, /The keyword NOTE_WRITTEN was given/],
  ["signalled", 2, /The signal wrap-up was given/],
  ["combined", 3, /note\.md is there; The keyword NOTE_WRITTEN/],
  ["custom", 2, /the note has 5 of 5 words/],
];

for (const [agent, iterations, reason, flags = []] of ENDS) {
  test(`example 04: ${agent} ends as its page says`, () => {
    const home = mkdtempSync(join(tmpdir(), "lockstep-verdicts-"));
    try {
      cpSync(join(root, "examples/04-verdict-types"), home, { recursive: true });
      const script = join(home, "scripts", `${agent}.yaml`);
      const { status, stdout, stderr } = spawnSync(
        process.execPath,
        [MAIN, "run", agent, ...flags, "--script", script, "--json"],
        { cwd: home, encoding: "utf8", env: { ...process.env, LOCKSTEP_TRUST: "all" } },
      );
      assert.equal(status, 0, stdout + stderr);
      const result = JSON.parse(stdout) as { iterations: number; reason: string; warnings: string[] };
      assert.equal(result.iterations, iterations);
      assert.match(result.reason, reason);
      assert.deepEqual(result.warnings, []);
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  });
}

test("example 04 has a script and a row for every agent", () => {
  const agents = readdirSync(join(root, "examples/04-verdict-types/.agent"));
  assert.deepEqual(agents.toSorted(), ENDS.map(([agent]) => agent).toSorted());
});

describe("the page of every example can be followed word for word", { ...terminal }, () => {
  for (const { name } of EXAMPLES) {
    test(name, async () => {
      const home = mkdtempSync(join(tmpdir(), "lockstep-followed-"));
      try {
        const copy = join(home, "lockstep-examples");
        cpSync(join(root, "examples", name), join(copy, name), { recursive: true });
        writeFileSync(
          join(home, ".gitconfig"),
          "[user]\n  name = A Reader\n  email = reader@example.invalid\n",
        );
        const bin = join(home, "bin");
        mkdirSync(bin);
        writeFileSync(join(bin, "lockstep"), `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`);
        chmodSync(join(bin, "lockstep"), 0o755);
        const PATH = `${bin}:${dirname(process.execPath)}:${process.env.PATH}`;
        await using shell = await openShell(join(copy, name), { PATH, HOME: home, LANG: "C.UTF-8" });
        await follow(shell, join(copy, name, "README.md"), { folder: () => join(copy, name) });
      } finally {
        rmSync(home, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
      }
    });
  }
});

test("the index names every example, with its title", () => {
  const index = readFileSync(join(root, "examples/README.md"), "utf8");
  const rows = [...index.matchAll(/^\| \[([^\]]+)\]\(([^)]+)\/\)/gm)].map(([, title, path]) => [path, title]);
  const titles = EXAMPLES.map(({ name }) => {
    const [first = ""] = readFileSync(join(root, "examples", name, "README.md"), "utf8").split("\n");
    return [name, first.slice("# ".length)];
  });
  assert.deepEqual(rows, titles);
});
