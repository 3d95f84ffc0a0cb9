/** What steps_registry.json may hold. */
import { DEFAULTS } from "../agent/defaults.ts";
import { DIALECTS } from "./dialect.ts";
import { IF_INTERRUPTED } from "../../flow/settings.ts";
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
import { STEP_LIMITS } from "../../flow/spending.ts";

export const INTENTS = ["next", "repeat", "jump", "handoff", "closing", "escalate", "abort"] as const;
/** Every word that a dialect with gates has for an intent. */
export type Intent = (typeof INTENTS)[number] | "complete";
const WORDS: readonly Intent[] = INTENTS;

const SEMVER = "^\\d+\\.\\d+\\.\\d+$";

const TRANSITION = object("Where an intent leads: a target, or a condition with targets.", {
  target: text("The step it leads to; null ends the flow.", { nullable: true }),
  fallback: text("No effect: a second target.", { nullable: true }),
  condition: text("The handoff key whose value selects the target.", { filled: true }),
  targets: map("The step for each value; default for all others.", text("A step.", { nullable: true })),
});

const SCHEMA_REF = object(
  "The schema of the step's answer.",
  {
    file: text("The file, in the folder of the schemas.", {
      required: true,
      filled: true,
      code: "FAILED_SCHEMA_RESOLUTION",
    }),
    schema: text("A name in the file, or a JSON pointer.", {
      required: true,
      filled: true,
      code: "FAILED_SCHEMA_RESOLUTION",
    }),
  },
  { code: "FAILED_SCHEMA_RESOLUTION" },
);

const GATE_FIELDS = {
  allowedIntents: list(
    "The intents this step can give.",
    text("An intent.", { enum: WORDS, code: "SR-VALID-001" }),
    { required: true, filled: true, code: "SR-VALID-001" },
  ),
  intentSchemaRef: text("A JSON pointer to the enum of intents in the step's schema.", {
    required: true,
    pattern: "^#/",
    code: "SR-VALID-002",
  }),
  intentField: text("The dotted path of the intent in the answer.", {
    required: true,
    filled: true,
    code: "SR-VALID-002",
  }),
  targetField: text("The dotted path of a jump's target in the answer.", { filled: true }),
  targetMode: text("What decides where a jump leads.", {
    enum: ["explicit", "dynamic", "conditional"],
    default: "explicit",
  }),
  handoffFields: list("Dotted paths of the fields to hand on.", text("A path.", { filled: true }), {
    vital: true,
    default: [],
  }),
  failFast: flag("Whether an answer without a valid intent ends the run.", { default: true }),
  fallbackIntent: text("The intent used instead when failFast is false.", { enum: WORDS }),
  aliases: map("More aliases for intents.", text("An intent.", { enum: WORDS })),
};
const GATE = object("How the answer becomes an intent.", GATE_FIELDS, { vital: true });

const STEP_FIELDS = {
  stepId: text("The step's id, the same as its key.", { required: true, filled: true }),
  name: text("The display name."),
  description: text("What the step does."),
  type: text("Always prompt."),
  stepKind: text("The kind of step; derived from c2 by default.", {
    enum: ["work", "verification", "closure"],
  }),
  c2: text("Second part of the prompt's path.", { required: true, filled: true }),
  c3: text("Third part of the prompt's path.", { required: true, filled: true }),
  edition: text("The edition of the prompt.", { default: DEFAULTS.edition }),
  adaptation: text("The adaptation of the prompt."),
  fallbackKey: text("The built-in prompt to use if the file is missing."),
  uvVariables: list("Names of the variables in the prompt.", text("A name."), { default: [] }),
  usesStdin: flag("Whether the prompt reads the input text.", { default: false }),
  outputSchemaRef: SCHEMA_REF,
  structuredGate: GATE,
  transitions: map("Where each intent leads.", TRANSITION, { vital: true }),
  inputs: map(
    "Variables whose values other steps hand on.",
    object("One input.", {
      from: text("stepId.key", { required: true, filled: true }),
      required: flag("Whether the step cannot run without it."),
      default: anything("The value used if there is none."),
    }),
  ),
  model: text("The model of this step.", { filled: true }),
  permissionMode: text("What the model may do without asking.", {
    enum: ["default", "plan", "acceptEdits", "bypassPermissions"],
  }),
  ifInterrupted: IF_INTERRUPTED,
  runner: object("A command that runs instead of the model.", {
    command: text("The program.", { required: true, filled: true }),
    args: list(
      'Its arguments; ${context.name} inserts a parameter of the run. Put "--" before one that may begin with a dash.',
      text("An argument."),
      { default: [] },
    ),
    timeout: number("Its time limit in milliseconds.", { default: DEFAULTS.subprocessTimeoutMs, min: 1 }),
  }),
  limits: STEP_LIMITS,
  condition: text("No effect."),
  priority: number("No effect."),
};
const STEP = object("One step.", STEP_FIELDS);

