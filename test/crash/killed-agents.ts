/** The agents that processes are killed over: a long way with repairs, tools and waits; stages side by side; large answers. */
import { join } from "node:path";
import {
  createScripted,
  type Backend,
  type Flow,
  type Journal,
  type Loaded,
  type ScriptReply,
} from "../../src/run/index.ts";
import { actionSchema, sketchFlow, sketchMachine } from "../../src/testing/flows.ts";

export type Killed = { readonly loaded: Loaded; readonly script: readonly ScriptReply[] };

const say = (action: string, more: object = {}): ScriptReply => ({
  output: { next_action: { action }, ...more },
});
const open = (labels: readonly string[]) => ({ ...actionSchema(labels), additionalProperties: true });

const LONG = sketchFlow(
  {
    "initial.a": { edges: { next: "continuation.a" }, handoff: ["found"], schema: open(["next"]) },
    "continuation.a": {
      edges: { next: "continuation.b", handoff: "closure.a" },
      handoff: ["round"],
      schema: open(["next", "handoff"]),
    },
    "continuation.b": { edges: { next: "continuation.a" }, schema: open(["next"]) },
    "closure.a": { edges: { closing: null } },
  },
  { agent: "long", limits: { visits: 200 } },
);
const round = (nth: number): readonly ScriptReply[] => [
  { calls: [{ name: "TodoWrite", input: { todos: [] } }] },
  say("next", { round: nth }),
  say("next", { filler: "x".repeat(500) }),
];
const STUMBLE: readonly ScriptReply[] = [
  { text: "no JSON here" },
  { error: { kind: "network", retryAfterMs: 1 } },
  say("handoff", { round: "last" }),
];
const LONG_SCRIPT: readonly ScriptReply[] = [
  say("next", { found: "the cause" }),
  ...[1, 2, 3, 4, 5, 6].flatMap(round),
  ...STUMBLE,
  say("closing"),
];

const STAGES = sketchMachine(
  {
    split: { next: { kind: "fork", steps: ["a", "b", "c"], join: "meet" } },
    a: { tools: ["TodoWrite"], turns: 2 },
    b: { schema: { type: "object", required: ["n"] }, turns: 3 },
    c: {},
    meet: { prompt: "{{ctx.upstream[0].stageId}} {{ctx.upstream[1].parsed.n}}" },
  },
  { agent: "stages" },
);
const STAGES_SCRIPT: readonly ScriptReply[] = [
  { step: "split", output: {} },
  { step: "a", calls: [{ name: "TodoWrite", input: { todos: [] } }] },
  { step: "a", text: "hm" },
  { step: "a", output: {}, saw: ["Complete the stage now."] },
  { step: "b", output: {} },
  { step: "b", output: { n: 7 } },
  { step: "c", output: {} },
  { step: "meet", saw: ["a 7"], output: {} },
];

const LARGE = sketchFlow(
  {
    "initial.a": { edges: { next: "closure.a" }, schema: open(["next"]) },
    "closure.a": { edges: { closing: null } },
  },
  { agent: "large" },
);
const LARGE_SCRIPT: readonly ScriptReply[] = [say("next", { filler: "y".repeat(300_000) }), say("closing")];

const SHORT = sketchFlow({ "closure.a": { edges: { closing: null } } }, { agent: "short" });

export function agents(folder: string): { readonly [agent: string]: Killed } {
  const project = { root: folder, agentsDir: join(folder, ".agent"), stateDir: join(folder, ".lockstep") };
  const of = (flow: Flow, script: readonly ScriptReply[]): Killed => ({
    loaded: { agent: flow.agent, project, flow: startingNothing(flow), problems: [] },
    script,
  });
  return {
    long: of(LONG, LONG_SCRIPT),
    stages: of(STAGES, STAGES_SCRIPT),
    large: of(LARGE, LARGE_SCRIPT),
    short: of(SHORT, [say("closing")]),
  };
}

/** Thousands of processes drive these: none of them should open a sandbox for commands that nobody gives. */
function startingNothing(flow: Flow): Flow {
  const steps = Object.entries(flow.steps).map(
    ([id, step]) => [id, { ...step, tools: { ...step.tools, allow: ["TodoWrite"] } }] as const,
  );
  return { ...flow, steps: Object.fromEntries(steps) };
}

/** The model of an agent as far as a run has come with it. */
export async function modelOf(journal: Journal, run: string, agent: string): Promise<Backend> {
  const marks = (await journal.read(run)).flatMap(({ event }) =>
    event.type === "step.answered" && "mark" in event.reply ? [event.reply.mark ?? null] : [],
  );
  return createScripted(agents("/")[agent]!.script, marks);
}
