/**
 * Generated turn sequences of a stage (100,000 in CI): mixed batches, payloads that do not fit, prose, unknown tools, calls
 * with the same id, oversized answers, faults. Whatever the model sends, Act ends in one of its two ways.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { stateAfter } from "../../src/engine/decide/decide.ts";
import { prepareSchemas } from "../../src/engine/schema/schema.ts";
import { EMPTY_STATE, type State } from "../../src/engine/decide/state.ts";
import type { Call, Event, Reply } from "../../src/flow/event.ts";
import { sketchMachine } from "../../src/testing/flows.ts";
import { ready } from "../ready.ts";
import { roundsOf } from "../rounds.ts";

const SEQUENCES = roundsOf(100_000);
const CAP = 4;
const ATTEMPTS = 2;
const schema = { type: "object", required: ["n"], properties: { n: { type: "number" } } };
const flow = sketchMachine({ only: { schema, turns: CAP, attempts: ATTEMPTS, tools: ["Read"] } });

test(`${SEQUENCES} turn sequences: nothing is thrown, no cap is passed, nothing of a refused batch is run`, async () => {
  await prepareSchemas([schema]);
  const next = generator(20_261_115);
  const ends = { ok: 0, cap: 0, other: 0 };
  for (let round = 0; round < SEQUENCES; round++) {
    let state = stateAfter(ready(flow), EMPTY_STATE, started);
    const used = { turns: 0, perTry: [0] };
    for (let turns = 0; state.verdict === null; turns++) {
      assert.ok(turns <= 100, "a stage that does not end");
      const [command] = state.pending;
      assert.ok(command !== undefined);
      if (command.type === "ask") state = answer(state, command, pick(next), used);
      else if (command.type === "call") {
        assert.ok(
          command.calls.every(({ name }) => name !== "done"),
          "a completion was run as a tool",
        );
        state = stateAfter(ready(flow), state, called(command));
      } else if (command.type === "wait") state = stateAfter(ready(flow), state, waited(command));
      else if (command.type !== "end") assert.fail(`unforeseen: ${command.type}`);
    }
    assert.ok(
      used.perTry.every((turns) => turns <= CAP) && used.perTry.length <= ATTEMPTS,
      JSON.stringify(used),
    );
    const { outcome, code } = state.verdict;
    if (outcome === "completed") ends.ok += 1;
    else if (code === "AGENT_TURN_LIMIT") ends.cap += 1;
    else ends.other += 1;
  }
  assert.ok(ends.ok > SEQUENCES / 10 && ends.cap > SEQUENCES / 100, JSON.stringify(ends));
});

const started: Event = {
  type: "run.started",
  run: "run",
  agent: "a",
  flow: "f",
  args: {},
  input: "",
  cwd: "/",
  backend: { id: "scripted", options: null },
};

/** One response; a clean completion must be the only thing that ends Act well, and it must do so at once. */
function answer(
  state: State,
  { step, visit, turn, say }: Extract<State["pending"][number], { type: "ask" }>,
  reply: Reply,
  used: { turns: number; perTry: number[] },
): State {
  if (say.some(({ kind }) => kind === "retry") && used.perTry.at(-1)! > 0) used.perTry.push(0);
  const after = stateAfter(ready(flow), state, { type: "step.answered", step, visit, turn, reply });
  if (reply.kind === "said") used.perTry[used.perTry.length - 1]! += 1;
  const clean =
    reply.kind === "said" &&
    reply.calls.length === 1 &&
    reply.calls[0]!.name === "done" &&
    typeof reply.calls[0]!.input.n === "number";
  assert.equal(after.verdict?.outcome === "completed", clean);
  return after;
}

function called({ step, visit, turn, calls }: Extract<State["pending"][number], { type: "call" }>): Event {
  const results = calls.map(({ id, name }) => ({ id, name, ok: name === "Read", content: "" }));
  return { type: "step.called", step, visit, turn, results };
}

function waited({ step, visit, ms }: Extract<State["pending"][number], { type: "wait" }>): Event {
  return { type: "step.waited", step, visit, ms };
}

const usage = { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: null };
const said = (calls: readonly Call[], text = ""): Reply => ({ kind: "said", text, calls, usage });

function pick(next: () => number): Reply {
  const id = () => (next() < 0.1 ? "same" : String(next()));
  const good = (): Call => ({ id: id(), name: "done", input: { n: 1 } });
  const bad = (): Call => ({ id: id(), name: "done", input: next() < 0.5 ? {} : { n: "x" } });
  const other = (): Call => ({ id: id(), name: next() < 0.5 ? "Read" : "Nope", input: {} });
  const roll = next();
  if (roll < 0.12) return said([good()], next() < 0.5 ? "prose beside it" : "");
  if (roll < 0.3) return said([bad()]);
  if (roll < 0.4) return said([good(), other()]);
  if (roll < 0.5) return said([good(), good()]);
  if (roll < 0.55) return said([other(), bad(), other()]);
  if (roll < 0.75) return said(Array.from({ length: 1 + Math.floor(next() * 3) }, other));
  if (roll < 0.98) return said([], "prose");
  if (roll < 0.99) return { kind: "fault", fault: { kind: "network", message: "gone" } };
  return said([], "");
}

function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d_2b_79_f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
