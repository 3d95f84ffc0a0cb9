/**
 * Hostile inputs through the real command: each ends by itself within five seconds of processor time, with a failure that
 * has a name, and SIGTERM ends each at once. Time is counted by the processor, because busy machines are slow.
 */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import { machineFiles } from "../run/stage-project.ts";
import { createWorld, MAIN, replies, script, writeAgent, writeCheckedAgent, type World } from "./world.ts";
import { someOf } from "../rounds.ts";

/** What the process may use of the processor; then the kernel ends it by SIGXCPU. */
const MOST_CPU_SECONDS = 5;
/** What it may use after SIGTERM. */
const MOST_CPU_AFTER_MS = 1_000;
/** What waits without using the processor is ended here; what is asserted is that nothing had to be. */
const KILL_MS = 300_000;

// oxlint-disable-next-line no-explicit-any -- files are changed at depth, and what is wrong with them is the point
type Document = { [key: string]: any };
type Case = {
  readonly name: string;
  readonly prepare: (world: World) => void;
  readonly args: readonly string[];
  readonly code: number;
  readonly says: RegExp;
  /** What it sees of the environment besides. */
  readonly env?: NodeJS.ProcessEnv;
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
      const settings = join(world.env.HOME!, ".config/lockstep");
      mkdirSync(settings, { recursive: true });
      fifo(join(settings, "config.json"));
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
    says: /is nested deeper than 200/,
  },
  {
    name: "a deep agent.json",
    prepare: (world) => {
      plain(world);
      world.write(AGENT, deep(500_000));
    },
    args: ["check", "a"],
    code: 2,
    says: /is nested deeper than 200/,
  },
  {
    name: "a deep value in the registry",
    prepare: (world) => {
      plain(world);
      world.write(REGISTRY, `{"steps":${deep(100_000)}}`);
    },
    args: ["check", "a"],
    code: 2,
    says: /is nested deeper than 200/,
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
    says: /aliases expand to too many values/,
  },
  {
    name: "deep YAML",
    prepare: stages(`x: ${deep(20_000)}`),
    args: ["check", "a"],
    code: 2,
    says: /is nested too deeply/,
  },
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

/** An agent with so many steps besides its own. */
const steps = (count: number, transitions: (place: number) => object) => (world: World) =>
  writeAgent(world, "a", {
    registry: (registry) => {
      const own = registry.steps as Document;
      const more = many(count, (at): [string, object] => [
        `continuation.s${at}`,
        {
          ...own["continuation.note"],
          stepId: `continuation.s${at}`,
          c3: `s${at}`,
          transitions: transitions(at),
        },
      ]);
      registry.steps = { ...own, ...Object.fromEntries(more) };
      (registry.steps as Document)["initial.note"].transitions.next = { target: "continuation.s0" };
    },
  });
const chain = (count: number) =>
  steps(count, (at) => ({
    next: { target: `continuation.s${(at + 1) % count}` },
    repeat: { target: `continuation.s${at}` },
    handoff: { target: "closure.note" },
  }));
const dense = (count: number) =>
  steps(count, (at) => ({
    next: {
      condition: "draft.text",
      targets: {
        ...Object.fromEntries(many(count, (to) => [`v${to}`, `continuation.s${to}`])),
        default: "closure.note",
      },
    },
    repeat: { target: `continuation.s${at}` },
    handoff: { target: "closure.note" },
  }));

/** A machine whose stages all lead to all others. */
const denseStages = (count: number) => (world: World) => {
  const cases = {
    ...Object.fromEntries(many(count, (to) => [`v${to}`, `s${to}`])),
    default: "end",
  };
  const completionSchema = { type: "object", required: ["to"], properties: { to: { type: "string" } } };
  const fields = { completionSchema, next: { switch: "parsed.to", cases } };
  const written = machineFiles({ stages: Object.fromEntries(many(count, (at) => [`s${at}`, fields])) });
  for (const [path, text] of Object.entries(written)) world.write(path, text);
};

