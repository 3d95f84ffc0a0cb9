import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, describe, test } from "node:test";
import { clipOutput, type RunToolProcess } from "../../../src/boundaries/tools/tool.ts";
import { createToolbox } from "../../../src/boundaries/tools/toolbox.ts";
import type { Step } from "../../../src/flow/flow.ts";
import type { JsonObject } from "../../../src/flow/json.ts";
import { stepWith } from "../step.ts";

const base = realpathSync(mkdtempSync(join(tmpdir(), "lockstep-toolbox-")));
after(() => rmSync(base, { recursive: true, force: true }));

type Run = Parameters<RunToolProcess>[0];
const QUIET = { exitCode: 0, signal: null, stdout: "", stderr: "", timedOut: false, aborted: false };

/** A fresh folder with these files, and a toolbox over it. */
function world(
  files: { readonly [path: string]: string | Buffer } = {},
  exec: RunToolProcess = async () => QUIET,
) {
  const cwd = mkdtempSync(join(base, "w-"));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(cwd, path)), { recursive: true });
    writeFileSync(join(cwd, path), content);
  }
  const toolbox = createToolbox({
    cwd,
    protect: [],
    env: () => ({ PATH: "/bin" }),
    autoResponse: "Decide yourself.",
    exec,
  });
  const { signal } = new AbortController();
  const batch = (step: Step, calls: readonly (readonly [string, JsonObject])[], stop = signal) =>
    toolbox.call(
      step,
      calls.map(([name, input], index) => ({ id: `call-${index}`, name, input })),
      stop,
    );
  const use = async (name: string, input: JsonObject) => {
    const [result] = await batch(stepWith({ mode: "bypassPermissions" }), [[name, input]]);
    assert.ok(result);
    return result;
  };
  const text = (path: string) => readFileSync(join(cwd, path), "utf8");
  return { cwd, toolbox, batch, use, text };
}

describe("offer", () => {
  const cases: readonly [string, Parameters<typeof stepWith>[0], string][] = [
    ["everything", {}, "Read Write Edit Glob Grep Bash TodoWrite AskUserQuestion"],
    ["plan", { mode: "plan" }, "Read Glob Grep AskUserQuestion"],
    ["default", { mode: "default" }, "Read Glob Grep TodoWrite AskUserQuestion"],
    ["a list", { allow: ["Grep", "Read", "Bash(git status:*)", "mcp__x__y"] }, "Read Grep Bash"],
    ["nothing", { allow: [] }, ""],
  ];
  for (const [name, options, expected] of cases) {
    test(name, () => {
      const offered = world().toolbox.offer(stepWith(options));
      assert.equal(offered.map((spec) => spec.name).join(" "), expected);
    });
  }

  test("the fields have the names that coding agents use", () => {
    const fields = world()
      .toolbox.offer(stepWith({}))
      .map(({ name, input }) => `${name}: ${Object.keys(input["properties"] as JsonObject).join(" ")}`);
    assert.deepEqual(fields, [
      "Read: file_path offset limit",
      "Write: file_path content",
      "Edit: file_path old_string new_string replace_all",
      "Glob: pattern path",
      "Grep: pattern path glob output_mode -i -n -A -B -C head_limit",
      "Bash: command timeout description",
      "TodoWrite: todos",
      "AskUserQuestion: question questions",
    ]);
  });
});

