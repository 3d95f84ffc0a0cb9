/** What steps_registry.json may hold when its steps have check prompts. */
import { DEFAULTS } from "../agent/defaults.ts";
import { DIALECTS } from "../registry/dialect.ts";
import { anything, flag, group, map, number, object, text, type Reads } from "../../flow/shape.ts";
import { STEP_LIMITS } from "../../flow/spending.ts";

const PROMPT_FIELDS = {
  path: text("A file, relative to basePath.", { filled: true }),
  c1: text("First part of the prompt's path.", { filled: true }),
  c2: text("Second part.", { filled: true }),
  c3: text("Third part.", { filled: true }),
  edition: text("The edition of the prompt.", { default: DEFAULTS.edition }),
  adaptation: text("The adaptation of the prompt."),
  fallback: text("A fallback file, relative to basePath.", { filled: true }),
};
const PROMPT = object("Where a prompt is: a path, or c1, c2 and c3.", PROMPT_FIELDS, { required: true });

const TRANSITION_FIELDS = {
  complete: flag("End the run.", { default: false }),
  next: text("Continue at this step.", { filled: true }),
  fallback: text("Go back to this step.", { filled: true }),
  retry: flag("Repeat this step.", { default: false }),
  maxRetries: number("How often, counted since the step was entered from another one; 0 means no limit.", {
    default: 0,
    min: 0,
    integer: true,
  }),
};

const STEP = object("One step.", {
  id: text("The step's id, the same as its key.", { filled: true }),
  name: text("The display name."),
  description: text("What the step does."),
  prompt: PROMPT,
  iterations: group("How often the step runs in a row.", {
    min: number("The check runs from this iteration on.", { default: 1, min: 1, integer: true }),
    max: number("Without onFail, a failed check repeats the step up to this iteration.", {
      min: 1,
      integer: true,
    }),
  }),
  check: object("The question that decides where the run continues.", {
    prompt: PROMPT,
    responseFormat: anything("A description of the answer: result and message.", { types: ["object"] }),
    onPass: object("Where the run continues when the check passes.", TRANSITION_FIELDS),
    onFail: object("Where the run continues when the check fails.", TRANSITION_FIELDS),
  }),
  model: text("The model of this step.", { filled: true }),
  permissionMode: text("What the model may do without asking.", {
    enum: ["default", "plan", "acceptEdits", "bypassPermissions"],
  }),
  limits: STEP_LIMITS,
});

export const CHECK_REGISTRY = group("Steps with check prompts, and the transitions between them.", {
  dialect: text("The dialect of the file; detected from its contents by default.", { enum: DIALECTS }),
  agentId: text("The agent's name."),
  version: text("The version of this registry."),
  description: text("What the flow does."),
  basePath: text("The folder of the prompts, relative to the agent's.", {
    default: DEFAULTS.fallbackDir,
    filled: true,
  }),
  entryStep: text("The first step.", { filled: true }),
  editions: anything("No effect."),
  steps: map("The steps, by id.", STEP, { required: true, code: "SR-LOAD-001" }),
});

export type CheckRegistry = Reads<typeof CHECK_REGISTRY>;
export type CheckedStep = NonNullable<Reads<typeof STEP>>;
export type CheckPrompt = NonNullable<CheckedStep["check"]>;
export type Onward = NonNullable<CheckPrompt["onPass"]>;
export type PromptPlace = NonNullable<CheckedStep["prompt"]>;
