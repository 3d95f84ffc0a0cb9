/** What runs have shown of a flow: a fold over their stories. The same for tests, for fuzz runs and for recorded runs. */
import type { Choice, Deed } from "../flow/deed.ts";
import type { Entry, Reply } from "../flow/event.ts";
import type { Flow, StepId } from "../flow/flow.ts";
import { own, readPath } from "../flow/json.ts";
import { partsOf } from "../flow/rules.ts";
import { outsideOf, standing } from "../engine/decide/stop.ts";
import type { Prepared, PreparedFlows } from "../engine/schema/prepared.ts";
import { story, type Moment } from "../story/story.ts";
import { rulesFor } from "./calls.ts";
import { called, targetName, WHOLE_FLOW } from "./elements.ts";

/** How often each element was shown. */
export type Hits = Map<string, number>;

export function cover(flow: Prepared, entries: Iterable<Entry>, adopted?: PreparedFlows): Hits {
  return hitsIn(story(flow, entries, adopted));
}

export function hitsIn(moments: Iterable<Moment>): Hits {
  const hits: Hits = new Map();
  for (const moment of moments) addHits(hits, moment);
  return hits;
}

export function addHits(hits: Hits, moment: Moment): void {
  show(moment, (id) => hits.set(id, (hits.get(id) ?? 0) + 1));
}

/** The elements that one moment of a run shows. */
export function shownIn(moment: Moment): readonly string[] {
  const shown: string[] = [];
  show(moment, (id) => shown.push(id));
  return shown;
}

/** Told one by one: this is done for every entry of every run. */
type Tell = (id: string) => void;

function show(moment: Moment, tell: Tell): void {
  const { event } = moment.entry;
  if (event.type === "step.answered") showReply(moment, event.step, event.visit, event.reply, tell);
  for (const deed of moment.deeds) showDeed(moment, deed, tell);
}

function showReply(
  { flow, before, after }: Moment,
  step: StepId,
  visit: number,
  reply: Reply,
  tell: Tell,
): void {
  const said = before.lanes.find((lane) => lane.step === step && lane.visit === visit)?.say ?? [];
  for (const say of said)
    if (say.kind === "failed-check") tell(called.edition(say.guard ?? WHOLE_FLOW, say.result.pattern));
  if (reply.kind === "fault" && own(flow.steps, step)?.by.kind === "model")
    tell(
      called.limit(
        step,
        after.verdict === null ? "a fault that is waited out" : "a fault that stops the run",
      ),
    );
}

function showDeed(moment: Moment, deed: Deed, tell: Tell): void {
  const { flow } = moment;
  switch (deed.kind) {
    case "settled":
      tell(called.step(deed.led.step));
      return;
    case "read":
      showAnswer(moment, deed, tell);
      return;
    case "sent-back":
      if (deed.why === "misfit") tell(called.answer(deed.step, "with what is sent back"));
      return;
    case "called":
      showCalls(moment, deed, tell);
      return;
    case "checked": {
      const owner = deed.of === "stop" ? WHOLE_FLOW : deed.step;
      for (const { name, ok } of deed.results) tell(called.check(owner, name, ok));
      return;
    }
    case "overturned":
      if (isOfStop(moment)) {
        if (deed.to !== null) tell(called.goesOn());
      } else if (deed.to !== null) tell(called.back(deed.step, deed.to));
      // A check that cannot pass ends the run at once, whatever tries are left.
      else if (deed.failed.unrecoverable === undefined) tell(called.limit(deed.step, "its failures"));
      return;
    case "followed":
      showEdge(flow, deed, tell);
      return;
    case "joined":
      tell(called.join(deed.step, deed.join));
      return;
    case "judged":
      tell(called.phase(deed.step, `is judged ${deed.verdict}`));
      return;
    case "limited": {
      const { of, step, name } = deed.reached;
      tell(called.limit(of === "run" ? WHOLE_FLOW : step, name));
      return;
    }
    case "stuck":
      tell(called.limit(WHOLE_FLOW, "its watch for repeats"));
      return;
    case "ended":
      if (deed.verdict.code === "AGENT_MAX_ITERATIONS") tell(called.limit(WHOLE_FLOW, "its visits"));
      if (deed.verdict.code === "AGENT_TURN_LIMIT" && deed.verdict.step !== null)
        if (own(flow.steps, deed.verdict.step)?.stage === undefined)
          tell(called.limit(deed.verdict.step, "its turns"));
      return;
    case "began":
    case "checking":
    case "forked":
    case "held":
    case "noted":
    case "phase":
    case "waits":
  }
}