describe("a batch", () => {
  test("runs in order, and every call gets its one result", async () => {
    const { batch, text } = world();
    const results = await batch(stepWith({}), [
      ["Write", { file_path: "a", content: "one" }],
      ["Edit", { file_path: "a", old_string: "one", new_string: "two" }],
      ["NoSuchTool", {}],
      ["Read", { file_path: "a" }],
      ["Read", { file_path: "missing" }],
    ]);
    assert.deepEqual(
      results.map(({ id, ok }) => [id, ok]),
      [
        ["call-0", true],
        ["call-1", true],
        ["call-2", false],
        ["call-3", true],
        ["call-4", false],
      ],
    );
    assert.equal(text("a"), "two");
  });

  test("a denied call says why, and the others go on", async () => {
    const { batch, cwd } = world();
    const [denied, allowed] = await batch(stepWith({ allow: ["Glob"] }), [
      ["Write", { file_path: "a", content: "x" }],
      ["Glob", { pattern: "*" }],
    ]);
    assert.match(denied?.denied ?? "", /^Write is denied in step "work.issue" by allowedTools/);
    assert.equal(denied?.content, denied?.denied);
    assert.equal(allowed?.ok, true);
    assert.deepEqual(readdirSync(cwd), []);
  });

  test("with the completion tool and another is not run at all", async () => {
    const { batch, cwd } = world();
    const results = await batch(stepWith({ completion: "finish" }), [
      ["Write", { file_path: "a", content: "x" }],
      ["finish", {}],
      ["NoSuchTool", {}],
    ]);
    assert.ok(
      results.every(({ ok, denied }) => !ok && /finish must be the only tool call/.test(denied ?? "")),
    );
    assert.deepEqual(readdirSync(cwd), []);
  });

  test("an unknown tool is answered with the names there are", async () => {
    const { batch } = world();
    for (const name of ["Raed", "constructor", "__proto__", "toString", ""]) {
      const [result] = await batch(stepWith({ allow: ["Read", "Grep"] }), [[name, {}]]);
      assert.match(
        result?.content ?? "",
        /^ToolNotRegistered: there is no tool .* This step has: Read, Grep\.$/,
      );
      assert.equal(result?.denied, undefined);
    }
  });

  test("a boundary tool outside a closing step is denied, not unknown", async () => {
    const { batch } = world();
    const [result] = await batch(stepWith({ kind: "work" }), [["githubIssueClose", { number: 1 }]]);
    assert.match(result?.denied ?? "", /closing step/);
  });

  test("after an abort the rest is answered as interrupted", async () => {
    const controller = new AbortController();
    const { batch, cwd } = world({}, async () => {
      controller.abort();
      return { ...QUIET, exitCode: null, signal: "SIGTERM", stdout: "so far", aborted: true };
    });
    const results = await batch(
      stepWith({}),
      [
        ["Bash", { command: "sleep 1000" }],
        ["Write", { file_path: "a", content: "x" }],
        ["Glob", { pattern: "*" }],
      ],
      controller.signal,
    );
    assert.deepEqual(
      results.map((result) => result.content),
      [
        "so far\n[interrupted]",
        "Write did not run: the run was interrupted.",
        "Glob did not run: the run was interrupted.",
      ],
    );
    assert.ok(results.every((result) => !result.ok));
    assert.deepEqual(readdirSync(cwd), []);
  });

  test("a tool that throws is answered, not thrown", async () => {
    const { use } = world({}, () => Promise.reject(new Error("no such sandbox")));
    assert.equal((await use("Bash", { command: "ls" })).content, "Bash failed: no such sandbox.");
  });
});

describe("invalid input names the field", () => {
  const cases: readonly [string, JsonObject, RegExp][] = [
    ["Read", {}, /"file_path" is missing/],
    ["Read", { file_path: 1 }, /"file_path" must be a string/],
    ["Read", { file_path: "" }, /"file_path" must not be empty/],
    ["Read", { file_path: "a", offset: 0 }, /"offset" must be at least 1/],
    ["Read", { file_path: "a", offset: 1.5 }, /"offset" must be a whole number/],
    ["Read", { file_path: "a", limit: "5" }, /"limit" must be a whole number/],
    ["Read", { path: "a" }, /"file_path" is missing/],
    ["Read", { file_path: "a", lines: 3 }, /"lines" is not known/],
    ["Read", { file_path: "a", constructor: 3 }, /"constructor" is not known/],
    ["Write", { file_path: "a" }, /"content" is missing/],
    ["Write", { file_path: "a", content: { a: 1 } }, /"content" must be a string/],
    ["Edit", { file_path: "a", old_string: "", new_string: "b" }, /"old_string" must not be empty/],
    [
      "Edit",
      { file_path: "a", old_string: "a", new_string: "b", replace_all: "yes" },
      /"replace_all" must be true or false/,
    ],
    ["Bash", { command: "" }, /"command" must not be empty/],
    ["Bash", { command: ["ls"] }, /"command" must be a string/],
    ["Bash", { command: "ls", timeout: -1 }, /"timeout" must be at least 1/],
    ["Glob", { pattern: null }, /"pattern" must be a string/],
    ["Grep", { pattern: "x", output_mode: "json" }, /"output_mode" must be one of "content"/],
    ["TodoWrite", { todos: "x" }, /"todos" must be a list/],
    ["TodoWrite", { todos: [{ content: "x" }] }, /"todos.0.status" is missing/],
    ["TodoWrite", { todos: [{ content: "x", status: "done" }] }, /"todos.0.status" must be one of/],
    ["AskUserQuestion", { questions: ["x"] }, /"questions.0" must be an object/],
  ];
  for (const [name, input, expected] of cases) {
    test(`${name} ${JSON.stringify(input)}`, async () => {
      const result = await world().use(name, input);
      assert.equal(result.ok, false);
      assert.match(result.content, expected);
    });
  }
});

