/**
 * The picture of a flow: prompt → payload → label → move.
 *
 * A step asks for a payload that fits a schema, a decider turns the payload into one label, checks may overturn it,
 * an edge turns the label into a move; everything else is a limit. A Flow is plain JSON, complete in itself (prompts
 * and schemas are inside), so that a run can be pinned to it by digest and resumed without the files it came from.
 */
import type { Json, JsonObject, JsonSchema, Path } from "./json.ts";
import type { PermissionMode, Settings } from "./settings.ts";

export type StepId = string;
export type Label = string;

export type Flow = {
  readonly ir: 1;
  readonly agent: string;
  /** Which written form the flow came from. Shown to people; nothing decides by it. */
  readonly dialect: string;
  readonly title: string;
  readonly description: string;
  readonly parameters: readonly Parameter[];
  /** Arguments beyond the declared ones are taken as they come: the written form knows no declarations. */
  readonly openArguments?: true;
  /** The system prompt that every step with a shared transcript gets. */
  readonly system: Prompt;
  readonly entry: StepId;
  readonly steps: { readonly [id: StepId]: Step };
  readonly checks: { readonly [name: string]: Check };
  readonly stop: StopRule;
  /** Checks that must pass before the stop rule ends the run. */
  readonly stopGuard?: Guard;
  readonly limits: FlowLimits;
  /** Code of the project that takes part in the lifecycle of its steps. */
  readonly hooks?: Module & {
    /** A join may be any step of the flow, also one that is not listed among the next ones. */
    readonly joinRule?: "declared";
  };
  /** Texts that prompts take in by name. Each is a template of its own; what became of it is then a value. */
  readonly sections?: { readonly [variable: string]: Prompt };
  /** Values every prompt may read besides parameters, such as the names of labels. */
  readonly constants: { readonly [name: string]: string };
  /** The sentence that tells the model when the run counts as done. */
  readonly criteria: string;
  readonly settings: Settings;
};

/** By their digests. */
export type Flows = { readonly [digest: string]: Flow };

export type Parameter = {
  readonly name: string;
  readonly type: "string" | "number" | "boolean" | "array" | "object";
  readonly description: string;
  readonly flag: string;
  readonly required: boolean;
  readonly default?: Json;
  readonly validation?: {
    readonly min?: number;
    readonly max?: number;
    readonly pattern?: string;
    readonly enum?: readonly Json[];
  };
};

export type Step = {
  readonly id: StepId;
  readonly name: string;
  readonly kind: StepKind;
  readonly by: Performer;
  readonly prompt: Prompt;
  /** Whether the step talks on in the run's conversation or starts with an empty one. */
  readonly transcript: "shared" | "fresh";
  readonly model: string;
  readonly tools: Tools;
  readonly answer: Answer;
  readonly decide: Decider;
  readonly guard?: StepGuard;
  /** Named data that this step hands on. */
  readonly carry: readonly Carry[];
  readonly needs: readonly Need[];
  readonly edges: { readonly [label: Label]: Move };
  /** Model responses allowed in one visit. */
  readonly turns: number;
  readonly limits?: StepLimits;
  /**
   * The step that this one belongs to, as a question about its work does. It is not a separate visit in path and count:
   * its decision is reported as the decision of that step.
   */
  readonly aside?: StepId;
  /** What happens around the conversation. The engine reads it with `lifecycleOf`: the name is part of recorded flows. */
  readonly stage?: Lifecycle;
  /** What becomes of it when a process went away while it was under way; absent: it is done again. */
  readonly ifInterrupted?: "ask" | "fail";
};

export type StepKind = "work" | "verify" | "close";

/** Who fills in the payload: a model, or a command whose stdout is the payload. */
export type Performer =
  | { readonly kind: "model" }
  | {
      readonly kind: "command";
      readonly command: string;
      readonly args: readonly string[];
      readonly timeoutMs: number;
    };

export type Prompt = {
  /** null: none of the places in `tried` holds a file. */
  readonly file: string | null;
  readonly text: string;
  readonly tried: readonly string[];
  /** Declared variables: each must have a non-empty value when the prompt is rendered. */
  readonly variables: readonly string[];
  /**
   * How it is written when not with `{uv-name}`. `lenient`: `{name}` and `{{name}}` are read like `{uv-name}`, and what
   * has no value stays as it is written. `stage`: `{{ctx.…}}` and `${ctx.…}`, and it is the system prompt of its step.
   */
  readonly syntax?: "lenient" | "stage";
  /** The words are not the author's: no file was found, and `file` is `built-in:<name>`. The values are known to this prompt only. */
  readonly builtIn?: { readonly values: { readonly [name: string]: string } };
};

