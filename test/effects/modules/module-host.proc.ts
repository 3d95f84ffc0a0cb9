/** Modules of a project run in a process of their own: whatever they do, a call gives a value and nothing is left behind. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { createModuleHost, type ModuleHost } from "../../../src/effects/modules/module-host.ts";
import { RunnerError } from "../../../src/engine/ports.ts";
import type { HookResult } from "../../../src/flow/event.ts";
import type { Json } from "../../../src/flow/json.ts";
import { until } from "../../until.ts";

const folder = mkdtempSync(join(tmpdir(), "lockstep-host-"));
after(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;
function moduleOf(text: string): { readonly file: string; readonly digest: string } {
  files += 1;
  const file = join(folder, `module-${files}.mjs`);
  writeFileSync(file, text);
  return { file, digest: createHash("sha256").update(text).digest("hex") };
}

async function withHost<T>(
  text: string,
  use: (host: ModuleHost, file: string) => Promise<T>,
  more: { readonly timeoutMs?: number; readonly adapter?: string; readonly digest?: string } = {},
): Promise<T> {
  const module = moduleOf(text);
  const env = { ...process.env, SECRET_TOKEN: "hush" };
  const host = createModuleHost({ ...module, cwd: folder, env, ...more });
  try {
    return await use(host, module.file);
  } finally {
    await host.close();
  }
}

const never = new AbortController().signal;

function gave(value: Json): HookResult {
  return { kind: "gave", value };
}

/** Living processes that speak of this file's folder in their arguments or were started below it. */
function leftOver(): readonly string[] {
  if (!existsSync("/proc")) return [];
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
        if (/\) [ZX] /.test(stat)) return false;
        return readFileSync(`/proc/${pid}/cmdline`, "latin1").includes(folder);
      } catch {
        return false;
      }
    });
}

type Row = {
  readonly name: string;
  readonly module: string;
  readonly path?: readonly string[];
  readonly args?: readonly Json[];
  readonly mutable?: true;
  readonly timeoutMs?: number;
  readonly expect: HookResult | { readonly code: string; readonly says: RegExp };
};

/** How a module can speak over our head. */
const OWN_LINE = `import { writeSync } from "node:fs";
  const write = (text) => {
    for (let rest = Buffer.from(text); rest.length > 0;) {
      try { rest = rest.subarray(writeSync(3, rest)); } catch (error) { if (error.code !== "EAGAIN") throw error; }
    }
  };
  const send = (message) => write(JSON.stringify(message) + "\\n");`;

