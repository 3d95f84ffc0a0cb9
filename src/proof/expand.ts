/** Replies of a test as the scripted model gives them: `STEP LABEL` becomes the smallest answer that says this. */
import type { TestReply } from "../flow/flow-test.ts";
import type { Flow } from "../flow/flow.ts";
import { own, parseDotPath, type Json } from "../flow/json.ts";
import { draftAnswer } from "./answers.ts";

export type Expanded = Omit<TestReply, "label" | "with" | "times" | "line">;

export type Expansion =
  | { readonly kind: "replies"; readonly replies: readonly Expanded[] }
  | { readonly kind: "none"; readonly line: number; readonly why: string };

/** Each response once, in order. */
export function expandReplies(flow: Flow, script: readonly TestReply[]): Expansion {
  const replies: Expanded[] = [];
  for (const { line, times = 1, label, with: given = {}, ...rest } of script) {
    const reply = label === undefined ? rest : answerOf(flow, rest, label, Object.entries(given));
    if (typeof reply === "string") return { kind: "none", line, why: reply };
    for (let left = times; left > 0; left--) replies.push(reply);
  }
  return { kind: "replies", replies };
}

function answerOf(
  flow: Flow,
  rest: Expanded,
  label: string,
  given: readonly (readonly [string, Json])[],
): Expanded | string {
  const step = rest.step === undefined ? undefined : own(flow.steps, rest.step);
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