export type Tools = { readonly allow: readonly string[]; readonly mode: PermissionMode };

/** What the step must answer with. `text` has no contract: whatever is said is the answer. */
export type Answer =
  | { readonly kind: "text" }
  | {
      readonly kind: "object";
      readonly schema: SchemaSource;
      readonly channel: { readonly kind: "output" } | { readonly kind: "tool"; readonly name: string };
      /** A member that names the step itself: a wrong string there is put right instead of refused. */
      readonly correct?: { readonly field: string; readonly value: string };
      /** How often an unreadable or ill-fitting answer is sent back within one visit. */
      readonly repairs: number;
      readonly miss: Miss;
    };

export type SchemaSource =
  | { readonly kind: "any" }
  | { readonly kind: "schema"; readonly name: string; readonly schema: JsonSchema }
  | { readonly kind: "unresolved"; readonly name: string; readonly code: string; readonly why: string };

/** What no usable answer means: the end of the run, or simply one more label. */
export type Miss =
  | { readonly kind: "fail"; readonly code: string; readonly forgiveFirst: boolean }
  | { readonly kind: "label"; readonly label: Label };

export type Decider =
  | { readonly by: "const"; readonly label: Label }
  | {
      readonly by: "field";
      readonly path: Path;
      readonly alias: { readonly [word: string]: Label };
      readonly allow: readonly Label[];
      /** Labels that are accepted without looking at `allow` or at the schema. */
      readonly always: readonly Label[];
      /** Taken when the field holds no allowed label; absent: that is an error. */
      readonly fallback?: Label;
    };

export type Carry = { readonly key: string; readonly path: Path };

/** A variable that this step's prompt takes from data carried by another step. */
export type Need = {
  readonly variable: string;
  readonly from: { readonly step: StepId; readonly key: string };
  readonly required: boolean;
  readonly default?: Json;
};

/** Checks that must pass before a label takes effect, or before the run may end. */
export type Guard = {
  readonly checks: readonly GuardedCheck[];
  readonly onFailure: "retry" | "abort" | "skip";
  /** The failure with this number ends the run. */
  readonly maxFailures: number;
  /**
   * Where the run goes on after a failed check. `caller`: the step that led here. `again`: another attempt in the
   * same conversation, for a step that has a lifecycle. `onward`: where the edge of the step leads.
   */
  readonly back:
    | { readonly kind: "goto"; readonly step: StepId }
    | { readonly kind: "caller" }
    | { readonly kind: "again" }
    | { readonly kind: "onward" };
};

/** Checks that one label of a step must survive before its edge is taken. */
export type StepGuard = Guard & { readonly on: Label };

/** A check by name, with the prompt edition that tells the model how it failed. */
export type GuardedCheck = { readonly check: string; readonly edition: Prompt };

/** Something that can be found out about the work without a model. `pattern` is the way in which it fails. */
export type Check = { readonly name: string; readonly pattern: string; readonly description: string } & (
  | {
      readonly kind: "command";
      /** A line for the shell, as it was written: values come to it by `env` and never become part of it. */
      readonly command: string;
      /** Absent in flows that earlier versions recorded. */
      readonly env?: { readonly [name: string]: string };
      readonly success: SuccessRule;
      readonly extract: { readonly [param: string]: string };
      readonly timeoutMs: number;
      readonly maxOutputBytes: number;
    }
  /** Something of this path is in the working directory. */
  | { readonly kind: "file"; readonly path: string }
  /** The newest commit is described as `type(scope)!: subject`. */
  | { readonly kind: "commit-message"; readonly timeoutMs: number }
);

export type CommandCheck = Extract<Check, { kind: "command" }>;

export type SuccessRule =
  | { readonly kind: "empty" }
  | { readonly kind: "exit"; readonly code: number }
  | { readonly kind: "contains"; readonly text: string }
  | { readonly kind: "matches"; readonly pattern: string };

