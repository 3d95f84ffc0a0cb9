/** Commands that a server starts, here played by small programs: their first word, their refusals, and how many there may be. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createDriver, type Driver } from "../../src/serve/drive.ts";
import { until } from "../until.ts";

/** A program of which the arguments are those of the command. */
function driverOf(source: string, program: readonly string[] = [process.execPath, "-e", source]): Driver {
  return createDriver({
    program: [...program, "--"],
    cwd: process.cwd(),
    stateFlag: "state dir",
    env: { PATH: process.env.PATH },
  });
}

type Refused = {
  readonly status: number;
  readonly refusal: { readonly code: string; readonly reason: string };
};
const STARTED = `console.log(JSON.stringify({ seq: 1, event: { type: "run.started", run: "r1" } }));`;
const LINE = { words: ["run", "a"] };

test("the first entry names the run; the command is given its words, and what is piped in", async () => {
  const told = await driverOf(`
    let text = "";
    process.stdin.on("data", (part) => (text += part)).on("end", () => {
      const run = [...process.argv.slice(1), text].join("|");
      console.log(JSON.stringify({ event: { run } }));
    });
  `).start({ words: ["run", "a", "--input", "-"], input: "piped" });
  assert.equal(told, "run|--events|--quiet|--state=state dir|a|--input|-|piped");
});

test(
  "a command has a process group of its own: Ctrl-C at the studio does not reach it",
  { skip: process.platform !== "linux" && "process groups are read from /proc" },
  async () => {
    const groupIn = `require("node:fs").readFileSync("/proc/self/stat", "utf8").split(") ")[1].split(" ")[2]`;
    const group = await driverOf(`console.log(JSON.stringify({ event: { run: ${groupIn} } }))`).start(LINE);
    const [, own = ""] = /\) \S+ \S+ (\d+)/.exec(readFileSync("/proc/self/stat", "utf8")) ?? [];
    assert.match(group, /^\d+$/);
    assert.notEqual(group, own);
  },
);

test("a run that is resumed is the one that was asked for", async () => {
  assert.equal(await driverOf(`console.log("{}")`).start({ words: ["resume", "r7"] }, "r7"), "r7");
});

test("a name that the command would take for a flag is refused, and nothing is started", async () => {
  const driver = driverOf("process.exit(1)");
  for (const name of ["-x", "--trust-journal", "--state=/"])
    for (const command of ["run", "resume", "continue", "answer", "coverage"])
      await assert.rejects(driver.start({ words: [command, name, "--fine"] }), /begins with a dash/);
  for (const value of ["a\0b", "x".repeat(100_001)])
    await assert.rejects(driver.start({ words: ["run", "a", `--topic=${value}`] }), {
      status: 400,
      message: /NUL character or is longer/,
    });
  await assert.rejects(driver.read({ words: ["coverage", "-x"] }, new AbortController().signal), /dash/);
});

const refusals: readonly [name: string, source: string, status: number, code: string, reason: RegExp][] = [
  [
    "the headline names the code",
    `console.error("✗ failed NOT_TRUSTED  a\\n  It needs trust.\\n  Twice."); process.exit(3)`,
    409,
    "NOT_TRUSTED",
    /^It needs trust\.\nTwice\.$/,
  ],
  [
    "a usage error",
    `console.error("lockstep: Unknown flag --x."); process.exit(2)`,
    400,
    "NOT_STARTED",
    /^lockstep: Unknown flag --x\.$/,
  ],
  [
    "a run that is not known",
    `console.error("✗ failed RUN_UNKNOWN\\n  no"); process.exit(2)`,
    404,
    "RUN_UNKNOWN",
    /^no$/,
  ],
  ["no words at all", `process.exit(7)`, 409, "NOT_STARTED", /exit code 7/],
  ["orders to a terminal", `console.error("\\u001b[2Jgone"); process.exit(3)`, 409, "NOT_STARTED", /gone$/],
  [
    "an entry that is not one",
    `console.log("[1]"); console.error("no"); process.exit(1)`,
    409,
    "NOT_STARTED",
    /^no$/,
  ],
];
for (const [name, source, status, code, reason] of refusals)
  test(`a command that ends before its run begins is a refusal: ${name}`, async () => {
    await assert.rejects(driverOf(source).start(LINE), (error: Refused) => {
      assert.deepEqual([error.status, error.refusal.code], [status, code]);
      assert.match(error.refusal.reason, reason);
      assert.ok(!error.refusal.reason.includes("\u001b"));
      return true;
    });
  });

test("eight commands at most, looks apart, and one that could not start leaves no place taken", async () => {
  const missing = driverOf("", ["/nowhere/lockstep"]);
  for (let times = 0; times < 10; times += 1)
    await assert.rejects(missing.start(LINE), /cannot be started: .*ENOENT/);
  const living = driverOf(`${STARTED} setTimeout(() => {}, 4000)`);
  const all = await Promise.allSettled(Array.from({ length: 9 }, () => living.start(LINE)));
  assert.deepEqual(
    all.map((one) => (one.status === "fulfilled" ? one.value : (one.reason as Refused).refusal.code)),
    [...Array<string>(8).fill("r1"), "TOO_MANY_RUNS"],
  );
  const ended = new AbortController();
  const looks = Array.from({ length: 9 }, () => living.read({ words: ["check", "a"] }, ended.signal));
  const ninth = (await Promise.allSettled(looks.slice(8)))[0]!;
  assert.equal(ninth.status === "rejected" && (ninth.reason as Refused).refusal.code, "TOO_MANY_RUNS");
  ended.abort();
  await Promise.allSettled(looks);
  const slow = `${STARTED} if (process.argv[1] === "run") setTimeout(() => {}, 4000)`;
  const both = driverOf(slow);
  await Promise.all(Array.from({ length: 8 }, () => both.start(LINE)));
  assert.equal((await both.read({ words: ["check", "a"] }, new AbortController().signal)).seq, 1);
});

test("a command that writes a lot after its first word is not held up", async () => {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-drive-"));
  const sign = join(folder, "sign");
  const driver = driverOf(`
    ${STARTED}
    const line = "x".repeat(1 << 16);
    let left = 64;
    (function more() {
      if (left-- === 0) return require("node:fs").writeFileSync(process.argv.at(-1), "");
      process.stdout.write(line, () => process.stderr.write(line, more));
    })();
  `);
  assert.equal(await driver.start({ words: ["run", sign] }), "r1");
  await until(() => existsSync(sign), "the command comes to its end");
  rmSync(folder, { recursive: true });
});

test("the document of a command is read whole, and a command without one is a refusal", async () => {
  const never = new AbortController().signal;
  const long = await driverOf(`process.stdout.write(JSON.stringify({ v: 1, long: "x".repeat(1e6) }))`).read(
    LINE,
    never,
  );
  assert.equal((long.long as string).length, 1e6);
  await assert.rejects(driverOf(`console.error("no"); process.exit(3)`).read(LINE, never), {
    refusal: { v: 1, code: "NOT_STARTED", reason: "no" },
  });
  const gone = new AbortController();
  const slow = driverOf(`setTimeout(() => {}, 20_000)`).read(LINE, gone.signal);
  gone.abort();
  await assert.rejects(slow);
});
