/** A new run that shares the past of another one up to a visit, and goes on from there on its own. */
import type { Prepared } from "../engine/schema/prepared.ts";
import { stateAfter } from "../engine/decide/decide.ts";
import { fold } from "../engine/drive/drive.ts";
import { everyFault } from "../engine/schema/schema.ts";
import { RunnerError, type Journal } from "../engine/ports.ts";
import { inItsOwnRun, retell } from "../story/reword.ts";
import { recordedWith, type State } from "../engine/decide/state.ts";
import { decisionIn, type Entry, type Event, type ForkOrigin, type Led, type Reply } from "../flow/event.ts";
import type { Flow, Step, StepId } from "../flow/flow.ts";
import { own, type Json, type JsonObject } from "../flow/json.ts";
import { didYouMean } from "../flow/text/suggest.ts";
import { stripFrontMatter } from "../prompts/find.ts";
import { isImported, recall } from "./records/recall.ts";
import { acceptImported } from "./trust/foreign-state.ts";
import { flowDigest } from "./load.ts";
import type { ForkPlace } from "./world/fork-place.ts";
import { forkPlaceOf, requirePlace } from "./world/workplace.ts";
import { findProject } from "./world/project.ts";
import type { Result } from "../tell/result.ts";
import { systemClock } from "./world/clock.ts";
import type { DriveOptions } from "./options.ts";
import { newRunId, withStack } from "./open.ts";
import { resumedRecord, resumeFrom, travelsHere } from "./resume.ts";
import { withUnrecorded, type Unrecorded } from "./unrecorded.ts";
import { readRun, type RecordedRun } from "./records/runs.ts";
import { budgetLine, budgetOf } from "../tell/budget.ts";
import { findVisit } from "../tell/why.ts";
import { traceOf, type Visit } from "../story/visits.ts";

export type ForkOptions = {
  /** A run id, a unique prefix of one, `@last` or `@failed`. */
  readonly run: string;
  /** `STEP` or `STEP@VISIT`: the first visit that is not shared. Without a number the last one of the step. */
  readonly at: string;
  readonly edits?: Edits;
  /** Goes on with the flow that the files hold now. */
  readonly adopt?: boolean;
} & DriveOptions;

/** What is different from the parting on. */
export type Edits = {
  /** What the visit answers in the end, in place of the model; text for a step without a contract. */
  readonly output?: JsonObject | string;
  /** What steps before it handed on; members that are not named stay. */
  readonly handoff?: { readonly [step: StepId]: JsonObject };
  readonly prompts?: { readonly [step: StepId]: { readonly file: string; readonly text: string } };
  readonly models?: { readonly [step: StepId]: string };
};

/**
 * Forks a run and drives the new one to its end. The original stays as it is. Where it has a worktree, the fork has one
 * of its own; otherwise both work in the same folder, with the files as they are.
 *
 * @example
 * const result = await fork({ run: "@last", at: "closure.issue@1", edits: { models: { "closure.issue": "haiku" } } });
 */
export async function fork(options: ForkOptions): Promise<Result> {
  return await withStack({ agent: "" }, options, async (stack, known) => {
    const clock = options.clock ?? systemClock;
    const project = findProject(options.cwd ?? process.cwd(), options.stateDir);
    const journal = await resumedRecord(project, options, stack);
    const recorded = await readRun(journal, options.run);
    known.agent = recorded.row.agent;
    const accepted = await acceptImported(recorded, project.stateDir, options);
    const place = await travelsHere(journal, recorded.row.id, options);
    if (options.journal === undefined && place === null)
      requirePlace(project.root, recall(recorded.entries), recorded.current, recorded.row.id);
    const parting = await partFrom(recorded, options, options);
    const draft = withUnrecorded(journal, draftOf(recorded, options, clock.now(), parting));
    const beforeWorktree = async () => {
      await draft.make();
      known.run = draft.row.id;
    };
    const asked = {
      steered: options.journal === undefined,
      ...options,
      ...(accepted && { trustJournal: true }),
      run: draft.row.id,
      journal: draft.journal,
    };
    const { row, journal: drafted } = draft;
    const { warnings } = parting;
    return await resumeFrom(
      { journal: drafted, row, project, place, beforeWorktree, warnings },
      asked,
      stack,
      known,
    );
  });
}