const ROWS: readonly Row[] = [
  {
    name: "a plain value",
    module: "export default () => ({ a: [1, 'ü', null] })",
    expect: gave({ a: [1, "ü", null] }),
  },
  { name: "a promise", module: "export default async (x) => x + 1", args: [41], expect: gave(42) },
  { name: "nothing is null", module: "export default () => {}", expect: gave(null) },
  {
    name: "a path into the exports, with its owner as this",
    module: "export default { 'stage-1': { word: 'hi', setup() { return this.word } } }",
    path: ["default", "stage-1", "setup"],
    expect: gave("hi"),
  },
  {
    name: "a method of a class",
    module: "class Hooks { setup() { return 1 } } export default new Hooks()",
    path: ["default", "setup"],
    expect: gave(1),
  },
  { name: "no such export", module: "export const a = 1", expect: { kind: "absent" } },
  { name: "an export that is no function", module: "export default 7", expect: { kind: "absent" } },
  {
    name: "what every object has is no function of the module",
    module: "export default {}",
    path: ["default", "toString"],
    expect: { kind: "absent" },
  },
  {
    name: "a thrown error",
    module: "export default () => { throw new Error('no luck') }",
    expect: { code: "HOOK_THREW", says: /^no luck \(module-\d+\.mjs:1:30\)$/ },
  },
  {
    name: "a thrown error with a code",
    module: "export default async () => { throw Object.assign(new Error('x'), { code: 'MINE' }) }",
    expect: { code: "MINE", says: /^x \(module-\d+\.mjs:1:\d+\)$/ },
  },
  {
    name: "a thrown text",
    module: "export default () => { throw 'odd' }",
    expect: { kind: "threw", code: "HOOK_THREW", message: "odd" },
  },
  ...[
    "ctx.a = 1",
    "delete ctx.deep",
    "ctx.deep.list.push(1)",
    "ctx.deep.list[0].x = 2",
    "Object.defineProperty(ctx, 'a', { value: 1 })",
    "Object.getOwnPropertyDescriptor(ctx, 'deep').value.y = 1",
    "Object.assign(ctx.deep, { z: 1 })",
    "Object.freeze(ctx)",
  ].map((change): Row => ({
    name: `read-only: ${change}`,
    module: `export default (ctx) => { ${change} }`,
    args: [{ deep: { list: [{ x: 1 }] } }],
    expect: { code: "ContextMutationForbidden", says: /Nothing may be changed here/ },
  })),
  {
    name: "read-only values can be read, copied and given back",
    module:
      "export default (ctx) => ({ ...ctx, n: ctx.list.map((x) => x + 1), is: Array.isArray(ctx.list) })",
    args: [{ list: [1, 2] }],
    expect: gave({ list: [1, 2], n: [2, 3], is: true }),
  },
  {
    name: "mutable: what was changed comes back beside the value",
    module: "export default (ctx, name) => { ctx.seen = [name]; return 'done' }",
    args: [{ old: 1 }, "x"],
    mutable: true,
    expect: gave({ value: "done", changed: { old: 1, seen: ["x"] } }),
  },
  ...(
    [
      ["a circle", "const a = {}; a.a = a; return a"],
      ["a function", "return { f() {} }"],
      ["a big number", "return 1n"],
      ["not a number", "return { n: NaN }"],
      ["a map", "return new Map([[1, 2]])"],
      ["more than is taken", "return 'x'.repeat(5_000_000)"],
    ] as const
  ).map(([name, body]): Row => ({
    name: `no JSON: ${name}`,
    module: `export default () => { ${body} }`,
    expect: { code: "HOOK_RESULT_INVALID", says: /is not JSON/ },
  })),
  {
    name: "a date is told as JSON tells it",
    module: "export default () => new Date(0)",
    expect: gave("1970-01-01T00:00:00.000Z"),
  },
  {
    name: "a syntax error",
    module: "export default (",
    expect: { code: "MODULE_BROKEN", says: /^module-\d+\.mjs: Unexpected/ },
  },
  {
    name: "an import that fails",
    module: "import './not-there.mjs'; export default () => 1",
    expect: { code: "MODULE_BROKEN", says: /not-there/ },
  },
  {
    name: "a module that throws while it is loaded",
    module: "throw new Error('at once')",
    expect: { code: "MODULE_BROKEN", says: /^module-\d+\.mjs: at once \(module-\d+\.mjs:1:7\)$/ },
  },
  {
    name: "an error that does not want to be read",
    module:
      "export default () => { throw Object.defineProperty(new Error('x'), 'stack', { get() { throw 1 } }) }",
    expect: { code: "HOOK_THREW", says: /^x$/ },
  },
  {
    name: "an exit",
    module: "export default () => { console.error('bye'); process.exit(3) }",
    expect: { code: "HOOK_CRASHED", says: /exited with 3\. Its last words:\nbye/ },
  },
  {
    name: "an error nobody catches",
    module: "export default () => new Promise(() => setTimeout(() => { throw new Error('late') }))",
    expect: { code: "HOOK_CRASHED", says: /exited with 1[\s\S]*late/ },
  },
  {
    name: "a signal",
    module: "export default () => { process.kill(process.pid, 'SIGKILL'); return new Promise(() => {}) }",
    expect: { code: "MODULE_KILLED", says: /was ended by SIGKILL from outside\. .* out of memory/ },
  },
  {
    name: "a signal that asks",
    module: "export default () => { process.kill(process.pid, 'SIGTERM'); return new Promise(() => {}) }",
    expect: { code: "MODULE_KILLED", says: /was ended by SIGTERM from outside\.$/ },
  },
  {
    name: "a signal that is about what it runs",
    module: "export default () => { process.kill(process.pid, 'SIGSEGV'); return new Promise(() => {}) }",
    expect: { code: "HOOK_CRASHED", says: /was ended by SIGSEGV/ },
  },
  {
    name: "an exit code like that of a signal",
    module: "export default () => process.exit(137)",
    expect: { code: "HOOK_CRASHED", says: /exited with 137/ },
  },
  {
    name: "a disconnect",
    module:
      'import { closeSync } from "node:fs"; export default () => { closeSync(3); return new Promise(() => {}) }',
    expect: { code: "HOOK_CRASHED", says: /SIG(?:TERM|KILL)/ },
  },
  {
    name: "an answer of its own making",
    module: `${OWN_LINE} export default () => { send({ id: 1, result: { kind: "gave", json: "{" } }); return 7; }`,
    expect: { code: "HOOK_RESULT_INVALID", says: /of its own making/ },
  },
  {
    name: "lines that are no JSON, of nobody and of no shape, before the right one",
    module: `${OWN_LINE} export default () => { write("{\\n\\n[]\\nnull\\n"); send({ id: 9 }); send({ id: {} }); return 7; }`,
    expect: gave(7),
  },
  {
    name: "a line without end",
    module: `${OWN_LINE} const mb = "x".repeat(1 << 20); export default () => { for (;;) write(mb); }`,
    expect: { code: "HOOK_RESULT_INVALID", says: /sent more than \d+ bytes/ },
  },
  {
    name: "lines without end",
    module: `${OWN_LINE} const mb = '{"id":5}\\n'.repeat(1 << 17); export default () => { for (;;) write(mb); }`,
    expect: { code: "HOOK_RESULT_INVALID", says: /sent more than \d+ bytes/ },
  },
  {
    name: "waiting for ever",
    module: "export default () => new Promise(() => {})",
    timeoutMs: 300,
    expect: { code: "HOOK_TIMEOUT", says: /default gave nothing within 300 ms/ },
  },
  {
    name: "a loop that never ends",
    module: "export default () => { for (;;); }",
    timeoutMs: 300,
    expect: { code: "HOOK_TIMEOUT", says: /300 ms/ },
  },
  {
    name: "a loop while it is loaded",
    module: "for (;;); export default 1",
    timeoutMs: 300,
    expect: { code: "HOOK_TIMEOUT", says: /300 ms/ },
  },
  {
    name: "100 MB on stdout go nowhere",
    module:
      "export default () => { const line = 'x'.repeat(2 ** 20); for (let i = 0; i < 100; i++) console.log(line); return 1 }",
    expect: gave(1),
  },
  {
    name: "it sees no secrets",
    module: "export default () => [process.env.SECRET_TOKEN ?? null, typeof process.env.PATH]",
    expect: gave([null, "string"]),
  },
  {
    name: "it works in the run's folder",
    module: "export default () => process.cwd()",
    expect: gave(folder),
  },
];