type ValidatorKey = {
  readonly key: keyof typeof VALIDATOR_FIELDS;
  readonly types: readonly (typeof VALIDATOR_TYPES)[number][];
  readonly isNeeded: boolean;
};

const VALIDATOR_TYPES = ["command", "file", "semantic"] as const;

/** Keys of a validator that are not for every type. */
export const VALIDATOR_KEYS: readonly ValidatorKey[] = [
  { key: "command", types: ["command"], isNeeded: true },
  { key: "successWhen", types: ["command"], isNeeded: true },
  { key: "extractParams", types: ["command"], isNeeded: false },
  { key: "maxOutputBytes", types: ["command"], isNeeded: false },
  { key: "timeoutMs", types: ["command", "semantic"], isNeeded: false },
  { key: "path", types: ["file"], isNeeded: true },
  { key: "semanticConfig", types: ["semantic"], isNeeded: true },
];

export const VALIDATOR_FIELDS = {
  type: text("Whether it runs a command, checks a file, or checks what was written (semantic).", {
    required: true,
    enum: VALIDATOR_TYPES,
    code: "CHECK-TYPE",
  }),
  command: text("A shell command (type command).", { filled: true }),
  successWhen: text("empty, exitCode:N, contains:TEXT or matches:REGEX (type command).", { filled: true }),
  path: text("A path below the working directory (type file).", { filled: true }),
  semanticConfig: object("What it checks (type semantic).", {
    checkType: text("Whether the newest commit has the form type(scope)!: subject.", {
      required: true,
      enum: ["commit-message"],
      code: "CHECK-TYPE",
    }),
  }),
  failurePattern: text("The failure pattern of its failures.", { required: true, filled: true }),
  extractParams: map("Values for the failure prompt, by extractor.", text("An extractor.")),
  recoverableByDefault: flag("No effect."),
  timeoutMs: number("Its time limit in milliseconds.", { default: DEFAULTS.checkTimeoutMs, min: 1 }),
  maxOutputBytes: number("Bytes of output kept.", { default: DEFAULTS.checkOutputBytes, min: 1 }),
  description: text("What it checks."),
};
const VALIDATOR = object("Something that must hold before the end.", VALIDATOR_FIELDS);

const FAILURE_PATTERN = object("A kind of failure and its prompt.", {
  description: text("What went wrong, for people.", { default: "" }),
  edition: text("The edition of the failure prompt.", { required: true, filled: true }),
  adaptation: text("The adaptation of the failure prompt."),
  params: list("The parameters it takes.", text("A name."), { default: [] }),
  semanticMatch: list("No effect.", text("A word."), { default: [] }),
});

const VALIDATION_STEP = object("What must hold before a closure may end the flow.", {
  stepId: text("The closure's id, the same as its key."),
  name: text("The display name."),
  description: text("What it checks."),
  c2: text("Second part of the failure prompts' path.", { filled: true }),
  c3: text("Third part of the failure prompts' path.", { filled: true }),
  validationConditions: list(
    "Validators, in order.",
    object("One validator.", {
      validator: text("Its name.", { required: true, filled: true }),
      params: map("Values for ${key} in its command or path.", anything("A value.")),
    }),
    { default: [] },
  ),
  onFailure: group("What happens after a failure.", {
    action: text("retry, abort or skip.", { enum: ["retry", "abort", "skip"], default: "retry" }),
    maxAttempts: number("The number of failures that ends the run.", {
      default: DEFAULTS.maxAttempts,
      min: 1,
      integer: true,
    }),
    target: text("The step that runs after a failure.", { filled: true }),
  }),
  outputSchema: anything("No effect."),
  outputSchemaRef: anything("No effect."),
});