describe("Read", () => {
  const lines = Array.from({ length: 5_000 }, (_, index) => `line ${index + 1}`).join("\n");
  const files = {
    "a.txt": "one\ntwo\nthree\n",
    crlf: "one\r\ntwo\r\n",
    empty: "",
    many: lines,
    long: `${"x".repeat(5_000)}\nend`,
    wide: Array.from({ length: 200 }, () => "ä".repeat(1_000)).join("\n"),
    binary: Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 1, 2]),
    latin: Buffer.from([0x63, 0x61, 0x66, 0xe9]),
    "folder/x": "",
  };
  const cases: readonly [string, JsonObject, boolean, RegExp][] = [
    ["numbers the lines", { file_path: "a.txt" }, true, /^     1\tone\n     2\ttwo\n     3\tthree$/],
    [
      "begins and ends where it is told",
      { file_path: "a.txt", offset: 2, limit: 1 },
      true,
      /^     2\ttwo\n\[lines 3 to 3 are not shown; go on with offset 3\]$/,
    ],
    ["shows no line ends", { file_path: "crlf" }, true, /^     1\tone\n     2\ttwo$/],
    ["says that a file is empty", { file_path: "empty" }, true, /^empty is empty\.$/],
    [
      "stops after 2000 lines and says how to go on",
      { file_path: "many" },
      true,
      / {2}2000\tline 2000\n\[lines 2001 to 5000 are not shown; go on with offset 2001\]$/,
    ],
    ["cuts a very long line", { file_path: "long" }, true, /x \[… 3000 characters cut\]\n     2\tend$/],
    ["stops before the answer gets too long", { file_path: "wide" }, true, /go on with offset 31\]$/],
    ["says when the offset is behind the end", { file_path: "a.txt", offset: 9 }, false, /only 3 lines/],
    [
      "refuses binary files politely",
      { file_path: "binary" },
      false,
      /^Cannot read binary: it is a binary file of 7 bytes\.$/,
    ],
    ["reads other encodings as well as it can", { file_path: "latin" }, true, /caf\uFFFD/],
    ["says that a file is missing", { file_path: "nope" }, false, /^Cannot read nope: it does not exist\.$/],
    ["sends to Glob for a folder", { file_path: "folder" }, false, /not a file; use Glob/],
  ];
  for (const [name, input, ok, expected] of cases) {
    test(name, async () => {
      const result = await world(files).use("Read", input);
      assert.equal(result.ok, ok);
      assert.match(result.content, expected);
      assert.ok(Buffer.byteLength(result.content) <= 66 * 1024);
    });
  }
});

