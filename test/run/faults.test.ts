/**
 * What goes wrong with a model, at the first step, in the middle and at the end of a flow: every fault ends in a state
 * that is documented, is tried again so often and no more, and never makes a committed step be asked twice.
 *
 * The model is found as a user's is: by a name in their config.json, again when the run is resumed.
 */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { createMemoryJournal, resume, run, type Result } from "../../src/run/index.ts";
import { fakeClock } from "../../src/testing/scenario.ts";
import { KEY, modelServer, type Deed, type Seen, type Wire } from "../backends/model-server.ts";
import { agentFiles, homeBeside, projectWith } from "./project.ts";

const STEPS = ["initial.t", "continuation.t", "closure.t"] as const;
/** The step at fault has a model of its own, so that only that one is impatient. */
const filesOf = (at: number) => {
  const more = STEPS.map((_, place) => (place === at ? { more: { model: "shaky" } } : {}));
  return agentFiles("t", {
    "initial.t": {
      kind: "work",
      intents: ["next"],
      transitions: { next: { target: "continuation.t" } },
      ...more[0],
    },
    "continuation.t": {
      kind: "work",
      intents: ["handoff"],
      transitions: { handoff: { target: "closure.t" } },
      ...more[1],
    },
    "closure.t": {
      kind: "closure",
      intents: ["closing"],
      transitions: { closing: { target: null } },
      ...more[2],
    },
  });
};
const ACTIONS = { "initial.t": "next", "continuation.t": "handoff", "closure.t": "closing" } as const;
const answer = (step: (typeof STEPS)[number]): Deed => ({
  output: { stepId: step, next_action: { action: ACTIONS[step] } },
});

/** `passes`: waited out, four times. `halts`: not tried again. `answered`: the model is told, and may do better. */
type Row = {
  readonly name: string;
  readonly deed: Deed;
  readonly wire?: Wire;
  readonly then: "passes" | "halts" | "answered";
  /** When it does not get better. */
  readonly code: string;
  readonly waits?: readonly number[];
};

const passes = (name: string, deed: Deed, code = "AGENT_QUERY_ERROR", more: Partial<Row> = {}): Row => ({
  name,
  deed,
  then: "passes",
  code,
  ...more,
});
const halts = (name: string, deed: Deed, code = "AGENT_QUERY_ERROR", more: Partial<Row> = {}): Row => ({
  name,
  deed,
  then: "halts",
  code,
  ...more,
});
const answered = (name: string, deed: Deed, code = "FAILED_STEP_ROUTING"): Row => ({
  name,
  deed,
  then: "answered",
  code,
});

const status = (code: number, more: Partial<Deed> = {}): Deed => ({ status: code, ...more });
const event = (data: object): Deed => ({
  text: "half",
  events: ([first = "", ...rest]) => [
    first,
    rest[0]!,
    rest[1]!,
    rest[2]!,
    `event: error\ndata: ${JSON.stringify(data)}\n\n`,
  ],
});
const early = (data: object): Deed => ({ events: () => [`event: error\ndata: ${JSON.stringify(data)}\n\n`] });
const named = (type: string) => ({ type: "error", error: { type, message: "it broke" } });
const LIMIT = "AGENT_RATE_LIMIT";
const CLOSED = "BACKEND_UNAVAILABLE";

