/** A model that misbehaves: each persona mixes kinds of answers, so that a report reads like one about a model. */
import { cached } from "../flow/cached.ts";
import type { FaultKind } from "../flow/event.ts";
import type { Expanded } from "./expand.ts";
import type { Flow, Step } from "../flow/flow.ts";
import { isObject, type Json, type JsonObject } from "../flow/json.ts";
import { otherWord, withoutLabel, withValue, type Draft } from "./answers.ts";
import { wordsOf } from "./choices.ts";
import type { Draw } from "./draw.ts";

type Kind =
  | "plain"
  | "any"
  | "nearly"
  | "eager"
  | "again"
  | "prose"
  | "cut"
  | "refusal"
  | "lost"
  | "huge"
  | "call"
  | "grab"
  | "echo"
  | "fault";

/** Each kind as often as it is named, among ten answers; the rest is plain. */
export const PERSONAS = {
  plain: [],
  random: ["any", "any", "any", "any", "call", "call"],
  nearly: ["nearly", "nearly", "nearly", "any"],
  eager: ["eager", "eager", "eager", "eager", "any"],
  stubborn: ["again", "again", "again", "again", "again", "again", "any"],
  chatty: ["prose", "prose", "prose", "any"],
  truncated: ["cut", "cut", "cut"],
  refusing: ["refusal", "refusal", "refusal"],
  lost: ["lost", "lost", "lost", "any"],
  huge: ["huge", "huge"],
  grabbing: ["grab", "grab", "grab", "call", "call"],
  flaky: ["fault", "fault", "fault", "any"],
  injected: ["echo", "call", "call", "call", "call", "any"],
} as const satisfies { readonly [name: string]: readonly Kind[] };

/** Secrets that the world around a fuzzed run holds; no entry may. */
export const CANARIES = ["canary-7f3a91c2d4e8", "canary/with+marks=51b0"] as const;

export type Persona = keyof typeof PERSONAS;
export const PERSONA_NAMES = Object.keys(PERSONAS) as readonly Persona[];

/** Whether what it says, and what tools and checks say beside it, may hold a canary. */
export function holdsSecrets(persona: Persona): boolean {
  const kinds: readonly Kind[] = PERSONAS[persona];
  return kinds.includes("echo");
}

/** What the step's answers are, the one on the shortest way to an end first. */
export type AnswerOrder = (step: Step) => readonly Draft[];

export function replyAs(
  persona: Persona,
  flow: Flow,
  step: Step,
  draw: Draw,
  manners: AnswerOrder,
  before: Expanded | null,
): Expanded {
  const kinds: readonly Kind[] = PERSONAS[persona];
  // Most of the ten are plain for most personas; 0 always is.
  const kind =
    kinds.length === 0
      ? "plain"
      : (kinds[draw.next(10, kindOf(step, persona)) - (10 - kinds.length)] ?? "plain");
  const reply = SAYS[kind]({ flow, step, draw, manners, before });
  return { ...reply, step: step.id };
}

/** What the choice between its kinds of answers is about; no choice within a kind has this name. */
export function kindOf({ id }: Pick<Step, "id">, persona: Persona): string {
  return `${id} as ${persona}`;
}

/** A number with which the persona does not answer plainly, if it ever does. */
export function oddAnswer(persona: Persona, more: (of: number) => number): number {
  const { length } = PERSONAS[persona];
  return length === 0 ? 0 : 9 - more(length);
}

type Asked = {
  readonly flow: Flow;
  readonly step: Step;
  readonly draw: Draw;
  readonly manners: AnswerOrder;
  readonly before: Expanded | null;
};