describe("Write", () => {
  test("takes away what a killed process left of the same call", async () => {
    const { cwd, use } = world();
    const mark = createHash("sha256")
      .update(`call-0\0${join(cwd, "a.txt")}`)
      .digest("hex");
    writeFileSync(join(cwd, `.lockstep-${mark.slice(0, 16)}.tmp`), "half of i");
    assert.ok((await use("Write", { file_path: "a.txt", content: "half of it" })).ok);
    assert.deepEqual(readdirSync(cwd), ["a.txt"]);
  });

  test("creates folders and files, and replaces files as a whole", async () => {
    const { use, text } = world({ old: "something longer than before" });
    assert.equal(
      (await use("Write", { file_path: "x/y/z.txt", content: "hä" })).content,
      "Created x/y/z.txt (3 bytes).",
    );
    assert.equal((await use("Write", { file_path: "old", content: "" })).content, "Replaced old (0 bytes).");
    assert.deepEqual([text("x/y/z.txt"), text("old")], ["hä", ""]);
  });

  test("keeps the mode of the file it replaces", async () => {
    const { use, cwd } = world({ "run.sh": "#!/bin/sh" });
    chmodSync(join(cwd, "run.sh"), 0o755);
    await use("Write", { file_path: "run.sh", content: "#!/bin/sh\nexit 1" });
    await use("Edit", { file_path: "run.sh", old_string: "exit 1", new_string: "exit 2" });
    assert.equal(statSync(join(cwd, "run.sh")).mode & 0o777, 0o755);
  });

  test("leaves a second name of the file alone", async () => {
    const { use, cwd, text } = world({ a: "old" });
    linkSync(join(cwd, "a"), join(cwd, "b"));
    await use("Write", { file_path: "a", content: "new" });
    assert.deepEqual([text("a"), text("b")], ["new", "old"]);
  });

  test("goes through a link to a file inside, and the link stays", async () => {
    const { use, cwd, text } = world({ "real.txt": "old" });
    symlinkSync("real.txt", join(cwd, "link.txt"));
    await use("Write", { file_path: "link.txt", content: "new" });
    assert.equal(text("real.txt"), "new");
    assert.deepEqual(readdirSync(cwd).sort(), ["link.txt", "real.txt"]);
  });

  test("does not replace a folder, and leaves nothing behind", async () => {
    const { use, cwd } = world({ "folder/x": "" });
    assert.match((await use("Write", { file_path: "folder", content: "x" })).content, /not a file/);
    assert.match((await use("Write", { file_path: ".", content: "x" })).content, /not a file/);
    assert.deepEqual(readdirSync(cwd), ["folder"]);
  });
});

describe("Edit", () => {
  const cases: readonly [
    string,
    before: string | Buffer,
    input: JsonObject,
    after: string | null,
    said: RegExp,
  ][] = [
    [
      "replaces what occurs once",
      "a b c",
      { old_string: "b", new_string: "x" },
      "a x c",
      /^Replaced 1 occurrence/,
    ],
    [
      "says how often it occurs otherwise",
      "a b a b a",
      { old_string: "a", new_string: "x" },
      null,
      /occurs 3 times/,
    ],
    [
      "replaces all when told",
      "a b a",
      { old_string: "a", new_string: "x", replace_all: true },
      "x b x",
      /2 occurrences/,
    ],
    ["says that it does not occur", "abc", { old_string: "d", new_string: "x" }, null, /does not occur/],
    ["says that nothing would change", "abc", { old_string: "a", new_string: "a" }, null, /the same/],
    ["can delete", "abc", { old_string: "b", new_string: "" }, "ac", /Replaced/],
    [
      "takes $& and the like as they are",
      "abc",
      { old_string: "b", new_string: "$&$1$`$'$$" },
      "a$&$1$`$'$$c",
      /Replaced/,
    ],
    [
      "reads no pattern into the old text",
      "a.c abc",
      { old_string: "a.c", new_string: "x" },
      "x abc",
      /Replaced/,
    ],
    [
      "keeps the line ends of the file",
      "a\r\nb\r\nc\r\n",
      { old_string: "a\nb", new_string: "x\ny" },
      "x\r\ny\r\nc\r\n",
      /Replaced/,
    ],
    ["keeps a byte order mark", "\ufeffabc", { old_string: "b", new_string: "x" }, "\ufeffaxc", /Replaced/],
    [
      "does not damage what is not UTF-8",
      Buffer.from([0x61, 0xe9]),
      { old_string: "a", new_string: "b" },
      null,
      /not UTF-8/,
    ],
    [
      "does not touch binary files",
      Buffer.from([0x61, 0]),
      { old_string: "a", new_string: "b" },
      null,
      /binary/,
    ],
    [
      "counts without overlap",
      "aaaa",
      { old_string: "aa", new_string: "b", replace_all: true },
      "bb",
      /2 occurrences/,
    ],
  ];
  for (const [name, before, input, after, said] of cases) {
    test(name, async () => {
      const { use, cwd } = world({ f: before });
      const result = await use("Edit", { file_path: "f", ...input });
      assert.match(result.content, said);
      assert.equal(result.ok, after !== null);
      assert.deepEqual(readFileSync(join(cwd, "f")), Buffer.from(after ?? before));
      assert.deepEqual(readdirSync(cwd), ["f"]);
    });
  }

  test("a file that is missing is not made", async () => {
    const { use, cwd } = world();
    assert.match(
      (await use("Edit", { file_path: "x", old_string: "a", new_string: "b" })).content,
      /does not exist/,
    );
    assert.deepEqual(readdirSync(cwd), []);
  });
});

