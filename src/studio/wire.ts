/** What the studio sends of runs: the documents of the screens that only look, and the messages of the stream. */
import type { Amounts, Budget } from "../engine/decide/state.ts";
import type { StepCommand } from "../flow/command.ts";
import type { BackendSpec, ForkOrigin } from "../flow/event.ts";
import type { StepId } from "../flow/flow.ts";
import type { Json, JsonObject } from "../flow/json.ts";
import type { ModelRow } from "../run/world/model-survey.ts";
import type { RunSummary, Shown, Damage } from "../run/records/runs.ts";
import type { WorktreeRow } from "../run/records/worktrees.ts";
import type { Refusal } from "../serve/refusal.ts";
import type { FlowChange } from "../story/changes.ts";
import type { Effect } from "../story/report.ts";
import type { Divergence } from "../story/replay.ts";
import type { Frame } from "../tell/frames.ts";
import type { LogLine } from "../tell/log-line.ts";
import type { OpenQuestion } from "../tell/open-questions.ts";
import type { Outline } from "../tell/outline.ts";
import type { Utterance } from "../tell/transcript.ts";
import type { Why } from "../tell/why.ts";

/** Every answer that is not 2xx. */
export type { Refusal };

// GET /api/…

/** `project` */
export type ProjectDocument = {
  readonly v: 1;
  /** The name of the project's folder, and the folder itself. */
  readonly name: string;
  readonly root: string;
  readonly stateDir: string;
  readonly version: string;
  /** No POST route exists. `why` says so in a sentence. */
  readonly readOnly: { readonly why: string } | null;
  /** How this user types the command: `lockstep`, `npx lockstep` or `npm run -s lockstep --`. */
  readonly command: string;
  /** Words that lead such a command to this project, as `--state=DIR`, where it was started with them. */
  readonly where: readonly string[];
  /** When the server began; another value means that another server answers. */
  readonly began: number;
  readonly agents: readonly string[];
  readonly models: readonly ModelSeen[];
};

/** Of keys only the name of the variable, and whether it is set. */
export type ModelSeen = Pick<ModelRow, "name" | "ref" | "provider" | "model" | "key" | "why">;

/** `runs?before=RUN&limit=N&agent=NAME`: newest first. */
export type RunsDocument = {
  readonly v: 1;
  /** Of all recorded runs. */
  readonly total: number;
  readonly runs: readonly RunLine[];
  /** What to ask for next as `before`; null: that was all. */
  readonly next: string | null;
  /** Where the stream goes on. */
  readonly cursor: string;
};

/** A row of the list of runs. */
export type RunLine = RunSummary & {
  /** What it was started with and what it has spent so far; null until that has been read. */
  readonly facts: LineFacts | null;
};

export type LineFacts = {
  /** In a few words: the first arguments, or what was piped in. */
  readonly about: string;
  readonly batch: string | null;
  readonly forkedFrom: ForkOrigin | null;
  readonly branch: string | null;
  readonly lanes: readonly LaneSeen[];
  readonly visits: number;
  readonly turns: number;
  readonly tokens: number;
  readonly costUsd: number | null;
  /** The newest entry at which somebody was driving it, since its first one, in milliseconds. */
  readonly drivenMs: number;
  readonly questions: number;
  /** Entries per minute over the last minutes of the run, oldest first; at most 20. */
  readonly pace: readonly number[];
};

/** A visit under way. `since`: epoch milliseconds of the entry from which on it is doing this. */
export type LaneSeen = {
  readonly step: StepId;
  readonly visit: number;
  readonly doing: StepCommand["type"];
  readonly since: number;
  readonly halted: boolean;
};

/** `runs/RUN` */
export type RunDocument = {
  readonly v: 1;
  readonly row: RunLine;
  /** The document of `lockstep show RUN --json`. */
  readonly shown: Shown;
  readonly outline: Outline;
  /** Epoch milliseconds of the first entry. */
  readonly startedAt: number;
  readonly args: JsonObject;
  readonly input: string;
  readonly cwd: string;
  readonly dryRun: boolean;
  readonly backend: BackendSpec;
  /** What may be spent and what was; null: nothing limits it. */
  readonly budget: BudgetSeen | null;
  /** What changed in the agent's files since; empty: nothing; null: the agent cannot be loaded. */
  readonly changes: readonly FlowChange[] | null;
  readonly damage: Damage | null;
};

export type BudgetSeen = Pick<Budget, "limits" | "steps" | "reached"> & { readonly spent: Amounts };

/** `runs/RUN/frames?after=SEQ`: at most 10,000 entries. */
export type FramesDocument = {
  readonly v: 1;
  readonly run: string;
  readonly after: number;
  readonly frames: readonly Frame[];
  /** Entries that there are, at least. */
  readonly events: number;
  /** Nothing comes after these for now. */
  readonly isAll: boolean;
  readonly damage: Damage | null;
};

