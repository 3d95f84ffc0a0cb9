/** What a command tells the user to do next: it can be pasted, and leads to the same run in the same way. */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { enter } from "../canary/doors.ts";
import { agentFiles, homeBeside, projectWith, PROVEN, stepTo } from "../run/project.ts";

/** An agent that runs a command of the project, and a script that is too short for it. */
function project(): { readonly root: string; readonly env: NodeJS.ProcessEnv } {
  const steps = {
    "initial.a": stepTo("work", { next: "closure.a" }),
    "closure.a": stepTo("closure", { closing: null }),
  };
  const reply = { output: { stepId: "initial.a", next_action: { action: "next" } } };
  const root = projectWith({
    ...agentFiles("a", steps, { registry: PROVEN }),
    "short.json": JSON.stringify({ replies: [reply] }),
  });
  return { root, env: { PATH: process.env.PATH, HOME: homeBeside() } };
}

const SHORT = ["run", "a", "--script", "short.json", "--json"];

async function stoppedRun({ root, env }: ReturnType<typeof project>, ...more: readonly string[]) {
  const ran = await enter([...SHORT, ...more], root, { ...env, LOCKSTEP_TRUST: "all" });
  const { run, code } = JSON.parse(ran.stdout) as { readonly run: string; readonly code: string };
  assert.equal(code, "SCRIPT_EXHAUSTED", ran.stdout + ran.stderr);
  return { run, ran };
}

test("the command that resumes a run repeats where the run is and how its commands are held", async () => {
  const { root, env } = project();
  const trusted = { ...env, LOCKSTEP_TRUST: "all" };
  const given = ["--state", "st", "--sandbox", "off", "--network", "none"];
  const { stderr } = await enter([...SHORT.slice(0, 4), ...given], root, trusted);
  const [, hint = ""] = /^ +next +lockstep (resume \S+ .*) --script MORE$/m.exec(stderr) ?? [];
  const [command, run = "", ...flags] = hint.split(" ");
  assert.deepEqual([command, ...flags], ["resume", ...given], stderr);
  const shown = await enter(["show", run, ...flags.slice(0, 2), "--json"], root, trusted);
  assert.equal((JSON.parse(shown.stdout) as { readonly run: string }).run, run);
});

test("hints name the state folder and the project that the user named", async () => {
  const around = project();
  const { root, env } = around;
  const { run } = await stoppedRun(around, "--state", "st");
  const where = ["--cwd", root, "--state", "st"];
  const paused = await enter(["pause", run, ...where], "/", env);
  assert.equal(
    paused.stdout,
    `Run ${run} is paused. Go on with: lockstep continue ${where.join(" ")} ${run}\n`,
  );
  const unknown = await enter(["run", "b", ...where], "/", env);
  assert.match(unknown.stderr, new RegExp(`lockstep check ${where.join(" ")} b`));
});

test("a resume that is refused or stopped before it goes on names the run and its agent", async () => {
  const around = project();
  const { run } = await stoppedRun(around);
  const words = ["resume", run.slice(0, 6), "--json"];
  for (const [signal, code, exit, resumable] of [
    [undefined, "NOT_TRUSTED", 3, false],
    [AbortSignal.abort("SIGINT"), "INTERRUPTED", 130, true],
    [AbortSignal.abort("SIGTERM"), "INTERRUPTED", 143, true],
  ] as const) {
    const told = await enter(words, around.root, around.env, signal);
    const document = JSON.parse(told.stdout) as { readonly [key: string]: unknown };
    assert.deepEqual(
      [document.run, document.agent, document.code, document.exitCode, document.resumable, told.code],
      [run, "a", code, exit, resumable, exit],
      told.stderr,
    );
  }
  // A fork that is refused leaves nothing behind, so there is no run to name.
  const forked = await enter(["fork", run, "--at", "initial.a", "--json"], around.root, around.env);
  const { run: none, agent } = JSON.parse(forked.stdout) as { readonly [key: string]: unknown };
  assert.deepEqual([none, agent], [null, "a"], forked.stdout);
});

test("what cannot be written says why and what to do, not what the system calls it", async () => {
  const around = project();
  const { run } = await stoppedRun(around);
  mkdirSync(join(around.root, "folder"));
  for (const [words, says] of [
    [
      ["export", run, "-o", "no/dir/x.json"],
      "the folder ROOT/no/dir does not exist. Create it with: mkdir -p ROOT/no/dir",
    ],
    [
      ["graph", "a", "-o", "no dir/x.svg"],
      "the folder ROOT/no dir does not exist. Create it with: mkdir -p 'ROOT/no dir'",
    ],
    [["export", run, "-o", "short.json/x"], "ROOT/short.json is not a folder"],
    [["export", run, "-o", "folder"], "ROOT/folder is a folder"],
  ] as const) {
    const refused = await enter(words, around.root, around.env);
    assert.equal(refused.code, 3, refused.stderr);
    assert.ok(refused.stderr.replaceAll(around.root, "ROOT").includes(says), refused.stderr);
    assert.doesNotMatch(refused.stderr, /\bE[A-Z]{4,}\b/);
  }
});

test("doctor does not advise to salvage a record that is empty", async () => {
  const around = project();
  await stoppedRun(around);
  const file = join(around.root, ".lockstep/runs.db");
  const fixOf = async (...words: readonly string[]) => {
    const { stdout } = await enter(["doctor", ...words, "--json"], around.root, around.env);
    const { checks } = JSON.parse(stdout) as { readonly checks: readonly { [key: string]: string }[] };
    return checks.find(({ name, status }) => status === "fail" && /^(journal|database)$/.test(name ?? ""))
      ?.fix;
  };
  writeFileSync(file, "x".repeat(5000));
  assert.equal(await fixOf("--journal"), "restore it from a copy, or: lockstep salvage");
  writeFileSync(file, "");
  const fix = `restore it from a copy, or begin anew: rm ${file}`;
  assert.deepEqual([await fixOf("--journal"), await fixOf()], [fix, fix]);
});

test("a file that the line names and that cannot be read is named with a plain reason", async () => {
  const around = project();
  const { run } = await stoppedRun(around);
  mkdirSync(join(around.root, "folder"));
  for (const [words, says] of [
    [["run", "a", "--script", "none.json"], "none.json cannot be read: there is no such file in ROOT."],
    [["run", "a", "--script", "folder"], "folder cannot be read: it is a folder, not a regular file."],
    [["fork", run, "--at", "initial.a", "--edit", "output=none.json"], "none.json cannot be read: there is"],
    [["replay", "none.json"], "none.json cannot be read: there is no such file in ROOT."],
    [["import", "short.json/x"], "short.json/x cannot be read: there is no such file."],
  ] as const) {
    const refused = await enter(words, around.root, { ...around.env, LOCKSTEP_TRUST: "all" });
    assert.equal(refused.code, 2, refused.stderr);
    assert.ok(refused.stderr.replaceAll(around.root, "ROOT").includes(says), refused.stderr);
    assert.doesNotMatch(refused.stderr, /\bE[A-Z]{4,}\b/);
  }
});
