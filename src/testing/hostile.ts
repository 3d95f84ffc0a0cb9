/** One run of a flow against a hostile model, in memory: everything that comes from outside is drawn, or given again. */
import { createRedactor } from "../boundaries/redact/redact.ts";
import { discreet, withoutSecrets } from "../boundaries/redact/redacted-ports.ts";
import { giveReply } from "../backends/scripted/scripted.ts";
import { drive } from "../engine/drive/drive.ts";
import type { Ports, RunHandle, Toolbox, TurnResult } from "../engine/ports.ts";
import type { Prepared } from "../engine/schema/prepared.ts";
import { EMPTY_STATE, type State } from "../engine/decide/state.ts";
import type { CheckResult, Entry } from "../flow/event.ts";
import type { Check } from "../flow/flow.ts";
import { NOTHING_AROUND, type CheckGiven } from "../flow/flow-test.ts";
import { isObject, type JsonObject } from "../flow/json.ts";
import { composer } from "../prompts/compose.ts";
import type { Heard } from "../proof/observe.ts";
import { CANARIES, type AnswerOrder } from "../proof/personas.ts";
import type { FuzzedRun } from "../proof/properties.ts";
import type { Moment } from "../story/story.ts";
import { checkResult, createTurns } from "./ground.ts";
import { ENDLESS, MOST_REPLIES, type FuzzRecord, type HostileSurroundings } from "./hostile-surroundings.ts";
import { toolboxOf, type Box } from "./hostile-tools.ts";

/** What is the same for all runs of a flow. */
export type FuzzGround = {
  readonly flow: Prepared;
  readonly args: JsonObject;
  readonly input: string;
  readonly manners: AnswerOrder;
  readonly parts: FuzzParts;
};

/** The parts that are put to the test; a test of the properties breaks one of them. */
export type FuzzParts = {
  readonly drive?: typeof drive;
  readonly ports?: (ports: Ports) => Ports;
  /** The tools of a step around a box, which does what it is told and notes it. */
  readonly toolbox?: (box: Box, usual: Toolbox) => Toolbox;
};

/** `state`: in which the run ended or stopped. */
export type HostileRun = FuzzedRun & FuzzRecord & { readonly state: State };

/** `past`: what the run is resumed with. `isBare`: only how it goes and ends is asked for, and no moments are kept. */
export async function hostileRun(
  ground: FuzzGround,
  outside: HostileSurroundings,
  { past = [], isBare = false }: { readonly past?: readonly Entry[]; readonly isBare?: boolean } = {},
): Promise<HostileRun> {
  const { flow, args, input, parts } = ground;
  const entries: Entry[] = [...past];
  const moments: Moment[] = [];
  const heard: Heard[] = [];
  const trespasses: string[] = [];
  const first: Entry = { seq: 1, at: CLOCK, event: { ...STARTED, agent: flow.agent, args, input } };
  const isNew = past.length === 0;
  if (isNew) entries.push(first);
  const handle: RunHandle = {
    run: "fuzz",
    epoch: 1,
    append: (more) => {
      for (const entry of more) entries.push(entry);
      return DONE;
    },
    release: () => DONE,
  };
  const turns = createTurns([]);
  let state = EMPTY_STATE;
  const tell = (entry: Entry, after: State, deeds: Moment["deeds"]) => {
    if (!isBare) moments.push({ entry, flow, before: state, after, deeds });
    state = after;
    turns.now(after.lanes);
  };
  let thrown: FuzzedRun["thrown"] = null;
  try {
    await (parts.drive ?? drive)({
      flow,
      ports: portsOf(ground, outside, turns, heard, trespasses),
      handle,
      past,
      begin: isNew ? first : { type: "run.resumed", epoch: 2 },
      signal: new AbortController().signal,
      wantsDeeds: !isBare,
      recall: tell,
      observe: tell,
    });
  } catch (error) {
    thrown = { kind: "error", message: error instanceof Error ? error.message : String(error) };
  }
  if (outside.script.length >= MOST_REPLIES) thrown = { kind: "endless", message: ENDLESS };
  const { script, checks, tools, hooks, sights } = outside;
  return {
    moments,
    state,
    entries,
    heard,
    trespasses,
    thrown,
    canaries: outside.isSecretive() ? CANARIES : [],
    outside: () => JSON.stringify([args, input, script, checks, tools, hooks]),
    script,
    checks,
    tools,
    hooks,
    sights,
  };
}

