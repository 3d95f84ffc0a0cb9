/** Runs a flow against a script in memory: no disk, no clock, no processes. */
import { prepare } from "../engine/schema/prepared.ts";
import { createScripted } from "../backends/scripted/scripted.ts";
import type { ScriptReply } from "../backends/scripted/script.ts";
import { drive, fold, type Drive } from "../engine/drive/drive.ts";
import { isUndriven, restBefore } from "../engine/drive/rest.ts";
import type { Backend, Clock, Journal, Ports } from "../engine/ports.ts";
import type { State } from "../engine/decide/state.ts";
import type { CheckResult, Entry } from "../flow/event.ts";
import type { Flow } from "../flow/flow.ts";
import type { Json, JsonObject } from "../flow/json.ts";
import { createMemoryJournal } from "../journal/memory.ts";
import { composer } from "../prompts/compose.ts";
import { requireObjects, requireOptions, type OptionKinds } from "./kit-options.ts";

export type Scenario = {
  readonly flow: Flow;
  /** What the model says: replies, or a backend of its own. */
  readonly model: readonly ScriptReply[] | Backend;
  readonly args?: JsonObject;
  /** Results of the checks, round by round; a round that is not given passes. */
  readonly checks?: readonly (readonly Partial<CheckResult>[])[];
  /** What is seen outside, look by look; what is not given is not met. */
  readonly sights?: readonly boolean[];
  /** Entries that were written before: the run goes on from there. */
  readonly past?: readonly Entry[];
  /** How long nobody drove the run after the last of them. */
  readonly pauseMs?: number;
  readonly signal?: AbortSignal;
  /** What others want of the run while it goes on. */
  readonly wishes?: NonNullable<Drive["wishes"]>;
  /** As for `drive`. */
  readonly parkMs?: number;
  /** In the place of those that do nothing. */
  readonly ports?: Partial<Pick<Ports, "toolbox" | "hooks" | "person" | "watch" | "clock" | "shell" | "act">>;
  readonly observe?: (entry: Entry, state: State) => void;
};

export type Played = {
  readonly state: State;
  readonly entries: readonly Entry[];
  /** The steps that were asked, in order, as `step@visit/turn`. */
  readonly asked: readonly string[];
  readonly waits: readonly number[];
};

export async function play(scenario: Scenario): Promise<Played> {
  requireScenario(scenario);
  const { past = [] } = scenario;
  const flow = await prepare(scenario.flow);
  const asked: string[] = [];
  const waits: number[] = [];
  const journal: Journal = createMemoryJournal();
  const first = started(flow, scenario.args ?? {});
  const about = { id: "run", agent: flow.agent, at: 0, digest: "digest", flow };
  const handle = await journal.create(about, past.length === 0 ? [first] : past);
  const backend = listen(toBackend(scenario.model, past), asked);
  const now = (past.at(-1)?.at ?? 0) + (scenario.pauseMs ?? 0);
  const resumedAt = past.findLastIndex(({ event }) => event.type === "run.resumed") + 1;
  const rest = { last: past.at(-1)?.event, isUndriven: isUndriven(past[0]?.event, resumedAt) };
  const rested = restBefore(rest, flow, () => fold(flow, past), now);
  const state = await drive({
    flow,
    ports: {
      ...inertPorts(waits),
      backend,
      shell: fakeChecks(flow, scenario, past),
      watch: fakeSights(scenario, past),
      ...scenario.ports,
    },
    handle,
    past,
    begin: past.length === 0 ? first : { type: "run.resumed", epoch: 2, ...rested },
    signal: scenario.signal ?? new AbortController().signal,
    ...(scenario.parkMs === undefined ? {} : { parkMs: scenario.parkMs }),
    ...(scenario.wishes === undefined ? {} : { wishes: scenario.wishes }),
    ...(scenario.observe === undefined ? {} : { observe: scenario.observe }),
  });
  return { state, entries: await journal.read("run"), asked, waits };
}

const SCENARIO: OptionKinds<Scenario> = {
  flow: "object",
  model: "object or list",
  args: "object",
  checks: "list",
  sights: "list",
  past: "list",
  pauseMs: "milliseconds",
  signal: "object",
  wishes: "object",
  parkMs: "milliseconds",
  ports: "object",
  observe: "function",
};

const REPLY = ["step", "saw", "unseen", "text", "output", "calls", "error", "usage"];

