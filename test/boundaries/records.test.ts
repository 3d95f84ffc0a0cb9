/** The records of runs are not for tools: neither read, nor found, nor changed, by whatever name. */
import assert from "node:assert/strict";
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, describe, test } from "node:test";
import { createGround } from "../../src/boundaries/gate/paths.ts";
import { createToolbox } from "../../src/boundaries/tools/toolbox.ts";
import { judgeFile } from "../../src/effects/checks/check-file.ts";
import { lookAtFile } from "../../src/effects/look/look-file.ts";
import type { JsonObject } from "../../src/flow/json.ts";
import { createMemoryJournal, run } from "../../src/run/index.ts";
import { agentFiles, projectWith, stepTo } from "../run/project.ts";
import { stepWith } from "./step.ts";

const base = realpathSync(mkdtempSync(join(tmpdir(), "lockstep-records-")));
after(() => rmSync(base, { recursive: true, force: true }));

const CANARY = "canary-of-another-run";
const root = join(base, "root");
for (const [path, text] of Object.entries({
  ".lockstep/runs.db": CANARY,
  ".lockstep/artifacts/aa/one.txt": CANARY,
  "sub/.lockstep/runs.db": CANARY,
  "kept/state/runs.db": CANARY,
  ".LockStep/runs.db": CANARY,
  "settings/lockstep/trust.json": CANARY,
  "plain.txt": "plain",
  "kept/plain.txt": "plain",
  ".lockstep-notes/plain.txt": "plain",
  "lockstep/plain.txt": "plain",
})) {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}
symlinkSync(".lockstep", join(root, "way"));
symlinkSync("kept/state", join(root, "other-way"));
symlinkSync("../.lockstep/runs.db", join(root, "sub/file-way"));

const signal = new AbortController().signal;
const guarded = () => ({ fixed: [], records: [join(root, "kept/state"), join(root, "settings/lockstep")] });
const exec = () => Promise.reject(new Error("no commands here"));
const toolbox = createToolbox({ cwd: root, protect: [], guarded, env: () => ({}), autoResponse: "", exec });
const ground = createGround(root, [], guarded);
const step = stepWith({ mode: "bypassPermissions" });

async function use(name: string, input: JsonObject) {
  return (await toolbox.call(step, [{ id: "1", name, input }], signal))[0]!;
}

const RECORDS = [
  ".lockstep/runs.db",
  "./.lockstep//artifacts/aa/one.txt",
  "sub/../.lockstep/runs.db",
  join(root, ".lockstep/runs.db"),
  "sub/.lockstep/runs.db",
  ".LockStep/runs.db",
  ".LOCKSTEP/runs.db",
  ".lockstep./runs.db",
  ".lock\u200bstep/runs.db",
  "LOCKST~1/runs.db",
  "way/runs.db",
  "sub/file-way",
  "kept/state/runs.db",
  "kept/State/runs.db",
  "other-way/runs.db",
  "settings/lockstep/trust.json",
];
const PLAIN = ["plain.txt", "kept/plain.txt", ".lockstep-notes/plain.txt", "lockstep/plain.txt"];

describe("one file", () => {
  for (const path of RECORDS) {
    const inputs: readonly (readonly [string, JsonObject])[] = [
      ["Read", { file_path: path }],
      ["Edit", { file_path: path, old_string: "canary", new_string: "x" }],
      ["Write", { file_path: path, content: "x" }],
      ["Grep", { pattern: "canary", path, output_mode: "content" }],
      ["Glob", { pattern: "*", path: dirname(path) }],
    ];
    for (const [name, input] of inputs) {
      const isFolderFree = name === "Glob" && path === "sub/file-way";
      test(`${name} ${path}`, async () => {
        const { ok, content, denied } = await use(name, input);
        assert.ok(!content.includes(CANARY), content);
        if (isFolderFree) return;
        assert.equal(ok, false, content);
        assert.match(denied ?? "", /may not read|not for tools to change/);
        // As it is asked for a coding agent that has tools of its own.
        assert.match(
          toolbox.judge(step, { name, input }, [name]) ?? "",
          /may not read|not for tools to change/,
        );
      });
    }
    test(`a check and a stop rule look at ${path}`, async () => {
      const inside = path.startsWith("/") ? path.slice(root.length + 1) : path;
      const check = { kind: "file", name: "n", pattern: "p", description: "", path } as const;
      assert.equal(judgeFile(check, root, ground).ok, false);
      for (const want of [
        { kind: "exists" },
        { kind: "absent" },
        { kind: "contains", text: "canary" },
      ] as const) {
        const sight = await lookAtFile(
          { kind: "file", path: inside, want },
          {},
          { cwd: root, ground },
          signal,
        );
        assert.equal(sight.met, false, sight.what);
      }
    });
  }
  for (const path of PLAIN) {
    test(`${path} can be read and changed`, async () => {
      assert.equal((await use("Read", { file_path: path })).ok, true);
      assert.equal(
        (await use("Edit", { file_path: path, old_string: "plain", new_string: "plainer" })).ok,
        true,
      );
      assert.equal((await use("Write", { file_path: path, content: "plain" })).ok, true);
      assert.equal(toolbox.judge(step, { name: "Read", input: { file_path: path } }, ["Read"]), null);
      const check = { kind: "file", name: "n", pattern: "p", description: "", path } as const;
      assert.equal(judgeFile(check, root, ground).ok, true);
    });
  }
});