const ROWS: readonly Row[] = [
  // What a service says with a status.
  halts("307 to elsewhere", status(307, { headers: { location: "http://127.0.0.1:9/" } })),
  halts("400", status(400)),
  halts("401", status(401), CLOSED),
  halts("402", status(402), CLOSED),
  halts("403", status(403), CLOSED),
  halts("404", status(404)),
  passes("408", status(408)),
  halts("409", status(409)),
  halts("413", status(413)),
  halts("422", status(422)),
  passes("429", status(429), LIMIT, { waits: [5000, 10_000, 20_000, 40_000] }),
  passes("429 with seconds", status(429, { headers: { "retry-after": "7" } }), LIMIT, {
    waits: [7000, 7000, 7000, 7000],
  }),
  passes("429 with all the patience there is", status(429, { headers: { "retry-after": "300" } }), LIMIT, {
    waits: [300_000, 300_000, 300_000, 300_000],
  }),
  halts("429 for an hour", status(429, { headers: { "retry-after": "3600" } }), LIMIT),
  halts("529 for a day", status(529, { headers: { "retry-after": "86400" } }), LIMIT),
  passes("429 with milliseconds", status(429, { headers: { "retry-after-ms": "31" } }), LIMIT, {
    waits: [31, 31, 31, 31],
  }),
  passes(
    "429 with a date that is over",
    status(429, { headers: { "retry-after": "Wed, 21 Oct 2015 07:28:00 GMT" } }),
    LIMIT,
    {
      waits: [0, 0, 0, 0],
    },
  ),
  passes("429 with nonsense", status(429, { headers: { "retry-after": "soon" } }), LIMIT, {
    waits: [5000, 10_000, 20_000, 40_000],
  }),
  halts(
    "429 without credit",
    status(429, {
      body: '{"error":{"message":"pay first","type":"insufficient_quota","code":"insufficient_quota"}}',
    }),
    CLOSED,
    { wire: "openai" },
  ),
  passes("500", status(500)),
  passes("500 without a body", status(500, { body: "" })),
  passes(
    "502 with a page",
    status(502, { body: "<html>Bad gateway</html>", headers: { "content-type": "text/html" } }),
  ),
  passes("503", status(503), LIMIT),
  passes("503 over chat", status(503), LIMIT, { wire: "openai-compatible" }),
  passes("504", status(504)),
  passes("520", status(520)),
  passes("529", status(529), LIMIT),
  halts("418", status(418)),
  // The connection.
  passes("torn down before a word", { tear: 0 }),
  passes("torn down after the first event", { tear: 1, text: "x" }),
  passes("torn down amid the answer", { tear: 4, text: "half of it" }),
  passes("torn down amid the answer, over Responses", { tear: 3, text: "half of it" }, undefined, {
    wire: "openai",
  }),
  passes("torn down amid the answer, over chat", { tear: 2, text: "half of it" }, undefined, {
    wire: "openai-chat",
  }),
  passes("torn down amid the answer, of Gemini", { tear: 1, text: "half of it" }, undefined, {
    wire: "google",
  }),
  passes("ends before it began", { end: 0, text: "x" }),
  passes("ends amid the answer", { end: 4, text: "half of it" }),
  passes("ends amid the answer, over Responses", { end: 3, text: "half of it" }, undefined, {
    wire: "openai",
  }),
  passes("ends amid the answer, over chat", { end: 2, text: "half of it" }, undefined, {
    wire: "openai-compatible",
  }),
  passes("ends amid a tool call", { end: 4, calls: [{ name: "Read", input: { file_path: "a" } }] }),
  passes("silent from the start", { hang: 0 }),
  passes("silent amid the answer", { hang: 4, text: "half of it" }),
  passes("silent amid the answer, over chat", { hang: 2, text: "half of it" }, undefined, {
    wire: "openai-compatible",
  }),
  // What comes with status 200 and is no answer.
  halts("a page in the place of a stream", { events: () => ["<html>Welcome</html>"] }),
  halts("a document in the place of a stream", { events: () => ['{"ok": true}'] }),
  halts("an event that is no JSON", { error: { kind: "other" } }, undefined, { wire: "openai" }),
  halts("an event that is no JSON amid the answer", {
    text: "x",
    events: (all) => [...all.slice(0, 3), "data: {oops\n\n"],
  }),
  passes("overloaded, told in the stream", early(named("overloaded_error")), LIMIT),
  passes("overloaded, told amid the answer", event(named("overloaded_error")), LIMIT),
  passes("rate limit, told amid the answer", event(named("rate_limit_error")), LIMIT),
  passes("an error of theirs, told amid the answer", event(named("api_error"))),
  halts("a refused key, told amid the answer", event(named("authentication_error")), CLOSED),
  halts("a bad request, told amid the answer", event(named("invalid_request_error"))),
  // What the model itself does.
  halts("cut off at its length", { stop: "length", text: '{"stepId": "x", "next_action": {' }),
  halts("cut off at its length, over Responses", { stop: "length", text: "{" }, undefined, {
    wire: "openai",
  }),
  halts("refuses", { stop: "refusal", text: "I will not." }),
  halts("refuses, over chat", { stop: "refusal", text: "" }, undefined, { wire: "openai-chat" }),
  answered("says nothing", { text: "" }),
  answered("answers in prose", { text: "All done." }),
  answered("answers with a list", { text: "[1, 2]" }),
  answered("answers with half an object", { text: '{"stepId": "x", "next_action": {"action"' }),
  answered("answers with something else", { output: { colour: "blue" } }),
  answered("answers for another step", { output: { next_action: { action: "fly" } } }),
];