const thrown = (error: unknown): HookResult => {
  assert.ok(error instanceof RunnerError);
  return { kind: "threw", code: error.code, message: error.message };
};

describe("one call", () => {
  for (const row of ROWS) {
    test(row.name, async () => {
      const { path = ["default"], args = [], mutable = false, timeoutMs = 20_000 } = row;
      const call = (host: ModuleHost) => host.call(path, args, never, { mutable });
      const result = await withHost(row.module, call, { timeoutMs }).catch(thrown);
      if ("kind" in row.expect) {
        assert.deepEqual(result, row.expect);
        return;
      }
      assert.ok(result.kind === "threw", JSON.stringify(result));
      assert.equal(result.code, row.expect.code);
      assert.match(result.message, row.expect.says);
    });
  }
});

test("1000 calls are answered by one process, which remembers", async () => {
  const results = await withHost("let n = 0; export default () => [++n, process.pid]", async (host) => {
    const seen: HookResult[] = [];
    for (let at = 0; at < 1000; at += 1) seen.push(await host.call(["default"], [], never));
    return seen;
  });
  const values = results.map((result) =>
    result.kind === "gave" ? (result.value as [number, number]) : [0, 0],
  );
  assert.deepEqual(
    values.map(([n]) => n),
    Array.from({ length: 1000 }, (_, at) => at + 1),
  );
  assert.equal(new Set(values.map(([, pid]) => pid)).size, 1);
});

test("calls side by side get their own answers", async () => {
  const results = await withHost(
    "export default async (ms) => { await new Promise((r) => setTimeout(r, ms)); return ms }",
    (host) => Promise.all([30, 20, 10].map((ms) => host.call(["default"], [ms], never))),
  );
  assert.deepEqual(results, [gave(30), gave(20), gave(10)]);
});

test("after a crash and after a timeout the next call starts anew", async () => {
  const text =
    "let n = 0; export default (how) => { n++; if (how === 'exit') process.exit(1); if (how === 'hang') for (;;); return n }";
  await withHost(
    text,
    async (host) => {
      const codes: string[] = [];
      for (const how of ["go", "go", "exit", "go", "hang", "go"]) {
        const result = await host.call(["default"], [how], never);
        codes.push(
          result.kind === "gave" ? JSON.stringify(result.value) : result.kind === "threw" ? result.code : "",
        );
      }
      assert.deepEqual(codes, ["1", "2", "HOOK_CRASHED", "1", "HOOK_TIMEOUT", "1"]);
    },
    { timeoutMs: 5000 },
  );
});