const withPrompt = (text: string) => (world: World) => {
  plain(world);
  world.write("script.json", GOOD);
  world.write(PROMPT, text);
};
const withScript = (text: () => string) => (world: World) => {
  plain(world);
  world.write("script.json", text());
};
const withBody = (body: string) => (world: World) => {
  const written = machineFiles({ stages: { s: { next: "end", body } } });
  for (const [path, text] of Object.entries(written)) world.write(path, text);
};
const manyAgents = (world: World) => {
  for (let at = 0; at < 5_000; at++) {
    mkdirSync(join(world.root, `.agent/a${at}`), { recursive: true });
    writeFileSync(join(world.root, `.agent/a${at}/agent.json`), '{"version":"1.0","name":"x"}');
  }
};

const SIZES: readonly Case[] = [
  {
    name: "20,000 steps",
    prepare: chain(20_000),
    args: ["check", "a"],
    code: 2,
    says: /bytes; the limit is 8388608/,
  },
  ...(
    [
      ["check", 2, /There is no prompt/],
      ["graph", 2, /too large for a drawing/],
      ["explain", 0, /closure\.note/],
    ] as const
  ).flatMap(([command, code, says]): readonly Case[] => [
    {
      name: `5,000 steps for ${command}`,
      prepare: chain(5_000),
      args: [command, "a"],
      code,
      says,
    },
    {
      name: `300 steps that all lead to all others for ${command}`,
      prepare: dense(300),
      args: [command, "a"],
      code,
      says,
    },
  ]),
  {
    name: "300 stages that all lead to all others",
    prepare: denseStages(300),
    args: ["check", "m"],
    code: 2,
    says: /longer than 262144/,
  },
  {
    name: "50 stages that all lead to all others for explain",
    prepare: denseStages(50),
    args: ["explain", "m"],
    code: 0,
    says: /s49/,
  },
  {
    name: "a prompt of 30 MB",
    prepare: withPrompt("{uv-topic} {{".repeat(2_300_000)),
    args: RUN,
    code: 2,
    says: /bytes; the limit is 8388608/,
  },
  {
    name: "a prompt of 8 MB",
    prepare: withPrompt("{uv-topic} {{".repeat(640_000)),
    args: RUN,
    code: 0,
    says: /success/,
  },
  {
    name: "a hundred prompts of 6 MB",
    prepare: (world) => {
      chain(100)(world);
      for (let at = 0; at < 100; at++)
        world.write(
          `.agent/a/prompts/steps/continuation/s${at}/f_default.md`,
          "{uv-topic} {{".repeat(500_000),
        );
    },
    args: ["check", "a"],
    code: 2,
    says: /more than 16777216 characters together/,
  },
  {
    name: "a script of 38 MB",
    prepare: withScript(() => JSON.stringify({ replies: many(300_000, () => replies.initial()) })),
    args: RUN,
    code: 2,
    says: /bytes; the limit is 33554432/,
  },
  {
    name: "a script of 30 MB that ends in the middle",
    prepare: withScript(() =>
      JSON.stringify({ replies: many(230_000, () => replies.initial("repeat")) }).slice(0, -2),
    ),
    args: RUN,
    code: 2,
    says: /script\.json/,
  },
  {
    name: "a script of 15 MB",
    prepare: withScript(() => JSON.stringify({ replies: many(100_000, () => replies.initial("repeat")) })),
    args: RUN,
    code: 4,
    says: /AGENT_MAX_ITERATIONS|maxIterations|iterations/,
  },
  {
    name: "one answer of 15 MB",
    prepare: withScript(() => script({ step: "initial.note", text: "x".repeat(15_000_000) })),
    args: RUN,
    code: 1,
    says: /initial\.note/,
  },
  {
    name: "templates that nest",
    prepare: withBody(`${"{{#each ctx.a}}".repeat(20_000)}x${"{{/each}}".repeat(20_000)}`),
    args: ["check", "m"],
    code: 0,
    says: /m/,
  },
  {
    name: "templates that open and never close",
    prepare: withBody(`{{ctx.a${".b".repeat(100_000)}}}${"{{{{".repeat(50_000)}${"${ctx.a".repeat(20_000)}`),
    args: ["check", "m"],
    code: 0,
    says: /m/,
  },
  { name: "5,000 agents to list", prepare: manyAgents, args: ["list"], code: 0, says: /a4999/ },
  { name: "5,000 agents to check", prepare: manyAgents, args: ["check"], code: 2, says: /a4999/ },
  {
    name: "a bundle with 100,000 entries",
    prepare: bundle((whole) => {
      whole.entries = many(100_000, (at) => ({ seq: at + 1, at, event: { type: "run.started" } }));
    }),
    args: ["import", "bundle.json"],
    code: 2,
    says: /bundle\.json/,
  },
  {
    name: "a check that prints 1 GB",
    prepare: (world) => {
      writeCheckedAgent(world, "a", "yes | head -c 1000000000; exit 1", 1);
      world.write("script.json", GOOD);
    },
    args: RUN,
    code: 6,
    says: /proof|closure\.note/,
    env: { LOCKSTEP_TRUST: "all" },
  },
];

