/** A folder that is swapped for a link after its path was judged: what is reached is what was judged, or nothing. */
import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { createGround } from "../../src/boundaries/gate/paths.ts";
import { openPins } from "../../src/boundaries/tools/pinned.ts";
import { createToolbox } from "../../src/boundaries/tools/toolbox.ts";
import { fileAct } from "../../src/effects/actions/action-file.ts";
import { judgeFile } from "../../src/effects/checks/check-file.ts";
import { lookAtFile } from "../../src/effects/look/look-file.ts";
import type { JsonObject } from "../../src/flow/json.ts";
import { stepWith } from "./step.ts";

const base = realpathSync(mkdtempSync(join(tmpdir(), "lockstep-swapped-")));
after(() => rmSync(base, { recursive: true, force: true }));

const CANARY = "canary of the outside";
const signal = new AbortController().signal;

type World = { readonly root: string; readonly outside: string; readonly swap: () => void };

let worlds = 0;
/** `d/deep` with files, and a folder outside with the same names: `swap` puts a link to it in the place of `d`. */
function newWorld(): World {
  const top = join(base, String((worlds += 1)));
  const [root, outside] = [join(top, "root"), join(top, "outside")];
  for (const [folder, text] of [
    [join(root, "d"), "plain text"],
    [outside, CANARY],
  ] as const) {
    mkdirSync(join(folder, "deep"), { recursive: true });
    for (const name of ["file.txt", "deep/file.txt"]) writeFileSync(join(folder, name), `${text}\n`);
  }
  writeFileSync(join(outside, "only-outside.txt"), CANARY);
  const swap = () => {
    renameSync(join(root, "d"), join(root, "was-d"));
    symlinkSync(outside, join(root, "d"));
  };
  return { root, outside, swap };
}

function listing(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true })
    .map(String)
    .toSorted()
    .map((name) => {
      const isFile = name.endsWith(".txt");
      return isFile ? `${name}: ${readFileSync(join(folder, name), "utf8")}` : name;
    });
}

const TOOLS: readonly (readonly [name: string, input: JsonObject])[] = [
  ["Read", { file_path: "d/file.txt" }],
  ["Read", { file_path: "d/deep/file.txt" }],
  ["Read", { file_path: "./d/../d/file.txt" }],
  ["Write", { file_path: "d/file.txt", content: "written" }],
  ["Write", { file_path: "d/new.txt", content: "written" }],
  ["Write", { file_path: "d/deep/new.txt", content: "written" }],
  ["Write", { file_path: "d/made/on/the/way.txt", content: "written" }],
  ["Edit", { file_path: "d/file.txt", old_string: "canary", new_string: "changed" }],
  ["Edit", { file_path: "d/deep/file.txt", old_string: "canary", new_string: "changed" }],
  ["Glob", { pattern: "**/*", path: "d" }],
  ["Glob", { pattern: "d/**" }],
  ["Grep", { pattern: "canary", path: "d", output_mode: "content" }],
  ["Grep", { pattern: "canary", path: "d/file.txt", output_mode: "content" }],
  ["Grep", { pattern: "canary", output_mode: "content" }],
];