/** What a fork has for itself: its id, and its place where its original has a worktree. */
type Parting = {
  readonly id: string;
  readonly place: ForkPlace | null;
  readonly warnings: readonly string[];
};

async function partFrom(
  recorded: RecordedRun,
  { at, edits = {} }: PartOptions,
  around: Pick<ForkOptions, "env" | "signal">,
): Promise<Parting> {
  // A visit that does not exist is the first thing to report.
  cutAt(recorded, at, edits.output !== undefined);
  const id = newRunId();
  const { row, entries, current } = recorded;
  const { cwd, worktree } = recall(entries);
  if (worktree === undefined) return { id, place: null, warnings: [] };
  // The files of a run with a source travel: its worktree is made where it is driven.
  if (hasSource(entries)) {
    const { travellingBranch } = await import("./source.ts");
    const own = { ...worktree, branch: travellingBranch(current.agent, id) };
    return { id, place: { cwd, worktree: own, warnings: [] }, warnings: [] };
  }
  const place = await forkPlaceOf(current, id, { run: row.id, cwd, worktree, isDriven: row.owned }, around);
  return { id, place, warnings: place.warnings };
}

function hasSource([first]: readonly Entry[]): boolean {
  return first?.event.type === "run.started" && first.event.source !== undefined;
}

/** A fork before it is driven. */
export type Parted = {
  readonly v: 1;
  /** The new run; null: it is not recorded, because only a preview was asked for. */
  readonly run: string | null;
  readonly origin: string;
  /** The last entry that is shared. */
  readonly seq: number;
  /** The decisions that are shared, in order, each with its entry. */
  readonly shared: readonly (Led & { readonly seq: number })[];
  readonly edits: readonly string[];
  /** Where an edited answer does not fit its schema: the model is then asked again. */
  readonly misfits: readonly string[];
  /** What the flow can cost from the first step on; the rest of the run costs at most that. */
  readonly budget: string;
  /** The prompt of that step in the fork, before values are filled in; null: a command performs it. */
  readonly prompt: string | null;
};

/** Records the fork and drives nothing: `resume` goes on with it. */
export async function partRun(
  journal: Journal,
  asked: PartOptions,
  now: number,
  around: Pick<ForkOptions, "env" | "signal"> = {},
): Promise<Parted> {
  const recorded = await readRun(journal, asked.run);
  const { draft, parted } = drafted(recorded, asked, now, await partFrom(recorded, asked, around));
  const handle = await journal.create(draft.run, draft.entries, draft.adopted);
  await handle.release();
  return { ...parted, run: draft.run.id };
}

/** What `partRun` would record. */
export async function previewFork(journal: Journal, asked: PartOptions, now: number): Promise<Parted> {
  const parting = { id: newRunId(), place: null, warnings: [] };
  return drafted(await readRun(journal, asked.run), asked, now, parting).parted;
}

export type PartOptions = Pick<ForkOptions, "run" | "at" | "edits">;

function drafted(
  recorded: RecordedRun,
  asked: PartOptions,
  now: number,
  parting: Parting,
): { readonly draft: Draft; readonly parted: Parted } {
  const draft = draftOf(recorded, asked, now, parting);
  const { wanted, cut, edited } = draft;
  const { output } = asked.edits ?? {};
  const { answer, by, prompt } = wanted.steps[cut.step]!;
  const isHeld = answer.kind === "object" && answer.schema.kind === "schema" && output !== undefined;
  const parted: Parted = {
    v: 1,
    run: null,
    origin: recorded.row.id,
    seq: cut.seq,
    shared: recorded.entries.slice(0, cut.seq).flatMap((entry) => {
      const led = decisionIn(entry);
      return led === undefined ? [] : [{ ...led, seq: entry.seq }];
    }),
    edits: edited,
    misfits: isHeld ? everyFault(answer.schema.schema, output) : [],
    budget: budgetLine(budgetOf(wanted)),
    prompt: by.kind === "command" ? null : prompt.text,
  };
  return { draft, parted };
}

