/** What happened: the entries of a journal, and what they are made of. */
import type { AtVisit } from "./deed.ts";
import type { EffectOf } from "./due.ts";
import type { Granted, Label, StepId } from "./flow.ts";
import type { Json, JsonObject } from "./json.ts";
import type { Finalize } from "./settings.ts";
import type { Verdict } from "./verdict.ts";

/**
 * Which events and flows this version of the program writes. It grows with what an entry or a flow can hold, so that a
 * process never goes on with a run that it does not understand.
 */
export const SPEECH = 1;

/** One entry of a journal. `seq` counts from 1 without gaps; `at` is epoch milliseconds. */
export type Entry = {
  readonly seq: number;
  readonly at: number;
  /**
   * How far the clock was set since the entry before, in milliseconds; absent: it was not. At the parting of a fork: how
   * much later it was made than the entry before.
   */
  readonly moved?: number;
  readonly event: Event;
  /** The decision this event led to, kept so that a replay can be compared with what was done. */
  readonly led?: Led;
  /** The steps under way after it, while a fork is open. Absent in records of earlier versions. */
  readonly underWay?: readonly StepId[];
  /** The files that the run works on, as they are after it, where they changed and travel with the run. */
  readonly tree?: Tree;
};

/** The files of a run at a moment: a commit, and the digest of the stored git bundle that brings it. */
export type Tree = { readonly commit: string; readonly blob: string };

/** A remote of a repository: its name there, and its address without a password. */
export type Remote = { readonly name: string; readonly url: string };

/**
 * Where the files of a run come from, so that any machine can drive it. Its `cwd` is then a folder within them, and so are
 * the paths of its worktree: the process that drives it knows where they are.
 */
export type Source =
  /** A commit of a repository that others can reach. `branch`: the one that it was on. */
  | { readonly kind: "git"; readonly commit: string; readonly remote: Remote; readonly branch?: string }
  /**
   * A stored git bundle with what the submitter had. `files`: a commit upon the other with what was not committed.
   * `remote`: where results can be pushed to; `needs`: a commit that the bundle builds on and that is fetched from there.
   */
  | {
      readonly kind: "bundle";
      readonly blob: string;
      readonly commit: string;
      readonly files?: string;
      readonly branch?: string;
      readonly remote?: Remote;
      readonly needs?: string;
    }
  /** It works in an empty folder. */
  | { readonly kind: "none" };

/** How one visit of a step was settled. `to` is null when the run ended there. */
export type Led = AtVisit & {
  readonly label: Label | null;
  readonly to: StepId | null;
  /** The checks failed: the label did not take effect. */
  readonly overturned?: true;
  /** What a question about this step's work found. */
  readonly check?: { readonly label: Label; readonly message: string };
  /** Its place among siblings that ran at the same time; below 0: it came after one of them. */
  readonly place?: number;
  /** The siblings that it started; `to` is where they meet. Absent in records of earlier versions. */
  readonly fork?: readonly StepId[];
  /** What was put right or worked around on the way. */
  readonly notes?: readonly string[];
};

/** The decision of an entry. Earlier versions recorded the one before a second time when a run reached its time limit. */
export function decisionIn({ event, led }: Entry): Led | undefined {
  return event.type === "run.limited" ? undefined : led;
}

/** How the commands of a stretch of a run were held, as far as Lockstep starts them. */
export type Confinement = {
  readonly confined: boolean;
  /** What confines them; null: nothing does. */
  readonly engine: string | null;
  /** The hosts that they reach; `all`: as this machine does. */
  readonly network: "none" | "all" | readonly string[];
  readonly why: string;
};

