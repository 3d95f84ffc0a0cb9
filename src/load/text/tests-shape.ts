/** What a test file may hold: each key with its type, default and meaning. The schema for editors follows from it. */
import type { FaultKind } from "../../flow/event.ts";
import { HEARD_PARTS } from "../../flow/flow-test.ts";
import { DRIFT_RULES, ELEMENT_KINDS, WITHIN_KEYS } from "../../flow/test-settings.ts";
import {
  anything,
  flag,
  group,
  list,
  map,
  number,
  object,
  text,
  type Reads,
  type Shape,
} from "../../flow/shape.ts";

const VALUE = anything("A value.");

/** What there is around the flow, for one test or for all tests of the file. */
const AROUND = {
  params: map("The parameters of the run. A test adds to those of its file, or replaces them.", VALUE),
  input: text("What the run reads from standard input."),
  checks: map(
    "Results of checks by name: pass, fail, or { exit, stdout, stderr }. A list is used in order, and its last item from then on. A check that is not named passes.",
    VALUE,
  ),
  tools: map(
    "Results of tools by name: a text, or { ok, content }. A tool that is not named is done.",
    VALUE,
  ),
  hooks: map("What hooks give, by STAGE.HOOK or HOOK. One that is not named gives nothing.", VALUE),
  sights: list("Whether what the verdict looks at outside is as it should be, look by look.", flag("Met.")),
  answers: list(
    "What people say to the questions of the run, in order; null: nobody is there.",
    text("An answer.", { nullable: true }),
  ),
  github: anything("The issue, its labels and comments, and the requests that fail.", { types: ["object"] }),
  clock: text("When the run begins, such as 2026-01-01T00:00:00Z."),
  order: list("In which order the siblings of a fork are done.", text("A step.")),
  project: text(
    "A folder beside the test file that is copied for the test: checks and tools are really run in it.",
    { filled: true },
  ),
  git: anything("Makes the copy a git repository: true, or { commits, branch, dirty }."),
};

const ISSUE = object("An issue.", {
  number: number("Its number.", { min: 1, integer: true }),
  title: text("Its title."),
  body: text("Its text."),
  state: text("Whether it is open.", { enum: ["open", "closed"] }),
  author: text("Who wrote it."),
  labels: anything("A label, or a list of labels.", { types: ["string", "array"] }),
  assignees: anything("A name, or a list of names.", { types: ["string", "array"] }),
  comments: VALUE,
});

/** The ways in which a model can fail in a script. */
const FAULT_KINDS = [
  "auth",
  "rate-limit",
  "overloaded",
  "network",
  "bad-request",
  "process",
  "other",
] as const satisfies readonly FaultKind[];

export const TEST = object("One test.", {
  name: text("What it shows. ${case.NAME} stands for a value of the case.", { required: true, filled: true }),
  ...AROUND,
  cases: list(
    "One test for each of these: their values stand for ${case.NAME}.",
    anything("A case.", { types: ["object"] }),
    { filled: true },
  ),
  script: anything(
    "Responses of the model: STEP LABEL, or { step, label, with } and the keys of script files; or the path of a script file.",
    {
      types: ["array", "string"],
    },
  ),
  until: text("The test is over when this step is entered.", { filled: true }),
  expect: anything(
    "What is expected of the run; without it: it completes, every response is used, and nothing is warned of.",
    {
      types: ["object"],
    },
  ),
  only: flag("Only such tests are run. Refused in CI.", { default: false }),
  skip: text("Why the test is left out.", { filled: true }),
  generated: flag("Written by lockstep test --generate, which may replace it.", { default: false }),
  covers: list("The elements that a generated test was written for.", text("An element."), { default: [] }),
});

export const TEST_FILE = object("Tests of an agent.", {
  ...AROUND,
  tests: list("The tests.", TEST, { required: true, filled: true }),
});

/** Beside the test files: what holds for all tests of the agent. */
export const TEST_SETTINGS = object("Settings of the tests of an agent.", {
  coverage: group(
    "The least coverage of each kind, in percent. lockstep test --coverage exits with 7 below it.",
    numbers(ELEMENT_KINDS, (kind) => `The least coverage of ${kind}, in percent.`),
  ),
  ignore: list(
    "Elements that coverage does not count.",
    object("An element.", {
      id: text("Its name, as lockstep test --coverage prints it.", { required: true, filled: true }),
      why: text("Why it does not count.", { required: true, filled: true }),
    }),
    { default: [] },
  ),
  before: map(
    "Steps that must have been visited before a step is: STEP: STEP, or STEP: [STEP, STEP].",
    anything("A step, or a list of steps.", { types: ["string", "array"] }),
  ),
  never: list(
    "Paths that no run may hold, written as in expect.path: a text, or a list of texts.",
    anything("A path.", { types: ["string", "array"] }),
    { default: [] },
  ),
  within: group(
    "The most that any run may take.",
    numbers(WITHIN_KEYS, (what) => `The most ${what}.`),
  ),
  drift: map(
    `What comes of a recorded response that was given to another ${HEARD_PARTS.join(", ")}: ${DRIFT_RULES.join(", ")}. Without it: warn.`,
    text("A rule."),
  ),
});

