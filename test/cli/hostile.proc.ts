/** Hostile inputs through the real command: each ends by itself, with a failure that has a name, and SIGTERM ends each. */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { chmodSync, mkdirSync, rmSync, symlinkSync, truncateSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { createWorld, MAIN, replies, script, writeAgent, type World } from "./world.ts";

/** A hang is ended here; what is asserted is that nothing had to be. Busy machines are slow to start a process. */
const KILL_MS = 30_000;

// oxlint-disable-next-line no-explicit-any -- files are changed at depth, and what is wrong with them is the point
type Document = { [key: string]: any };
type Case = {
  readonly name: string;
  readonly prepare: (world: World) => void;
  readonly args: readonly string[];
  readonly code: number;
  readonly says: RegExp;
  /** Ended by SIGTERM, too, after this many milliseconds. */
  readonly termAfter?: number;
};

const AGENT = ".agent/a/agent.json";
const REGISTRY = ".agent/a/steps_registry.json";
const SCHEMA = ".agent/a/schemas/note.schema.json";
const PROMPT = ".agent/a/prompts/steps/initial/note/f_default.md";
const plain = (world: World) => writeAgent(world, "a");
const RUN = ["run", "a", "--topic", "t", "--script", "script.json"];
const GOOD = script(replies.initial(), replies.continuation(), replies.closure());

/** The agent with another file in the place of one of its own. */
function instead(path: string, put: (file: string) => void): Case["prepare"] {
  return (world) => {
    plain(world);
    world.write("script.json", GOOD);
    const file = join(world.root, path);
    rmSync(file, { force: true, recursive: true });
    mkdirSync(dirname(file), { recursive: true });
    put(file);
  };
}

const fifo = (file: string) => void execFileSync("mkfifo", [file]);
const folder = (file: string) => mkdirSync(file);
const zero = (file: string) => symlinkSync("/dev/zero", file);
const socket = (file: string) => {
  const server = createServer().listen(file);
  server.unref();
  after(() => server.close());
};
const sparse = (file: string) => {
  execFileSync("touch", [file]);
  truncateSync(file, 1_500_000_000);
};

const withAgent = (change: (agent: Document) => void) => (world: World) =>
  writeAgent(world, "a", { agent: change });
const withParameter = (validation: object, value: string) =>
  withAgent((agent) => {
    agent.parameters = {
      topic: { type: "string", description: "t", required: false, default: value, validation },
    };
  });

/** The first step's schema with one more member, and an answer that holds it. */
const answering =
  (schema: object, value: unknown, top: object = {}) =>
  (world: World) => {
    plain(world);
    const reply = replies.initial();
    world.write("script.json", script({ ...reply, output: { ...reply.output, extra: value } }));
    const file: Document = {
      type: "object",
      required: ["stepId", "next_action"],
      properties: { stepId: {}, plan: {}, next_action: nextAction(["next", "repeat"]), extra: schema },
      ...top,
    };
    withSchema(world, file);
  };

const nextAction = (words: readonly string[]) => ({
  type: "object",
  required: ["action"],
  properties: { action: { type: "string", enum: words } },
});

function withSchema(world: World, schema: object): void {
  world.write(".agent/a/schemas/hostile.json", JSON.stringify({ definitions: { h: schema } }));
  writeAgent(world, "a", {
    registry: (registry) => {
      const step = registry.steps as Document;
      step["initial.note"].outputSchemaRef = { file: "hostile.json", schema: "h" };
    },
  });
}

const saying = (text: string) => (world: World) => {
  plain(world);
  world.write("script.json", script({ step: "initial.note", text }, { step: "initial.note", text }));
};

const stage = (front: string, body = "Do it.") => `---\nid: s\nname: s\n${front}\n---\n\n${body}\n`;
const stages = (front: string, body?: string) => (world: World) =>
  world.write(".agent/a/stages/s.md", stage(front, body));

const WHOLE = `description: d
allowedTools: []
completionTool: done
completionSchema: { type: object, required: [a], properties: { a: { type: string } } }
retryPolicy: { maxAttempts: 1, backoff: none }
turnCap: 2
resolutionPolicy: fail
next: end`;

const bundle = (change: (bundle: Document) => void) => (world: World) => {
  const whole: Document = {
    v: 1,
    kind: "lockstep-run",
    meta: {},
    run: { id: "r", agent: "a", createdAt: 1, flow: "x" },
    redacted: false,
    flows: { x: { steps: { constructor: null } } },
    entries: [{ at: 1, event: { type: "run.started" } }],
  };
  change(whole);
  world.write("bundle.json", JSON.stringify(whole));
};

const deep = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
const EVIL = "^(a+)+$";
const LONG = `${"a".repeat(40)}!`;
const many = <T>(count: number, make: (place: number) => T) =>
  Array.from({ length: count }, (_, place) => make(place));

const FILES: readonly Case[] = [
  ...[AGENT, REGISTRY, PROMPT].flatMap((path): readonly Case[] => [
    {
      name: `a pipe as ${path}`,
      prepare: instead(path, fifo),
      args: ["check", "a"],
      code: 2,
      says: /pipe, not a regular file/,
    },
    {
      name: `1.5 GB as ${path}`,
      prepare: instead(path, sparse),
      args: ["check", "a"],
      code: 2,
      says: /1500000000 bytes/,
    },
  ]),
  {
    name: "a pipe as a schema",
    prepare: instead(SCHEMA, fifo),
    args: ["check", "a"],
    code: 2,
    says: /pipe, not a regular file/,
  },
  {
    name: "a socket as agent.json",
    prepare: instead(AGENT, socket),
    args: ["check", "a"],
    code: 2,
    says: /agent\.json/,
  },
  {
    name: "a folder as agent.json",
    prepare: instead(AGENT, folder),
    args: ["check", "a"],
    code: 2,
    says: /folder, not a regular/,
  },
  {
    name: "an endless file as agent.json",
    prepare: instead(AGENT, zero),
    args: ["check", "a"],
    code: 2,
    says: /agent\.json/,
  },
  {
    name: "an endless file as a script",
    prepare: instead("script.json", zero),
    args: RUN,
    code: 2,
    says: /device, not a regular/,
  },
  {
    name: "a pipe as a script",
    prepare: instead("script.json", fifo),
    args: RUN,
    code: 2,
    says: /pipe, not a regular/,
    termAfter: 500,
  },
  { name: "a pipe as the list", prepare: instead(AGENT, fifo), args: ["list"], code: 0, says: /a / },
  {
    name: "a pipe as a stage",
    prepare: (world) => {
      mkdirSync(join(world.root, ".agent/a/stages"), { recursive: true });
      fifo(join(world.root, ".agent/a/stages/s.md"));
    },
    args: ["check", "a"],
    code: 2,
    says: /pipe, not a regular/,
  },
  {
    name: "a pipe as machine.yaml",
    prepare: (world) => {
      stages("next: end")(world);
      fifo(join(world.root, ".agent/a/machine.yaml"));
    },
    args: ["check", "a"],
    code: 2,
    says: /pipe, not a regular/,
  },
  {
    name: "a pipe as the user's settings",
    prepare: (world) => {
      plain(world);
      world.write("script.json", GOOD);
      mkdirSync(join(world.env.HOME!, ".config/lockstep"), { recursive: true });
      fifo(join(world.env.HOME!, ".config/lockstep/config.json"));
    },
    args: RUN,
    code: 3,
    says: /config\.json.*pipe/,
  },
  {
    name: "a pipe as a bundle",
    prepare: (world) => fifo(join(world.root, "bundle.json")),
    args: ["replay", "bundle.json"],
    code: 2,
    says: /pipe, not a regular/,
  },
  {
    name: "a pipe as input",
    prepare: (world) => {
      stages(WHOLE)(world);
      fifo(join(world.root, "in.json"));
    },
    args: ["run", "a", "--input", "@in.json"],
    code: 2,
    says: /pipe, not a regular/,
  },
];

const TEXTS: readonly Case[] = [
  {
    name: "brackets without end as agent.json",
    prepare: (world) => {
      plain(world);
      world.write(AGENT, "[".repeat(2_000_000));
    },
    args: ["check", "a"],
    code: 2,
    says: /nests deeper than 200/,
  },
  {
    name: "a deep agent.json",
    prepare: (world) => {
      plain(world);
      world.write(AGENT, deep(500_000));
    },
    args: ["check", "a"],
    code: 2,
    says: /nests deeper than 200/,
  },
  {
    name: "a deep value in the registry",
    prepare: (world) => {
      plain(world);
      world.write(REGISTRY, `{"steps":${deep(100_000)}}`);
    },
    args: ["check", "a"],
    code: 2,
    says: /nests deeper than 200/,
  },
  {
    name: "50,000 keys in front matter",
    prepare: stages(many(50_000, (at) => `k${at}: 1`).join("\n")),
    args: ["check", "a"],
    code: 2,
    says: /longer than 262144|holds more than/,
  },
  {
    name: "2 MB of front matter",
    prepare: stages(`x: ${"a".repeat(2_000_000)}`),
    args: ["check", "a"],
    code: 2,
    says: /longer than 262144/,
  },
  {
    name: "aliases that multiply",
    prepare: stages(
      [
        "a: &a [x,x,x,x,x,x,x,x,x]",
        ...many(9, (at) => `b${at}: &b${at} [${many(9, () => (at === 0 ? "*a" : `*b${at - 1}`)).join(",")}]`),
      ].join("\n"),
    ),
    args: ["check", "a"],
    code: 2,
    says: /aliases stand for too much/,
  },
  { name: "deep YAML", prepare: stages(`x: ${deep(20_000)}`), args: ["check", "a"], code: 2, says: /nests/ },
  {
    name: "tags that open and never close",
    prepare: (world) => {
      plain(world);
      world.write(PROMPT, "{{#each a}}".repeat(50_000) + "{{ ".repeat(100_000) + " ".repeat(500_000));
    },
    args: ["check", "a"],
    code: 0,
    says: /a/,
  },
  {
    name: "an odd type everywhere",
    prepare: withAgent((agent) => {
      agent.runner = { boundaries: { sandbox: [], allowedTools: 7 }, flow: null, verdict: "x" };
      agent.parameters = [];
    }),
    args: ["check", "a"],
    code: 2,
    says: /must be/,
  },
  {
    name: "a folder to open that is a file",
    prepare: withAgent((agent) => {
      agent.runner.boundaries = {
        ...agent.runner.boundaries,
        sandbox: {
          enabled: true,
          filesystem: { allowedPaths: ["./.agent/a/agent.json/x", ".agent/a/agent.json"] },
        },
      };
    }),
    args: ["check", "a"],
    code: 2,
    says: /SANDBOX-PATH/,
  },
];

const PATTERNS: readonly Case[] = [
  {
    name: "a parameter's pattern against its default",
    prepare: withParameter({ pattern: EVIL }, LONG),
    args: ["check", "a"],
    code: 2,
    says: /does not match/,
  },
  {
    name: "the same on the line",
    prepare: withParameter({ pattern: EVIL }, "aaa"),
    args: ["run", "a", "--topic", LONG, "--script", "script.json"],
    code: 2,
    says: /does not match|script/,
  },
  {
    name: "a pattern that multiplies",
    prepare: withParameter({ pattern: "((a{1,900}){1,900}){1,900}" }, "a"),
    args: ["check", "a"],
    code: 2,
    says: /repetitions are too large/,
  },
  {
    name: "a pattern that refers back",
    prepare: withParameter({ pattern: String.raw`^(a+)\1+$` }, "aa"),
    args: ["check", "a"],
    code: 2,
    says: /refers back/,
  },
  {
    name: "a schema's pattern",
    prepare: answering({ type: "string", pattern: EVIL }, LONG),
    args: RUN,
    code: 1,
    says: /must match pattern/,
    termAfter: 800,
  },
  {
    name: "a schema's pattern over a long text",
    prepare: answering({ type: "string", pattern: "(x+x+)+y" }, "x".repeat(500_000)),
    args: RUN,
    code: 1,
    says: /too long|must match/,
  },
  {
    name: "names by a pattern",
    prepare: answering(
      { type: "object", patternProperties: { "^(a|a)*$": false }, additionalProperties: false },
      Object.fromEntries(many(500, (at) => ["a".repeat(60) + at, 1])),
    ),
    args: RUN,
    code: 1,
    says: /additional properties/,
  },
  {
    name: "items that must differ",
    prepare: answering(
      { type: "array", uniqueItems: true },
      many(40_000, (at) => ({ at })),
    ),
    args: RUN,
    code: 1,
    says: /too large for its schema/,
    termAfter: 800,
  },
  {
    name: "an address without end",
    prepare: answering({ type: "string", format: "email" }, `a@${"a.".repeat(300_000)}`),
    args: RUN,
    code: 1,
    says: /too large for its schema/,
  },
  {
    name: "a list of many words for many items",
    prepare: answering(
      { type: "array", items: { enum: many(5_000, (at) => `w${at}`) } },
      many(50_000, () => "w4999"),
    ),
    args: RUN,
    code: 1,
    says: /too large for its schema/,
  },
  {
    name: "a schema of references that double",
    prepare: (world) => {
      plain(world);
      withSchema(world, { $ref: "#/definitions/d0" });
      const definitions: Document = { h: { $ref: "#/definitions/d0" } };
      for (let at = 0; at < 40; at++)
        definitions[`d${at}`] = {
          anyOf: [{ $ref: `#/definitions/d${at + 1}` }, { $ref: `#/definitions/d${at + 1}` }],
        };
      definitions.d40 = { type: "object" };
      world.write(".agent/a/schemas/hostile.json", JSON.stringify({ definitions }));
    },
    args: ["check", "a"],
    code: 2,
    says: /FAILED_SCHEMA_RESOLUTION/,
  },
  {
    name: "a schema of 5,000 alternatives",
    prepare: (world) => {
      plain(world);
      withSchema(world, { anyOf: many(5_000, (at) => ({ type: "object", required: [`a${at}`] })) });
    },
    args: ["check", "a"],
    code: 2,
    says: /holds more than 2000 schemas/,
  },
];

const ANSWERS: readonly Case[] = [
  {
    name: "JSON that cannot be repaired in time",
    prepare: saying(`{"a":"${'x" y "'.repeat(160_000)}}`),
    args: RUN,
    code: 1,
    says: /initial\.note/,
    termAfter: 800,
  },
  {
    name: "fences without end",
    prepare: saying("```\n".repeat(200_000)),
    args: RUN,
    code: 1,
    says: /initial\.note/,
  },
  {
    name: "backticks without end",
    prepare: saying(`${"`".repeat(800_000)} a b`),
    args: RUN,
    code: 1,
    says: /initial\.note/,
  },
  {
    name: "braces without end",
    prepare: saying("{".repeat(900_000)),
    args: RUN,
    code: 1,
    says: /initial\.note/,
  },
  {
    name: "quotes without end",
    prepare: saying(`{${'"'.repeat(900_001)}`),
    args: RUN,
    code: 1,
    says: /initial\.note/,
  },
  {
    name: "spaces without end",
    prepare: saying(`x${" ".repeat(900_000)}y`),
    args: RUN,
    code: 1,
    says: /initial\.note/,
  },
  {
    name: "an answer nested too deeply",
    prepare: saying(`{"a":${deep(100_000)}}`),
    args: RUN,
    code: 1,
    says: /initial\.note/,
  },
];

const BUNDLES: readonly Case[] = [
  {
    name: "a bundle of deep brackets",
    prepare: (world) => world.write("bundle.json", deep(1_000_000)),
    args: ["replay", "bundle.json"],
    code: 2,
    says: /bundle\.json/,
  },
  {
    name: "a bundle with a step that is nothing",
    prepare: bundle(() => undefined),
    args: ["replay", "bundle.json"],
    code: 2,
    says: /bundle\.json|digest/,
  },
  {
    name: "a bundle without entries",
    prepare: bundle((whole) => {
      whole.entries = {};
    }),
    args: ["import", "bundle.json"],
    code: 2,
    says: /lacks parts/,
  },
];

const CASES = [...FILES, ...TEXTS, ...PATTERNS, ...ANSWERS, ...BUNDLES];

type Ended = {
  readonly code: number | null;
  readonly signal: string | null;
  readonly output: string;
  readonly wasKilled: boolean;
};

async function end(world: World, args: readonly string[], termAfter?: number): Promise<Ended> {
  const child = spawn(process.execPath, [MAIN, ...args], {
    cwd: world.root,
    env: world.env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  let wasKilled = false;
  const limit = setTimeout(() => {
    wasKilled = true;
    child.kill("SIGKILL");
  }, KILL_MS);
  const term = termAfter === undefined ? undefined : setTimeout(() => child.kill("SIGTERM"), termAfter);
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve) =>
    child.on("close", (...how) => resolve(how)),
  );
  clearTimeout(limit);
  clearTimeout(term);
  return { code, signal, output, wasKilled };
}

test("there are enough of them, and no two are the same", () => {
  assert.ok(CASES.length >= 40, String(CASES.length));
  assert.equal(new Set(CASES.map(({ name }) => name)).size, CASES.length);
});

test("hostile inputs end by themselves, with a failure that has a name", { concurrency: 2 }, async (t) => {
  await Promise.all(
    CASES.map(({ name, prepare, args, code, says, termAfter }) =>
      t.test(name, async () => {
        using world = createWorld();
        prepare(world);
        const ended = await end(world, args);
        const told = `${ended.code} ${ended.signal} ${ended.output.slice(0, 1500)}`;
        assert.equal(ended.wasKilled, false, `it never ended: ${told}`);
        assert.doesNotMatch(ended.output, /bug in Lockstep|out of memory|Maximum call stack/, told);
        assert.equal(ended.code, code, told);
        assert.match(ended.output, says, told);
        if (termAfter === undefined) return;
        const stopped = await end(world, args, termAfter);
        assert.equal(stopped.wasKilled, false, "SIGTERM did not end it");
      }),
    ),
  );
});

test("the same project without the attack works", async () => {
  using world = createWorld();
  plain(world);
  world.write("script.json", GOOD);
  const ended = await end(world, RUN);
  assert.equal(ended.code, 0, ended.output);
  for (const args of [["check", "a"], ["list"], ["replay", "@last"], ["why", "@last"]])
    assert.equal((await end(world, args)).code, 0, args.join(" "));
});

test(
  "a file that may not be read says so",
  { skip: process.getuid?.() === 0 ? "root may read everything" : false },
  async () => {
    using world = createWorld();
    plain(world);
    chmodSync(join(world.root, AGENT), 0);
    assert.match((await end(world, ["check", "a"])).output, /EACCES/);
  },
);