const project = {
  "src/a.ts": "export const a = 1;\n// TODO: more\nconst b = 2;\n",
  "src/deep/b.ts": "// todo\nconst c = 3;\n",
  "src/c.js": "TODO",
  ".github/ci.yml": "TODO",
  "node_modules/x/index.ts": "TODO",
  ".git/config": "TODO",
  ".lockstep/log.ts": "TODO",
  "img.png": Buffer.from("TODO\0"),
};

describe("Glob", () => {
  const cases: readonly [JsonObject, string][] = [
    [{ pattern: "**/*.ts" }, "src/a.ts\nsrc/deep/b.ts"],
    [{ pattern: "*.ts", path: "src" }, "src/a.ts"],
    [{ pattern: "src/*.{ts,js}" }, "src/a.ts\nsrc/c.js"],
    [{ pattern: "**/*.yml" }, ".github/ci.yml"],
    [{ pattern: "node_modules/**" }, "node_modules/x/index.ts"],
    [{ pattern: "**/*.ts", path: "node_modules" }, "node_modules/x/index.ts"],
    [{ pattern: "**" }, ".github/ci.yml\nimg.png\nsrc/a.ts\nsrc/c.js\nsrc/deep/b.ts"],
    [{ pattern: "*.rs" }, "No files found."],
    [{ pattern: "*", path: "src/a.ts" }, "src/a.ts is not a folder."],
    [{ pattern: "*", path: "nope" }, "nope is not a folder."],
  ];
  for (const [input, expected] of cases) {
    test(JSON.stringify(input), async () => {
      const result = await world(project).use("Glob", input);
      assert.equal(result.content.split("\n").sort().join("\n"), expected);
    });
  }

  test("neither patterns nor links lead out", async () => {
    const { use, cwd } = world(project);
    symlinkSync("/etc", join(cwd, "etc"));
    symlinkSync("..", join(cwd, "up"));
    for (const pattern of ["../*", "src/../../*", "/etc/*", "a/{b,..}/../*"]) {
      assert.match((await use("Glob", { pattern })).denied ?? "", /a pattern is relative/);
    }
    assert.equal((await use("Glob", { pattern: "etc/**" })).content, "No files found.");
    assert.equal((await use("Glob", { pattern: "up/**" })).content, "No files found.");
  });
});

describe("Grep", () => {
  const cases: readonly [JsonObject, string][] = [
    [
      { pattern: "TODO" },
      ".github/ci.yml\nsrc/a.ts\nsrc/c.js\n[1 files were passed over: binary, unreadable or too large]",
    ],
    [{ pattern: "todo", "-i": true, glob: "*.ts" }, "src/a.ts\nsrc/deep/b.ts"],
    [{ pattern: "const", path: "src", output_mode: "count" }, "src/a.ts:2\nsrc/deep/b.ts:1"],
    [
      { pattern: "^const (\\w)", path: "src", output_mode: "content" },
      "src/a.ts:3:const b = 2;\nsrc/deep/b.ts:2:const c = 3;",
    ],
    [{ pattern: "TODO", path: "src/a.ts", output_mode: "content", "-n": false }, "src/a.ts:// TODO: more"],
    [
      { pattern: "TODO", path: "src/a.ts", output_mode: "content", "-C": 1 },
      "src/a.ts-1-export const a = 1;\nsrc/a.ts:2:// TODO: more\nsrc/a.ts-3-const b = 2;",
    ],
    [
      { pattern: "const", path: "src", output_mode: "content", head_limit: 1 },
      "src/a.ts:1:export const a = 1;\n[there is more than these 1 lines; narrow the search]",
    ],
    [{ pattern: "TODO", glob: "src/*.js" }, "src/c.js"],
    [{ pattern: "absent", path: "src" }, "No matches found."],
    [{ pattern: "x", path: "nope" }, "nope does not exist."],
  ];
  for (const [input, expected] of cases) {
    test(JSON.stringify(input), async () => {
      assert.equal((await world(project).use("Grep", input)).content, expected);
    });
  }

  test("shows lines that are apart with a rule between them, and shared context once", async () => {
    const { use } = world({ f: "x\n1\n2\n3\nx\n4\nx" });
    const { content } = await use("Grep", { pattern: "x", path: "f", output_mode: "content", "-A": 1 });
    assert.equal(content, "f:1:x\nf-2-1\n--\nf:5:x\nf-6-4\nf:7:x");
  });

  test("a broken pattern and one that never ends are answered", async () => {
    const { use } = world({ f: `${"a".repeat(40)}!` });
    assert.match((await use("Grep", { pattern: "(" })).content, /not a regular expression/);
    assert.match((await use("Grep", { pattern: "(a+)+$" })).content, /takes too long/);
  });

  test("a link inside leads to nothing that is read", async () => {
    const { use, cwd } = world({ f: "canary" });
    const other = world({ secret: "canary" });
    symlinkSync(join(other.cwd, "secret"), join(cwd, "link"));
    assert.equal((await use("Grep", { pattern: "canary" })).content, "f");
  });

  test("a file of a million lines does not break it", async () => {
    const { use } = world({ f: "x\n".repeat(1_000_000) });
    const { content } = await use("Grep", { pattern: "x", output_mode: "content" });
    assert.match(content, /more than these 500 lines/);
  });
});

