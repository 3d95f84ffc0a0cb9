/**
 * What Lockstep costs on this machine, as ratios against a hand-written loop, a raw synced append and an empty Node
 * process measured in the same minutes. Everything goes through the public API.
 */
import type { Bench, Row } from "../src/cli/commands/bench.ts";
import { Ajv } from "ajv";
import { spawnSync } from "node:child_process";
import {
  closeSync,
  fdatasyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Flow } from "../src/flow/flow.ts";
import type { JsonObject } from "../src/flow/json.ts";
import {
  createMemoryJournal,
  load,
  openJournal,
  parseScript,
  resume,
  runLoaded,
  type Backend,
  type Journal,
  type Loaded,
} from "../src/run/index.ts";
import { actionSchema, sketchFlow } from "../src/testing/flows.ts";
import { initFiles } from "../src/cli/commands/init-files.ts";

export type { Row };

export const measure: Bench["measure"] = async (part, options) => {
  const folder = mkdtempSync(join(options.folder, ".lockstep-bench-"));
  try {
    switch (part) {
      case "memory":
        return await measureMemory();
      case "durable":
        return await measureDurable(folder);
      case "growth":
        return await measureGrowth(folder);
      case "concurrency":
        return await (await import("./many.ts")).measureConcurrency(folder);
      case "many":
        return await (await import("./many.ts")).measureMany(folder);
      case "agents":
        return await (await import("./many.ts")).measureAgents(folder);
      case "resume":
        return await measureResume(folder);
      case "load":
        return await measureLoad(folder);
      case "cold":
        return await measureCold(folder, options.cli);
      case "stages":
        return await (await import("./stages.ts")).measureStages(folder);
      case "http":
        return await (await import("./http.ts")).measureHttp(folder);
      case "gate":
        return await (await import("./gate.ts")).measureGate();
      case "replay":
        return await (await import("./replay.ts")).measureReplay(folder);
      case "life":
        return await (await import("./life.ts")).measureLife(folder);
      case "batch":
        return await (await import("./batch.ts")).measureBatch(folder);
      case "journal":
        return await (await import("./journal.ts")).measureJournal(folder, options.cli);
      case "studio":
        return await (await import("./studio.ts")).measureStudio(folder, options.cli);
      case "sandbox":
        return await (await import("./sandbox.ts")).measureSandbox(folder);
      case "fleet":
        return await (await import("./fleet.ts")).measureFleet(folder);
      case "proof":
        return await (await import("./proof.ts")).measureProof(folder);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

// The common work: two steps that lead to each other.

const LABELS = ["next"];
const SCHEMA = { ...actionSchema(LABELS), additionalProperties: true };
export const ANSWER: JsonObject = { next_action: { action: "next" } };
export const USAGE = { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: null };

export function cycle(visits: number): Flow {
  return sketchFlow(
    {
      "initial.issue": { edges: { next: "continuation.issue" }, schema: SCHEMA },
      "continuation.issue": { edges: { next: "initial.issue" }, schema: SCHEMA },
    },
    { stop: { kind: "visits", count: visits }, limits: { visits } },
  );
}

export function loaded(flow: Flow, folder: string): Loaded {
  const project = { root: folder, agentsDir: join(folder, ".agent"), stateDir: join(folder, "state") };
  return { agent: flow.agent, project, flow, problems: [] };
}

/** Answers at once, and stamps each moment it is asked: the gap between two stamps is the cost of a step. */
function stampingModel(stamps: number[], output: JsonObject): Backend {
  const spec = { id: "bench", options: null };
  return {
    spec,
    turn: () => {
      stamps.push(performance.now());
      return Promise.resolve({ kind: "reply", text: "", calls: [], output, usage: USAGE });
    },
  };
}

export async function stepGaps(
  steps: number,
  folder: string,
  journal: Journal,
  output = ANSWER,
): Promise<readonly number[]> {
  const stamps: number[] = [];
  const backend = stampingModel(stamps, output);
  const result = await runLoaded(loaded(cycle(steps), folder), { cwd: folder, journal, backend });
  if (!result.success || stamps.length !== steps)
    throw new Error(`The benchmark run went wrong: ${result.reason}`);
  return gaps(stamps);
}

// T1: one step in memory.

async function measureMemory(): Promise<readonly Row[]> {
  const steps = 1000;
  const ratios: number[] = [];
  const ours: number[] = [];
  const hand: number[] = [];
  for (let round = 0; round < 21; round++) {
    const loop = median(await handLoop(steps));
    const step = median(await stepGaps(steps, process.cwd(), createMemoryJournal()));
    ratios.push(step / loop);
    ours.push(step);
    hand.push(loop);
  }
  const detail = `p50 ${micro(median(ours))} against ${micro(median(hand))} of the hand loop, ${spread(ratios)}`;
  return [row("in-memory step / hand loop", median(ratios), "x", 15, detail)];
}

/** The same work with nothing around it: ask, validate, read the intent, look up the target. */
export async function handLoop(steps: number): Promise<readonly number[]> {
  const validate = new Ajv().compile(SCHEMA);
  const targets = new Map([
    ["initial.issue", new Map([["next", "continuation.issue"]])],
    ["continuation.issue", new Map([["next", "initial.issue"]])],
  ]);
  const stamps: number[] = [];
  const model = async (): Promise<unknown> => {
    stamps.push(performance.now());
    return ANSWER;
  };
  let step = "initial.issue";
  for (let i = 0; i < steps; i++) {
    const answer = await model();
    if (!validate(answer)) throw new Error("no fit");
    const intent = (answer as { next_action: { action: string } }).next_action.action;
    const target = targets.get(step)?.get(intent);
    if (target === undefined) throw new Error("no route");
    step = target;
  }
  return gaps(stamps);
}

// T2: one durable step.

async function measureDurable(folder: string): Promise<readonly Row[]> {
  const steps = 600;
  const ratios: number[] = [];
  const ours: number[] = [];
  const raw: number[] = [];
  const journal = await openJournal(join(folder, "state"), { now: Date.now });
  try {
    // The first commits of a new database are slower than all later ones: its log file still has to grow.
    await stepGaps(steps, folder, journal);
    for (let round = 0; round < 5; round++) {
      const plain = median(rawAppends(join(folder, `raw-${round}`), steps));
      const step = median(await stepGaps(steps, folder, journal));
      ratios.push(step / plain);
      ours.push(step);
      raw.push(plain);
    }
  } finally {
    await journal.close();
  }
  const detail = `p50 ${micro(median(ours))} against ${micro(median(raw))} of append+fdatasync here, ${spread(ratios)}`;
  return [row("durable step / raw synced append", median(ratios), "x", 1.5, detail)];
}

function rawAppends(file: string, count: number): readonly number[] {
  const record = Buffer.from(
    `${JSON.stringify({ seq: 1, at: Date.now(), event: { type: "step.answered", step: "initial.issue", visit: 1, turn: 1, reply: { kind: "said", text: "", calls: [], output: ANSWER, usage: USAGE } } })}\n`,
  );
  const fd = openSync(file, "w");
  const stamps: number[] = [];
  for (let i = 0; i <= count; i++) {
    stamps.push(performance.now());
    writeSync(fd, record);
    fdatasyncSync(fd);
  }
  closeSync(fd);
  return gaps(stamps);
}

// T3: the ten-thousandth step costs what the first did.

async function measureGrowth(folder: string): Promise<readonly Row[]> {
  const output: JsonObject = { ...ANSWER, filler: "x".repeat(2048) };
  const growth = (all: readonly number[]) => median(all.slice(-200)) / median(all.slice(0, 200));
  const journal = await openJournal(join(folder, "state"), { now: Date.now });
  try {
    await stepGaps(500, folder, journal, output);
    const durable = await stepGaps(10_000, folder, journal, output);
    await stepGaps(2000, folder, createMemoryJournal(), output);
    const memory = await stepGaps(10_000, folder, createMemoryJournal(), output);
    const name = "last 200 / first 200 steps of 10,000 with 2 KB answers";
    const inMemory = `in memory ${growth(memory).toFixed(2)}x`;
    return [row(name, growth(durable), "x", 1.15, `durable, p50 of each; ${inMemory}`)];
  } finally {
    await journal.close();
  }
}

// T6: resuming a long run.

async function measureResume(folder: string): Promise<readonly Row[]> {
  const events = 10_000;
  const stateDir = join(folder, "state");
  const journal = await openJournal(stateDir, { now: Date.now });
  const ratios: number[] = [];
  const ours: number[] = [];
  const raw: number[] = [];
  let first = 0;
  try {
    const flow = cycle(events + 100);
    const stop = new AbortController();
    const begun = await runLoaded(loaded(flow, folder), {
      cwd: folder,
      journal,
      backend: stampingModel([], ANSWER),
      signal: stop.signal,
      observe: ({ seq }) => seq >= events && stop.abort(),
    });
    const db = new DatabaseSync(join(stateDir, "runs.db"), { readOnly: true });
    const select = db.prepare(
      "SELECT body FROM event WHERE run = (SELECT key FROM run WHERE id = ?) ORDER BY seq",
    );
    for (let round = -2; round < 7; round++) {
      const from = performance.now();
      let parsed = 0;
      for (const body of select.iterate(begun.run)) {
        JSON.parse(
          Object.values(body).find((value) => typeof value === "string" && value.startsWith("{")) as string,
        );
        parsed += 1;
      }
      const plain = performance.now() - from;
      if (parsed < events) throw new Error(`only ${parsed} rows`);
      const asked = await untilAsked(journal, begun.run!, folder);
      if (round < 0) {
        first ||= asked;
        continue;
      }
      ratios.push(asked / plain);
      ours.push(asked);
      raw.push(plain);
    }
    db.close();
  } finally {
    await journal.close();
  }
  const detail = `p50 ${median(ours).toFixed(1)} ms to the next question against ${median(raw).toFixed(1)} ms of select+parse, ${spread(ratios)}; the first time ${Math.round(first)} ms`;
  return [row("resume of 10,000 events / reading them", median(ratios), "x", 1.5, detail)];
}

export async function untilAsked(journal: Journal, id: string, folder: string): Promise<number> {
  const stop = new AbortController();
  let asked = 0;
  const backend: Backend = {
    spec: { id: "bench", options: null },
    turn: () => {
      asked ||= performance.now();
      stop.abort();
      return Promise.resolve({ kind: "fault", fault: { kind: "other", message: "stopped" } });
    },
  };
  const from = performance.now();
  await resume({ run: id, cwd: folder, journal, backend, signal: stop.signal });
  return asked - from;
}

// T10: loading a large registry.

const LARGE = 1000;

async function measureLoad(folder: string): Promise<readonly Row[]> {
  writeLargeAgent(folder, LARGE);
  const times: number[] = [];
  for (let round = 0; round < 5; round++) {
    const from = performance.now();
    const { problems } = await load("large", { cwd: folder });
    times.push(performance.now() - from);
    const error = problems.find((problem) => problem.severity === "error");
    if (error !== undefined) throw new Error(`The generated registry is wrong: ${error.message}`);
  }
  const detail = `first ${Math.round(times[0]!)} ms; from disk, with its prompts and schemas`;
  return [row(`load and check ${LARGE} steps`, median(times), "ms", 150, detail)];
}

function writeLargeAgent(folder: string, count: number): void {
  const base = join(folder, ".agent", "large");
  const id = (n: number) =>
    n === 0 ? "initial.s0" : n === count - 1 ? `closure.s${n}` : `continuation.s${n}`;
  const steps: { [id: string]: unknown } = {};
  const schemas: { [id: string]: unknown } = {};
  for (let n = 0; n < count; n++) {
    const closing = n === count - 1;
    const [c2 = "", c3 = ""] = id(n).split(".");
    const intents = closing
      ? ["closing", "repeat"]
      : n === count - 2
        ? ["handoff", "repeat"]
        : ["next", "repeat"];
    steps[id(n)] = {
      stepId: id(n),
      name: `Step ${n}`,
      stepKind: closing ? "closure" : "work",
      c2,
      c3,
      edition: "default",
      uvVariables: [],
      outputSchemaRef: { file: "large.schema.json", schema: id(n) },
      structuredGate: {
        allowedIntents: intents,
        intentSchemaRef: "#/properties/next_action/properties/action",
        intentField: "next_action.action",
        handoffFields: ["note"],
      },
      transitions: {
        [intents[0]!]: { target: closing ? null : id(n + 1) },
        repeat: { target: id(n) },
      },
    };
    const schema = actionSchema(intents) as { readonly properties: JsonObject };
    schemas[id(n)] = { ...schema, properties: { ...schema.properties, note: { type: "string" } } };
    write(join(base, "prompts", "steps", c2, c3, "f_default.md"), `Do step ${n}.\n`);
  }
  const runner = {
    flow: { systemPromptPath: "prompts/system.md" },
    verdict: { type: "detect:graph", config: { maxIterations: 2000 } },
    boundaries: { allowedTools: ["*"], permissionMode: "plan" },
  };
  write(join(base, "prompts", "system.md"), "You are large.\n");
  write(
    join(base, "agent.json"),
    JSON.stringify({ version: "1.0.0", name: "large", displayName: "Large", description: "Large", runner }),
  );
  write(
    join(base, "steps_registry.json"),
    JSON.stringify({ agentId: "large", version: "1.0.0", c1: "steps", entryStep: id(0), steps }),
  );
  write(join(base, "schemas", "large.schema.json"), JSON.stringify(schemas));
}

// T7: from the shell to the end.

async function measureCold(folder: string, cli: readonly string[]): Promise<readonly Row[]> {
  const files = initFiles("hello");
  for (const [path, content] of Object.entries(files)) {
    write(join(folder, ".agent", "hello", path), content);
  }
  const replies = await parseScript(files["script.yaml"] ?? "", "script.yaml");
  write(join(folder, "script.json"), JSON.stringify({ replies }));
  writeFileSync(join(folder, "empty.mjs"), "");
  const [node = process.execPath, ...program] = cli;
  const empty = [join(folder, "empty.mjs")];
  const version = [...program, "--version"];
  const flow = [...program, "run", "hello", "--topic", "x", "--script", "script.json", "--json"];
  writeLargeAgent(folder, LARGE);
  const check = [...program, "check", "large", "--json"];
  const times: { [name: string]: number[] } = { empty: [], version: [], flow: [], check: [] };
  for (let round = 0; round < 16; round++) {
    for (const [name, args] of Object.entries({ empty, version, flow, check })) {
      const from = performance.now();
      const { status, stderr } = spawnSync(node, args, { cwd: folder, encoding: "utf8" });
      if (status !== 0) throw new Error(`${name} ended with ${status}: ${stderr}`);
      if (round > 0) times[name]!.push(performance.now() - from);
    }
  }
  const base = median(times.empty!);
  const built = program.every((part) => !part.endsWith(".ts"));
  const note = built ? "" : "; from source: the limit holds for the built package";
  const cold = (name: string, key: string, limit: number) => {
    const detail = `${Math.round(median(times[key]!))} ms against ${Math.round(base)} ms${note}`;
    return row(name, median(times[key]!) / base, "x", built ? limit : null, detail);
  };
  return [
    cold("lockstep --version / empty node", "version", 1.6),
    cold("3-step run from the shell / empty node", "flow", 4),
    cold("check of 1,000 steps from the shell / empty node", "check", 6),
  ];
}

function write(path: string, content: string): void {
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, content);
}

export function row(name: string, value: number, unit: string, limit: number | null, detail: string): Row {
  return { name, value: Number(value.toFixed(2)), unit, limit, ok: limit === null || value <= limit, detail };
}

export function gaps(stamps: readonly number[]): readonly number[] {
  return stamps.slice(1).map((stamp, index) => stamp - stamps[index]!);
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

export function micro(ms: number): string {
  return `${(ms * 1000).toFixed(1)} us`;
}

export function spread(values: readonly number[]): string {
  return `rounds ${Math.min(...values).toFixed(2)}-${Math.max(...values).toFixed(2)}`;
}
