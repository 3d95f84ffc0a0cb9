/** Hostile bundles, and what is far too large, and how the command has to end on each. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { machineFiles } from "../run/stage-project.ts";
import { replies, script, writeAgent, writeCheckedAgent, type World } from "./world.ts";
import { GOOD, PROMPT, RUN, deep, many, plain, saying, type Case, type Document } from "./hostile-project.ts";

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

export const BUNDLES: readonly Case[] = [
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

export const SIZES: readonly Case[] = [
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
export const MEGABYTES: readonly Case[] = ["{", "[", '"', "\\", " ", '{"a":', "<", "}", "```json\n{"].map(
  (bit) => ({
    name: `an answer of 1 MB of ${JSON.stringify(bit)}`,
    prepare: saying(bit.repeat(1_000_000 / bit.length)),
    args: RUN,
    code: 1,
    says: /initial\.note/,
  }),
);