describe("Bash", () => {
  test("hands the command over as one argument, with the environment and caps it was given", async () => {
    const seen: Run[] = [];
    const { use, cwd } = world({}, async (options) => {
      seen.push(options);
      return { ...QUIET, stdout: "out\n" };
    });
    assert.equal((await use("Bash", { command: "echo 'a' $b", timeout: 9_000_000 })).content, "out");
    const [run] = seen;
    assert.ok(run);
    assert.deepEqual(run.command, ["/bin/sh", "-c", "echo 'a' $b", "sh"]);
    assert.deepEqual([run.cwd, run.env, run.timeoutMs], [cwd, { PATH: "/bin" }, 600_000]);
  });

  const cases: readonly [string, Partial<Awaited<ReturnType<RunToolProcess>>>, boolean, string][] = [
    ["silence", {}, true, "[no output]"],
    ["both streams", { stdout: "out\n", stderr: "err\n" }, true, "out\nerr"],
    ["a failure", { stdout: "out\n", stderr: "err\n", exitCode: 3 }, false, "out\nerr\n[exit code 3]"],
    ["a time cap", { exitCode: null, signal: "SIGKILL", timedOut: true }, false, "[stopped after 120000 ms]"],
    [
      "a time cap that it met with a smile",
      { exitCode: 0, timedOut: true },
      false,
      "[stopped after 120000 ms]",
    ],
    ["a crash", { exitCode: null, signal: "SIGSEGV" }, false, "[ended by SIGSEGV]"],
  ];
  for (const [name, result, ok, content] of cases) {
    test(`reports ${name}`, async () => {
      const { use } = world({}, async () => ({ ...QUIET, ...result }));
      const answer = await use("Bash", { command: "x" });
      assert.deepEqual([answer.ok, answer.content], [ok, content]);
    });
  }

  test("a long answer keeps its head and its tail", async () => {
    const { use } = world({}, async () => ({ ...QUIET, stdout: `first ${"ä".repeat(100_000)} last` }));
    const { content } = await use("Bash", { command: "x" });
    assert.ok(Buffer.byteLength(content) < 65 * 1024);
    assert.match(content, /^first ä+\n\[… \d+ bytes cut …\]\nä+ last$/);
  });
});

test("TodoWrite repeats the list", async () => {
  const todos = [
    { content: "plan", status: "completed" },
    { content: "build", status: "in_progress", activeForm: "Building" },
    { content: "rest", status: "pending" },
  ];
  assert.equal((await world().use("TodoWrite", { todos })).content, "[x] plan\n[~] build\n[ ] rest");
});

test("AskUserQuestion is answered with the standing answer", async () => {
  const { use, batch } = world();
  assert.equal((await use("AskUserQuestion", { question: "May I?" })).content, "Decide yourself.");
  const [denied] = await batch(stepWith({ allow: ["Read"] }), [["AskUserQuestion", { question: "May I?" }]]);
  assert.match(denied?.denied ?? "", /allowedTools/);
});