test("a module that has changed is not run", async () => {
  await withHost("export default () => 1", async (host, file) => {
    assert.deepEqual(await host.call(["default"], [], never), gave(1));
    await host.close();
    writeFileSync(file, "export default () => 2");
    const changed = await host.call(["default"], [], never);
    assert.ok(changed.kind === "threw" && changed.code === "MODULE_CHANGED", JSON.stringify(changed));
    rmSync(file);
    const gone = await host.call(["default"], [], never);
    assert.ok(gone.kind === "threw" && gone.code === "MODULE_CHANGED", JSON.stringify(gone));
  });
});

test("an abort ends the call and its process; an aborted signal starts none", async () => {
  const marker = join(folder, "aborted");
  const text = `import { writeFileSync } from "node:fs";
    export default () => { writeFileSync(${JSON.stringify(marker)}, "x"); for (;;); }`;
  await withHost(text, async (host) => {
    const controller = new AbortController();
    const call = host.call(["default"], [], controller.signal);
    await until(() => existsSync(marker), "the call has begun");
    controller.abort();
    const result = await call;
    assert.ok(result.kind === "threw" && result.code === "HOOK_ABORTED");
    assert.deepEqual(leftOver(), []);
    rmSync(marker);
    await host.call(["default"], [], controller.signal);
    assert.equal(existsSync(marker), false);
  });
});

test("what a module starts ends with it, even what left its process group", async () => {
  const pids = join(folder, "pids");
  const text = `import { spawn } from "node:child_process";
    import { appendFileSync } from "node:fs";
    export default () => {
      for (const detached of [false, true]) {
        const child = spawn("sleep", ["1000"], { detached, stdio: detached ? "ignore" : "inherit" });
        appendFileSync(${JSON.stringify(pids)}, child.pid + "\\n");
      }
      return 1;
    }`;
  await withHost(text, async (host) => {
    assert.deepEqual(await host.call(["default"], [], never), gave(1));
  });
  for (const pid of readFileSync(pids, "utf8").split("\n").filter(Boolean)) {
    assert.ok(!isAlive(Number(pid)), `${pid} still runs`);
  }
});

/** A program that makes one call and then forgets the host. */
function user(ending: string): string {
  const host = new URL("../../../src/effects/modules/module-host.ts", import.meta.url).href;
  const module = moduleOf("export default () => process.pid");
  return `import { createModuleHost } from ${JSON.stringify(host)};
    const host = createModuleHost({ ...${JSON.stringify(module)}, cwd: ${JSON.stringify(folder)}, env: process.env });
    const { value } = await host.call(["default"], [], new AbortController().signal);
    process.stdout.write(String(value) + "\\n");
    ${ending}`;
}

for (const [name, ending, signal] of [
  ["ends by itself", "", null],
  ["exits in a hurry", "process.exit(0)", null],
  ["is killed", "setInterval(() => {}, 1000)", "SIGKILL"],
] as const) {
  test(`a host keeps nobody alive and outlives nobody: its program ${name}`, async () => {
    const child = spawn(process.execPath, ["--input-type=module", "-e", user(ending)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const exited = once(child, "exit");
    const [line] = (await once(child.stdout, "data")) as [Buffer];
    if (signal !== null) child.kill(signal);
    await exited;
    const pid = Number(line.toString());
    await until(() => !isAlive(pid), "the host has ended");
  });
}

test("a program with nothing else to do still hears of the end of a call and of a host", async () => {
  const host = new URL("../../../src/effects/modules/module-host.ts", import.meta.url).href;
  const module = moduleOf("export default (hang) => { if (hang) for (;;); return 1 }");
  const program = `import { createModuleHost } from ${JSON.stringify(host)};
    const options = { ...${JSON.stringify(module)}, cwd: ${JSON.stringify(folder)}, env: process.env };
    const kinds = [];
    for (const hang of [false, true, false, true, false]) {
      const host = createModuleHost({ ...options, timeoutMs: hang ? 400 : 60_000 });
      kinds.push((await host.call(["default"], [hang], new AbortController().signal)).kind);
      await host.close();
    }
    process.stdout.write(kinds.join());`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const [code] = (await once(child, "close")) as [number];
  assert.deepEqual([code, said], [0, "gave,threw,gave,threw,gave"]);
});

test("nothing is left behind by any of this", () => {
  assert.deepEqual(leftOver(), []);
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}
