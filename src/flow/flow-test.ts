/**
 * A test of a flow, as data: what the model and everything around the flow will say, and what is expected of the run.
 * Test files are read into it, generated tests are written from it.
 */
import type { FaultKind } from "./event.ts";
import type { Label, StepId } from "./flow.ts";
import type { Json, JsonObject } from "./json.ts";

export type TestFile = {
  readonly file: string;
  readonly tests: readonly FlowTest[];
};

export type FlowTest = {
  readonly name: string;
  /** Where it is written; each row of a table of cases is a test of its own. */
  readonly file: string;
  readonly line: number;
  readonly params: JsonObject;
  /** What stands on standard input. */
  readonly input: string;
  readonly script: readonly TestReply[];
  /** The test is over when this step is entered: replies beyond it need not be given. */
  readonly until?: StepId;
  readonly around: Around;
  readonly ground: TestGround;
  readonly expect: Expected;
  readonly only: boolean;
  /** Why it is left out. */
  readonly skip?: string;
  /** Written by `test --generate`, which may write it again; `covers`: the elements that it was written for. */
  readonly generated: boolean;
  readonly covers: readonly string[];
};

/** One response of the model. `label`: the smallest answer with this label and `with`; else as in script files. */
export type TestReply = {
  readonly line: number;
  /** The same response so many times; absent: once. */
  readonly times?: number;
  readonly step?: StepId;
  readonly label?: Label;
  /** Dotted paths → values. */
  readonly with?: JsonObject;
  readonly saw?: readonly string[];
  readonly unseen?: readonly string[];
  readonly text?: string;
  readonly output?: Json;
  readonly calls?: readonly { readonly name: string; readonly input: JsonObject; readonly id?: string }[];
  readonly error?: {
    readonly kind: FaultKind;
    readonly message?: string;
    readonly status?: number;
    readonly retryAfterMs?: number;
  };
  readonly usage?: {
    readonly in?: number;
    readonly out?: number;
    readonly usd?: number;
    readonly turns?: number;
  };
  /** Of a recorded response: what it was given to. */
  readonly heard?: HeardDigests;
};

/** What a request to a model is made of; `words`: as it was said, with all values in place. */
export const HEARD_PARTS = ["system", "prompt", "schema", "tools", "words"] as const;
export type HeardPart = (typeof HEARD_PARTS)[number];

/** A part that is not given is not compared. */
export type HeardDigests = { readonly [part in HeardPart]?: string };

/** What there is around the flow, by name; each list is used in order, and its last item again and again. */
export type Around = {
  /** Absent: the check passes. */
  readonly checks: { readonly [name: string]: readonly CheckGiven[] };
  /** Absent: `NAME done`. */
  readonly tools: { readonly [name: string]: readonly ToolGiven[] };
  /** `STAGE.HOOK` or `HOOK`; absent: the hook gives nothing. */
  readonly hooks: { readonly [name: string]: readonly Json[] };
  /** What is seen outside, look by look; absent: nothing is as it should be. */
  readonly sights: readonly boolean[];
  /** What people say to questions, in order; absent: nobody is there. */
  readonly answers: readonly (string | null)[];
  /** The issue, its labels and its comments, and the requests that fail. */
  readonly github: JsonObject | null;
  /** Epoch milliseconds at which the clock begins. */
  readonly clock: number;
  /** In which order the siblings of a fork are done. */
  readonly order: readonly StepId[];
};

export type CheckGiven =
  | { readonly kind: "pass" }
  | { readonly kind: "fail"; readonly summary?: string }
  /** Judged by the check's own rule. */
  | { readonly kind: "output"; readonly exit: number; readonly stdout: string; readonly stderr: string };

export type ToolGiven = { readonly ok: boolean; readonly content: string };

export type TestGround =
  | { readonly kind: "memory" }
  | {
      readonly kind: "project";
      /** Copied; relative to the test file. */
      readonly folder: string;
      readonly git: false | { readonly commits: number; readonly branch: string; readonly dirty: boolean };
    };

/** Keys that are not given are not looked at. `lines`: where each is written. */
export type Expected = {
  readonly lines: { readonly [key: string]: number };
  readonly values: { readonly [key in ExpectKey]?: Json };
};

export const EXPECT_KEYS = [
  "outcome",
  "code",
  "exit",
  "final",
  "reason",
  "path",
  "visits",
  "checks",
  "handoff",
  "asked",
  "said",
  "calls",
  "effects",
  "github",
  "files",
  "changed",
  "git",
  "turns",
  "tokens",
  "costUsd",
  "waited",
  "warnings",
  "snapshot",
] as const;

export type ExpectKey = (typeof EXPECT_KEYS)[number];

export const NOTHING_AROUND: Around = {
  checks: {},
  tools: {},
  hooks: {},
  sights: [],
  answers: [],
  github: null,
  clock: 1_767_225_600_000,
  order: [],
};
