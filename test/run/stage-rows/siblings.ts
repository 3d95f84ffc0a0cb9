/** Rows about stages beside each other, and about what surrounds a stage. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { OFFERED } from "../../../src/boundaries/tools/toolbox.ts";
import type { Backend, ScriptReply } from "../../../src/run/index.ts";
import { recorded, type Row } from "../stage-project.ts";
import { GROUP, asks, calls, done, first, of, prose, write } from "./row.ts";

export const RELATIONS: readonly Row[] = [
  {
    name: "relation tools: allowedTools narrows what the agent has",
    stages: { a: { allowedTools: ["Read"] } },
    agent: { runner: { boundaries: { allowedTools: ["Read", "Write"] } } },
    model: [calls(write("one.txt")), done({}, { saw: ["ApprovalDenied"] })],
    path: "a:ok",
    also: ({ asked, folder }) => {
      assert.deepEqual(
        asked[0]!.tools.map(({ name }) => name),
        ["Read"],
      );
      assert.ok(!existsSync(join(folder, "one.txt")));
    },
  },
  {
    name: "relation tools: it cannot widen it",
    stages: { a: { allowedTools: ["Read", "Write"] } },
    agent: { runner: { boundaries: { allowedTools: ["Read"] } } },
    model: [],
    ends: "FLOW_INVALID",
    exitCode: 2,
    also: ({ result }) => assert.equal(result.problems[0]?.code, "StageToolUnknown"),
  },
  {
    name: "relation tools: commands that the agent limits are limited in the stage",
    stages: { a: { allowedTools: ["Bash"] } },
    agent: { runner: { boundaries: { allowedTools: ["Bash(echo *)"] } } },
    model: [
      calls({ name: "Bash", input: { command: "touch one.txt" } }),
      done({}, { saw: ["is not covered by"] }),
    ],
    path: "a:ok",
    also: ({ folder }) => assert.ok(!existsSync(join(folder, "one.txt"))),
  },
  {
    name: "relation tools: a tool of a server that is not declared is caught before anything is asked",
    stages: { a: { next: "b" }, b: { allowedTools: ["mcp__server__tool"] } },
    model: [],
    ends: "FLOW_INVALID",
    exitCode: 2,
    asks: 0,
    also: ({ result }) => assert.equal(result.problems[0]?.code, "StageToolUnknown"),
  },
  {
    name: "relation tools: a tool that only coding agents have is caught before anything is asked",
    stages: { a: { next: "b" }, b: { allowedTools: ["WebFetch"] } },
    model: [],
    ends: "FLOW_INVALID",
    exitCode: 2,
    asks: 0,
    also: ({ result }) => {
      assert.equal(result.problems[0]?.code, "StageToolUnknown");
      const listed = /these: (.*?);/.exec(result.problems[0]?.fix ?? "")?.[1];
      assert.deepEqual(listed?.split(", "), OFFERED);
    },
  },
  {
    name: "relation providers: a stage has the model of its agent, whatever it says",
    stages: { a: { model: "other", provider: "other" } },
    agent: { runner: { flow: { defaultModel: "the-model" } } },
    model: [done()],
    also: ({ asked }) => assert.equal(asked[0]!.model, "the-model"),
  },
];

const MEET = { body: "1 {{ctx.upstream[0].parsed.n}} 2 {{ctx.upstream[1].parsed.n}}" };

/** The first stage answers only when the others have: so it is always the last. */
const slow = (stage: string, script: readonly ScriptReply[]): Backend => {
  const replies = new Map<string, ScriptReply[]>();
  for (const reply of script) replies.set(reply.step!, [...(replies.get(reply.step!) ?? []), reply]);
  return {
    spec: { id: "slow", options: null },
    turn: async ({ asker, output }) => {
      if (asker.step === stage) for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
      const reply = replies.get(asker.step)!.shift()!;
      const tool = output!.channel.kind === "tool" ? output!.channel.name : "";
      const completion = { id: asker.key, name: tool, input: (reply.output ?? {}) as { readonly n: string } };
      const usage = { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: null };
      return {
        kind: "reply",
        text: reply.text ?? "",
        calls: reply.output === undefined ? [] : [completion],
        usage,
      };
    },
  };
};

