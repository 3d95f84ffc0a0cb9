/** A recorded run as a test: what the model, checks, tools, hooks and people said, and the way that the run went. */
import type { Prepared, PreparedFlows } from "../engine/schema/prepared.ts";
import type { CallResult, CheckResult, Entry, Reply } from "../flow/event.ts";
import {
  NOTHING_AROUND,
  type Around,
  type CheckGiven,
  type FlowTest,
  type TestReply,
  type ToolGiven,
} from "../flow/flow-test.ts";
import type { Check, StepId } from "../flow/flow.ts";
import { own, type Json, type JsonObject } from "../flow/json.ts";
import { observe } from "./observe.ts";

export type RunAsTest = {
  readonly test: FlowTest;
  /** The models that answered. */
  readonly models: readonly string[];
};

/** `outputs`: checks are given what their commands printed, and are judged again; else only whether they passed. */
export function testOfRun(
  flow: Prepared,
  entries: readonly Entry[],
  {
    run,
    outputs,
    adopted,
  }: { readonly run: string; readonly outputs: boolean; readonly adopted?: PreparedFlows },
): RunAsTest {
  const script: TestReply[] = [];
  const checks: { [name: string]: CheckGiven[] } = {};
  const tools: { [name: string]: ToolGiven[] } = {};
  const hooks: { [name: string]: Json[] } = {};
  const sights: boolean[] = [];
  const answers: (string | null)[] = [];
  const models = new Set<string>();
  let params: JsonObject = {};
  let input = "";
  for (const { event } of entries)
    switch (event.type) {
      case "run.started":
        params = event.args;
        ({ input } = event);
        break;
      case "step.answered": {
        const reply = replyOf(event.step, event.reply);
        if (reply !== null) script.push(reply);
        if (event.reply.kind === "said" && event.reply.by !== undefined)
          models.add(event.reply.by.answered ?? event.reply.by.model ?? "unknown");
        break;
      }
      case "run.resumed":
        // A run that a fault ended went on later as if it had not happened.
        while (script.at(-1)?.error !== undefined) script.pop();
        break;
      case "step.checked":
        for (const result of event.results)
          (checks[result.name] ??= []).push(givenBy(own(flow.checks, result.name), result, outputs));
        break;
      case "step.called":
        for (const result of event.results)
          if (result.denied === undefined) (tools[result.name] ??= []).push(toolGiven(result));
        break;
      case "step.hooked":
        (hooks[`${event.step}.${event.hook}`] ??= []).push(
          event.result.kind === "gave" ? event.result.value : null,
        );
        break;
      case "step.looked":
        sights.push(...event.sights.map(({ met }) => met));
        break;
      case "step.told":
        answers.push(event.answer);
        break;
      default:
    }
  const { observed, moments } = observe(flow, entries, { heard: [], waits: [], warnings: [] }, adopted);
  const { outcome = null, code, path = [] } = observed;
  const around: Around = {
    ...NOTHING_AROUND,
    checks: withoutUsual(checks, ({ kind }) => kind === "pass"),
    tools,
    hooks: withoutUsual(hooks, (value) => value === null),
    sights: sights.includes(true) ? sights : [],
    answers,
    order: orderOf(
      moments.flatMap(({ deeds }) => deeds.flatMap((deed) => (deed.kind === "settled" ? [deed.led] : []))),
    ),
  };
  const test: FlowTest = {
    name: `goes the way of run ${run}`,
    file: "recorded.yaml",
    line: 1,
    params,
    input,
    script,
    around,
    ground: { kind: "memory" },
    expect: { lines: {}, values: { outcome, ...(code !== undefined && { code }), path } },
    only: false,
    generated: false,
    covers: [],
  };
  return { test, models: [...models] };
}

/** null: nothing was asked, because the request could not be made. */
function replyOf(step: StepId, reply: Reply): TestReply | null {
  if (reply.kind === "unaskable") return null;
  if (reply.kind === "oversized") return { line: 0, step, text: reply.why };
  if (reply.kind === "fault") {
    const { kind, message, status, retryAfterMs } = reply.fault;
    return {
      line: 0,
      step,
      error: {
        kind,
        message,
        ...(status !== undefined && { status }),
        ...(retryAfterMs !== undefined && { retryAfterMs }),
      },
    };
  }
  const { text, calls, output, usage } = reply;
  const { turns, inputTokens, outputTokens, costUsd } = usage;
  const took = {
    ...(inputTokens > 0 && { in: inputTokens }),
    ...(outputTokens > 0 && { out: outputTokens }),
    ...(costUsd !== null && { usd: costUsd }),
    ...(turns !== 1 && { turns }),
  };
  return {
    line: 0,
    step,
    ...((text !== "" || (calls.length === 0 && output === undefined)) && { text }),
    ...(calls.length > 0 && { calls: calls.map(({ name, input }) => ({ name, input })) }),
    ...(output !== undefined && { output }),
    ...(Object.keys(took).length > 0 && { usage: took }),
  };
}

function givenBy(
  check: Check | undefined,
  { ok, params, summary }: CheckResult,
  outputs: boolean,
): CheckGiven {
  if (ok) return { kind: "pass" };
  const { exitCode, stdout, stderr } = params;
  if (!outputs || check?.kind !== "command" || typeof exitCode !== "number") return { kind: "fail", summary };
  return {
    kind: "output",
    exit: exitCode,
    stdout: typeof stdout === "string" ? stdout : "",
    stderr: typeof stderr === "string" ? stderr : "",
  };
}

function toolGiven({ ok, content }: CallResult): ToolGiven {
  return { ok, content };
}

/** A table in which everything is as it is without it says nothing. */
function withoutUsual<T>(
  lists: { readonly [name: string]: readonly T[] },
  isUsual: (item: T) => boolean,
): { readonly [name: string]: readonly T[] } {
  return Object.fromEntries(Object.entries(lists).filter(([, items]) => !items.every(isUsual)));
}

/** Siblings of a fork in the order in which they were done. */
function orderOf(
  settled: readonly { readonly step: StepId; readonly fork?: readonly StepId[] }[],
): readonly StepId[] {
  const siblings = new Set(settled.flatMap(({ fork = [] }) => fork));
  return [...new Set(settled.map(({ step }) => step))].filter((step) => siblings.has(step));
}