type Draft = Unrecorded & {
  readonly wanted: Prepared;
  readonly cut: Cut;
  readonly edited: readonly string[];
};

function draftOf(
  recorded: RecordedRun,
  { at, edits = {} }: PartOptions,
  now: number,
  { id, place }: Parting,
): Draft {
  const cut = cutAt(recorded, at, edits.output !== undefined);
  const shared = recorded.entries.slice(0, cut.seq);
  const edited = words(cut, edits);
  const forkedFrom = {
    run: recorded.row.id,
    seq: cut.seq,
    ...(edited.length > 0 && { edits: edited }),
  };
  const { flow, adopted } = recorded;
  const entries: Entry[] = retell({
    flow,
    adopted,
    entries: shared,
    change: (event, { was, is }) =>
      event.type === "run.started"
        ? begunAs(event, id, place, forkedFrom, isImported(recorded.entries))
        : inItsOwnRun(event, event, was, is),
  }).map((entry, place) => withFiles(entry, shared[place]!));
  const wanted = editFlow(cut.flow, edits);
  const digest = flowDigest(wanted);
  let state = fold(flow, entries, adopted);
  const add = (held: Prepared, event: Event) => {
    state = stateAfter(held, state, event);
    const before = entries.at(-1)?.at ?? now;
    const moved = now === before ? {} : { moved: now - before };
    entries.push({ seq: entries.length + 1, at: now, ...moved, event, ...recordedWith(state) });
  };
  if (wanted !== cut.flow) add(wanted, { type: "run.adopted", flow: digest });
  if (edits.handoff !== undefined)
    add(wanted, { type: "run.edited", handoff: knownSteps(wanted, edits.handoff) });
  if (edits.output !== undefined) add(wanted, answerOf(wanted, state, cut, edits.output));
  const { agent, digest: began } = recorded.row;
  return {
    run: { id, agent, at: now, digest: began, flow },
    entries,
    adopted: { ...adopted, ...(wanted !== cut.flow && { [digest]: wanted }) },
    wanted,
    cut,
    edited,
  };
}

/** Where the files of a run travel, they are those that it had then. */
function withFiles(entry: Entry, { tree }: Entry): Entry {
  return tree === undefined ? entry : { ...entry, tree };
}

type Cut = {
  /** The last entry that is shared. */
  readonly seq: number;
  readonly flow: Prepared;
  readonly step: StepId;
  readonly visit: number;
  /** Where the model stood with the answer that is replaced. */
  readonly mark: Json | undefined;
};

/** The worktree is the other run's: the fork has one of its own, or works where the other worked. */
function begunAs(
  event: Extract<Event, { type: "run.started" }>,
  run: string,
  place: ForkPlace | null,
  forkedFrom: ForkOrigin,
  isForeign: boolean,
): Event {
  const { worktree: _worktree, imported: _imported, ...rest } = event;
  const own = place === null ? {} : { cwd: place.cwd, worktree: place.worktree };
  return { ...rest, ...own, run, forkedFrom, ...(isForeign && { imported: { entries: forkedFrom.seq } }) };
}

