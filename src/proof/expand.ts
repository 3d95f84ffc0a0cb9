/** Replies of a test as the scripted model gives them: `STEP LABEL` becomes the smallest answer that says this. */
import type { TestReply } from "../flow/flow-test.ts";
import type { Flow, Step } from "../flow/flow.ts";
import { own, parseDotPath, type Json } from "../flow/json.ts";
import { draftAnswer } from "./answers.ts";

export type Expanded = Omit<TestReply, "label" | "with" | "times" | "line">;

export type Expansion =
  | { readonly kind: "replies"; readonly replies: readonly Expanded[] }
  | { readonly kind: "none"; readonly line: number; readonly why: string };

/** Each response once, in order. */
export function expandReplies(flow: Flow, script: readonly TestReply[]): Expansion {
  const replies: Expanded[] = [];
  for (const written of script) {
    const reply = expanded(flow, written);
    if (typeof reply === "string") return { kind: "none", line: written.line, why: reply };
    for (let left = written.times ?? 1; left > 0; left--) replies.push(reply);
  }
  return { kind: "replies", replies };
}

function expanded(flow: Flow, written: TestReply): Expanded | string {
  const step = written.step === undefined ? undefined : own(flow.steps, written.step);
  const known = answers.get(written);
  if (known !== undefined && known.step === step) return known.reply;
  const { line: _line, times: _times, label, with: given = {}, ...rest } = written;
  const reply = label === undefined ? rest : answerOf(step, rest, label, Object.entries(given));
  answers.set(written, { step, reply });
  return reply;
}

/** A test is run many times, and many tests begin with the same responses. */
const answers = new WeakMap<
  TestReply,
  { readonly step: Step | undefined; readonly reply: Expanded | string }
>();

function answerOf(
  step: Step | undefined,
  rest: Expanded,
  label: string,
  given: readonly (readonly [string, Json])[],
): Expanded | string {
  if (step === undefined)
    return `there is no step "${rest.step ?? ""}", so its answer "${label}" cannot be made`;
  if (step.answer.kind === "text") return { text: label, ...rest };
  const draft = draftAnswer(
    step,
    label,
    given.map(([path, value]) => ({ path: parseDotPath(path), value })),
  );
  if (draft.kind === "none") return `no answer of step "${step.id}" says "${label}": ${draft.why}`;
  return { ...rest, output: draft.payload };
}
