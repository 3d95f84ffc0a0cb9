/** What is due outside is a command like others: it comes before whatever a run does next, and the run waits for it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { stateAfter } from "../../src/engine/decide/decide.ts";
import { attended } from "../../src/engine/decide/due.ts";
import { fold } from "../../src/engine/drive/drive.ts";
import { prepare } from "../../src/engine/schema/prepared.ts";
import type { ActPort, Backend } from "../../src/engine/ports.ts";
import { EMPTY_STATE, type State } from "../../src/engine/decide/state.ts";
import type { EffectOf } from "../../src/flow/due.ts";
import type { Entry } from "../../src/flow/event.ts";
import type { Flow } from "../../src/flow/flow.ts";
import type { Settings } from "../../src/flow/settings.ts";
import { addEntry, createReport } from "../../src/story/report.ts";
import { sketchFlow } from "../../src/testing/flows.ts";
import { play, type Played } from "./played.ts";

const plain = sketchFlow({
  "initial.a": { edges: { handoff: "closure.a" } },
  "closure.a": { edges: { closing: null, repeat: "closure.a" } },
});
const withSettings = (flow: Flow, more: Partial<Settings>): Flow => ({
  ...flow,
  settings: { ...flow.settings, ...more },
});
const github = { ...plain.settings.github, enabled: true, asked: true } as const;
const actions = { ...plain.settings.actions, enabled: true, types: ["note"], outputFormat: "json" };
const labelling = withSettings(plain, { github });
const asking = withSettings(plain, { actions });
const args = { issue: 7 };
const say = (action: string) => ({ output: { next_action: { action } } });
const noting = (action: string) => ({
  text: `\`\`\`json\n${JSON.stringify({ next_action: { action } })}\n\`\`\`\n\n\`\`\`note\n{"content": "x"}\n\`\`\``,
});
const model = [say("handoff"), say("closing")];

/** Names of what is due, as `blocks initial.a@1`. */
const namesIn = (due: Parameters<ActPort>[0]["due"]) =>
  due.map((one) =>
    one.kind === "blocks" ? `blocks ${one.step}@${one.visit}${one.last ? " last" : ""}` : one.kind,
  );
const listening = (heard: string[], isDone: (names: readonly string[]) => boolean = () => true): ActPort => {
  return async ({ due }) => {
    heard.push(namesIn(due).join(", "));
    return isDone(namesIn(due));
  };
};
const closing =
  (done: boolean): ActPort =>
  async ({ due }, record) => {
    const names = namesIn(due);
    if (!names.includes("close")) return true;
    await record({ type: "effect.intended", key: "issue.end.close", kind: "close", detail: "", of: "close" });
    const type = done ? "effect.applied" : "effect.failed";
    await record({ type, key: "issue.end.close", detail: "", of: "close" });
    return done;
  };
const types = ({ entries }: Played) => entries.map(({ event }) => event.type);
const pendingIn = ({ pending }: State) => pending.map(({ type }) => type);
const BEFORE = ["run.started", "step.answered", "step.answered", "effect.intended"];

test("effects come before the end, and settle no visit again", async () => {
  const played = await play({ flow: labelling, args, model, ports: { act: closing(true) } });
  assert.deepEqual(types(played), [...BEFORE, "effect.applied", "run.ended"]);
  assert.equal(played.state.verdict?.outcome, "completed");
  const report = createReport();
  for (const entry of played.entries) addEntry(report, entry);
  assert.equal(report.path.length, 2);
  assert.equal(report.effects.get("issue.end.close")?.state, "applied");
});

test("an effect that fails leaves it and the end pending, and a resumed run begins with it", async () => {
  const played = await play({ flow: labelling, args, model, ports: { act: closing(false) } });
  assert.deepEqual(types(played), [...BEFORE, "effect.failed"]);
  assert.deepEqual(pendingIn(played.state), ["act", "end"]);
  const past = played.entries;
  const again = await play({ flow: labelling, args, model: [], past, ports: { act: closing(true) } });
  assert.deepEqual(types(again).slice(5), ["run.resumed", "effect.intended", "effect.applied", "run.ended"]);
  assert.deepEqual(again.asked, []);
});