/** Just before the visit; or, where its answer is given, just before the answer it gave in the end. */
function cutAt({ flow, adopted, entries }: RecordedRun, at: string, withOutput: boolean): Cut {
  const trace = traceOf(flow, entries, adopted);
  const visit = findVisit(trace, at);
  const { step, visit: number } = visit;
  if (!withOutput) return { seq: visit.begun, flow: visit.flow, step, visit: number, mark: undefined };
  const answered = answersIn(visit);
  const last = answered.findLast(({ reply }) => reply.kind === "said") ?? answered.at(-1);
  if (last !== undefined) {
    const mark = "mark" in last.reply ? last.reply.mark : undefined;
    return { seq: last.seq - 1, flow: last.flow, step, visit: number, mark };
  }
  const lane = trace.final.lanes.find((other) => other.step === step && other.visit === number);
  if (lane?.command.type === "ask")
    return { seq: entries.length, flow: trace.flow, step, visit: number, mark: undefined };
  throw new RunnerError(
    "EDIT_INVALID",
    `Nothing was asked in ${step}@${number}, so there is no answer to edit.`,
  );
}

function answersIn({ step, happened }: Visit) {
  return happened.flatMap(({ entry: { seq, event }, flow }) =>
    event.type === "step.answered" && event.step === step && event.reply.kind !== "unaskable"
      ? [{ seq, flow, reply: event.reply }]
      : [],
  );
}

function answerOf(
  flow: Flow,
  state: State,
  { step: id, visit, mark }: Cut,
  output: JsonObject | string,
): Event {
  const step = flow.steps[id]!;
  const turn = state.lanes.find((lane) => lane.step === id && lane.visit === visit)?.turn ?? 1;
  const reply: Reply = {
    kind: "said",
    ...wordsOf(step, output, `${state.run}/${id}@${visit}/${turn}`),
    usage: { turns: 0, inputTokens: 0, outputTokens: 0, costUsd: null },
    ...(mark !== undefined && { mark }),
  };
  return { type: "step.answered", step: id, visit, turn, reply };
}

function wordsOf({ id, answer }: Step, output: JsonObject | string, key: string) {
  if (answer.kind === "text") {
    return { text: typeof output === "string" ? output : JSON.stringify(output), calls: [] };
  }
  if (typeof output === "string")
    throw new RunnerError(
      "EDIT_INVALID",
      `Step "${id}" answers with a JSON object, but the edited output is not one.`,
    );
  if (answer.channel.kind === "output") return { text: "", calls: [], output };
  return { text: "", calls: [{ id: `${key}#edited`, name: answer.channel.name, input: output }] };
}

function editFlow(flow: Prepared, { prompts = {}, models = {} }: Edits): Prepared {
  if (Object.keys(prompts).length + Object.keys(models).length === 0) return flow;
  const steps = { ...flow.steps };
  for (const [id, { file, text }] of Object.entries(knownSteps(flow, prompts))) {
    const { builtIn: _builtIn, ...prompt } = steps[id]!.prompt;
    steps[id] = { ...steps[id]!, prompt: { ...prompt, file, text: stripFrontMatter(text) } };
  }
  for (const [id, model] of Object.entries(knownSteps(flow, models))) steps[id] = { ...steps[id]!, model };
  return { ...flow, steps };
}

function knownSteps<T>(
  { steps }: Flow,
  named: { readonly [step: StepId]: T },
): { readonly [step: StepId]: T } {
  const stranger = Object.keys(named).find((id) => own(steps, id) === undefined);
  if (stranger === undefined) return named;
  const near = didYouMean(stranger, Object.keys(steps));
  throw new RunnerError("STEP_UNKNOWN", `The flow of this run has no step "${stranger}".${near}`);
}

function words(
  { step, visit }: Cut,
  { output, handoff, prompts = {}, models = {} }: Edits,
): readonly string[] {
  return [
    ...(output === undefined ? [] : [`output of ${step}@${visit}`]),
    ...(handoff === undefined ? [] : [`handoff of ${Object.keys(handoff).join(", ")}`]),
    ...Object.keys(prompts).map((id) => `prompt of ${id}`),
    ...Object.entries(models).map(([id, model]) => `model of ${id}: ${model}`),
  ];
}
