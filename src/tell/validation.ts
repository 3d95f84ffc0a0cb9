/** What came of holding an answer against the schema of its step, worked out again. */
import { readAnswer } from "../engine/decide/gate.ts";
import { messages } from "../engine/decide/messages.ts";
import type { Reply } from "../flow/event.ts";
import type { Step } from "../flow/flow.ts";

/** Null where the response was no answer, or there is no schema. */
export function validationOf(
  step: Step,
  { calls, output }: Reply & { kind: "said" },
): { readonly schema: string; readonly errors: readonly string[] } | null {
  const { answer } = step;
  if (answer.kind !== "object" || answer.schema.kind !== "schema") return null;
  const { channel, schema } = answer;
  const completion = channel.kind === "tool" ? calls.find(({ name }) => name === channel.name) : undefined;
  const payload = output ?? (calls.length === 1 ? completion?.input : undefined);
  if (payload === undefined) {
    const isAnswer = channel.kind === "output" && calls.length === 0;
    return isAnswer ? { schema: schema.name, errors: [messages.noObject] } : null;
  }
  const reading = readAnswer(step, answer, payload);
  return { schema: schema.name, errors: reading.kind === "misfit" ? reading.errors : [] };
}