async function world(row: Row, at: number, isWell: (asked: number) => boolean) {
  const asked: string[] = [];
  const place = (step: string, { body }: Seen) => JSON.stringify(body).lastIndexOf(`Do ${step}.`);
  const server = await modelServer(row.wire ?? "anthropic", (seen) => {
    const step = STEPS.toSorted((a, b) => place(b, seen) - place(a, seen))[0]!;
    asked.push(step);
    const times = asked.filter((other) => other === step).length;
    return step === STEPS[at] && !isWell(times) ? row.deed : answer(step);
  });
  const { provider, model, baseUrl } = server.target;
  const cwd = projectWith(filesOf(at));
  const home = homeBeside();
  const wait = (timeoutMs: number) => {
    const entry = { provider, model, baseUrl, apiKeyEnv: "SOME_KEY", timeoutMs: PATIENT_MS };
    const shaky = { ...entry, timeoutMs };
    mkdirSync(`${home}/config/lockstep`, { recursive: true });
    writeFileSync(`${home}/config/lockstep/config.json`, JSON.stringify({ models: { opus: entry, shaky } }));
  };
  wait(PATIENT_MS);
  const waits: number[] = [];
  const journal = createMemoryJournal();
  const options = {
    cwd,
    journal,
    clock: fakeClock(waits),
    env: { XDG_CONFIG_HOME: `${home}/config`, SOME_KEY: KEY },
  };
  const times = (step: string) => asked.filter((other) => other === step).length;
  return { server, options, waits, journal, times, wait };
}

const PATIENT_MS = 30_000;

/** Asked once each, but for the step at fault. */
function othersOnce(at: number, times: (step: string) => number, upTo: number = STEPS.length): void {
  for (const [place, step] of STEPS.slice(0, upTo).entries())
    if (place !== at) assert.equal(times(step), 1, step);
}

for (const row of ROWS) {
  const isSilent = row.deed.hang !== undefined;
  describe(`a model fault: ${row.name}`, { concurrency: isSilent }, () => {
    for (const [at, step] of STEPS.entries()) {
      test(`for ever at ${step}`, async () => {
        let isHealed = false;
        const { server, options, waits, journal, times, wait } = await world(row, at, () => isHealed);
        await using _ = server;
        if (isSilent) wait(500);
        const result: Result = await run({ agent: "t", ...options });
        assert.deepEqual([result.success, result.code], [false, row.code], result.reason);
        assert.equal(result.exitCode, row.code === LIMIT || row.code === CLOSED ? 3 : 1);
        othersOnce(at, times, at);
        assert.equal(times(step), { passes: 5, halts: 1, answered: at === 0 ? 4 : 2 }[row.then]);
        assert.equal(waits.length, row.then === "passes" ? 4 : 0);
        if (row.waits !== undefined) assert.deepEqual(waits, row.waits);
        const entries = await journal.read(result.run!);
        assert.ok(!JSON.stringify(entries).includes(KEY) && !JSON.stringify(result).includes(KEY));
        assert.ok(!JSON.stringify(entries[0]).includes("127.0.0.1"));
        assert.equal(result.resumable, row.then !== "answered");
        if (row.then === "answered") return;

        isHealed = true;
        wait(PATIENT_MS);
        const before = times(step);
        const resumed = await resume({ run: result.run!, ...options });
        assert.equal(resumed.success, true, resumed.reason);
        assert.equal(times(step), before + 1);
        othersOnce(at, times);
      });

      if (row.then === "halts") continue;
      test(`once at ${step}`, async () => {
        const { server, options, waits, times, wait } = await world(row, at, (asked) => asked > 1);
        await using _ = server;
        if (isSilent) wait(3000);
        const result = await run({ agent: "t", ...options });
        assert.equal(result.success, true, result.reason);
        assert.equal(times(step), 2);
        assert.equal(waits.length, row.then === "passes" ? 1 : 0);
        othersOnce(at, times);
      });
    }
  });
}