export type Event =
  | {
      readonly type: "run.started";
      readonly run: string;
      readonly agent: string;
      readonly flow: string;
      readonly args: JsonObject;
      readonly input: string;
      readonly cwd: string;
      /** Absent: it works in a folder of the machine that it was started on. */
      readonly source?: Source;
      /** The digest of what the submitter trusted, where anything needed trust and another machine is to drive it. */
      readonly trusted?: string;
      readonly backend: BackendSpec;
      /** What it may spend, where that is not what the flow says. */
      readonly spending?: Granted;
      /** Absent: it works in the folder it was started in. */
      readonly worktree?: Worktree;
      /** The GitHub repository that it speaks of, where a remote named it when the run began. */
      readonly repository?: {
        readonly host: string;
        readonly owner: string;
        readonly repo: string;
        readonly from: string;
      };
      /** What would be done to the world is told, and not done. */
      readonly dryRun?: true;
      /** The run whose past this one shares, up to and with that entry. */
      readonly forkedFrom?: ForkOrigin;
      /** It came as a file with so many entries: nothing of it is obeyed before a `run.resumed` after them says `accepted`. */
      readonly imported?: { readonly entries: number };
      /** The batch that it belongs to. */
      readonly batch?: string;
      /** How its commands are held; absent in records of earlier versions, and where it is `queued`. */
      readonly sandbox?: Confinement;
      /** It was recorded by a process that does not drive it. */
      readonly queued?: true;
      /** How people take part, where that was said when it was queued. */
      readonly people?: { readonly onPermission?: "deny" | "halt" | "allow"; readonly expireMs?: number };
    }
  | {
      readonly type: "run.resumed";
      readonly epoch: number;
      readonly backend?: BackendSpec;
      readonly spending?: Granted;
      /** Nothing can have been under way: the run has not been driven yet, had yielded, or was waiting. */
      readonly fresh?: true;
      /** What is left of waits that were not over when the run yielded. The others are over. */
      readonly waits?: readonly (AtVisit & { readonly ms: number })[];
      /** The user said yes to a run that was imported. */
      readonly accepted?: true;
      /** Names of processes that outlived the process which owned the run before, and were ended. */
      readonly strays?: readonly string[];
      readonly sandbox?: Confinement;
    }
  /** Somebody told it to go no further for now: what was under way is recorded, and `continue` goes on. */
  | { readonly type: "run.paused" }
  /** The process that drove it stopped between two entries: nothing is under way, and any process can go on. */
  | {
      readonly type: "run.yielded";
      /** Until when its visits wait, in epoch milliseconds. Where all of them do, the run has nothing to do before. */
      readonly waits?: readonly Waiting[];
    }
  /** It was stopped at once: what was under way is given up. */
  | {
      readonly type: "run.stopped";
      /** `signal`: by Ctrl-C or another signal to its own process; absent: from outside. */
      readonly by?: "signal";
      /** The steps that were under way; absent in records of earlier versions. */
      readonly at?: readonly StepId[];
    }
  /** Its time is up, or that `of` a step. */
  | {
      readonly type: "run.limited";
      readonly why: string;
      readonly of?: StepId;
      /** What a query had cost that was stopped by the limit. */
      readonly spent?: Usage;
      /** Absent in records of earlier versions. */
      readonly limit?: Reached;
    }
  /** Before it is asked, the model is to be told that a limit of time is near. */
  | (AtVisit & { readonly type: "step.warned"; readonly limit: LimitName; readonly text: string })
  /** From here on another flow holds. */
  | { readonly type: "run.adopted"; readonly flow: string }
  /** Somebody changed what was handed on; what is not named stays. */
  | { readonly type: "run.edited"; readonly handoff: { readonly [step: StepId]: JsonObject } }
  | (AtVisit & { readonly type: "step.answered"; readonly turn: number; readonly reply: Reply })
  | (AtVisit & {
      readonly type: "step.called";
      readonly turn: number;
      readonly results: readonly CallResult[];
    })
  | (AtVisit & { readonly type: "step.checked"; readonly results: readonly CheckResult[] })
  | (AtVisit & { readonly type: "step.waited"; readonly ms: number })
  /** Whether what the stop rule asks of the outside holds, in the order in which the rule names it. */
  | (AtVisit & { readonly type: "step.looked"; readonly sights: readonly Sight[] })
  | (AtVisit & { readonly type: "step.hooked"; readonly hook: HookName; readonly result: HookResult })
  /** A person is to be asked: from here on the question is open. */
  | (AtVisit & {
      readonly type: "step.asked";
      readonly question: Question;
      /** What was decided before about other calls of the same response. */
      readonly ruled?: readonly Ruling[];
    })
  /** What a question was answered with; null: nobody was there. */
  | (AtVisit & {
      readonly type: "step.told";
      readonly answer: string | null;
      /** Which question, and who says so; absent in journals that know of one question at a time only. */
      readonly id?: string;
      readonly by?: Teller;
    })
  /** The step cannot go on before somebody acts. */
  | (AtVisit & {
      readonly type: "step.suspended";
      readonly code: string;
      readonly why: string;
      /** What it can be told; absent: it is not a word that it waits for. */
      readonly choices?: readonly string[];
      /** The question that is open. What else is under way beside the step goes on; absent: the whole run waits. */
      readonly id?: string;
    })
  | { readonly type: "run.ended"; readonly verdict: Verdict }
  /** A person wrote a note on a run that had ended. Its `run.ended` is recorded once more after it, as it was. */
  | { readonly type: "run.noted"; readonly text: string }
  /** A query that was stopped before it was answered. It is asked again when the run goes on; what it cost counts. */
  | (AtVisit & { readonly type: "step.cut"; readonly usage: Usage })
  /** Visits that were told to stop and had not done so when the run was given up. */
  | { readonly type: "run.left"; readonly still: readonly string[] }
  | EffectEvent;