/** Three moves and three selectors; there is no other way through a flow. `as` is the label that the path tells. */
export type Move =
  | { readonly kind: "goto"; readonly step: StepId; readonly as?: Label }
  | {
      readonly kind: "fork";
      readonly steps: readonly StepId[];
      /** null: the run ends when the last sibling is done. */
      readonly join: StepId | null;
      /** `independent`: a failed sibling stops nobody, and the join sees how each of them ended. */
      readonly policy?: "independent";
    }
  | { readonly kind: "end"; readonly outcome: "completed"; readonly as?: Label }
  | {
      readonly kind: "end";
      readonly outcome: "failed";
      readonly code: string;
      readonly as?: Label;
      /** Why, where the flow knows better than the model. */
      readonly reason?: string;
    }
  | {
      readonly kind: "switch";
      /** Where the value is in the data this step hands on. */
      readonly on: Path;
      readonly cases: { readonly [value: string]: Move };
      readonly otherwise?: Move;
    }
  | {
      readonly kind: "jump";
      readonly field: Path;
      readonly among: readonly StepId[];
      /** Taken when the field names no step at all; absent: that is an error. */
      readonly otherwise?: Move;
    }
  /** `move` so often since the step was entered from another one, `after` from then on. */
  | { readonly kind: "times"; readonly max: number; readonly move: Move; readonly after: Move };

/** A file of the project that is run as code, with the digest of what it held when the flow was read. */
export type Module = { readonly file: string; readonly digest: string };

/** The life of a visit around its conversation: what comes before, how often it is tried, and what it leaves behind. */
export type Lifecycle = {
  /** Tries within one visit, the first included; each has `turns` responses. */
  readonly attempts: number;
  readonly backoff: "none" | "linear" | "exponential";
  /** The check that must pass before the model is asked. */
  readonly gate?: string;
  /** What is done when the gate says "not yet" or "not without help". */
  readonly unresolved: "retry-later" | "fail" | "skip" | "ask";
  /** What each result that the visit is given must look like. */
  readonly inputs?: SchemaSource;
  /** What the visit leaves for others to read besides its payload; paths begin with `parsed`. */
  readonly output: readonly Carry[];
  /** What it writes into the context that all visits share, for all that come after it, siblings included. */
  readonly share?: readonly Carry[];
};

/** When a run is over although no edge ended it: asked whenever a visit is settled by an edge that leads on. */
export type StopRule =
  /** Only an edge ends the run. */
  | { readonly kind: "end" }
  | { readonly kind: "visits"; readonly count: number }
  /** Visits of steps that verify or close; in a flow that has neither, or in which nothing is chosen, of any step. */
  | { readonly kind: "checks"; readonly count: number }
  /** The model says this, letter by letter. */
  | { readonly kind: "keyword"; readonly text: string }
  /** The model gives a block of this type; a field with a value must hold just that, one without must be there. */
  | {
      readonly kind: "signal";
      readonly type: string;
      readonly fields: readonly { readonly name: string; readonly value?: Json }[];
    }
  /** Something outside is as it should be. */
  | { readonly kind: "state"; readonly resource: Resource }
  /** Code of the project says so. */
  | { readonly kind: "module"; readonly module: Module; readonly config: JsonObject }
  | { readonly kind: "all" | "any"; readonly of: readonly StopRule[] };

/** Something outside of the run whose state can be looked up. `{uv-name}` in a path or address is an argument. */
export type Resource =
  | { readonly kind: "file"; readonly path: string; readonly want: FileState }
  | { readonly kind: "api"; readonly url: string; readonly want: Json }
  | { readonly kind: "github-issue" | "github-project"; readonly want: Json };

export type FileState =
  | { readonly kind: "exists" }
  | { readonly kind: "absent" }
  | { readonly kind: "contains"; readonly text: string }
  | { readonly kind: "matches"; readonly pattern: string };

/** Ceilings, never goals. */
export type FlowLimits = Limits & { readonly visits: number };

/** What may be spent at the very most, and from where on the model is told that this is near. */
export type Limits = Spending & {
  /** A share of each, or amounts; where nothing is said, four fifths. */
  readonly soft?: number | Spending;
};

/** What a step may spend in a run, and in one attempt: a visit, or one of its tries. */
export type StepLimits = Limits & { readonly perAttempt?: Limits };

/** What was granted to a run in the place of what its flow says. */
export type Granted = Limits & {
  readonly steps?: { readonly [step: StepId]: StepLimits };
  /** The run goes on although an answer came without the tokens or the cost that a limit is about. */
  readonly unmetered?: true;
};

/** Amounts; absent: as much as it takes. */
export type Spending = {
  readonly turns?: number;
  /** In and out together. */
  readonly tokens?: number;
  readonly costUsd?: number;
  /** Time in which it is driven: what it waits for nobody to drive it does not count. */
  readonly wallMs?: number;
};
