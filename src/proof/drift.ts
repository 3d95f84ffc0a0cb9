/**
 * Whether recorded responses would still be given to the same: what a model was asked for, part by part, compared by
 * digests. Pure over what has happened.
 */
import { laneContext } from "../engine/decide/attempt.ts";
import type { Lane } from "../engine/decide/state.ts";
import type { Say } from "../flow/command.ts";
import { laneIn } from "../flow/deed.ts";
import type { Digest } from "../flow/files.ts";
import { HEARD_PARTS, type HeardDigests, type HeardPart, type TestReply } from "../flow/flow-test.ts";
import type { Flow, Prompt, Step } from "../flow/flow.ts";
import { canonicalJson, own } from "../flow/json.ts";
import { parseTemplate, templateNames } from "../flow/text/template.ts";
import { editionOf } from "../prompts/compose.ts";
import type { Moment } from "../story/story.ts";
import { requestOf, type Said } from "../tell/transcript.ts";
import { withoutVolatile, type Volatile } from "./snapshot.ts";

/** What one response was given to. `reply`: its place among the responses of the script, from 0. */
export type HeardReply = {
  readonly reply: number;
  readonly step: string;
  readonly visit: number;
  readonly texts: { readonly [part in HeardPart]: string };
};

/** Of a run with a script, in the order in which its responses were given. */
export function heardReplies(moments: readonly Moment[], volatile: Volatile = []): readonly HeardReply[] {
  return moments.flatMap(({ entry: { event }, flow, before }) => {
    if (event.type !== "step.answered" || !("mark" in event.reply)) return [];
    const { mark } = event.reply;
    const step = own(flow.steps, event.step);
    const lane = laneIn(before, event);
    if (typeof mark !== "number" || step?.by.kind !== "model" || lane === undefined) return [];
    const { system, messages } = requestOf(flow, step, lane, before);
    const words = messages.map(wordsOf).join("\n\n");
    // The prompt of a stage is its system prompt, which is made of values as well, and is the same in the whole visit.
    const isStage = laneContext(before, lane) !== undefined;
    const isFirst = lane.say.some(({ kind }) => kind === "prompt");
    const texts = {
      system: isStage ? "" : withoutVolatile(system, volatile),
      prompt: authored(flow, step, lane).join("\n\n"),
      schema: step.answer.kind === "text" ? "" : canonicalJson([step.answer.schema, step.answer.channel]),
      tools: canonicalJson([step.tools.mode, step.tools.allow.toSorted()]),
      words: withoutVolatile(isStage && isFirst ? `${system}\n\n${words}` : words, volatile),
    };
    return [{ reply: mark, step: event.step, visit: event.visit, texts }];
  });
}

function wordsOf(said: Said): string {
  return said.role === "tool" ? said.results.map(({ content }) => content).join("\n") : said.text;
}

/** The texts of the author that are behind what is said. */
function authored(flow: Flow, step: Step, { say }: Lane): readonly string[] {
  return say.flatMap((one) => promptsOf(flow, step, one)).map(({ text }) => text);
}

function promptsOf(flow: Flow, step: Step, say: Say): readonly Prompt[] {
  if (say.kind === "prompt") {
    const sections = templateNames(parseTemplate(step.prompt.text)).flatMap(
      (name) => own(flow.sections ?? {}, name) ?? [],
    );
    return [step.prompt, ...sections];
  }
  const edition = say.kind === "failed-check" ? editionOf(flow, say.guard, say.result.name) : undefined;
  return edition === undefined ? [] : [edition];
}

export function heardDigests({ texts }: HeardReply, digest: Digest): HeardDigests {
  return Object.fromEntries(
    HEARD_PARTS.map((part) => [part, texts[part] === "" ? NONE : digest(texts[part]).slice(0, DIGITS)]),
  );
}

const NONE = "none";
const DIGITS = 12;

/** A response that was given to something else than would be said now. */
export type Drift = {
  /** Its place among the responses, from 1, and its line in the file. */
  readonly reply: number;
  readonly line: number;
  readonly step: string;
  readonly visit: number;
  /** `words` only where nothing else differs: then only values do. */
  readonly parts: readonly HeardPart[];
  /** What would be said now. */
  readonly now: HeardReply["texts"];
};

/** `compared`: how many responses say what they were given to. */
export type Drifted = { readonly compared: number; readonly drifts: readonly Drift[] };

export function driftIn(script: readonly TestReply[], heard: readonly HeardReply[], digest: Digest): Drifted {
  const replies = script.flatMap((reply) => Array.from({ length: reply.times ?? 1 }, () => reply));
  const compared = heard.filter(({ reply }) => replies[reply]?.heard !== undefined);
  const drifts = compared.flatMap((one): readonly Drift[] => {
    const { heard: before = {}, line } = replies[one.reply]!;
    const now = heardDigests(one, digest);
    const differing = HEARD_PARTS.filter((part) => before[part] !== undefined && before[part] !== now[part]);
    const [first] = differing;
    if (first === undefined) return [];
    const parts = first === "words" ? differing : differing.filter((part) => part !== "words");
    const { step, visit, texts } = one;
    return [{ reply: one.reply + 1, line, step, visit, parts, now: texts }];
  });
  return { compared: compared.length, drifts };
}
