/** Every way out of the command leads through its one exit: one document with --json, and a code that is not 0. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { COMMANDS } from "../../src/cli/commands.ts";
import { createWorld, onlyDocument, type Ran } from "./world.ts";

const SOURCE = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));

/** What is loaded in the place of a command. None of these ever gives the command its function. */
const INSTEAD = {
  "an emptied event loop": "await new Promise(() => {});",
  "an exception that nothing catches":
    "setTimeout(() => { throw new Error('thrown aside'); }); await new Promise(() => setInterval(() => {}, 1000));",
  "a rejection that nothing handles":
    "Promise.reject(new Error('rejected aside')); await new Promise(() => setInterval(() => {}, 1000));",
  waiting: "process.stderr.write('here\\n'); await new Promise(() => setInterval(() => {}, 1000));",
} as const;

function preload(instead: string): string {
  const url = `data:text/javascript,${encodeURIComponent(instead)}`;
  return `data:text/javascript,${encodeURIComponent(`
    import { registerHooks } from "node:module";
    const isCommand = (name, from) => from?.endsWith("/cli/commands.ts") && /^\\.\\/(?!args|call)/.test(name);
    registerHooks({
      resolve: (name, context, next) =>
        isCommand(name, context.parentURL) ? { url: ${JSON.stringify(url)}, shortCircuit: true } : next(name, context),
    });
  `)}`;
}

async function run(
  instead: keyof typeof INSTEAD,
  args: readonly string[],
  signals: readonly NodeJS.Signals[] = [],
): Promise<Ran & { readonly left: boolean }> {
  using world = createWorld();
  const child = spawn(process.execPath, ["--import", preload(INSTEAD[instead]), SOURCE, ...args], {
    cwd: world.root,
    env: world.env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  // A hang is ended here, and shows as a code of null.
  const limit = setTimeout(() => child.kill("SIGKILL"), 120_000);
  let [stdout, stderr] = ["", ""];
  const left = [...signals];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
    if (stderr.includes("here")) for (const signal of left.splice(0)) child.kill(signal);
  });
  const [code] = (await once(child, "close")) as [number | null];
  clearTimeout(limit);
  return { code, stdout, stderr, left: existsSync(join(world.root, ".lockstep")) };
}

const wordsOf = ({ name, words }: (typeof COMMANDS)[number]) => [
  ...name.split(" "),
  ...words
    .filter(({ optional }) => optional === undefined)
    .map(({ is }) => (Array.isArray(is) ? String(is[0]) : "x")),
];

describe("an emptied event loop is a failure of every command", { concurrency: 2 }, () => {
  for (const command of COMMANDS) {
    test(command.name, async () => {
      const ran = await run("an emptied event loop", [...wordsOf(command), "--json"]);
      const document = onlyDocument(ran);
      assert.equal(ran.code, 1, ran.stderr);
      const text = JSON.stringify(document);
      assert.match(text, /"code":"INTERNAL"/);
      assert.match(text, /stopped before it had an answer/);
    });
  }
});

describe("a bug beside what is awaited is reported once", { concurrency: 2 }, () => {
  for (const [name, says] of [
    ["an exception that nothing catches", /thrown aside/],
    ["a rejection that nothing handles", /rejected aside/],
  ] as const)
    for (const [args, stdout] of [
      [["run", "x", "--json"], /^\{.*"code":"INTERNAL".*\}\n$/],
      [["run", "x"], /^\{"outcome":"failed"\}\n$/],
      [["runs", "--json"], /^\{.*"code":"INTERNAL".*\}\n$/],
      [["runs"], /^$/],
    ] as const)
      test(`${name}, ${args.join(" ")}`, async () => {
        const ran = await run(name, args);
        assert.equal(ran.code, 1, ran.stderr);
        assert.match(ran.stdout, stdout);
        assert.match(ran.stderr, says);
      });
});

describe("a signal before there is a run", { concurrency: 2 }, () => {
  const EARLY = /^Stopped by SIG[A-Z]+ before the run began\.$/;
  for (const [args, signals, code, stdout] of [
    [["run", "x", "--json"], ["SIGINT"], 130, { outcome: "interrupted", run: null, reason: EARLY }],
    [["run", "x", "--json"], ["SIGTERM"], 143, { outcome: "interrupted", run: null, reason: EARLY }],
    [["run", "x", "--json"], ["SIGHUP"], 129, { outcome: "interrupted", run: null, reason: EARLY }],
    [["resume", "x", "--json"], ["SIGINT", "SIGINT"], 130, { outcome: "interrupted", resumable: false }],
    [["run", "x"], ["SIGTERM"], 143, '{"outcome":"failed"}\n'],
  ] as const)
    test(`${signals.join(" and ")}: ${args.join(" ")}`, async () => {
      const ran = await run("waiting", args, signals);
      assert.equal(ran.code, code, ran.stderr);
      assert.equal(ran.left, false, "nothing is recorded");
      if (typeof stdout === "string") return assert.equal(ran.stdout, stdout);
      const document = onlyDocument(ran);
      for (const [key, value] of Object.entries(stdout as { [key: string]: unknown }))
        if (value instanceof RegExp) assert.match(String(document[key]), value);
        else assert.deepEqual(document[key], value, key);
      if ("exitCode" in document) assert.equal(document.exitCode, code);
    });
});