/** A megabyte of what parsers count, fold or repair. */
const MEGABYTES: readonly Case[] = ["{", "[", '"', "\\", " ", '{"a":', "<", "}", "```json\n{"].map((bit) => ({
  name: `an answer of 1 MB of ${JSON.stringify(bit)}`,
  prepare: saying(bit.repeat(1_000_000 / bit.length)),
  args: RUN,
  code: 1,
  says: /initial\.note/,
}));

const CASES = [...FILES, ...TEXTS, ...PATTERNS, ...ANSWERS, ...MEGABYTES, ...BUNDLES, ...SIZES];

type Ended = {
  readonly code: number | null;
  readonly signal: string | null;
  readonly output: string;
  readonly tookMs: number;
  /** Used after SIGTERM; null: it had ended before. */
  readonly cpuAfterMs: number | null;
};

/** `termAfter`: SIGTERM is sent after this many milliseconds, if it is still there. */
async function end(
  world: World,
  { args, env }: Pick<Case, "args" | "env">,
  termAfter?: number,
): Promise<Ended> {
  const from = performance.now();
  const line = `ulimit -S -t ${MOST_CPU_SECONDS}; exec "$@"`;
  const child = spawn("/bin/sh", ["-c", line, "sh", process.execPath, MAIN, ...args], {
    cwd: world.root,
    env: { ...world.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      if (output.length < MOST_KEPT) output += text;
      else
        output = output.slice(0, MOST_KEPT / 2) + (output.slice(MOST_KEPT / 2) + text).slice(-MOST_KEPT / 2);
    });
  const limit = setTimeout(() => child.kill("SIGKILL"), KILL_MS);
  let cpuBefore: number | null = null;
  let cpuLast: number | null = null;
  let look: NodeJS.Timeout | undefined;
  const term = setTimeout(() => {
    cpuBefore = cpuMs(child.pid!);
    if (cpuBefore === null) return;
    cpuLast = cpuBefore;
    look = setInterval(() => (cpuLast = cpuMs(child.pid!) ?? cpuLast), 10);
    child.kill("SIGTERM");
  }, termAfter ?? KILL_MS);
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve) =>
    child.on("close", (...how) => resolve(how)),
  );
  for (const timer of [limit, term, look]) clearTimeout(timer);
  const cpuAfterMs = cpuBefore === null || cpuLast === null ? null : cpuLast - cpuBefore;
  return { code, signal, output, tookMs: performance.now() - from, cpuAfterMs };
}

const MOST_KEPT = 4_000_000;