const WORDS = anything("A text, or a list of texts.", { types: ["string", "array"] });

/** A response that is written out. */
export const REPLY = object("A response.", {
  step: text("The step that must ask for it."),
  label: text("What it says: the smallest answer that fits the schema and gives this label."),
  with: anything("Values of the answer by dotted path.", { types: ["object"] }),
  times: number("How many times in a row it is given.", { min: 1, integer: true }),
  saw: WORDS,
  unseen: WORDS,
  text: text("The answer as text."),
  output: VALUE,
  calls: list(
    "Calls of tools.",
    object("A call.", {
      name: text("The tool.", { required: true, filled: true }),
      input: anything("Its input.", { types: ["object"] }),
      id: text("Its id."),
    }),
  ),
  error: object("A failure of the model.", {
    kind: text("What kind of failure.", { required: true, enum: FAULT_KINDS }),
    message: text("What the error says."),
    status: number("The HTTP status."),
    retryAfterMs: number("After how many milliseconds to ask again.", { min: 0 }),
  }),
  usage: object("What the response cost.", {
    in: number("Input tokens.", { min: 0 }),
    out: number("Output tokens.", { min: 0 }),
    usd: number("US dollars.", { min: 0 }),
    turns: number("Turns of a coding agent.", { min: 0 }),
  }),
  heard: object(
    "Of a recorded response: digests of what it was given to. A part that is absent is not compared.",
    {
      system: text("Of the system prompt."),
      prompt: text("Of the texts of the author."),
      schema: text("Of the schema of the answer."),
      tools: text("Of the tools."),
      words: text("Of what was said, with all values."),
    },
  ),
});

/** Further objects of a test that may also be written shorter, by their place: `*` is any member, `[]` any item, or the value alone. */
export const TEST_PARTS: readonly (readonly [place: string, shape: Shape<unknown>])[] = [
  [
    "checks/*/[]",
    object("A result of a check.", {
      exit: number("The exit code of the command.", { integer: true }),
      stdout: VALUE,
      stderr: VALUE,
    }),
  ],
  ["tools/*/[]", object("A result of a tool.", { ok: flag("Whether it succeeded."), content: VALUE })],
  [
    "git",
    object("The repository.", {
      commits: number("How many commits it has, at most 1000.", { min: 0, max: 1000, integer: true }),
      branch: text("The branch that is checked out.", { filled: true }),
      dirty: flag("Whether there is an uncommitted file."),
    }),
  ],
  [
    "github",
    object("What is on GitHub.", {
      repo: text("OWNER/NAME."),
      issue: VALUE,
      issues: VALUE,
      branches: WORDS,
      faults: VALUE,
    }),
  ],
  ["github/issue/[]", ISSUE],
  ["github/issues/[]", ISSUE],
  [
    "github/faults/[]",
    object("Requests that fail.", {
      on: text("A method, a part of the path, or both.", { required: true, filled: true }),
      nth: number("From which of them on.", { min: 1, integer: true }),
      times: number("How many of them.", { min: 1, integer: true }),
      status: number("The status of the response.", { min: 100, integer: true }),
      lost: text("What gets lost.", { enum: ["answer", "request"] }),
    }),
  ],
  [
    "expect/said/[]",
    object("What was said to the model.", { at: text("STEP or STEP@VISIT."), saw: WORDS, unseen: WORDS }),
  ],
  ["expect/files/*", object("What a file holds.", { has: WORDS, lacks: WORDS, json: VALUE })],
  [
    "expect/git",
    object("The repository afterwards.", { clean: VALUE, commits: VALUE, last: VALUE, branch: VALUE }),
  ],
  ["expect/github", object("GitHub afterwards.", { issues: VALUE, pulls: VALUE, requests: VALUE })],
];

function numbers<const K extends string>(
  keys: readonly K[],
  about: (key: K) => string,
): { readonly [key in K]: Shape<number | undefined> } {
  const fields = keys.map((key) => [key, number(about(key), { min: 0 })] as const);
  return Object.fromEntries(fields) as { readonly [key in K]: Shape<number | undefined> };
}

export type TestSource = NonNullable<Reads<typeof TEST>>;
export type TestFileSource = NonNullable<Reads<typeof TEST_FILE>>;