const REGISTRY_FIELDS = {
  dialect: text("The dialect of the file; detected from its contents by default.", { enum: DIALECTS }),
  agentId: text("The agent's name.", { required: true, code: "SR-LOAD-001" }),
  version: text("The version of this registry.", { required: true, pattern: SEMVER, code: "SR-LOAD-001" }),
  description: text("What the flow does."),
  c1: text("First part of every prompt's path.", {
    required: true,
    mild: true,
    default: DEFAULTS.c1,
    filled: true,
  }),
  pathTemplate: text("The path of a prompt with an adaptation.", {
    default: DEFAULTS.pathTemplate,
    filled: true,
  }),
  pathTemplateNoAdaptation: text("The path of a prompt without.", {
    default: DEFAULTS.pathTemplateNoAdaptation,
    filled: true,
  }),
  userPromptsBase: text("The folder of the prompts.", { filled: true }),
  schemasBase: text("The folder of the schemas.", { filled: true }),
  entryStep: text("The first step.", { filled: true, vital: true }),
  entryStepMapping: map("The first step by verdict type.", text("A step."), { vital: true }),
  failurePatterns: map("Kinds of failure, by name.", FAILURE_PATTERN, { vital: true }),
  validators: map("Checks, by name.", VALIDATOR, { vital: true }),
  validationSteps: map("What must hold before the end, by closure.", VALIDATION_STEP, { vital: true }),
  runtimeUvVariables: list("More variables that are supplied at run time.", text("A name."), {
    default: [],
  }),
  steps: map("The steps, by id.", STEP, { required: true, code: "SR-LOAD-001" }),
};
export const REGISTRY = group("The steps of an agent and the transitions between them.", REGISTRY_FIELDS);

/** With a `complete` intent: the same keys, other intents, fewer of them required. */
const COMPLETE_WORDS: readonly Intent[] = ["next", "repeat", "jump", "complete", "abort"];

const COMPLETE_GATE = object("How the answer becomes an intent.", {
  ...GATE_FIELDS,
  allowedIntents: list(
    "The intents this step can give.",
    text("An intent.", { enum: COMPLETE_WORDS, code: "SR-VALID-001" }),
    { required: true, filled: true, code: "SR-VALID-001" },
  ),
  intentSchemaRef: text("No effect."),
  intentField: text("The dotted path of the intent in the answer.", { default: DEFAULTS.intentField }),
  failFast: flag("No effect: a fallbackIntent is always used.", { default: false }),
  fallbackIntent: text("The intent used when the answer has no allowed one.", { enum: COMPLETE_WORDS }),
  aliases: map("More aliases for intents.", text("An intent.", { enum: COMPLETE_WORDS })),
});

const COMPLETE_STEP = object("One step.", { ...STEP_FIELDS, structuredGate: COMPLETE_GATE });

export const COMPLETE_REGISTRY: Shape<RegistrySource> = group(
  "The steps of an agent and the transitions between them.",
  {
    ...REGISTRY_FIELDS,
    agentId: text("The agent's name."),
    version: text("The version of this registry."),
    c1: text("First part of every prompt's path.", { default: DEFAULTS.c1, filled: true }),
    steps: map("The steps, by id.", COMPLETE_STEP, { required: true, code: "SR-LOAD-001" }),
  },
);

export type RegistrySource = Reads<typeof REGISTRY>;
export type StepSource = NonNullable<Reads<typeof STEP>>;
export type GateSource = NonNullable<Reads<typeof GATE>>;
export type TransitionSource = NonNullable<Reads<typeof TRANSITION>>;
export type ValidatorSource = NonNullable<Reads<typeof VALIDATOR>>;
export type ValidationStepSource = NonNullable<Reads<typeof VALIDATION_STEP>>;