/** What is misspelled or of another kind would be played as something else, or fail somewhere inside. */
function requireScenario(scenario: Scenario): void {
  requireOptions("play", scenario, SCENARIO, ["flow", "model"]);
  const { flow, model, checks = [], sights = [], past = [] } = scenario;
  if (typeof flow.steps !== "object" || flow.steps === null || !Object.hasOwn(flow.steps, flow.entry))
    throw new TypeError(
      `The option "flow" of play is not a flow: it has no steps, or its entry "${flow.entry}" is not one of them. Make one with sketchFlow, or load an agent.`,
    );
  if (Array.isArray(model)) requireObjects("play", "model", model, REPLY);
  else if (!("spec" in model))
    throw new TypeError(
      `The option "model" of play is an object, but must be a list of replies or a backend.`,
    );
  for (const [at, round] of checks.entries()) requireObjects("play", `checks[${at}]`, round);
  requireObjects("play", "past", past);
  const odd = sights.findIndex((one) => typeof one !== "boolean");
  if (odd !== -1) throw new TypeError(`sights[${odd}] of play is not true or false.`);
}

/** A clock that goes only when it is told to sleep. */
export function fakeClock(waits: number[] = []): Clock {
  if (!Array.isArray(waits)) throw new TypeError("fakeClock takes a list that it adds its waits to.");
  let now = 1_700_000_000_000;
  return {
    now: () => now++,
    // Whatever is under way goes first; who wakes up before the time has not slept.
    sleep: async (ms, signal) => {
      await new Promise(setImmediate);
      if (signal.aborted) return;
      waits.push(ms);
      now += ms;
    },
  };
}

function started(flow: Flow, args: JsonObject): Entry {
  const backend = { id: "scripted", options: null };
  const about = { run: "run", agent: flow.agent, flow: "digest", args, input: "", cwd: "/", backend };
  return { seq: 1, at: 0, event: { type: "run.started", ...about } };
}

function toBackend(model: Scenario["model"], past: readonly Entry[]): Backend {
  return "spec" in model ? model : createScripted(model, marksOf(past));
}

function marksOf(past: readonly Entry[]): readonly Json[] {
  return past.flatMap(({ event }) =>
    event.type === "step.answered" && "mark" in event.reply && event.reply.mark !== undefined
      ? [event.reply.mark]
      : [],
  );
}

function listen(backend: Backend, asked: string[]): Backend {
  const { turn } = backend;
  if (turn === undefined) return backend;
  return {
    ...backend,
    turn: (request) => {
      const { step, visit, turn: number } = request.asker;
      asked.push(`${step}@${visit}/${number}`);
      return turn(request);
    },
  };
}

function fakeSights({ sights = [] }: Scenario, past: readonly Entry[]): Ports["watch"] {
  let looks = past.flatMap(({ event }) => (event.type === "step.looked" ? event.sights : [])).length;
  return {
    look: () => {
      looks += 1;
      return Promise.resolve({ met: sights[looks - 1] ?? false, what: `look ${looks}` });
    },
  };
}

function inertPorts(waits: number[]): Omit<Ports, "backend" | "shell" | "watch"> {
  return {
    clock: fakeClock(waits),
    cwd: "/",
    compose: composer,
    person: { ask: () => Promise.resolve(null), isReachable: false, absent: "deny" },
    toolbox: {
      offer: () => [],
      judge: () => null,
      call: (_step, calls) =>
        Promise.resolve(calls.map(({ id, name }) => ({ id, name, ok: true, content: `${name} done` }))),
      callGranted: (_step, calls) =>
        Promise.resolve({
          kind: "results",
          results: calls.map(({ id, name }) => ({ id, name, ok: true, content: `${name} done` })),
        }),
    },
  };
}

function fakeChecks(flow: Flow, scenario: Scenario, past: readonly Entry[]): Ports["shell"] {
  const rounds = scenario.checks ?? [];
  let round = past.filter(({ event }) => event.type === "step.checked").length;
  const guards = [...Object.values(flow.steps).map(({ guard }) => guard), flow.stopGuard];
  const gates = Object.values(flow.steps).flatMap(({ stage }) =>
    stage?.gate === undefined ? [] : [[stage.gate]],
  );
  const groups = [...guards.map((guard) => guard?.checks.map(({ check }) => check) ?? []), ...gates];
  return {
    check: (check) => {
      const group = groups.find((names) => names.includes(check.name)) ?? [check.name];
      const place = group.indexOf(check.name);
      const given = rounds[round]?.[place];
      const result = {
        ok: true,
        pattern: check.pattern,
        summary: "",
        params: {},
        ...given,
        name: check.name,
      };
      if (!result.ok || place === group.length - 1) round += 1;
      return Promise.resolve(result);
    },
    perform: () => Promise.reject(new Error("a scenario runs no commands")),
  };
}
