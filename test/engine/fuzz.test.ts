/**
 * Generated answers (200,000 in CI) against the gate and the router. A small router of its own, written from the document and
 * not from the product, says what each answer may lead to.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { stateAfter } from "../../src/engine/decide/decide.ts";
import { bound } from "../../src/engine/decide/answer.ts";
import { EMPTY_STATE, type State } from "../../src/engine/decide/state.ts";
import type { Event, Reply } from "../../src/flow/event.ts";
import type { Flow } from "../../src/flow/flow.ts";
import { isObject, type Json } from "../../src/flow/json.ts";
import { sketchFlow } from "../../src/testing/flows.ts";
import { ready } from "../ready.ts";
import { roundsOf } from "../rounds.ts";

const ANSWERS = roundsOf(200_000);
const STEPS = ["initial.a", "continuation.a", "closure.a"] as const;
const ALIAS = {
  continue: "next",
  retry: "repeat",
  wait: "repeat",
  done: "closing",
  finished: "closing",
  pass: "next",
  fail: "repeat",
};
const ALLOWED = {
  "initial.a": ["next", "repeat", "jump"],
  "continuation.a": ["next", "repeat", "jump", "handoff"],
  "closure.a": ["closing", "repeat"],
} as const;
const BRANCHES = new Map([
  ["ready", "closure.a"],
  ["1", "initial.a"],
]);

const schema = (labels: readonly string[]) => ({
  type: "object",
  required: ["next_action"],
  properties: {
    stepId: { type: "string" },
    status: {},
    next_action: {
      type: "object",
      required: ["action"],
      properties: { action: { type: "string", enum: [...labels] }, target: { type: "string" } },
    },
  },
});
const goto = (step: string) => ({ kind: "goto" as const, step });
const jump = { kind: "jump" as const, field: ["next_action", "target"], among: [...STEPS] };
const flow: Flow = sketchFlow(
  {
    "initial.a": {
      edges: { next: "continuation.a", repeat: "initial.a", jump },
      schema: schema(ALLOWED["initial.a"]),
      alias: ALIAS,
    },
    "continuation.a": {
      edges: {
        next: {
          kind: "switch",
          on: ["status"],
          cases: { ready: goto("closure.a"), 1: goto("initial.a") },
          otherwise: goto("continuation.a"),
        },
        repeat: "continuation.a",
        jump,
        handoff: "closure.a",
      },
      handoff: ["status"],
      schema: schema(ALLOWED["continuation.a"]),
      alias: ALIAS,
    },
    "closure.a": {
      edges: { closing: null, repeat: "closure.a" },
      schema: schema(ALLOWED["closure.a"]),
      alias: ALIAS,
    },
  },
  { limits: { visits: 1_000_000 } },
);

test(`${ANSWERS} answers lead nowhere that is not declared`, () => {
  const random = generator(20_261_115);
  const before = Object.getOwnPropertyNames(Object.prototype).join();
  const seen = new Map<string, number>();
  let state = start();
  for (let i = 0; i < ANSWERS; i++) {
    const step = state.lanes[0]!.step as (typeof STEPS)[number];
    const answer = anyAnswer(random, step);
    const bounded = bound(answer);
    const reply: Reply =
      bounded.kind === "oversized"
        ? { kind: "oversized", why: bounded.why }
        : {
            kind: "said",
            text: "",
            calls: [],
            usage: NONE,
            ...(isObject(bounded.value) ? { output: bounded.value } : {}),
          };
    const event: Event = {
      type: "step.answered",
      step,
      visit: state.lanes[0]!.visit,
      turn: state.lanes[0]!.turn,
      reply,
    };
    const expected = oracle(step, reply, state.lanes[0]!.repairs > 0);
    const next = stateAfter(ready(flow), state, event);
    const got =
      next.verdict !== null
        ? `end ${next.verdict.code ?? "completed"}`
        : next.lanes[0]!.repairs > 0
          ? "sent back"
          : `to ${next.lanes[0]!.step}`;
    assert.equal(got, expected, `${step} answered ${preview(answer)}`);
    JSON.stringify(next);
    seen.set(got, (seen.get(got) ?? 0) + 1);
    state = next.verdict === null ? next : start();
  }
  assert.equal(Object.getOwnPropertyNames(Object.prototype).join(), before);
  assert.equal(({} as { polluted?: unknown }).polluted, undefined);
  // A generator that never gets through the gate would prove nothing.
  for (const outcome of [
    "to closure.a",
    "to initial.a",
    "to continuation.a",
    "end completed",
    "end AGENT_ABORTED",
    "end FAILED_STEP_ROUTING",
    "end GATE_INTERPRETATION_ERROR",
    "sent back",
  ]) {
    assert.ok((seen.get(outcome) ?? 0) > ANSWERS / 1000, `${outcome}: ${seen.get(outcome) ?? 0}`);
  }
});

/** What the document says: alias, then schema, then the allowed words, then the declared edge. */
function oracle(step: (typeof STEPS)[number], reply: Reply, repaired: boolean): string {
  if (reply.kind === "oversized") return "end GATE_INTERPRETATION_ERROR";
  const output = reply.kind === "said" ? reply.output : undefined;
  const unusable = repaired ? "end FAILED_STEP_ROUTING" : "sent back";
  if (output === undefined) return unusable;
  const mine = (value: unknown, key: string): unknown =>
    typeof value === "object" && value !== null && Object.prototype.hasOwnProperty.call(value, key)
      ? (value as Record<string, unknown>)[key]
      : undefined;
  const action = mine(mine(output, "next_action"), "action");
  if (typeof action !== "string") return unusable;
  const exact: readonly string[] = [...ALLOWED[step], "abort"];
  const word = exact.includes(action)
    ? action
    : (new Map(Object.entries(ALIAS)).get(action.toLowerCase()) ?? action.toLowerCase());
  if (word === "abort") return "end AGENT_ABORTED";
  if (!(ALLOWED[step] as readonly string[]).includes(word)) return unusable;
  const target = mine(mine(output, "next_action"), "target");
  const shape =
    isObject(mine(output, "next_action")) &&
    (mine(output, "stepId") === undefined || typeof mine(output, "stepId") === "string") &&
    (target === undefined || typeof target === "string");
  if (!shape) return unusable;
  if (word === "closing") return "end completed";
  if (word === "handoff") return "to closure.a";
  if (word === "repeat") return `to ${step}`;
  if (word === "jump") {
    return typeof target === "string" && (STEPS as readonly string[]).includes(target)
      ? `to ${target}`
      : "end FAILED_STEP_ROUTING";
  }
  if (step === "initial.a") return "to continuation.a";
  const status = mine(output, "status");
  const scalar = typeof status === "string" || typeof status === "number" || typeof status === "boolean";
  return `to ${(scalar ? BRANCHES.get(String(status)) : undefined) ?? "continuation.a"}`;
}

