/** What is due outside, folded: what settled visits ask for in action blocks, and what becomes of the issue and the branch. */
import { visitKey } from "../../flow/deed.ts";
import { blocksIn } from "../../flow/action-blocks.ts";
import { effectOf, isRepeatable, type BlocksDue, type IssueClosing, type Due } from "../../flow/due.ts";
import type { EffectEvent, Event, Led } from "../../flow/event.ts";
import type { Command } from "../../flow/command.ts";
import type { Flow, Step } from "../../flow/flow.ts";
import { own, type JsonObject } from "../../flow/json.ts";
import { lifecycleOf } from "../../flow/lifecycle.ts";
import type { Verdict } from "../../flow/verdict.ts";
import type { State } from "./state.ts";

export type Acts = {
  /** How many of the next entries are shared with the run that this one was forked from: that run has acted on them. */
  readonly shared: number;
  readonly hasWorktree: boolean;
  /** The issue has been labelled in this stretch of the run. */
  readonly begun: boolean;
  /** What was said in visits that are not settled yet. */
  readonly said: { readonly [visit: string]: Said };
  readonly asked: readonly Asked[];
};

/** `answer`: the payload, where the step has to give one. */
type Said = { readonly text: string; readonly answer: JsonObject | null };

type Asked = {
  readonly due: BlocksDue;
  /** Acts on GitHub that are not done: they are tried again. */
  readonly open: readonly string[];
  /** The visit was settled beside others, so an entry of those does not say that its blocks were attended to. */
  readonly beside: boolean;
};

/** What is pending besides what is due outside. */
export function besidesAct({ pending }: Pick<State, "pending">): readonly Inner[] {
  return (pending[0]?.type === "act" ? pending.slice(1) : pending) as readonly Inner[];
}

/** What is due outside was attended to. If it is still due after the next event, it is pending again. */
export function attended(state: State): State {
  return { ...state, pending: besidesAct(state) };
}

type Inner = Exclude<Command, { type: "act" }>;

/** The end that is decided and not recorded; null: there is none. */
export function decidedEnd({ pending }: Pick<State, "pending">): Verdict | null {
  const last = pending.at(-1);
  return last?.type === "end" ? last.verdict : null;
}

/** What is due after an event comes before whatever is pending. */
export function withDue(flow: Flow, before: State, event: Event, after: State): State {
  const acts = actsAfter(flow, before, event, after);
  if (acts === undefined) {
    // States of one shape are read faster: nearly always there is nothing to leave out.
    if (after.acts === undefined) return after;
    const { acts: _acts, ...rest } = after;
    return rest;
  }
  const due = after.pending.length === 0 ? [] : dueIn(flow, after, acts);
  const pending =
    due.length === 0 ? after.pending : [{ type: "act", due, args: after.args } as const, ...after.pending];
  return { ...after, acts, pending };
}

function actsAfter(flow: Flow, before: State, event: Event, after: State): Acts | undefined {
  if (event.type === "run.started") return opened(flow, event);
  const acts = before.acts ?? (event.type === "run.adopted" && mayAct(flow) ? NOTHING : undefined);
  if (acts === undefined) return undefined;
  if (acts.shared > 0)
    return acts.shared === 1 && !acts.hasWorktree && !mayAct(flow)
      ? undefined
      : { ...acts, shared: acts.shared - 1 };
  if (event.type === "run.resumed" || event.type === "run.ended") return { ...acts, begun: false };
  if ("key" in event) return { ...acts, asked: acts.asked.map((one) => noted(one, event)) };
  return "step" in event ? stepped(flow, before, event, after, acts) : acts;
}

const NOTHING: Acts = { shared: 0, hasWorktree: false, begun: false, said: {}, asked: [] };

function opened(flow: Flow, { worktree, forkedFrom }: Event & { type: "run.started" }): Acts | undefined {
  if (worktree === undefined && forkedFrom === undefined && !mayAct(flow)) return undefined;
  return { ...NOTHING, shared: (forkedFrom?.seq ?? 1) - 1, hasWorktree: worktree !== undefined };
}

/** Whether answers may ask for anything outside, or the issue of the run is written to. */
export function mayAct({ settings: { actions, github } }: Flow): boolean {
  return actions.enabled || isWriting(github);
}

function isWriting({ enabled, asked }: Flow["settings"]["github"]): boolean {
  return enabled && asked === true;
}

function noted(asked: Asked, event: EffectEvent): Asked {
  const of = effectOf(event);
  const { step, visit } = asked.due;
  if (typeof of === "string" || of.step !== step || of.visit !== visit || event.type === "effect.failed")
    return asked;
  const others = asked.open.filter((key) => key !== event.key);
  const isOpen = event.type === "effect.intended" && isRepeatable(event.kind);
  return { ...asked, open: isOpen ? [...others, event.key] : others };
}