describe("a folder becomes a link after it was judged", () => {
  for (const [name, input] of TOOLS) {
    for (const isSwapped of [false, true]) {
      test(`${name} ${JSON.stringify(input)}${isSwapped ? "" : ", left alone"}`, async () => {
        const { root, outside, swap } = newWorld();
        const before = listing(outside);
        // Asked for between the judgement of the path and its use.
        const guarded = () => {
          if (isSwapped) swap();
          return { fixed: [], records: [] };
        };
        const exec = () => Promise.reject(new Error("no commands here"));
        const toolbox = createToolbox({
          cwd: root,
          protect: [],
          guarded,
          env: () => ({}),
          autoResponse: "",
          exec,
        });
        const calls = [{ id: "1", name, input }];
        const [result] = await toolbox.call(stepWith({ mode: "bypassPermissions" }), calls, signal);
        assert.deepEqual(listing(outside), before);
        assert.ok(!result!.content.includes(CANARY), result!.content);
        assert.ok(!result!.content.includes("only-outside"), result!.content);
        assert.ok(!result!.content.includes("/proc/self"), result!.content);
        if (isSwapped && /Read|Write|Edit/.test(name)) assert.equal(result!.ok, false, result!.content);
        if (!isSwapped && name !== "Edit") assert.equal(result!.ok, true, result!.content);
      });
    }
  }

  test("while Grep is under way", async () => {
    const { root, outside, swap } = newWorld();
    for (let n = 1000; n < 1700; n += 1) {
      writeFileSync(join(root, "d", `f${n}.txt`), "nothing here");
      writeFileSync(join(outside, `f${n}.txt`), CANARY);
    }
    let swapped = false;
    // Asked which files can be spared, after the first 600 were read.
    const exec = () => {
      swap();
      swapped = true;
      return Promise.reject(new Error("no ripgrep"));
    };
    const folder = join(base, "bin");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "rg"), "", { mode: 0o755 });
    const programs = { bash: null, rg: join(folder, "rg") };
    const toolbox = createToolbox({
      cwd: root,
      protect: [],
      env: () => ({}),
      programs,
      autoResponse: "",
      exec,
    });
    const calls = [
      { id: "1", name: "Grep", input: { pattern: "canary of", path: "d", output_mode: "content" } },
    ];
    const [result] = await toolbox.call(stepWith({ mode: "bypassPermissions" }), calls, signal);
    assert.ok(swapped);
    assert.match(result!.content, /^No matches found/);
  });

  for (const mode of ["append", "write"] as const) {
    for (const isSwapped of [false, true]) {
      test(`a block that wants to ${mode}${isSwapped ? "" : ", left alone"}`, async () => {
        const { root, outside, swap } = newWorld();
        const before = listing(outside);
        const ground = createGround(root, []);
        const place = ground.writing("d/deep/file.txt");
        assert.ok(place.kind === "inside");
        const { parts, shown } = place;
        const act = await fileAct({
          key: "k",
          parts,
          pin: ground.pin,
          shown,
          content: "more",
          mode,
          past: null,
        });
        if (isSwapped) swap();
        const done = await act.perform();
        assert.equal(done.state, isSwapped ? "failed" : "applied");
        assert.ok(!JSON.stringify(done).includes("/proc/self"), JSON.stringify(done));
        assert.deepEqual(listing(outside), before);
        const folder = join(root, isSwapped ? "was-d" : "d", "deep");
        const text = readFileSync(join(folder, "file.txt"), "utf8");
        assert.equal(text.includes("more"), !isSwapped);
        assert.deepEqual(readdirSync(folder), ["file.txt"]);
      });
    }
  }

  test("a file that becomes a link is not read, and the reason is given", async () => {
    const { root, outside } = newWorld();
    const toolbox = createToolbox({
      cwd: root,
      protect: [],
      guarded: () => {
        rmSync(join(root, "d/file.txt"));
        symlinkSync(join(outside, "file.txt"), join(root, "d/file.txt"));
        return { fixed: [], records: [] };
      },
      env: () => ({}),
      autoResponse: "",
      exec: () => Promise.reject(new Error("no commands here")),
    });
    const calls = [{ id: "1", name: "Read", input: { file_path: "d/file.txt" } }];
    const [result] = await toolbox.call(stepWith({ mode: "bypassPermissions" }), calls, signal);
    assert.deepEqual([result!.ok, result!.content], [false, "Cannot read d/file.txt: it became a link."]);
  });

  const PINNED: readonly (readonly [
    parts: string,
    make: "make" | undefined,
    swapped: boolean,
    then: string,
  ])[] = [
    ["d/file.txt", undefined, false, "plain text"],
    ["d/file.txt", undefined, true, "refused"],
    ["d/deep/file.txt", undefined, false, "plain text"],
    ["d/deep/file.txt", undefined, true, "refused"],
    ["d/made/on/way.txt", undefined, false, "refused"],
    ["d/made/on/way.txt", "make", false, "none"],
    ["d/deep/way.txt", "make", true, "refused"],
    ["was-d/file.txt", undefined, true, "plain text"],
  ];
  for (const hasPaths of process.platform === "linux" ? [true, false] : [false]) {
    for (const [path, make, swapped, then] of PINNED) {
      const how = `${hasPaths ? "by descriptor" : "by name"}${make === undefined ? "" : ", made"}`;
      test(`${path} ${how}${swapped ? ", swapped" : ""}: ${then}`, () => {
        const { root, outside, swap } = newWorld();
        const before = listing(outside);
        using pins = openPins(root, hasPaths);
        if (swapped) swap();
        const reached = () => {
          try {
            const at = pins.at(path.split("/"), make);
            return existsSync(at) ? readFileSync(at, "utf8").trim() : "none";
          } catch {
            return "refused";
          }
        };
        assert.equal(reached(), then);
        assert.deepEqual(listing(outside), before);
      });
    }
  }

  test("what a stop rule and a check look at", async () => {
    const { root, outside, swap } = newWorld();
    const plain = createGround(root, []);
    const late = {
      reading: (path: string) => {
        const place = plain.reading(path);
        swap();
        return place;
      },
      pin: plain.pin,
    };
    const want = { kind: "contains", text: "canary" } as const;
    const file = { kind: "file", path: "d/file.txt", want } as const;
    assert.equal((await lookAtFile(file, {}, { cwd: root, ground: plain }, signal)).met, false);
    assert.equal((await lookAtFile(file, {}, { cwd: root, ground: late }, signal)).met, false);
    rmSync(join(root, "d"));
    renameSync(join(root, "was-d"), join(root, "d"));
    const check = {
      kind: "file",
      name: "there",
      pattern: "absent",
      description: "",
      path: "d/file.txt",
    } as const;
    assert.equal(judgeFile(check, root, plain).ok, true);
    assert.equal(judgeFile(check, root, late).ok, false);
    assert.ok(existsSync(join(outside, "file.txt")));
  });

  test("folders that are deeper than descriptors are held for", async () => {
    const { root } = newWorld();
    const path = `${Array.from({ length: 150 }, (_, n) => `f${n}`).join("/")}/file.txt`;
    const toolbox = createToolbox({
      cwd: root,
      protect: [],
      env: () => ({}),
      autoResponse: "",
      exec: () => Promise.reject(new Error("no commands here")),
    });
    const use = async (name: string, input: JsonObject) =>
      (await toolbox.call(stepWith({ mode: "bypassPermissions" }), [{ id: "1", name, input }], signal))[0]!
        .content;
    assert.match(await use("Write", { file_path: path, content: "deep down" }), /^Created f0\//);
    assert.match(await use("Read", { file_path: path }), /deep down/);
    assert.equal(await use("Grep", { pattern: "deep down" }), path);
    assert.equal(await use("Glob", { pattern: "f0/**/*.txt" }), path);
  });

  test("no descriptor is left open", async () => {
    const { root } = newWorld();
    const open = () => (existsSync("/proc/self/fd") ? readdirSync("/proc/self/fd").length : 0);
    const exec = () => Promise.reject(new Error("no commands here"));
    const toolbox = createToolbox({ cwd: root, protect: [], env: () => ({}), autoResponse: "", exec });
    const before = open();
    for (const [name, input] of TOOLS)
      await toolbox.call(stepWith({ mode: "bypassPermissions" }), [{ id: "1", name, input }], signal);
    assert.equal(open(), before);
  });
});