const CLOCK = NOTHING_AROUND.clock;
const DONE = Promise.resolve();
const STARTED = {
  type: "run.started",
  run: "fuzz",
  flow: "digest",
  cwd: "/",
  backend: { id: "scripted", options: null },
} as const;

const redactor = createRedactor(() => CANARIES);

/** What was found to hold no secret: the same answers are given in thousands of runs. */
const clean = new WeakSet<object>();

function tidied(result: TurnResult): TurnResult {
  if (result.kind === "fault") return withoutSecrets(result, redactor);
  const { text, calls, output } = result;
  const isClean = (word: string) => redactor.text(word) === word;
  const isKnown = calls.every(({ id, name, input }) => clean.has(input) && isClean(id) && isClean(name));
  if (isKnown && isClean(text) && (output === undefined || clean.has(output as object))) return result;
  const tidy = withoutSecrets(result, redactor);
  if (tidy !== result) return tidy;
  for (const { input } of calls) clean.add(input);
  if (isObject(output)) clean.add(output);
  return result;
}

function portsOf(
  { flow, parts }: FuzzGround,
  outside: HostileSurroundings,
  turns: ReturnType<typeof createTurns>,
  heard: Heard[],
  trespasses: string[],
): Ports {
  let now = CLOCK;
  const ports: Ports = {
    backend: {
      spec: { id: "scripted", options: null },
      free: true,
      turn: async (request) => {
        const { step: id, visit } = request.asker;
        await turns.of(id, request.signal);
        const last = request.messages.at(-1);
        const said = last?.role === "user" ? last.text : "";
        heard.push({ step: id, visit, system: request.system, said, text: "" });
        const { reply, mark } = outside.reply(flow.steps[id]!);
        return { ...giveReply(reply, request), mark };
      },
    },
    compose: composer,
    cwd: "/",
    clock: { now: () => now++, sleep: (ms) => ((now += ms), Promise.resolve()) },
    toolbox: toolboxOf(parts.toolbox, outside, trespasses),
    shell: {
      check: (check, signal) => {
        const given = outside.check(check.name);
        return given.kind === "output"
          ? checkResult(check, given, signal)
          : Promise.resolve(checkOf(check, given));
      },
      perform: (step): Promise<TurnResult> => {
        const { reply, mark } = outside.reply(step);
        return Promise.resolve({
          kind: "reply",
          text: "",
          calls: [],
          output: reply.output,
          usage: NOTHING,
          mark,
        });
      },
    },
    watch: { look: () => Promise.resolve({ met: outside.look(), what: "a look" }) },
    ...(flow.hooks !== undefined && {
      hooks: {
        call: async (path, _args, signal) => {
          await turns.of(path[0]!, signal);
          return outside.hook(path.join("."));
        },
        close: () => DONE,
      },
    }),
    person: { isReachable: false, absent: "deny", ask: () => Promise.resolve(null) },
  };
  const whole: Ports = { ...discreet(ports, redactor), tidy: tidied };
  return parts.ports?.(whole) ?? whole;
}

const NOTHING = { turns: 0, inputTokens: 0, outputTokens: 0, costUsd: null };
function checkOf({ name, pattern }: Check, given: CheckGiven & { kind: "pass" | "fail" }): CheckResult {
  if (given.kind === "pass") return { name, ok: true, pattern, summary: "", params: {} };
  const { summary = "exit code 1" } = given;
  return { name, ok: false, pattern, summary, params: { stdout: summary, stderr: "", exitCode: 1, summary } };
}