/** Before a step could go on, all that was due was attended to, unless it became due while others went on beside it. */
function stepped(flow: Flow, before: State, event: Event, after: State, acts: Acts): Acts {
  const isForked = before.fork !== null;
  const asked = acts.asked.filter(({ open, beside }) => open.length > 0 || (beside && isForked));
  const said = event.type === "step.answered" ? heard(flow, event, after, acts.said) : acts.said;
  const { settled } = after;
  if (settled === null) return { ...acts, begun: true, said, asked };
  const { [visitKey(settled)]: words, ...others } = said;
  const { settings, steps } = flow;
  const isAsking = words !== undefined && settings.actions.enabled && isAccepted(flow, settled, after);
  const blocks = isAsking ? blocksIn(words.text, settings.actions, words.answer) : [];
  if (blocks.length === 0) return { ...acts, begun: true, said: others, asked };
  const { step, visit } = settled;
  const mayWrite = own(steps, step)?.tools.mode !== "plan";
  const completes = isCompletion(flow, settled, after);
  const due: BlocksDue = { kind: "blocks", step, visit, blocks, settings, mayWrite, completes };
  return { ...acts, begun: true, said: others, asked: [...asked, { due, open: [], beside: isForked }] };
}

/** The newest words of a visit, if they were taken for its answer. What a question about a step is answered with asks for nothing. */
function heard(
  { steps, settings }: Flow,
  event: Event & { type: "step.answered" },
  { last }: State,
  said: Acts["said"],
): Acts["said"] {
  if (!settings.actions.enabled) return said;
  const { [visitKey(event)]: _before, ...others } = said;
  const { reply } = event;
  const step = own(steps, event.step);
  if (step === undefined || step.aside !== undefined || step.by.kind !== "model" || reply.kind !== "said")
    return others;
  const { text, output = null } = reply;
  // A visit with a lifecycle is completed by a call; its verdict says whether that was accepted.
  const isTaken =
    lifecycleOf(step) !== undefined ||
    (last?.step === step.id && text.startsWith(last.text) && last.text !== "");
  if (!isTaken) return others;
  return { ...others, [visitKey(event)]: { text, answer: step.answer.kind === "object" ? output : null } };
}

/** Neither overturned by checks, nor an abort, nor rejected by a question about it or by its own assertions. */
function isAccepted(
  { steps }: Flow,
  { step, label, to, overturned, check }: Led,
  { verdict }: State,
): boolean {
  if (overturned === true || label === null) return false;
  if (to === null && verdict?.outcome === "failed") return false;
  if (check !== undefined) return check.label === "pass";
  return !hasLifecycle(own(steps, step)) || label === "ok";
}

/** The checks of the last step held, and with it the run is complete. Where a verdict ended the run, no step closed it. */
function isCompletion({ steps }: Flow, { step, to }: Led, { verdict }: State): boolean {
  const last = own(steps, step);
  return (
    to === null &&
    verdict?.outcome === "completed" &&
    verdict.step === step &&
    (last?.kind === "close" || hasLifecycle(last))
  );
}

function hasLifecycle(step: Step | undefined): boolean {
  return step !== undefined && lifecycleOf(step) !== undefined;
}

/**
 * In the order in which it is done: what answers ask for comes first, because the files they write are part of the work;
 * an issue is closed when the work is published.
 */
function dueIn(flow: Flow, state: State, { asked, begun, hasWorktree }: Acts): readonly Due[] {
  const blocks = asked.map(({ due }) => due);
  const issue = isWriting(flow.settings.github) ? issueIn(state.args) : null;
  const end = decidedEnd(state);
  if (end === null) return issue === null || begun ? blocks : [...blocks, { kind: "begin", issue }];
  const isComplete = end.outcome === "completed";
  const closing: IssueClosing | null = issue === null ? null : { issue, answer: closingAnswer(flow, state) };
  const due: Due[] = [...blocks];
  if (isComplete && hasWorktree) due.push({ kind: "publish", answer: state.last?.payload ?? null, closing });
  // A run that waits for a person, or can go on once a problem has passed, has not ended.
  if (closing !== null && state.halted.length === 0)
    due.push(isComplete ? { kind: "close", ...closing } : { kind: "blocked", issue: closing.issue });
  for (const one of blocks) if (one.completes) due.push({ ...one, last: true });
  return due;
}

/** What the closing step ended the run with. Where a verdict ended it, no answer says what is to become of the issue. */
function closingAnswer({ steps }: Flow, { last, verdict }: State): JsonObject | null {
  if (last === null || last.step !== verdict?.step) return null;
  const step = own(steps, last.step);
  const leadsOn = own(step?.edges ?? {}, last.label)?.kind === "goto";
  return step?.kind === "close" && !leadsOn ? last.payload : null;
}

function issueIn(args: JsonObject): number | null {
  const issue = Number(own(args, "issue") ?? 0);
  return Number.isSafeInteger(issue) && issue > 0 ? issue : null;
}
