/** Action blocks that code of the project carries out, and real deaths of the process that carries them out. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { resume } from "../../src/run/index.ts";
import { hasBwrap, NO_BWRAP } from "../boundaries/confined.ts";
import { needs } from "../needs.ts";
import { actingAgent, closing, effectsOf, handoff, withActing, type Settings } from "./acting.ts";
import { projectWith, writeFiles } from "./project.ts";
import { replies, repository, WORKER } from "./repository.ts";

const withModule = (text: string): Settings => ({
  actions: { types: ["plan", "note"], handlers: { plan: "./handlers/plan.mjs", note: "builtin:file" } },
  files: { ".agent/worker/handlers/plan.mjs": text },
});
const PLAN = { type: "plan", content: "first", depth: 2 };

/** Writes down each call, and tells from that whether it was made. */
const CAREFUL = `
  import { appendFileSync, existsSync, readFileSync } from "node:fs";
  export default ({ content }, { key }) => { appendFileSync("calls.txt", key + " " + content + "\\n"); };
  export const wasDone = (_, { key }) => existsSync("calls.txt") && readFileSync("calls.txt", "utf8").includes(key);
`;

describe("a module of the agent", () => {
  test("is given the action and where it comes from", async () => {
    const settings = withModule("export default (action, context) => JSON.stringify({ action, context });");
    await withActing(settings, async ({ start, cwd }) => {
      const result = await start([handoff(PLAN), closing()]);
      assert.deepEqual(effectsOf(result), ["action:module:applied"]);
      const [, said] = /"plan": (\{.*)$/.exec(result.effects[0]!.detail)!;
      const { action, context } = JSON.parse(said!) as {
        readonly action: object;
        readonly context: { readonly key: string };
      };
      assert.deepEqual(action, { type: "plan", content: "first", metadata: { depth: 2 } });
      const { key, ...rest } = context;
      assert.match(key, /^[0-9a-f]{32}$/);
      const about = { run: result.run, agent: "worker", step: "initial.work", visit: 1, index: 0, cwd };
      assert.deepEqual(rest, { ...about, args: { issue: 1 } });
    });
  });

  for (const sandbox of ["off", "on"] as const) {
    const skip = sandbox === "on" ? needs(hasBwrap, NO_BWRAP).skip : false;
    test(
      `runs what it imports as it was when the run began, with the sandbox ${sandbox}`,
      { skip },
      async () => {
        const { files, ...settings } = withModule(
          `import { word } from "../../../lib/util.mjs"; import { other } from "helper"; export default () => word + other;`,
        );
        const more = {
          "lib/util.mjs": 'export { word } from "./deeper.mjs";',
          "lib/deeper.mjs": 'export const word = "as it was";',
          "lib/free.mjs": "",
          "node_modules/helper/package.json": JSON.stringify({
            name: "helper",
            type: "module",
            main: "index.js",
          }),
          "node_modules/helper/index.js": 'export const other = "!";',
        };
        await withActing({ ...settings, files: { ...files, ...more } }, async ({ start, cwd }) => {
          const evil = (name: string) => `export const ${name} = "CHANGED";`;
          const writes = [
            ["lib/util.mjs", evil("word")],
            ["lib/deeper.mjs", evil("word")],
            ["lib/../lib/deeper.mjs", evil("word")],
            ["node_modules/helper/index.js", evil("other")],
            [".agent/worker/node_modules/helper/index.js", evil("other")],
            ["lib/free.mjs", "free"],
          ] as const;
          const calls = writes.map(([file_path, content]) => ({
            name: "Write",
            input: { file_path, content },
          }));
          const command = writes
            .map(([path, text]) => `mkdir -p $(dirname ${path}); echo '${text}' > ${path}`)
            .join("; ");
          const bash = sandbox === "on" ? [{ name: "Bash", input: { command: `${command}; true` } }] : [];
          const script = [{ step: "initial.work", calls: [...calls, ...bash] }, handoff(PLAN), closing()];
          const result = await start(script, { sandbox });
          assert.match(result.effects[0]!.detail, /as it was!$/);
          assert.equal(readFileSync(join(cwd, "lib/free.mjs"), "utf8").trim(), "free");
        });
      },
    );
  }

  const FAULTS: readonly (readonly [string, string, RegExp])[] = [
    ["throws", 'export default () => { throw new Error("no"); };', /failed: HOOK_THREW: no/],
    ["has no function", "export default 7;", /no function as its default export/],
    ["is broken", 'throw new Error("not today");\nexport default () => {};', /failed: MODULE_BROKEN/],
    [
      "takes too long",
      "export default () => new Promise(() => setInterval(() => {}, 1000));",
      /HOOK_TIMEOUT/,
    ],
    ["ends its process", "export default () => process.exit(3);", /exited with 3/],
  ];
  for (const [name, text, says] of FAULTS) {
    test(`that ${name} is told, and the run goes on`, async () => {
      await withActing(withModule(text), async ({ start }) => {
        const result = await start([handoff(PLAN), closing()], { hookTimeoutMs: 2000 });
        assert.deepEqual([result.outcome, effectsOf(result)], ["completed", ["action:module:failed"]]);
        assert.match(result.warnings.join("\n"), says);
      });
    });
  }

  test("is trusted by its content, and is not run with any other", async () => {
    await withActing(withModule(CAREFUL), async ({ start, resume: again, stand, write, read }) => {
      const { LOCKSTEP_TRUST: _, ...env } = { ...stand.env, LOCKSTEP_TRUST: "" };
      const untrusted = await start([handoff(PLAN), closing()], { env });
      assert.equal(untrusted.code, "NOT_TRUSTED");
      assert.match(untrusted.reason, /node \.agent\/worker\/handlers\/plan\.mjs \(sha256 [0-9a-f]{64}\)/);
      const halted = await start([handoff()]);
      write(".agent/worker/handlers/plan.mjs", `${CAREFUL}\n// Changed.`);
      const result = await again(halted, { script: [closing(PLAN)] });
      assert.deepEqual([effectsOf(result), read("calls.txt")], [["action:module:failed"], null]);
      assert.match(result.warnings.join("\n"), /no longer what it was/);
    });
  });
});

// Deaths.

const CHILD = fileURLToPath(new URL("killed-acts.ts", import.meta.url));

/** false: the run was over before. */
async function killed(folder: string, at: number): Promise<boolean> {
  const child = spawn(process.execPath, [CHILD, folder, String(at)], {
    stdio: ["ignore", "ignore", "inherit"],
    env: { ...process.env, LOCKSTEP_TRUST: "all" },
  });
  const [code, signal] = await new Promise<[number | null, string | null]>((done) =>
    child.on("close", (...how) => done(how)),
  );
  assert.ok(code === 0 || signal === "SIGKILL", `${code} ${signal}`);
  return signal === "SIGKILL";
}

test("a process that is killed anywhere leaves a run that does the rest, once", async () => {
  // The start is the first write; killed before it there is no run.
  let at = 2;
  for (; ; at++) {
    const folder = projectWith(actingAgent(withModule(CAREFUL)));
    const read = (path: string) => readFileSync(join(folder, path), "utf8");
    if (!(await killed(folder, at))) break;
    const env = { PATH: process.env.PATH, LOCKSTEP_TRUST: "all" };
    const result = await resume({ run: "@last", cwd: folder, env });
    const place = `before write ${at}: ${result.reason} ${JSON.stringify(result.effects)}`;
    assert.equal(result.outcome, "completed", place);
    assert.deepEqual([read("notes.md"), read("whole.md")], ["one\n", "whole\n"], place);
    assert.deepEqual(read("calls.txt").replaceAll(/^\S+ /gm, ""), "first\nsecond\n", place);
    assert.ok(
      result.effects.every(({ state }) => state === "applied"),
      place,
    );
  }
  assert.equal(at, 13, "two answers, two entries for each of four acts, and the end");
});

test("a module that cannot tell whether it was called is not called twice", async () => {
  const text = CAREFUL.replace("export const wasDone", "const unused");
  const folder = projectWith(actingAgent(withModule(text)));
  writeFiles(folder, { "calls.txt": "" });
  // The start, the answer, two entries of the file, what the module is to do: then it was called, and nobody heard.
  assert.ok(await killed(folder, 6));
  assert.match(readFileSync(join(folder, "calls.txt"), "utf8"), /^\S+ first\n$/);
  const env = { PATH: process.env.PATH, LOCKSTEP_TRUST: "all" };
  const result = await resume({ run: "@last", cwd: folder, env });
  assert.match(readFileSync(join(folder, "calls.txt"), "utf8"), /^\S+ first\n\S+ second\n$/);
  assert.match(result.warnings.join("\n"), /not called a second time.*wasDone/);
});

test("a file that an answer asks for is part of the work of a worktree", async () => {
  const world = repository();
  const file = `.agent/${WORKER}/agent.json`;
  const agent = JSON.parse(world.read(file)!) as { readonly runner: object };
  const actions = { enabled: true, types: ["note"], handlers: { note: "builtin:file" } };
  world.write(file, JSON.stringify({ ...agent, runner: { ...agent.runner, actions } }));
  world.git(world.home, "commit", "-qam", "act");
  const note = '```note\n{ "content": "noted", "filename": "n.md" }\n```';
  const script = replies([]).map((reply) => Object.assign(reply, { text: note }));
  const result = await world.run([], { script });
  assert.deepEqual(
    [result.outcome, ...effectsOf(result)],
    [
      "completed",
      "action:file:applied",
      "action:file:applied",
      "commit:applied",
      "merge:applied",
      "remove:applied",
    ],
  );
  assert.equal(world.read("n.md"), "noted\nnoted\n");
});
