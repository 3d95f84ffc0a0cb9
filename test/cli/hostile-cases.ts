/** Hostile files, texts, patterns and answers, and how the command has to end on each. */
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, symlinkSync, truncateSync } from "node:fs";
import { createServer } from "node:net";
import { basename, dirname, join } from "node:path";
import { after } from "node:test";
import { replies, script, writeAgent, type World } from "./world.ts";
import {
  AGENT,
  GOOD,
  PROMPT,
  RUN,
  deep,
  many,
  plain,
  saying,
  type Case,
  type Document,
} from "./hostile-project.ts";

const REGISTRY = ".agent/a/steps_registry.json";
const SCHEMA = ".agent/a/schemas/note.schema.json";

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

const EVIL = "^(a+)+$";
const LONG = `${"a".repeat(40)}!`;

const itself = (file: string) => symlinkSync(basename(file), file);
const LONG_NAME = "x".repeat(300);

/** Links that lead to themselves, and names that no file can have. */
const UNREACHABLE: readonly Case[] = [
  {
    name: "a link to itself beside the agents",
    prepare: instead(".agent/b", itself),
    args: ["check"],
    code: 0,
    says: /a: no problems/,
  },
  {
    name: "a link to itself as the agents",
    prepare: instead(".agent", itself),
    args: ["check", "a"],
    code: 2,
    says: /AC-SERVICE-003/,
  },
  {
    name: "a link to itself as the state folder",
    prepare: instead(".lockstep", itself),
    args: RUN,
    code: 3,
    says: /STATE_UNSAFE/,
  },
  {
    name: "a link to itself as the record",
    prepare: instead(".lockstep/runs.db", itself),
    args: ["doctor"],
    code: 3,
    says: /fail +journal +.*symbolic link/,
  },
  {
    name: "a link to itself as .git",
    prepare: instead(".git", itself),
    args: RUN,
    code: 0,
    says: /completed/,
  },
  {
    name: "a state folder below a link to itself",
    prepare: instead("loop", itself),
    args: ["doctor", "--state", "loop/state"],
    code: 3,
    says: /fail +state folder/,
  },
  {
    name: "a state folder below a file",
    prepare: plain,
    args: ["doctor", "--state", `${AGENT}/state`],
    code: 3,
    says: /fail +state folder/,
  },
  {
    name: "a file as the state folder",
    prepare: plain,
    args: ["doctor", "--state", AGENT],
    code: 3,
    says: /fail +state folder/,
  },
  {
    name: "a state folder with a name that is too long",
    prepare: plain,
    args: ["runs", "--state", LONG_NAME],
    code: 3,
    says: /state folder .* cannot be used/,
  },
  {
    name: "a new agent with a name that is too long",
    prepare: plain,
    args: ["init", LONG_NAME],
    code: 2,
    says: /the limit is 100/,
  },
];

export const FILES: readonly Case[] = [
  ...UNREACHABLE,
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
  ...["", "--color"].map((flag): Case => ({
    name: `colours in the name of an agent ${flag}`,
    prepare: (world) => world.write(".agent/ev\u001b[31mil/stages/go.md", "x"),
    args: ["list", ...(flag === "" ? [] : [flag])],
    code: 0,
    says: /ev\\x1b\[31mil/,
  })),
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

export const TEXTS: readonly Case[] = [
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

export const PATTERNS: readonly Case[] = [
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

export const ANSWERS: readonly Case[] = [
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