describe("searches", () => {
  for (const [name, input] of [
    ["Glob", { pattern: "**/*" }],
    ["Glob", { pattern: ".lock*/**" }],
    ["Glob", { pattern: ".[lL]ock*/**" }],
    ["Glob", { pattern: "*/state/*" }],
    ["Glob", { pattern: "**/*", path: "kept" }],
    ["Glob", { pattern: "**/*", path: "settings" }],
    ["Grep", { pattern: "canary|plain", output_mode: "content" }],
    ["Grep", { pattern: "canary|plain", path: "kept", output_mode: "content" }],
    ["Grep", { pattern: "canary|plain", glob: "*.db", output_mode: "content" }],
    ["Grep", { pattern: "canary|plain", glob: ".lock*/**", output_mode: "count" }],
  ] as const) {
    test(`${name} ${JSON.stringify(input)} passes over them`, async () => {
      const { ok, content } = await use(name, input);
      assert.equal(ok, true);
      assert.ok(!/canary-of|runs\.db|one\.txt|trust\.json/.test(content), content);
    });
  }
  test("what lies beside them is found", async () => {
    const found = (await use("Glob", { pattern: "**/plain.txt" })).content.split("\n");
    assert.deepEqual(found.toSorted(), PLAIN.toSorted());
    assert.equal(
      (await use("Grep", { pattern: "plain", output_mode: "count" })).content.split("\n").length,
      4,
    );
  });
  for (const [name, input] of [
    ["Glob", { pattern: ".lockstep/**" }],
    ["Glob", { pattern: "**/.LOCKSTEP/*" }],
    ["Glob", { pattern: "{src,.lockstep}/**" }],
    ["Grep", { pattern: "x", glob: ".lockstep/**" }],
    ["Grep", { pattern: "x", path: ".lockstep" }],
    ["Grep", { pattern: "x", path: "kept/state" }],
  ] as const) {
    test(`${name} ${JSON.stringify(input)} is refused`, async () => {
      assert.match((await use(name, input)).denied ?? "", /tools may not read/);
      assert.match(toolbox.judge(step, { name, input }, [name]) ?? "", /tools may not read/);
    });
  }
});

test("a worktree below a folder of records is a ground like any other", async () => {
  const worktree = join(root, ".lockstep/trees/one");
  mkdirSync(worktree, { recursive: true });
  writeFileSync(join(worktree, "file.txt"), "of the worktree");
  const records = () => ({ fixed: [], records: [join(root, ".lockstep")] });
  const inside = createToolbox({
    cwd: worktree,
    protect: [],
    guarded: records,
    env: () => ({}),
    autoResponse: "",
    exec,
  });
  const calls = [
    { id: "1", name: "Read", input: { file_path: "file.txt" } },
    { id: "2", name: "Glob", input: { pattern: "*" } },
    { id: "3", name: "Read", input: { file_path: "../../runs.db" } },
  ];
  const [read, found, outside] = await inside.call(step, calls, signal);
  assert.deepEqual([read!.ok, found!.content, outside!.ok], [true, "file.txt", false]);
});

for (const stateDir of [".lockstep", "kept/records"]) {
  test(`a run whose state is in ${stateDir}`, async () => {
    const steps = {
      "initial.a": stepTo("work", { next: "closure.a" }),
      "closure.a": stepTo("closure", { closing: null }),
    };
    const runner = {
      boundaries: { allowedTools: ["*"], permissionMode: "acceptEdits" },
      actions: { enabled: true, types: ["note"], handlers: { note: "builtin:file" } },
    };
    const cwd = projectWith({
      ...agentFiles("a", steps, { runner }),
      [`${stateDir}/runs/one.txt`]: CANARY,
      "plain.txt": "plain",
    });
    const seen: string[] = [];
    const note = { content: "x", metadata: { filename: `${stateDir}/runs/one.txt`, mode: "write" } };
    const replies = [
      { calls: [{ name: "Read", input: { file_path: `${stateDir}/runs/one.txt` } }] },
      { calls: [{ name: "Grep", input: { pattern: "canary|plain", output_mode: "content" } }] },
      {
        text: `\`\`\`note\n${JSON.stringify(note)}\n\`\`\``,
        output: { stepId: "initial.a", next_action: { action: "next" } },
      },
      { output: { stepId: "closure.a", next_action: { action: "closing" } } },
    ];
    const { createScripted } = await import("../../src/backends/scripted/scripted.ts");
    const result = await run({
      agent: "a",
      cwd,
      stateDir: join(cwd, stateDir),
      backend: createScripted(replies),
      journal: createMemoryJournal(),
      observe: ({ event }) => {
        if ("results" in event) seen.push(JSON.stringify(event.results));
      },
    });
    assert.equal(result.outcome, "completed", JSON.stringify(result));
    assert.match(seen.join("\n"), /may not read/);
    assert.match(seen.join("\n"), /plain\.txt:1:plain/);
    assert.ok(!seen.join("\n").includes(CANARY));
    assert.equal(readFileSync(join(cwd, stateDir, "runs/one.txt"), "utf8"), CANARY);
  });
}