/** User and system time of a process; null when it is gone. */
function cpuMs(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (fields[0] === "Z" || fields[0] === "X") return null;
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return null;
  }
}

test("there are enough of them, and no two are the same", () => {
  assert.ok(CASES.length >= 80, String(CASES.length));
  assert.equal(new Set(CASES.map(({ name }) => name)).size, CASES.length);
});

test(
  "hostile inputs end with a failure that has a name, and SIGTERM ends each",
  { concurrency: 2 },
  async (t) => {
    const toStop = someOf(CASES, 3);
    let stopped = 0;
    await Promise.all(
      CASES.map((one) =>
        t.test(one.name, async () => {
          const tookMs = await ends(one);
          if (toStop.includes(one)) stopped += (await isStopped(one, tookMs / 3)) ? 1 : 0;
        }),
      ),
    );
    assert.ok(stopped >= toStop.length / 4, `only ${stopped} of ${toStop.length} were there to be stopped`);
  },
);

/** It ends by itself as it should; how long that takes. */
async function ends(one: Case): Promise<number> {
  using world = createWorld();
  one.prepare(world);
  const ended = await end(world, one);
  const told = `${ended.code} ${ended.signal} ${ended.output.slice(0, 1500)}`;
  assert.equal(ended.signal, null, `it did not end by itself: ${told}`);
  assert.doesNotMatch(ended.output, /bug in Lockstep|out of memory|Maximum call stack/, told);
  assert.equal(ended.code, one.code, told);
  assert.match(ended.output, one.says, told);
  return ended.tookMs;
}

/** Whether SIGTERM stops it; false: it had ended sooner. */
async function isStopped(one: Case, afterMs: number): Promise<boolean> {
  using world = createWorld();
  one.prepare(world);
  const stopped = await end(world, one, afterMs);
  const how = `${stopped.code} ${stopped.signal} ${stopped.output.slice(0, 1500)}`;
  if (stopped.cpuAfterMs === null) return false;
  assert.ok(stopped.cpuAfterMs < MOST_CPU_AFTER_MS, `${stopped.cpuAfterMs} ms after SIGTERM: ${how}`);
  // It may have been about to end by itself.
  const isAsSaid = stopped.signal === "SIGTERM" || stopped.code === 143 || stopped.code === one.code;
  assert.ok(isAsSaid, how);
  return stopped.code !== one.code;
}

test("the same project without the attack works", async () => {
  using world = createWorld();
  plain(world);
  world.write("script.json", GOOD);
  const ended = await end(world, { args: RUN });
  assert.equal(ended.code, 0, ended.output);
  for (const args of [["check", "a"], ["list"], ["replay", "@last"], ["why", "@last"]])
    assert.equal((await end(world, { args })).code, 0, args.join(" "));
});

test("a record with 200 MB in one row", async () => {
  using world = createWorld();
  plain(world);
  world.write("script.json", GOOD);
  assert.equal((await end(world, { args: RUN })).code, 0);
  const file = join(world.root, ".lockstep/runs.db");
  const database = new DatabaseSync(file);
  database.exec("UPDATE event SET body = hex(zeroblob(100000000)) WHERE seq = 2");
  database.close();
  for (const args of [["show", "@last"], ["why", "@last"], ["replay", "@last"], ["runs"]]) {
    const ended = await end(world, { args });
    assert.equal(ended.signal, null, `${args.join(" ")}: ${ended.output.slice(0, 500)}`);
    assert.doesNotMatch(ended.output, /bug in Lockstep|out of memory|Maximum call stack/);
  }
});

test(
  "a file that may not be read says so",
  { skip: process.getuid?.() === 0 ? "root may read everything" : false },
  async () => {
    using world = createWorld();
    plain(world);
    chmodSync(join(world.root, AGENT), 0);
    assert.match((await end(world, { args: ["check", "a"] })).output, /EACCES/);
  },
);