/**
 * Something done to the world: as a run begins, on its way, or when it is complete and before its end is recorded. It is
 * written down before it is done: a process that finds only the intention looks whether it was done, and does not do it twice.
 */
export type EffectEvent = {
  /** The same for every attempt at the same thing. */
  readonly key: string;
  /** What it belongs to; see `effectOf`. Absent in records of earlier versions. */
  readonly of?: EffectOf;
  readonly detail: string;
} & (
  | {
      /** `held`: not done, and not to be done by the run; `detail` says what it would be, or how to do it by hand. */
      readonly type: "effect.intended" | "effect.held";
      readonly kind: string;
      /** What it is done to: a branch, a remote, an issue. */
      readonly target?: string;
      /** Of what gets a number in a list: the newest number there before. */
      readonly newest?: number;
    }
  | { readonly type: "effect.applied" | "effect.failed" }
);

/** A visit that does nothing before this moment. */
export type Waiting = AtVisit & { readonly until: number };

/** Whose limit of what: of the run, of a step, of one attempt of a step. */
export type LimitName = `${"run" | "step" | "attempt"}.${"turns" | "tokens" | "costUsd" | "wallMs"}`;

/** A limit that ended a stretch of a run. */
export type Reached = {
  readonly of: "run" | "step" | "attempt";
  readonly step: StepId;
  readonly name: "turns" | "tokens" | "costUsd" | "wallMs";
  readonly most: number;
  readonly used: number;
  /** What the next call, and those under way, were estimated to take. */
  readonly next?: number;
};

/** A git worktree that a run has for itself. */
export type Worktree = {
  readonly path: string;
  /** Made for the run. */
  readonly branch: string;
  /** The branch it was made from and is merged into, and the commit that this was at. */
  readonly base: string;
  readonly commit: string;
  /** The commit that the branch of a fork begins at, with the work that it shares; absent: `commit`. */
  readonly from?: string;
  /** The working tree that the run was started in. */
  readonly home: string;
  /** As the agent says, unless it was said otherwise when the run was started. */
  readonly finalize: Finalize;
  /** The SHA-256 of the addresses that its remote was pushed to when the run began; absent: nothing is pushed. */
  readonly pushTo?: string;
  /** As in `run.started`; recorded here by earlier versions. */
  readonly dryRun?: true;
  /** Nobody works in `home`: the base branch is the one of the remote, and is merged there. */
  readonly onRemote?: true;
};

/** What a person is asked. It is open until it is told, expires, or the run is over. */
export type Question = {
  /** Names it within its run. */
  readonly id: string;
  readonly about: "permission" | "grant" | "gate" | "user" | "interrupted";
  readonly text: string;
  readonly choices: readonly string[];
  /** Any other words will do as well. */
  readonly free?: true;
  /** Which call of the response it is about, counted from 0. */
  readonly call?: number;
  /** What `allow-run` allows from then on: a pattern as in `allowedTools`. */
  readonly pattern?: string;
  /** Epoch milliseconds: from then on nobody's word counts any more. */
  readonly expiresAt?: number;
  /** It stays open when nobody is there. */
  readonly held?: true;
};

/** Who settled a question: a person, the time, the machine's own code, a setting, or the fact that nobody was there. */
export type Teller =
  | "terminal"
  | "answer"
  | "studio"
  | "mcp"
  | "file"
  | "expired"
  | "hook"
  | "setting"
  | "headless";

/** What was decided about one call of a response, counted from 0. */
export type Ruling = { readonly call: number; readonly answer: string | null; readonly by: Teller };

/** `edits` tell in words what was changed at the parting. */
export type ForkOrigin = { readonly run: string; readonly seq: number; readonly edits?: readonly string[] };

/** What was seen of something outside. */
export type Sight = { readonly met: boolean; readonly what: string };

