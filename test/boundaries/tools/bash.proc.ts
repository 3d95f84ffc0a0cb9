import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { needs } from "../../needs.ts";
import { createToolbox } from "../../../src/boundaries/tools/toolbox.ts";
import { childEnv, runProcess } from "../../../src/effects/process/process.ts";
import { programsFor } from "../../../src/run/world/programs.ts";
import { stepWith } from "../step.ts";

const cwd = mkdtempSync(join(tmpdir(), "lockstep-bash-"));
after(() => rmSync(cwd, { recursive: true, force: true }));

const env = childEnv({ ...process.env, ANTHROPIC_API_KEY: "canary" });
const programs = programsFor(process.env, [cwd]);
const toolbox = createToolbox({
  cwd,
  protect: [],
  env: () => env,
  autoResponse: "",
  exec: runProcess,
  programs,
});

async function bash(command: string, more: { timeout?: number } = {}, signal = new AbortController().signal) {
  const calls = [{ id: "1", name: "Bash", input: { command, ...more } }];
  const [result] = await toolbox.call(stepWith({}), calls, signal);
  assert.ok(result);
  return result;
}

function isRunning(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

test("commands work on the folder and tell how they ended", async () => {
  assert.equal(
    (await bash("echo hi > a.txt; cat a.txt; echo oh >&2; exit 4")).content,
    "hi\noh\n[exit code 4]",
  );
  assert.equal(readFileSync(join(cwd, "a.txt"), "utf8"), "hi\n");
});

test("quotes, dollars and line ends reach the shell as they were written", async () => {
  const { content } = await bash(`printf '%s\\n' "a  b" 'c"d' '$HOME' "\\$x"\nprintf 'second\\n'`);
  assert.equal(content, 'a  b\nc"d\n$HOME\n$x\nsecond');
});

test("where there is bash, it is bash", needs(existsSync("/bin/bash"), "there is no bash here"), async () => {
  assert.equal((await bash("[[ abc == a* ]] && echo ${BASH_VERSION:+bash}")).content, "bash");
});

test("no secret is in a command's environment", async () => {
  const { content } = await bash("env");
  assert.doesNotMatch(content, /canary/);
});

test("a command that hangs is stopped, and a daemon it made with it", async () => {
  // A machine under load may stop it before it has said anything: then it gets more time.
  for (const timeout of [1_500, 15_000, 60_000]) {
    const { ok, content } = await bash("setsid sleep 1000 & echo $!; sleep 1000", { timeout });
    assert.equal(ok, false);
    assert.ok(content.endsWith(`[stopped after ${timeout} ms]`), content);
    const pid = /^(\d+)\n/.exec(content)?.[1];
    if (pid !== undefined) return assert.equal(isRunning(Number(pid)), false);
  }
  assert.fail("the command never said the number of its daemon");
});

test("what a command leaves in the background does not outlive it", async () => {
  const { content } = await bash("sleep 1000 & echo $!");
  assert.match(content, /^\d+$/);
  assert.equal(isRunning(Number(content)), false);
});

test("200 MB of output come back as their head and tail", async () => {
  const { content } = await bash("echo first; head -c 200000000 /dev/zero | tr '\\0' x; echo; echo last");
  assert.ok(Buffer.byteLength(content) <= 64 * 1024);
  assert.match(content.slice(0, 20), /^first\nx/);
  assert.match(content, /\n\[… \d+ bytes cut …\]\n/);
  assert.ok(content.endsWith("\nlast"));
});

test("a flood on both streams still fits", async () => {
  const { content } = await bash("yes out | head -c 1000000; yes err | head -c 1000000 >&2");
  assert.ok(Buffer.byteLength(content) <= 64 * 1024);
  assert.equal(content.match(/bytes cut/g)?.length, 2);
});

test("a pipe or a device among the files is neither read nor replaced, and nobody waits for it", async () => {
  await bash("mkdir odd && mkfifo odd/pipe && echo x > odd/file && ln -s /dev/zero odd/zero");
  const use = async (name: string, input: { [field: string]: string }) => {
    const calls = [{ id: "1", name, input }];
    const [result] = await toolbox.call(stepWith({}), calls, new AbortController().signal);
    return result?.content ?? "";
  };
  assert.match(await use("Read", { file_path: "odd/pipe" }), /not a file/);
  assert.match(await use("Edit", { file_path: "odd/pipe", old_string: "a", new_string: "b" }), /not a file/);
  assert.match(await use("Write", { file_path: "odd/pipe", content: "x" }), /not a file/);
  assert.match(await use("Read", { file_path: "odd/zero" }), /outside/);
  assert.equal(await use("Grep", { pattern: "x", path: "odd" }), "odd/file");
  assert.match(await use("Grep", { pattern: "x", path: "odd/pipe" }), /^No matches found/);
});

test("an abort interrupts it", async () => {
  const result = await bash("echo so far; sleep 1000", {}, AbortSignal.timeout(500));
  assert.equal(result.ok, false);
  assert.match(result.content, /\[interrupted\]$/);
});
