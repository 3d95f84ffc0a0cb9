/**
 * What goes wrong with Claude Code, at the first step, in the middle and at the end of a flow: every fault ends in a state
 * that is documented, is tried again so often and no more, and never makes a committed step be asked twice.
 *
 * The program is the real one where its model is at fault, and something else where it is at fault itself. Only the step
 * at fault asks it; what the others say is scripted.
 */
import assert from "node:assert/strict";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { createClaudeAgent } from "../../src/backends/claude/claude-agent.ts";
import { createAgentProcesses } from "../../src/effects/process/agent-processes.ts";
import { createMemoryJournal, resume, run, type Backend } from "../../src/run/index.ts";
import { fakeClock } from "../../src/testing/scenario.ts";
import { modelServer, type Deed } from "../backends/model-server.ts";
import { needs } from "../needs.ts";
import { homeBeside, agentFiles, projectWith } from "./project.ts";

const packages = process.env.LOCKSTEP_PACKAGES ?? "";
const processesIn = (folder: string) => createAgentProcesses("lockstep-claude-", folder);
const SDK = "node_modules/@anthropic-ai/claude-agent-sdk";
const { skip } = needs(existsSync(join(packages, SDK, "package.json")), "the Claude Agent SDK not installed");

const base = mkdtempSync(join(tmpdir(), "lockstep-claude-faults-"));
after(() => rmSync(base, { recursive: true, force: true }));

const STEPS = ["initial.t", "continuation.t", "closure.t"] as const;
const ACTIONS = { "initial.t": "next", "continuation.t": "handoff", "closure.t": "closing" } as const;
const FILES = agentFiles("t", {
  "initial.t": { kind: "work", intents: ["next"], transitions: { next: { target: "continuation.t" } } },
  "continuation.t": { kind: "work", intents: ["handoff"], transitions: { handoff: { target: "closure.t" } } },
  "closure.t": { kind: "closure", intents: ["closing"], transitions: { closing: { target: null } } },
});

/** `passes`: waited out, four times. `halts`: not tried again. `answered`: the model is told, and may do better. */
type Row = {
  readonly name: string;
  /** What the model does. */
  readonly deed?: Deed;
  /** In the place of the program: the text of a shell script; null: there is none. `$REAL` is the real one. */
  readonly program?: string | null;
  readonly then: "passes" | "halts" | "answered";
  readonly code: string;
  /** The first wait. */
  readonly wait?: number;
  /** It is met again and again, to see how often it is tried; else once. */
  readonly stays?: boolean;
};

const LIMIT = "AGENT_RATE_LIMIT";
const CLOSED = "BACKEND_UNAVAILABLE";
const QUERY = "AGENT_QUERY_ERROR";
const error = (type: string) => JSON.stringify({ type: "error", error: { type, message: "scripted" } });
const status = (code: number, type: string, headers = {}): Deed => ({
  status: code,
  body: error(type),
  headers,
});
const amid = (type: string): Deed => ({
  text: "half of it",
  events: (all) => [...all.slice(0, 4), `event: error\ndata: ${error(type)}\n\n`],
});

const ROWS: readonly Row[] = [
  { name: "400", deed: status(400, "invalid_request_error"), then: "halts", code: QUERY },
  { name: "401", deed: status(401, "authentication_error"), then: "halts", code: CLOSED },
  { name: "403", deed: status(403, "permission_error"), then: "halts", code: CLOSED },
  { name: "404", deed: status(404, "not_found_error"), then: "halts", code: QUERY },
  {
    name: "429",
    deed: status(429, "rate_limit_error"),
    then: "passes",
    code: LIMIT,
    wait: 5000,
    stays: true,
  },
  {
    name: "429 with a wish to wait",
    deed: status(429, "rate_limit_error", { "retry-after": "7" }),
    then: "passes",
    code: LIMIT,
    wait: 7000,
  },
  {
    // Claude Code gives up by itself, and does not tell how long it should have waited.
    name: "429 for an hour",
    deed: status(429, "rate_limit_error", { "retry-after": "3600" }),
    then: "halts",
    code: LIMIT,
  },
  { name: "500", deed: status(500, "api_error"), then: "passes", code: LIMIT },
  { name: "529", deed: status(529, "overloaded_error"), then: "passes", code: LIMIT },
  { name: "torn down before a word", deed: { tear: 0 }, then: "passes", code: QUERY, stays: true },
  { name: "torn down amid the answer", deed: { tear: 4, text: "half of it" }, then: "passes", code: QUERY },
  { name: "ends amid the answer", deed: { end: 4, text: "half of it" }, then: "passes", code: QUERY },
  { name: "overloaded, told amid the answer", deed: amid("overloaded_error"), then: "passes", code: LIMIT },
  { name: "silent from the start", deed: { hang: 0 }, then: "passes", code: QUERY },
  { name: "silent amid the answer", deed: { hang: 4, text: "half of it" }, then: "passes", code: QUERY },
  { name: "refuses", deed: { stop: "refusal", text: "I will not." }, then: "halts", code: QUERY },
  {
    name: "cut off at its length",
    deed: { stop: "length", text: '{"stepId": "x"' },
    then: "halts",
    code: QUERY,
  },
  { name: "answers in prose", deed: { text: "All done." }, then: "answered", code: "FAILED_STEP_ROUTING" },
  {
    name: "answers with something else",
    deed: { output: { colour: "blue" } },
    then: "answered",
    code: "FAILED_STEP_ROUTING",
  },
  { name: "the program is missing", program: null, then: "halts", code: QUERY },
  { name: "the program ends at once", program: "exit 7", then: "halts", code: QUERY },
  {
    name: "the program talks nonsense",
    program: "echo hello; echo '{'; echo '[1]'; exit 0",
    then: "halts",
    code: QUERY,
  },
  { name: "the program is killed at once", program: "kill -9 $$", then: "halts", code: QUERY },
  {
    name: "the program is killed amid a query",
    program: 'echo $$ > "$PIDS"; exec "$REAL" "$@"',
    then: "halts",
    code: QUERY,
  },
  { name: "the program says nothing", program: "exec sleep 600", then: "passes", code: QUERY },
];