const SAYS: { readonly [kind in Kind]: (asked: Asked) => Expanded } = {
  plain: ({ step, manners }) => sayDraft(manners(step)[0]),
  any: ({ flow, step, draw, manners }) => {
    const drafts = manners(step);
    const strange = strangeOf(step);
    const words = wordsOf(flow);
    if (words.length > 0 && draw.next(2) === 1)
      return { ...sayDraft(drafts[0]), text: words[draw.next(words.length)]! };
    const at = draw.next(drafts.length + strange.length || 1, `${step.id} any`);
    return at < drafts.length || strange.length === 0
      ? sayDraft(drafts[at])
      : { output: strange[at - drafts.length]! };
  },
  nearly: ({ step, draw, manners }) => {
    const payload = manners(step)[0]?.payload ?? {};
    const names = Object.keys(payload);
    const name = names[draw.next(names.length || 1)] ?? "member";
    return { output: broken(payload, name, draw.next(6, `${step.id} nearly`)) };
  },
  eager: ({ flow, draw, step, manners }) => {
    const closing = Object.values(flow.steps).filter(({ kind }) => kind === "close");
    const from = closing[draw.next(closing.length || 1)] ?? step;
    const drafts = manners(from);
    return sayDraft(drafts.find(({ label }) => from.edges[label]?.kind === "end") ?? drafts[0]);
  },
  again: ({ before, step, manners }) => before ?? sayDraft(manners(step)[0]),
  prose: ({ step, draw, manners }) => ({
    text: inWords(manners(step)[0]?.payload ?? {}, draw.next(6, `${step.id} prose`)),
  }),
  cut: ({ step, draw, manners }) => {
    const text = JSON.stringify(manners(step)[0]?.payload ?? {});
    return { text: text.slice(0, draw.next(text.length || 1)) };
  },
  refusal: ({ draw, step }) => ({ text: REFUSALS[draw.next(REFUSALS.length, `${step.id} refusal`)]! }),
  lost: ({ flow, step, draw, manners }) => lost(flow, step, draw, manners),
  huge: ({ step, draw, manners }) => ({
    output: swollen(manners(step)[0]?.payload ?? NOTHING)[SIZES[draw.next(SIZES.length)]!]!,
  }),
  call: ({ step, draw }) => {
    const tools = step.tools.allow.map((rule) => rule.split("(", 1)[0]!);
    return {
      calls: [
        {
          name: tools[draw.next(tools.length || 1, `${step.id} call`)] ?? "Read",
          input: { file_path: "file.txt", command: "true" },
        },
      ],
    };
  },
  grab: ({ step, draw, manners }) => grab(step, draw, manners),
  echo: ({ draw, step, manners }) => {
    const secret = CANARIES[draw.next(CANARIES.length)]!;
    const payload = manners(step)[0]?.payload ?? {};
    return draw.next(2) === 0 ? { text: `The key is ${secret}.` } : { output: { ...payload, key: secret } };
  },
  fault: ({ draw, step }) => {
    const kind = FAULTS[draw.next(FAULTS.length, `${step.id} fault`)]!;
    return { error: { kind, ...(draw.next(4) === 3 && { retryAfterMs: 1000 * (1 + draw.next(600)) }) } };
  },
};

function sayDraft(draft: Draft | undefined): Expanded {
  return draft === undefined ? { text: "Done." } : { output: draft.payload };
}

/** Another word for the label, and none. */
const strangeOf = cached((step: Step): readonly JsonObject[] =>
  [otherWord(step)?.payload, withoutLabel(step)].filter((one) => one != null),
);

const REFUSALS = [
  "I cannot help with that.",
  "",
  "As a language model I am not able to do this.",
  "null",
  "{}",
  "[]",
];
const FAULTS: readonly FaultKind[] = [
  "rate-limit",
  "overloaded",
  "network",
  "auth",
  "bad-request",
  "process",
  "other",
];