/** `runs/RUN/at/SEQ`: the run as it stood after that entry. */
export type MomentDocument = {
  readonly v: 1;
  readonly run: string;
  readonly seq: number;
  readonly at: number;
  readonly lanes: readonly LaneSeen[];
  readonly iterations: number;
  readonly visits: { readonly [step: StepId]: number };
  readonly handoff: { readonly [step: StepId]: JsonObject };
  readonly ctx: JsonObject;
  /** Pointers into `{ handoff, ctx }` that this entry changed. */
  readonly changed: readonly string[];
  readonly turns: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costUsd: number | null;
  readonly budget: BudgetSeen | null;
  readonly questions: readonly OpenQuestion[];
  /** What the log says of the entry. */
  readonly log: readonly LogLine[];
};

/** `runs/RUN/why/STEP@VISIT`, `runs/RUN/why/STEP` and `runs/RUN/why`: the document of `lockstep why --json`. */
export type WhyDocument = Why & { readonly damage: Damage | null; readonly visits: readonly VisitSeen[] };

/** Visits of the same step. */
export type VisitSeen = {
  readonly step: StepId;
  readonly visit: number;
  readonly seq: number;
};

/** `runs/RUN/talk?of=shared|STEP@VISIT&from=N&find=TEXT`: at most 200 utterances. */
export type TalkDocument = {
  readonly v: 1;
  readonly run: string;
  /** The conversations of the run, in the order in which they began. */
  readonly conversations: readonly { readonly of: string; readonly count: number }[];
  readonly of: string;
  readonly from: number;
  readonly total: number;
  readonly utterances: readonly (Utterance & { readonly seq: number; readonly index: number })[];
  readonly damage: Damage | null;
};

/** `runs/RUN/log?from=N&level=info`: at most 500 lines. */
export type LogDocument = {
  readonly v: 1;
  readonly run: string;
  readonly from: number;
  readonly total: number;
  readonly lines: readonly LogEntry[];
  readonly damage: Damage | null;
};

export type LogEntry = LogLine & {
  readonly seq: number;
  readonly step: StepId | null;
  readonly visit: number;
};

/** `runs/RUN/effects`; `effects` has those of all runs. */
export type EffectsDocument = {
  readonly v: 1;
  readonly dryRun: boolean;
  readonly effects: readonly (Omit<Effect, "of"> & {
    readonly run: string;
    readonly agent: string;
    /** The visit that it came from; null: the beginning or the end of the run. */
    readonly step: StepId | null;
    readonly visit: number | null;
  })[];
  readonly worktree: Shown["worktree"];
  readonly damage: Damage | null;
};

/** `runs/RUN/replay` */
export type ReplayDocument = {
  readonly v: 1;
  readonly run: string;
  readonly events: number;
  readonly ms: number;
  readonly difference: Divergence | null;
};

/** `questions` */
export type QuestionsDocument = {
  readonly v: 1;
  readonly open: readonly QuestionSeen[];
  /** At most 50, newest first. */
  readonly answered: readonly AnsweredQuestion[];
};

export type QuestionSeen = OpenQuestion & {
  readonly run: string;
  readonly agent: string;
  readonly runAbout: string;
  /** Epoch milliseconds. */
  readonly askedAt: number;
  readonly isDriven: boolean;
  readonly isPaused: boolean;
  /** It was asked before questions had names. */
  readonly isNameless: boolean;
  /** The call that it is about. */
  readonly call: { readonly name: string; readonly input: Json } | null;
};

export type AnsweredQuestion = {
  readonly run: string;
  readonly agent: string;
  readonly id: string | null;
  readonly step: StepId;
  readonly visit: number;
  readonly question: string;
  readonly answer: string | null;
  readonly by: string | null;
  readonly at: number;
};

/** `worktrees` */
export type WorktreesDocument = { readonly v: 1; readonly worktrees: readonly WorktreeRow[] };

// GET /api/stream?after=CURSOR&run=RUN&agent=NAME

/** What is said twice does no harm. */
export type StreamMessage =
  | { readonly type: "hello"; readonly cursor: string; readonly began: number }
  /** Rows that are new or changed. */
  | { readonly type: "runs"; readonly total: number; readonly runs: readonly RunLine[] }
  /** Of the run that is looked at. */
  | { readonly type: "frames"; readonly run: string; readonly frames: readonly Frame[] }
  /** How many questions are open in all runs, and in which. */
  | { readonly type: "questions"; readonly open: number; readonly runs: readonly string[] }
  /** The files of these agents changed. */
  | { readonly type: "files"; readonly agents: readonly string[] }
  /** Why the recorded runs cannot be read at the moment; null: they can be read again, and `reset` follows. */
  | { readonly type: "journal"; readonly problem: string | null }
  /** Runs that were removed. */
  | { readonly type: "gone"; readonly runs: readonly string[] }
  /** The client fell behind: ask for everything again. */
  | { readonly type: "reset" };