describe("judge, for agents that run their own tools", () => {
  const cases: readonly [string, JsonObject, RegExp | null][] = [
    ["Read", { file_path: "src/a.ts" }, null],
    ["Read", { file_path: "/etc/passwd" }, /outside the working directory/],
    ["Edit", { file_path: ".git/config" }, /not for tools to change/],
    ["MultiEdit", { file_path: "../x" }, /outside/],
    ["NotebookEdit", { notebook_path: "/tmp/x.ipynb" }, /outside/],
    ["LS", { path: "/" }, /outside/],
    ["Grep", { pattern: "x", path: ".." }, /outside/],
    ["Grep", { pattern: "../x" }, null],
    ["Glob", { pattern: "/etc/*" }, /relative/],
    ["Glob", { pattern: "**/*.ts" }, null],
    ["WebFetch", { url: "https://example.com" }, null],
    ["mcp__github__github_read", { path: "/README.md" }, null],
    ["Bash", { command: "gh api x" }, /blocked commands/],
    ["Bash", { command: "ls" }, null],
    ["Unheard", {}, /permissionMode/],
  ];
  for (const [name, input, expected] of cases) {
    test(`${name} ${JSON.stringify(input)}`, () => {
      const reason = world(project).toolbox.judge(stepWith({}), { name, input }, null);
      if (expected === null) assert.equal(reason, null);
      else assert.match(reason ?? "", expected);
    });
  }
});

describe("reading GitHub", () => {
  const READ = "mcp__github__github_read";
  const question = { operation: "issue_view", number: 3 };
  const options = { cwd: base, protect: [], env: () => ({}), autoResponse: "", exec: async () => QUIET };
  const asked: JsonObject[] = [];
  const github = async (one: JsonObject) => {
    asked.push(one);
    return one["number"] === 3
      ? ({ ok: true, text: "told" } as const)
      : ({ ok: false, why: "none" } as const);
  };
  const { signal } = new AbortController();
  const names = (step: Step, box = createToolbox({ ...options, github })) =>
    box.offer(step).map(({ name }) => name);

  test("is offered where it is listed and switched on", () => {
    assert.ok(names(stepWith({ allow: ["*"] })).includes(READ));
    assert.deepEqual(names(stepWith({ allow: ["Read", READ], kind: "verify", mode: "plan" })), [
      "Read",
      READ,
    ]);
    assert.deepEqual(names(stepWith({ allow: ["mcp__github__*"] })), [READ]);
    assert.deepEqual(names(stepWith({ allow: ["Read"] })), ["Read"]);
    const off = createToolbox(options);
    assert.ok(!names(stepWith({ allow: ["*", READ] }), off).includes(READ));
  });

  test("asks, and hands on what it is told", async () => {
    const box = createToolbox({ ...options, github });
    const step = stepWith({ allow: [READ], kind: "verify", mode: "plan" });
    const batch = [question, { ...question, number: 4 }, { operation: "issue_close", number: 3 }];
    const results = await box.call(
      step,
      batch.map((input, index) => ({ id: String(index), name: READ, input })),
      signal,
    );
    assert.deepEqual(
      results.map(({ ok, content }) => [ok, content.slice(0, 30)]),
      [
        [true, "told"],
        [false, "none"],
        [false, "InvalidInput: mcp__github__git"],
      ],
    );
    assert.deepEqual(asked, [question, { ...question, number: 4 }]);
  });

  test("is denied to a step that does not list it", async () => {
    const box = createToolbox({ ...options, github });
    const [result] = await box.call(
      stepWith({ allow: ["Read"] }),
      [{ id: "1", name: READ, input: question }],
      signal,
    );
    assert.equal(result?.ok, false);
    assert.match(result?.denied ?? "", /not listed/);
  });
});

test("a single tool of a server is offered and called as well", async () => {
  const spec = { name: "mcp__one__look", description: "", input: { type: "object" } };
  const run = () => Promise.resolve({ kind: "done" as const, content: "looked" });
  const options = { cwd: base, protect: [], env: () => ({}), autoResponse: "", exec: async () => QUIET };
  const box = createToolbox({ ...options, served: [{ spec, reads: true, run }] });
  const step = stepWith({ allow: ["mcp__one__look"], mode: "plan" });
  assert.deepEqual(
    box.offer(step).map(({ name }) => name),
    [spec.name],
  );
  const call = { id: "1", name: spec.name, input: {} };
  const [result] = await box.call(step, [call], new AbortController().signal);
  assert.deepEqual([result?.ok, result?.content], [true, "looked"]);
});