test("what fails before a step leaves it pending, and it is not asked before", async () => {
  const ports = { act: listening([], () => false) };
  const played = await play({ flow: labelling, args, model, ports });
  assert.deepEqual([played.state.verdict, played.asked], [null, []]);
  assert.deepEqual(pendingIn(played.state), ["act", "ask"]);
  const heard: string[] = [];
  const past = played.entries;
  const again = await play({ flow: labelling, args, model, past, ports: { act: listening(heard) } });
  assert.equal(again.state.verdict?.outcome, "completed");
  assert.deepEqual(heard, ["begin", "close"]);
});

test("a run that can go on is not blocked, and labels its issue again when it goes on", async () => {
  const heard: string[] = [];
  const ports = { act: listening(heard) };
  const fault = { error: { kind: "auth", message: "no key" } } as const;
  const halted = await play({ flow: labelling, args, model: [say("handoff"), fault], ports });
  assert.equal(halted.state.verdict?.outcome, "failed");
  assert.deepEqual(heard, ["begin"]);
  await play({
    flow: labelling,
    args,
    model: [...model.slice(0, 1), fault, ...model.slice(1)],
    past: halted.entries,
    ports,
  });
  assert.deepEqual(heard, ["begin", "begin", "close"]);
});

const failing = [say("handoff"), { text: "hm" }, { text: "hm" }];
const DUE = [
  { name: "nothing is due in a plain run", flow: plain, model, due: [] },
  { name: "nor in one that fails", flow: plain, model: failing, due: [] },
  { name: "labels as it begins, and closing", flow: labelling, model, due: ["begin", "close"] },
  { name: "labels when it has failed", flow: labelling, model: failing, due: ["begin", "blocked"] },
  { name: "nothing without an issue", flow: labelling, args: {}, model, due: [] },
  { name: "nothing without a number", flow: labelling, args: { issue: "x" }, model, due: [] },
  {
    name: "nothing where it is switched off",
    flow: withSettings(plain, { github: { ...github, enabled: false } }),
    model,
    due: [],
  },
  {
    name: "nothing where the agent file says nothing",
    flow: withSettings(plain, { github: { ...plain.settings.github, enabled: true } }),
    model,
    due: [],
  },
  {
    name: "an answer with a block",
    flow: asking,
    model: [noting("handoff"), say("closing")],
    due: ["blocks initial.a@1"],
  },
  { name: "an answer that fails the run", flow: asking, model: [noting("abort")], due: [] },
  {
    name: "an answer that closes",
    flow: asking,
    model: [say("handoff"), noting("closing")],
    due: ["blocks closure.a@1, blocks closure.a@1 last"],
  },
  {
    name: "a block comes before the issue, and closes after it",
    flow: withSettings(asking, { github }),
    model: [say("handoff"), noting("closing")],
    due: ["begin", "blocks closure.a@1, close, blocks closure.a@1 last"],
  },
  {
    name: "a block of a flow that carries out none",
    flow: plain,
    model: [noting("handoff"), say("closing")],
    due: [],
  },
];

for (const { name, flow, model: replies, due, args: given = args } of DUE)
  test(`due: ${name}`, async () => {
    const heard: string[] = [];
    const played = await play({ flow, args: given, model: replies, ports: { act: listening(heard) } });
    assert.deepEqual(heard, due);
    // Nothing but what was done is recorded.
    const bare = await play({ flow, args: given, model: replies });
    assert.deepEqual(played.entries, bare.entries);
    if (flow === plain) assert.equal("acts" in played.state, false);
    await sameHoweverAttended(flow, played.entries);
  });

/** That something was attended to is not recorded: whatever follows says so. */
async function sameHoweverAttended(plain: Flow, entries: readonly Entry[]): Promise<void> {
  const flow = await prepare(plain);
  let state = EMPTY_STATE;
  for (const { event } of entries) {
    const next = stateAfter(flow, state, event);
    assert.deepEqual(stateAfter(flow, attended(state), event), next);
    state = next;
  }
}

