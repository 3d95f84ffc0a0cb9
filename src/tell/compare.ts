/** Where two runs part ways. */
import type { State } from "../engine/decide/state.ts";
import { addEntry, createReport } from "../story/report.ts";
import { changeText, flowChanges } from "../story/changes.ts";
import { differences } from "../flow/difference.ts";
import type { CheckResult, Led, Reply, Usage } from "../flow/event.ts";
import type { Flow } from "../flow/flow.ts";
import type { Json } from "../flow/json.ts";
import type { Verdict } from "../flow/verdict.ts";
import type { Moment } from "../story/story.ts";

export type Comparison = {
  readonly v: 1;
  readonly same: boolean;
  readonly runs: readonly [ComparedRun, ComparedRun];
  /** In the order in which things happened, so that the first is where they part. */
  readonly differences: readonly RunDifference[];
};

export type ComparedRun = {
  readonly run: string;
  readonly agent: string;
  readonly digest: string;
  readonly outcome: string;
  readonly iterations: number;
};

export type RunDifference = {
  readonly about: "flow" | "argument" | "answer" | "check" | "path" | "handoff" | "verdict" | "usage";
  /** `STEP@VISIT`, with a pointer into an answer; a pointer or a name for everything else. */
  readonly at: string;
  readonly a: Json;
  readonly b: Json;
};

/** What is said in words (reasons, notes, times) is not compared. */
export function comparisonOf(one: ReadRun, other: ReadRun): Comparison {
  const found = [
    ...changesOf(one, other),
    ...pointed("argument", "", one.args, other.args),
    ...alongTheWay(one, other),
    // Every result of a stage names its own run.
    ...pointed("handoff", "", one.state.handoff, other.state.handoff).filter(
      ({ at }) => !at.endsWith("/stageExecutionId"),
    ),
    ...only("verdict", "end", verdictWords(one.state.verdict), verdictWords(other.state.verdict)),
    ...pointed("usage", "", figuresOf(one.state.usage), figuresOf(other.state.usage)),
  ];
  return { v: 1, same: found.length === 0, runs: [one.about, other.about], differences: found };
}

export type ReadRun = ReturnType<ReturnType<typeof createComparable>["end"]>;

/** Earlier versions did not record what is unknown. */
function figuresOf({ unknown: _unknown, ...figures }: Usage): Json {
  return figures;
}

/** What is compared of a run, collected entry by entry. */
export function createComparable() {
  const report = createReport();
  const answers = new Map<string, Json>();
  const checks = new Map<string, readonly Json[]>();
  let args: Json = {};
  const add = ({ entry }: Moment) => {
    addEntry(report, entry);
    const { event } = entry;
    if (event.type === "run.started") ({ args } = event);
    if (!("step" in event)) return;
    const key = `${event.step}@${event.visit}`;
    if (event.type === "step.answered") answers.set(key, answerOf(event.reply));
    if (event.type === "step.checked")
      checks.set(key, [...(checks.get(key) ?? []), ...event.results.map(checkWords)]);
  };
  const end = (about: Pick<ComparedRun, "run" | "agent" | "digest">, flow: Flow, state: State) => {
    const outcome = state.verdict?.outcome ?? "interrupted";
    const { path } = report;
    return {
      flow,
      path,
      answers,
      checks,
      state,
      args,
      about: { ...about, outcome, iterations: state.iterations },
    };
  };
  return { add, end };
}

function answerOf(reply: Reply): Json {
  switch (reply.kind) {
    case "said":
      return reply.output ?? reply.calls.at(-1)?.input ?? reply.text;
    case "fault":
      return { fault: reply.fault.kind };
    case "oversized":
      return { oversized: reply.why };
    case "unaskable":
      return { unaskable: reply.code };
  }
}

function checkWords({ name, ok, pattern }: CheckResult): string {
  return ok ? `${name} passed` : `${name} failed (${pattern})`;
}

function verdictWords(verdict: Verdict | null): Json {
  return verdict === null ? null : { outcome: verdict.outcome, code: verdict.code, step: verdict.step };
}

function changesOf(one: ReadRun, other: ReadRun): readonly RunDifference[] {
  if (one.about.digest === other.about.digest) return [];
  return flowChanges(one.flow, other.flow).map((change) => ({
    about: "flow",
    at: changeText(change),
    a: change.before,
    b: change.after,
  }));
}

/** Visit by visit, until the ways part: from there on there is nothing to compare. */
function alongTheWay(one: ReadRun, other: ReadRun): readonly RunDifference[] {
  const found: RunDifference[] = [];
  const length = Math.max(one.path.length, other.path.length);
  for (let place = 0; place < length; place++) {
    const [a, b] = [one.path[place], other.path[place]];
    if (a === undefined || b === undefined || a.step !== b.step || a.visit !== b.visit) {
      const from = one.path[place - 1] ?? null;
      const at = from === null ? "start" : `${from.step}@${from.visit}`;
      return [...found, { about: "path", at, a: restOf(one.path, place), b: restOf(other.path, place) }];
    }
    const key = `${a.step}@${a.visit}`;
    found.push(
      ...pointed("answer", key, one.answers.get(key) ?? null, other.answers.get(key) ?? null),
      ...only("check", key, one.checks.get(key) ?? [], other.checks.get(key) ?? []),
      ...only("path", key, wayOf(a), wayOf(b)),
    );
  }
  return found;
}

function wayOf({ label, to, overturned, check }: Led): string {
  const words = [
    label ?? "no answer",
    ...(overturned ? ["overturned"] : []),
    ...(check === undefined ? [] : [`(${check.label})`]),
  ];
  return `${words.join(" ")} → ${to ?? "end"}`;
}

function restOf(path: readonly Led[], from: number): readonly string[] {
  return path.slice(from).map(({ step, visit }) => `${step}@${visit}`);
}

function pointed(about: RunDifference["about"], at: string, a: Json, b: Json): readonly RunDifference[] {
  return differences(a, b).map(({ pointer, before, after }) => ({
    about,
    at: `${at}${at === "" ? "" : " "}${pointer}`.trimEnd(),
    a: before ?? null,
    b: after ?? null,
  }));
}

function only(about: RunDifference["about"], at: string, a: Json, b: Json): readonly RunDifference[] {
  return differences(a, b).length === 0 ? [] : [{ about, at, a, b }];
}