describe("tools of servers", () => {
  const served = (name: string, reads: boolean) => ({
    spec: { name, description: "", input: { type: "object", required: ["q"] } },
    reads,
    run: (input: JsonObject) => Promise.resolve({ kind: "done" as const, content: JSON.stringify(input) }),
  });
  const broken = {
    ...served("mcp__docs__broken", false),
    run: () => Promise.reject(new Error("the server is gone")),
  };
  const toolbox = createToolbox({
    cwd: base,
    protect: [],
    env: () => ({}),
    autoResponse: "",
    exec: async () => QUIET,
    served: [served("mcp__docs__look", true), served("mcp__docs__edit", false), broken],
  });
  const { signal } = new AbortController();
  const LOOK = "mcp__docs__look";
  const EDIT = "mcp__docs__edit";
  const cases: readonly [name: string, options: Parameters<typeof stepWith>[0], offered: string][] = [
    ["a glob", { allow: ["mcp__docs__*"] }, `${LOOK} ${EDIT} mcp__docs__broken`],
    ["a name", { allow: [EDIT] }, EDIT],
    ["everything, which speaks for what is known", { allow: ["*"] }, ""],
    [
      "everything without limits",
      { allow: ["*"], mode: "bypassPermissions" },
      `${LOOK} ${EDIT} mcp__docs__broken`,
    ],
    ["another server", { allow: ["mcp__doc__*", "mcp__docs_*x"] }, ""],
    ["plan and a glob", { allow: ["mcp__docs__*"], mode: "plan" }, ""],
    ["plan and names: only what says that it reads", { allow: [LOOK, EDIT], mode: "plan" }, LOOK],
    ["default and names", { allow: [LOOK, EDIT], mode: "default" }, LOOK],
    ["a verification", { allow: [LOOK, EDIT], mode: "plan", kind: "verify" }, LOOK],
  ];
  for (const [name, options, expected] of cases) {
    test(`${name}: offered, judged and called alike`, async () => {
      const step = stepWith(options);
      const offered = toolbox.offer(step).map((spec) => spec.name);
      assert.equal(offered.filter((tool) => tool.startsWith("mcp__")).join(" "), expected);
      for (const tool of [LOOK, EDIT]) {
        const call = { id: "1", name: tool, input: { text: "not what its schema asks for" } };
        const [result] = await toolbox.call(step, [call], signal);
        const may = expected.split(" ").includes(tool);
        assert.equal(toolbox.judge(step, call, [tool]) === null, may);
        assert.equal(result!.denied === undefined, may, result!.content);
        if (may) assert.deepEqual(JSON.parse(result!.content), call.input);
      }
    });
  }

  test("a server that fails is a result like any other, and an unknown tool of it is told what there is", async () => {
    const step = stepWith({ allow: ["mcp__docs__*"] });
    const results = await toolbox.call(
      step,
      ["mcp__docs__broken", "mcp__docs__none"].map((name, id) => ({ id: String(id), name, input: {} })),
      signal,
    );
    assert.deepEqual(
      results.map(({ ok, content }) => [ok, content]),
      [
        [false, "mcp__docs__broken failed: the server is gone."],
        [
          false,
          'ToolNotRegistered: there is no tool "mcp__docs__none". This step has: mcp__docs__look, mcp__docs__edit, mcp__docs__broken.',
        ],
      ],
    );
  });
});

test("what goes to the model is cut in its middle, and nothing else of it changes", () => {
  const whole = "y".repeat(64 * 1024);
  assert.equal(clipOutput(whole), whole);
  assert.match(clipOutput(`${whole}y`), /^y+\n\[… 1 bytes cut …\]\ny+$/);
  assert.equal(clipOutput("abcd", 4), "abcd");
  assert.equal(clipOutput("abcde", 4), "ab\n[… 1 bytes cut …]\nde");
  // Half a character at the cut is left out; what stood in the text before stays.
  assert.equal(clipOutput(`ä${"x".repeat(9)}ö`, 6), "äx\n[… 7 bytes cut …]\nxö");
  assert.equal(clipOutput(`aä${"x".repeat(9)}öb`, 4), "a\n[… 11 bytes cut …]\nb");
  const [before, after] = ["\uFFFDab", "a\uFFFDb"];
  assert.equal(
    clipOutput(`${before}${"x".repeat(20)}${after}`, 10),
    `${before}\n[… 20 bytes cut …]\n${after}`,
  );
});
