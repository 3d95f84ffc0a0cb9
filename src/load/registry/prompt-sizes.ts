/** The rule about the size of prompts, for every text that an agent's files say to a model. */
import type { Prompt, StepId } from "../../flow/flow.ts";
import { DEFAULTS } from "../agent/defaults.ts";
import { emptyDocument } from "../text/document.ts";
import type { Finding } from "../rules/finding.ts";

export type Sized = { readonly prompt: Prompt; readonly steps?: readonly StepId[] };

/** Each file once. */
export function* checkSizes(prompts: Iterable<Sized>): Generator<Finding> {
  const told = new Set<string>();
  for (const { prompt, steps } of prompts) {
    const { file, text } = prompt;
    if (file === null || text.length <= DEFAULTS.promptLength || told.has(file)) continue;
    told.add(file);
    yield {
      code: "PROMPT-SIZE",
      document: emptyDocument(file),
      pointer: "",
      ...(steps !== undefined && { steps }),
      message: `${file} holds a prompt of ${text.length} characters; above ${DEFAULTS.promptLength} few models can read it.`,
      fix: "Shorten the prompt, and let the model read large files with its tools.",
    };
  }
}