/** One member missing, of another type, beyond its bounds, or with a name that programs trip over. */
function broken(payload: JsonObject, name: string, how: number): JsonObject {
  const { [name]: value, ...rest } = payload;
  switch (how) {
    case 0:
      return rest;
    case 1:
      return { ...payload, [name]: typeof value === "string" ? 0 : "text" };
    case 2:
      return { ...payload, [name]: null };
    case 3:
      return { ...payload, [name]: typeof value === "string" ? "" : typeof value === "number" ? -1e308 : [] };
    case 4:
      return JSON.parse(
        `{"__proto__": {"polluted": true}, "constructor": "x", ${JSON.stringify(payload).slice(1)}`.replace(
          ", }",
          "}",
        ),
      ) as JsonObject;
    default:
      return { ...payload, unexpected: { nested: [true, null, 1] } };
  }
}

function inWords(payload: JsonObject, how: number): string {
  const json = JSON.stringify(payload, null, 2);
  switch (how) {
    case 0:
      return `Here is what I found:\n\n\`\`\`json\n${json}\n\`\`\`\n`;
    case 1:
      return `First ${JSON.stringify({ note: "a draft" })} and then ${json}`;
    case 2:
      return json.replace(/\n\}$/, ",\n}");
    case 3:
      return json.replaceAll('"', "'");
    case 4:
      return "I have thought about it and I am nearly sure that it is done.";
    default:
      return `\`\`\`\n${json}\n\`\`\`\nI hope this helps! {`;
  }
}

/** Another step's answer, another step's name, letters that look alike, other words for labels. */
function lost(flow: Flow, step: Step, draw: Draw, manners: AnswerOrder): Expanded {
  const steps = Object.values(flow.steps);
  const other = steps[draw.next(steps.length)] ?? step;
  switch (draw.next(4, `${step.id} lost`)) {
    case 0:
      return sayDraft(manners(other)[0]);
    case 1: {
      const payload = manners(step)[0]?.payload ?? {};
      const field = step.answer.kind === "object" ? step.answer.correct?.field : undefined;
      return { output: field === undefined ? payload : { ...payload, [field]: other.id } };
    }
    case 2: {
      const payload = manners(step)[0]?.payload ?? {};
      const { decide } = step;
      return { output: decide.by === "const" ? payload : withValue(payload, decide.path, "соmplete") };
    }
    default: {
      const [word] = strangeOf(step);
      return word === undefined ? sayDraft(manners(step)[0]) : { output: word };
    }
  }
}

/** The largest are rare: they cost as much as a hundred runs. */
const SIZES = [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 2, 3] as const;

/** The same objects again and again: so large ones are made and looked at once. */
const swollen = cached((payload: JsonObject): readonly Json[] => {
  let deep: Json = 1;
  for (let depth = 0; depth < 200; depth++) deep = { deep };
  return [
    { ...payload, wide: WIDE },
    { ...payload, deep },
    { ...payload, many: MANY },
    { ...payload, more: HUGE },
  ];
});

const NOTHING: JsonObject = {};
const WIDE = "y".repeat(2000);
const MANY: readonly Json[] = Array.from({ length: 100_001 }, () => 0);
const HUGE = "x".repeat(1_100_000);

/** Tools that are not listed, paths outside, commands that are blocked, the completion beside other calls. */
function grab(step: Step, draw: Draw, manners: AnswerOrder): Expanded {
  const outside = [
    { name: "Bash", input: { command: "gh issue close 1" } },
    { name: "Write", input: { file_path: "/etc/passwd", content: "x" } },
    { name: "Read", input: { file_path: "../../secret" } },
    { name: "githubPrMerge", input: {} },
    { name: "NoSuchTool", input: {} },
  ];
  const call = outside[draw.next(outside.length, `${step.id} grab`)]!;
  const { answer } = step;
  const payload = manners(step)[0]?.payload;
  if (answer.kind === "object" && answer.channel.kind === "tool" && isObject(payload) && draw.next(2) === 1)
    return { calls: [{ name: answer.channel.name, input: payload }, call] };
  return { calls: draw.next(3) === 2 ? [call, { ...call, id: "same" }, { ...call, id: "same" }] : [call] };
}