export const HOOK_NAMES = ["setup", "checkGate", "assert", "exit", "next"] as const;
export type HookName = (typeof HOOK_NAMES)[number];

export type HookResult =
  /** The project has no code for this. */
  | { readonly kind: "absent" }
  | { readonly kind: "gave"; readonly value: Json }
  | { readonly kind: "threw"; readonly code: string; readonly message: string };

/** Enough to build the same backend again on resume. */
export type BackendSpec = {
  readonly id: string;
  readonly options: Json;
  /** The models that it asks, as `provider/model`; absent: it does not know before it asks. */
  readonly models?: readonly string[];
};

/** What answered: the model that was asked for, and the one that the answer names. Absent where that is not known. */
export type Answerer = {
  readonly provider: string;
  readonly model?: string;
  readonly answered?: string;
};

/** One model response, read and bounded. */
export type Reply =
  | (ReplyFacts & {
      readonly kind: "said";
      readonly text: string;
      readonly calls: readonly Call[];
      /** The payload, if one could be read. */
      readonly output?: JsonObject;
      readonly usage: Usage;
      readonly session?: string;
      /** An agent with a loop of its own used up all responses of its step, and was not done. */
      readonly capped?: true;
      /** What people were asked while an agent with a loop of its own went on. */
      readonly asked?: readonly AskedWithin[];
    })
  /** An answer beyond the size, depth or node caps. */
  | (ReplyFacts & { readonly kind: "oversized"; readonly why: string })
  /** The model or its transport failed. */
  | (ReplyFacts & { readonly kind: "fault"; readonly fault: Fault })
  /** The request could not be built: no prompt, no schema, a variable without a value. */
  | { readonly kind: "unaskable"; readonly code: string; readonly why: string };

/** What is recorded with a reply of any kind. */
export type ReplyFacts = {
  /** Where the backend stands after this response; handed back to it on resume. */
  readonly mark?: Json;
  /** What an agent with a loop of its own was allowed and denied on the way. Absent: nothing was judged. */
  readonly judged?: readonly JudgedCall[];
  /** Absent in records of earlier versions, and where the backend does not say. */
  readonly by?: Answerer;
};

/** A query of an agent cannot wait: a person who is present decides at once; otherwise no one does. */
export type AskedWithin = { readonly tool: string; readonly answer: string | null; readonly by: Teller };

/** A tool call before the gate, and why it was denied if it was. */
export type JudgedCall = { readonly name: string; readonly denied?: string };

export function judgedIn(reply: Reply): readonly JudgedCall[] {
  return reply.kind === "unaskable" ? NONE : (reply.judged ?? NONE);
}

const NONE: readonly JudgedCall[] = [];

export type Usage = {
  readonly turns: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** null: not known. */
  readonly costUsd: number | null;
  /** Of a sum: some responses have no known price, and `costUsd` is what the others cost. */
  readonly partly?: true;
  /** What the answer was not counted with: limits on it cannot be checked. Absent: nothing is missing. */
  readonly unknown?: readonly Figure[];
};

/** What only the backend can report. */
export type Figure = "tokens" | "costUsd";

export type Fault = {
  readonly kind: FaultKind;
  readonly message: string;
  /** Overrides the code that the kind would give. */
  readonly code?: string;
  readonly status?: number;
  readonly retryAfterMs?: number;
  /** What was spent all the same, where that is known. */
  readonly usage?: Usage;
};

export type FaultKind =
  | "auth"
  | "rate-limit"
  | "overloaded"
  | "network"
  | "bad-request"
  | "process"
  | "script"
  | "other";

export type Call = { readonly id: string; readonly name: string; readonly input: JsonObject };

export type CallResult = {
  readonly id: string;
  readonly name: string;
  readonly ok: boolean;
  readonly content: string;
  /** Why the boundary said no; absent when the tool ran. */
  readonly denied?: string;
  /** Who let it through, or did not, although the step's own list does not have it. */
  readonly grant?: Grant;
};

export type Grant = {
  readonly by: "hook" | "person" | "setting" | "nobody";
  readonly decision: "approve" | "deny";
  readonly argsDigest: string;
};

export type CheckResult = {
  readonly name: string;
  readonly ok: boolean;
  readonly pattern: string;
  readonly summary: string;
  readonly params: JsonObject;
  /** Failing again cannot help: the command is missing or forbidden. */
  readonly unrecoverable?: true;
  /** What is odd about it although it passed. */
  readonly note?: string;
};