/** A folder of packages with this in the place of the program. */
function packagesWith(program: string | null, name: string): string {
  const folder = mkdtempSync(join(base, "packages-"));
  const own = join(folder, "node_modules/@anthropic-ai");
  mkdirSync(own, { recursive: true });
  cpSync(join(packages, SDK), join(own, "claude-agent-sdk"), { recursive: true });
  symlinkSync(join(packages, "node_modules/zod"), join(folder, "node_modules/zod"));
  const platform = `${process.platform}-${process.arch}`;
  const real = join(packages, `${SDK}-${platform}`);
  if (program === null) return folder;
  const there = join(own, `claude-agent-sdk-${platform}`);
  mkdirSync(there);
  cpSync(join(real, "package.json"), join(there, "package.json"));
  const text = `#!/bin/sh\nREAL=${real}/claude PIDS=${join(base, name)}\n${program}\n`;
  writeFileSync(join(there, "claude"), text);
  chmodSync(join(there, "claude"), 0o755);
  return folder;
}

async function world(row: Row, at: number, isIll: (query: number) => boolean) {
  const key = `${at}-${ROWS.indexOf(row)}-pid`;
  const step = STEPS[at]!;
  let queries = 0;
  const answer = { output: { stepId: step, next_action: { action: ACTIONS[step] } } };
  const server = await modelServer("anthropic", () => {
    if (!isIll(queries)) return answer;
    if (row.program?.includes("PIDS")) process.kill(Number(readFileSync(join(base, key), "utf8")), "SIGKILL");
    return row.deed ?? answer;
  });
  const cwd = projectWith(FILES);
  const env = {
    PATH: process.env.PATH,
    HOME: homeBeside(),
    ANTHROPIC_BASE_URL: server.url,
    ANTHROPIC_API_KEY: "k",
  };
  const bad = row.program === undefined ? packages : packagesWith(row.program, key);
  const silenceMs = row.name.includes("silent") || row.name.includes("says nothing") ? 2500 : 60_000;
  const ill = await createClaudeAgent({
    env: { ...env, LOCKSTEP_PACKAGES: bad },
    silenceMs,
    processes: processesIn(cwd),
  });
  const well = await createClaudeAgent({
    env: { ...env, LOCKSTEP_PACKAGES: packages },
    processes: processesIn(cwd),
  });
  const asked: string[] = [];
  const backend: Backend = {
    spec: { id: "claude-agent", options: null },
    run: async (request) => {
      const { step: asks } = request.asker;
      asked.push(asks);
      if (asks === step) {
        queries += 1;
        // A program takes its time to start: that it goes on well is seen once for each fault.
        if (isIll(queries)) return await ill.run!(request);
        if (at === 1) return await well.run!(request);
      }
      const usage = { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: null };
      const output = { stepId: asks, next_action: { action: ACTIONS[asks as typeof step] } };
      return { kind: "reply", text: "", calls: [], output, usage };
    },
  };
  const waits: number[] = [];
  const options = { cwd, journal: createMemoryJournal(), clock: fakeClock(waits), env, backend };
  return {
    options,
    waits,
    times: (one: string) => asked.filter((other) => other === one).length,
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await ill.close!();
      await well.close!();
    },
  };
}

describe("Claude Code at fault", { skip, concurrency: 3 }, () => {
  for (const row of ROWS) {
    for (const [at, step] of STEPS.entries()) {
      test(`${row.name}, at ${step}`, { timeout: 90_000 }, async () => {
        const stays = row.then !== "passes" || (row.stays === true && at === 0);
        let isHealed = false;
        await using w = await world(row, at, (query) => !isHealed && (stays || query === 1));
        const result = await run({ agent: "t", ...w.options });
        for (const before of STEPS.slice(0, at)) assert.equal(w.times(before), 1, before);
        if (!stays) {
          assert.equal(result.success, true, result.reason);
          assert.equal(w.times(step), 2);
          assert.deepEqual(w.waits, [row.wait ?? 5000]);
          return;
        }
        assert.deepEqual([result.success, result.code], [false, row.code], result.reason);
        assert.equal(result.exitCode, row.code === LIMIT || row.code === CLOSED ? 3 : 1);
        assert.equal(w.waits.length, row.then === "passes" ? 4 : 0);
        if (row.then !== "answered") assert.equal(w.times(step), row.then === "passes" ? 5 : 1);
        assert.ok(w.times(step) <= 5);
        assert.equal(result.resumable, row.then !== "answered");
        if (row.then === "answered") return;
        isHealed = true;
        const asked = w.times(step);
        const resumed = await resume({ run: result.run!, ...w.options });
        assert.equal(resumed.success, true, resumed.reason);
        assert.equal(w.times(step), asked + 1);
        for (const other of STEPS) if (other !== step) assert.equal(w.times(other), 1, other);
      });
    }
  }
});