type Random = () => number;
const pick = <T>(random: Random, list: readonly T[]): T => list[Math.floor(random() * list.length)]!;

const HOSTILE_KEYS = [
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "valueOf",
  "then",
  "",
  "０",
];
const WORDS = [
  "next",
  "repeat",
  "jump",
  "handoff",
  "closing",
  "escalate",
  "abort",
  "NEXT",
  "Done",
  "wait",
  "pass",
  "fail",
  "continue",
  "finished",
  "retry",
  "complete",
  "nехt",
  "clos\u0131ng",
  " next",
  "next\n",
  "toString",
  "__proto__",
];
const TARGETS = [
  ...STEPS,
  "constructor",
  "__proto__",
  "toString",
  "initial.A",
  "",
  "closure.a ",
  "../closure.a",
];

function anyAnswer(random: Random, step: string): unknown {
  const roll = random();
  if (roll < 0.45) return valid(random, step);
  if (roll < 0.8) return mutate(random, valid(random, step));
  return garbage(random, 0);
}

function valid(random: Random, step: string): { [key: string]: Json } {
  const words = random() < 0.9 ? [...ALLOWED[step as keyof typeof ALLOWED], ...Object.keys(ALIAS)] : WORDS;
  return {
    stepId: random() < 0.5 ? step : pick(random, STEPS),
    status: pick<Json>(random, ["ready", "blocked", 1, true, null, "constructor", {}]),
    next_action: { action: pick(random, words), target: pick(random, TARGETS) },
  };
}

function mutate(random: Random, answer: { [key: string]: Json }): unknown {
  const action = answer.next_action as { [key: string]: Json };
  switch (Math.floor(random() * 9)) {
    case 0:
      return { ...answer, next_action: { ...action, action: [action.action!] } };
    case 1:
      return { ...answer, next_action: { ...action, action: { toString: 1, valueOf: 1 } } };
    case 2:
      return { ...answer, next_action: { ...action, target: garbage(random, 2) } };
    case 3:
      return { ...answer, next_action: pick<unknown>(random, [null, [], "next", 7, [["next"]]]) };
    case 4:
      return { ...answer, stepId: garbage(random, 2) };
    case 5:
      return JSON.parse(
        `{"__proto__":{"polluted":true,"next_action":{"action":"closing"}},"next_action":${JSON.stringify(action)}}`,
      );
    case 6:
      return deep(random() < 0.5 ? 30 : 5000, answer);
    case 7:
      return { ...answer, status: Array.from({ length: 3 }, () => garbage(random, 2)) };
    default:
      return { ...answer, next_action: { action: pick(random, WORDS) } };
  }
}

function garbage(random: Random, depth: number): unknown {
  const roll = random();
  if (depth > 4 || roll < 0.5) {
    return pick<unknown>(random, [
      null,
      true,
      0,
      -1,
      1e308,
      NaN,
      Infinity,
      "",
      "next",
      "\u0000",
      "💥",
      undefined,
      10n,
      () => 1,
      Symbol.iterator,
      new Date(0),
    ]);
  }
  if (roll < 0.65) return Array.from({ length: Math.floor(random() * 4) }, () => garbage(random, depth + 1));
  const made: { [key: string]: unknown } = Object.create(null) as { [key: string]: unknown };
  for (let i = Math.floor(random() * 4); i >= 0; i--) {
    made[
      random() < 0.5
        ? pick(random, HOSTILE_KEYS)
        : pick(random, ["next_action", "action", "stepId", "status"])
    ] = garbage(random, depth + 1);
  }
  return made;
}

function deep(levels: number, answer: object): unknown {
  let value: unknown = "bottom";
  for (let i = 0; i < levels; i++) value = [value];
  return { ...answer, status: value };
}

function start(): State {
  const event: Event = {
    type: "run.started",
    run: "r",
    agent: "a",
    flow: "d",
    args: {},
    input: "",
    cwd: "/",
    backend: { id: "x", options: null },
  };
  const entered = stateAfter(ready(flow), EMPTY_STATE, event);
  // Past the first iteration, where a miss is forgiven.
  return { ...entered, iterations: 2 };
}

function preview(value: unknown): string {
  try {
    return (
      JSON.stringify(value, (_key, member: unknown) =>
        typeof member === "bigint" ? String(member) : member,
      )?.slice(0, 200) ?? "nothing"
    );
  } catch {
    return "something unprintable";
  }
}

const NONE = { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: null };

/** mulberry32: small, seeded, the same everywhere. */
function generator(seed: number): Random {
  let a = seed;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