test("what failed on GitHub is due again after the next step, and nothing else is", async () => {
  const visit = { step: "initial.a", visit: 1 };
  const cases: readonly { kind: string; how: "applied" | "failed"; of?: EffectOf; due: readonly string[] }[] =
    [
      { kind: "action:github-comment", how: "failed", of: visit, due: ["blocks initial.a@1"] },
      // As it was recorded before effects had an owner.
      { kind: "action:github-comment", how: "failed", due: ["blocks initial.a@1"] },
      { kind: "action:github-comment", how: "applied", of: visit, due: [] },
      { kind: "action:file", how: "failed", of: visit, due: [] },
      { kind: "action:issue-action", how: "failed", of: { ...visit, visit: 2 }, due: [] },
      { kind: "action:issue-action", how: "failed", of: "close", due: [] },
    ];
  for (const { kind, how, of, due } of cases) {
    let isFirst = true;
    const heard: string[] = [];
    const act: ActPort = async (command, record) => {
      heard.push(...namesIn(command.due));
      if (!isFirst) return true;
      isFirst = false;
      const about = { key: "action/initial.a@1/0", detail: "", ...(of !== undefined && { of }) };
      await record({ type: "effect.intended", kind, ...about });
      await record({ type: `effect.${how}`, ...about });
      return true;
    };
    const replies = [noting("handoff"), say("repeat"), say("closing")];
    const { entries } = await play({ flow: asking, model: replies, ports: { act } });
    const [first, ...later] = heard;
    assert.equal(first, "blocks initial.a@1");
    assert.deepEqual([...new Set(later)], due, `${kind} ${how}`);
    await sameHoweverAttended(asking, entries);
  }
});

test("what a sibling asks for is due until all of them have come to rest", async () => {
  const forking = sketchFlow(
    {
      start: { edges: { go: { kind: "fork", steps: ["a", "b"], join: "end" } } },
      a: { edges: { ok: null } },
      b: { edges: { ok: null } },
      end: { edges: { ok: null } },
    },
    { settings: asking.settings },
  );
  const heard: string[] = [];
  const replies = [noting("go"), noting("ok"), noting("ok"), say("ok")];
  const { entries } = await play({ flow: forking, model: replies, ports: { act: listening(heard) } });
  assert.deepEqual(heard, ["blocks start@1", "blocks a@1, blocks b@1"]);
  const prepared = await prepare(forking);
  const due = entries.map((_, index) => {
    const [first] = fold(prepared, entries.slice(0, index + 1)).pending;
    return first?.type === "act" ? namesIn(first.due).join(", ") : "";
  });
  assert.deepEqual(due, ["", "blocks start@1", "blocks a@1", "blocks a@1, blocks b@1", "", ""]);
  await sameHoweverAttended(forking, entries);
});

test("what the shared part of a fork asks for was done by the other run", async () => {
  const replies = [noting("handoff"), noting("repeat"), say("closing")];
  const { entries } = await play({ flow: asking, model: replies });
  const prepared = await prepare(asking);
  for (const [seq, due] of [
    [1, ["blocks initial.a@1", "blocks closure.a@1"]],
    [2, ["blocks closure.a@1"]],
    [3, []],
  ] as const) {
    const [begin, ...others] = entries;
    const { event } = begin!;
    assert.ok(event.type === "run.started");
    const forkedFrom = { run: "other", seq };
    const forked = [{ ...begin!, event: { ...event, forkedFrom } }, ...others];
    const found = forked.flatMap((_, index) => {
      const [first] = fold(prepared, forked.slice(0, index + 1)).pending;
      return first?.type === "act" ? namesIn(first.due) : [];
    });
    assert.deepEqual(found, due, String(seq));
  }
});

test("a run whose time is up ends although something is due, and goes on when it is resumed", async () => {
  const { text } = noting("handoff");
  const usage = { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: 0 };
  let turns = 0;
  const hanging: Backend = {
    spec: { id: "hanging", options: null },
    turn: async ({ signal }) => {
      turns += 1;
      if (turns === 1) return { kind: "reply", text, calls: [], ...say("handoff"), usage };
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      return { kind: "fault", fault: { kind: "other", message: "stopped" } };
    },
  };
  const act: ActPort = async ({ due }, record) => {
    const about = { key: "action/initial.a@1/0", detail: "", of: { step: "initial.a", visit: 1 } };
    if (due.length === 0 || turns > 1) return true;
    await record({ type: "effect.intended", kind: "action:github-comment", ...about });
    await record({ type: "effect.failed", ...about });
    return true;
  };
  const flow = { ...asking, limits: { ...asking.limits, wallMs: 5000 } };
  const stopped = await play({ flow, model: hanging, ports: { act } });
  assert.deepEqual(types(stopped).slice(-2), ["run.limited", "run.ended"]);
  const free = { ...flow, limits: asking.limits };
  const heard: string[] = [];
  const past = stopped.entries;
  const again = await play({ flow: free, model: [say("closing")], past, ports: { act: listening(heard) } });
  assert.equal(again.state.verdict?.outcome, "completed");
  assert.ok(heard.includes("blocks initial.a@1"));
});