export const SIBLINGS: readonly Row[] = [
  {
    name: "siblings: the join runs when all have succeeded, and sees them in declared order",
    stages: { s: GROUP, a: {}, b: {}, meet: MEET },
    model: [
      of("s"),
      of("a", done({ n: "A" })),
      of("b", done({ n: "B" })),
      of("meet", done({}, { saw: ["1 A 2 B"] })),
    ],
    path: "s:ok a:ok b:ok meet:ok",
  },
  {
    name: "siblings: the order at the join is the declared one when the first is the last to finish",
    stages: { s: GROUP, a: {}, b: {}, meet: MEET },
    model: slow("a", [of("s"), of("a", done({ n: "A" })), of("b", done({ n: "B" })), of("meet")]),
    path: "s:ok a:ok b:ok meet:ok",
    also: (ran) => {
      const settled = ran.entries.flatMap(({ led }) => (led === undefined ? [] : [led.step]));
      assert.deepEqual(settled, ["s", "b", "a", "meet"]);
      assert.equal(first(ran, "meet").system, "1 A 2 B");
    },
  },
  {
    name: "siblings: one fails, the group has failed, the join is neither rendered nor asked",
    stages: { s: GROUP, a: { turnCap: 1 }, b: {}, meet: MEET },
    model: [of("s"), of("a", prose), of("b", prose)],
    ends: "ParallelSiblingFailure",
    exitCode: 1,
    reason: /"a" failed beside b \(stopped\): AGENT_TURN_LIMIT/,
    also: async (ran) => {
      assert.equal(ran.result.finalStepId, "a");
      assert.equal(asks(ran, "meet").length, 0);
      const records = await ran.audit();
      assert.ok(records.every(({ about }) => about.stageId !== "meet"));
      const [failure] = await recorded(ran, "ParallelSiblingFailure");
      assert.deepEqual(failure, {
        failedSiblingId: "a",
        failedSibling: "a",
        compoundTurnId: `${ran.result.run}:s:compound:1`,
        joinReady: false,
        siblings: { a: "failed", b: "stopped" },
        cause: failure?.cause,
      });
    },
  },
  {
    name: "siblings: what a finished sibling left is not undone by the failure of another",
    stages: { s: GROUP, a: { allowedTools: ["Write"] }, b: { turnCap: 1 }, meet: MEET },
    model: slow("b", [of("s"), of("a", done({ n: "A" })), of("b", prose)]),
    ends: "ParallelSiblingFailure",
    exitCode: 1,
    reason: /"b" failed beside a \(done\)/,
    also: ({ result }) => assert.deepEqual(result.handoff.a!.parsed, { n: "A" }),
  },
  {
    name: "siblings: one that cannot begin fails the group",
    stages: { s: GROUP, a: { body: "{{ctx.nothing}}" }, b: {}, meet: {} },
    model: slow("b", [of("s"), of("b", done())]),
    ends: "ParallelSiblingFailure",
    exitCode: 1,
    reason: /StageCtxUnresolved/,
  },
  {
    name: "siblings: a join that is not listed is refused before anything runs",
    stages: {
      s: { next: { execution: "parallel", nextStages: ["a", "b"], join: "meet" } },
      a: {},
      b: {},
      meet: {},
    },
    model: [],
    ends: "FLOW_INVALID",
    exitCode: 2,
    asks: 0,
    also: ({ result }) => assert.equal(result.problems[0]?.code, "StageJoinDangling"),
  },
  {
    name: "siblings: policy independent lets the others end, and the join sees how each did",
    stages: {
      s: { next: { ...GROUP.next, policy: "independent" } },
      a: { turnCap: 1 },
      b: {},
      meet: { body: "{{ctx.upstream[0].verdict}} {{ctx.upstream[1].verdict}}" },
    },
    model: [of("s"), of("a", prose), of("b"), of("meet", done({}, { saw: ["fail ok"] }))],
    path: "s:ok a:cap b:ok meet:ok",
  },
  {
    name: "siblings: independent too when one of them cannot begin",
    stages: {
      s: { next: { ...GROUP.next, policy: "independent" } },
      a: { body: "{{ctx.nothing}}" },
      b: {},
      meet: { body: "{{ctx.upstream[0].verdict}} {{ctx.upstream[0].reason}} {{ctx.upstream[1].verdict}}" },
    },
    model: [of("s"), of("b"), of("meet", done({}, { saw: ["fail StageCtxUnresolved", " ok"] }))],
    path: "s:ok a:fail b:ok meet:ok",
  },
  {
    name: "siblings: independent without a join, and one fails: the run has failed in the end",
    stages: { s: { next: { parallel: ["a", "b"], policy: "independent" } }, a: { turnCap: 1 }, b: {} },
    model: [of("s"), of("a", prose), of("b")],
    ends: "ParallelSiblingFailure",
    exitCode: 1,
    path: "s:ok a:cap b:ok",
    also: ({ result }) => assert.equal(result.finalStepId, "a"),
  },
  {
    name: "siblings: a recover stage is the sibling's own way to an end, and the group has failed all the same",
    stages: {
      s: GROUP,
      a: { turnCap: 1, onFail: "recover" },
      b: {},
      meet: {},
      recover: { body: "{{ctx.upstream[0].stageId}} {{ctx.upstream[0].reason}}" },
    },
    model: slow("b", [of("s"), of("a", prose), of("b"), of("recover")]),
    ends: "ParallelSiblingFailure",
    exitCode: 1,
    also: (ran) => {
      assert.equal(ran.result.finalStepId, "a");
      assert.match(first(ran, "recover").system, /^a retryExhausted/);
      assert.equal(asks(ran, "meet").length, 0);
    },
  },
  {
    name: "siblings: a recover stage that fails too does not hide which sibling it was",
    stages: { s: GROUP, a: { turnCap: 1, onFail: "recover" }, b: {}, meet: {}, recover: { turnCap: 1 } },
    model: slow("b", [of("s"), of("a", prose), of("b"), of("recover", prose)]),
    ends: "ParallelSiblingFailure",
    exitCode: 1,
    reason: /"a" failed beside b.*"recover"/s,
    also: ({ result }) => assert.equal(result.finalStepId, "a"),
  },
  {
    name: "siblings: without a join the run ends with the last of them",
    stages: { s: { next: { parallel: ["a", "b"] } }, a: {}, b: {} },
    model: [of("s"), of("a"), of("b")],
    path: "s:ok a:ok b:ok",
  },
  {
    name: "siblings: what a stage shares before the fork reaches all of them, and what siblings share reaches nobody",
    stages: {
      s: { ...GROUP, share: { units: "parsed.units" } },
      a: { body: "{{ctx.units[0]}}", share: { mine: "parsed.mine" } },
      b: { body: "{{ctx.units[1]}}" },
      meet: { body: "{{ctx.units}}" },
    },
    model: [
      of("s", done({ units: ["north", "south"] })),
      of("a", done({ mine: "x" }, { saw: ["north"], unseen: ["south"] })),
      of("b", done({}, { saw: ["south"], unseen: ["north"] })),
      of("meet", done({}, { saw: ['["north","south"]'] })),
    ],
    path: "s:ok a:ok b:ok meet:ok",
  },
];