function isOfStop({ deeds }: Moment): boolean {
  return deeds.some((deed) => deed.kind === "checked" && deed.of === "stop");
}

function showAnswer({ flow, deeds, after }: Moment, deed: Deed & { kind: "read" }, tell: Tell): void {
  const step = own(flow.steps, deed.step);
  if (step === undefined) return;
  const { payload, label, by } = deed;
  const answers = (how: string) => tell(called.answer(deed.step, how));
  if (by === "word") answers(`with ${label}`);
  if (by === "alias") answers("with another word");
  if (by === "fallback") answers("with a word that falls back");
  if (step.answer.kind !== "object") return;
  const { correct, miss } = step.answer;
  if (correct !== undefined && payload !== null) {
    const name = own(payload, correct.field);
    if (typeof name === "string" && name !== correct.value) answers("with the name of another step");
  }
  if (by === "miss") answers(`with nothing usable: ${label}`);
  if (label === null && miss.kind === "fail" && !deeds.some(({ kind }) => kind === "sent-back"))
    answers(after.verdict === null ? "nothing usable at first" : "with nothing usable");
  // An answer that is accepted whatever it holds ends the run and hands on nothing.
  const isTacit = step.decide.by === "field" && label !== null && !step.decide.allow.includes(label);
  if (label !== null && by !== "miss" && !isTacit)
    for (const { key, path } of step.carry)
      tell(called.data(deed.step, key, payload !== null && readPath(payload, path) !== undefined));
}

function showCalls(
  { flow, before }: Moment,
  { step: id, results }: Deed & { kind: "called" },
  tell: Tell,
): void {
  const step = own(flow.steps, id);
  if (step === undefined) return;
  const asked = before.lanes.flatMap(({ command }) => (command.type === "call" ? command.calls : []));
  for (const { id: call, name, denied } of results)
    if (denied !== undefined) tell(called.denied(id));
    else
      for (const rule of rulesFor(step, { name, input: asked.find((one) => one.id === call)?.input ?? {} }))
        tell(called.tool(id, rule));
}

function showEdge(flow: Flow, deed: Deed & { kind: "followed" }, tell: Tell): void {
  const { step, label, choices, move, stop } = deed;
  if (stop !== null) {
    const isSettled = standing(flow, stop);
    if (isSettled.kind === "look") return;
    showStop(flow, stop, tell);
    if (isSettled.kind === "over") return;
  }
  for (const when of choices.flatMap((choice) => selectedBy(choice))) tell(called.branch(step, label, when));
  if (move !== null) tell(called.edge(step, label, targetName(move)));
}

function selectedBy(choice: Choice): readonly string[] {
  switch (choice.kind) {
    case "switch":
      return [`${choice.on.join(".")} ${choice.otherwise ? "is something else" : `= ${choice.value}`}`];
    case "jump":
      return choice.otherwise
        ? [`${choice.field.join(".")} names no step`]
        : [
            `${choice.field.join(".")} = ${typeof choice.found === "string" ? choice.found : ""}`,
            `${choice.field.join(".")} names a step`,
          ];
    case "times":
      return [`${choice.taken < choice.max ? "under" : "after"} ${choice.max} times`];
  }
}

function showStop(flow: Flow, facts: NonNullable<(Deed & { kind: "followed" })["stop"]>, tell: Tell): void {
  const outside = outsideOf(flow.stop);
  for (const part of partsOf(flow.stop)) {
    const at = outside.indexOf(part as (typeof outside)[number]);
    const met =
      at === -1 ? standing({ ...flow, stop: part }, facts).kind === "over" : facts.sights?.[at]?.met;
    if (met !== undefined) tell(called.stop(part.kind, met));
  }
}
