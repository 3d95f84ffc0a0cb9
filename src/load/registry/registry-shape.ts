/** What steps_registry.json may hold. */
import { DEFAULTS } from "../agent/defaults.ts";
import { DIALECTS } from "./dialect.ts";
import { IF_INTERRUPTED } from "../agent/people.ts";
import { anything, flag, group, list, map, number, object, text, type Reads } from "../text/shape.ts";
import { STEP_LIMITS } from "../agent/spending.ts";

export const INTENTS = ["next", "repeat", "jump", "handoff", "closing", "escalate", "abort"] as const;
/** Every word that a dialect with gates has for an intent. */
export type Intent = (typeof INTENTS)[number] | "complete";
const WORDS: readonly Intent[] = INTENTS;

const SEMVER = "^\\d+\\.\\d+\\.\\d+$";

const TRANSITION = object("Where an intent leads: a target, or a condition with targets.", {
  target: text("The step it leads to; null ends the flow.", { nullable: true }),
  fallback: text("A second target.", { nullable: true }),
  condition: text("The key of the handed-on data that decides.", { filled: true }),
  targets: map(
    "The step for each value, and for any other one: default.",
    text("A step.", { nullable: true }),
  ),
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

export const GATE_FIELDS = {
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
  intentField: text("The path of the intent in the answer, with dots.", {
    required: true,
    filled: true,
    code: "SR-VALID-002",
  }),
  targetField: text("The path of a jump's target in the answer, with dots.", { filled: true }),
  targetMode: text("What decides where a jump leads.", {
    enum: ["explicit", "dynamic", "conditional"],
    default: "explicit",
  }),
  handoffFields: list("Paths, with dots, of what is handed on.", text("A path.", { filled: true }), {
    vital: true,
    default: [],
  }),
  failFast: flag("Whether an answer without a valid intent ends the run.", { default: true }),
  fallbackIntent: text("The intent taken instead when failFast is false.", { enum: WORDS }),
  aliases: map("Further words for intents, beside the usual ones.", text("An intent.", { enum: WORDS })),
};
const GATE = object("How the answer becomes an intent.", GATE_FIELDS, { vital: true });

export const STEP_FIELDS = {
  stepId: text("The step's id, the same as its key.", { required: true, filled: true }),
  name: text("The name people see."),
  description: text("What the step does."),
  type: text("Always prompt."),
  stepKind: text("What kind of step it is; by default c2 tells.", {
    enum: ["work", "verification", "closure"],
  }),
  c2: text("Second part of the prompt's path.", { required: true, filled: true }),
  c3: text("Third part of the prompt's path.", { required: true, filled: true }),
  edition: text("The edition of the prompt.", { default: DEFAULTS.edition }),
  adaptation: text("The adaptation of the prompt."),
  fallbackKey: text("A built-in prompt that stands in for a missing file."),
  uvVariables: list("Names of the variables in the prompt.", text("A name."), { default: [] }),
  usesStdin: flag("Whether the prompt takes the input text.", { default: false }),
  outputSchemaRef: SCHEMA_REF,
  structuredGate: GATE,
  transitions: map("Where each intent leads.", TRANSITION, { vital: true }),
  inputs: map(
    "Variables that come from what other steps handed on.",
    object("One input.", {
      from: text("stepId.key", { required: true, filled: true }),
      required: flag("Whether the step cannot be asked without it."),
      default: anything("The value when there is none."),
    }),
  ),
  model: text("The model of this step.", { filled: true }),
  permissionMode: text("How much may be done without asking.", {
    enum: ["default", "plan", "acceptEdits", "bypassPermissions"],
  }),
  ifInterrupted: IF_INTERRUPTED,
  runner: object("A command that takes the place of the model.", {
    command: text("The program.", { required: true, filled: true }),
    args: list(
      'Its arguments; ${context.name} is a parameter of the run: put "--" before one that may begin with a dash.',
      text("An argument."),
      { default: [] },
    ),
    timeout: number("Milliseconds it may take.", { default: DEFAULTS.subprocessTimeoutMs, min: 1 }),
  }),
  limits: STEP_LIMITS,
  condition: text("Of no effect."),
  priority: number("Of no effect."),
};
export const STEP = object("One step.", STEP_FIELDS);

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
  type: text("Whether it runs a command, looks for a file, or reads what was written (semantic).", {
    required: true,
    enum: VALIDATOR_TYPES,
    code: "CHECK-TYPE",
  }),
  command: text("A shell command (type command).", { filled: true }),
  successWhen: text("empty, exitCode:N, contains:TEXT or matches:REGEX (type command).", { filled: true }),
  path: text("A path below the working directory (type file).", { filled: true }),
  semanticConfig: object("What is read (type semantic).", {
    checkType: text("Whether the newest commit has the form type(scope)!: subject.", {
      required: true,
      enum: ["commit-message"],
      code: "CHECK-TYPE",
    }),
  }),
  failurePattern: text("The failure pattern that a failure is of.", { required: true, filled: true }),
  extractParams: map("What the failure prompt is told, by extractor.", text("An extractor.")),
  recoverableByDefault: flag("Of no effect."),
  timeoutMs: number("Milliseconds it may take.", { default: DEFAULTS.checkTimeoutMs, min: 1 }),
  maxOutputBytes: number("Bytes of output kept.", { default: DEFAULTS.checkOutputBytes, min: 1 }),
  description: text("What it checks."),
};
const VALIDATOR = object("Something that must hold before the end.", VALIDATOR_FIELDS);

const FAILURE_PATTERN = object("A way to fail, and the prompt that answers it.", {
  description: text("What went wrong, for people.", { default: "" }),
  edition: text("The edition of the failure prompt.", { required: true, filled: true }),
  adaptation: text("The adaptation of the failure prompt."),
  params: list("The parameters it takes.", text("A name."), { default: [] }),
  semanticMatch: list("Of no effect.", text("A word."), { default: [] }),
});

const VALIDATION_STEP = object("What must hold before a closure may end the flow.", {
  stepId: text("The closure's id, the same as its key."),
  name: text("The name people see."),
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
  onFailure: group("What a failure means.", {
    action: text("retry, abort or skip.", { enum: ["retry", "abort", "skip"], default: "retry" }),
    maxAttempts: number("The failure with this number ends the run.", {
      default: DEFAULTS.maxAttempts,
      min: 1,
      integer: true,
    }),
    target: text("The step that goes on after a failure.", { filled: true }),
  }),
  outputSchema: anything("Of no effect."),
  outputSchemaRef: anything("Of no effect."),
});

export const REGISTRY_FIELDS = {
  dialect: text("Which written form this is; by default what it holds tells.", { enum: DIALECTS }),
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
  failurePatterns: map("Ways to fail, by name.", FAILURE_PATTERN, { vital: true }),
  validators: map("Checks, by name.", VALIDATOR, { vital: true }),
  validationSteps: map("What must hold before the end, by closure.", VALIDATION_STEP, { vital: true }),
  runtimeUvVariables: list("Further variables that are supplied at run time.", text("A name."), {
    default: [],
  }),
  steps: map("The steps, by id.", STEP, { required: true, code: "SR-LOAD-001" }),
};
export const REGISTRY = group("The steps of an agent and the ways between them.", REGISTRY_FIELDS);

export type RegistrySource = Reads<typeof REGISTRY>;
export type StepSource = NonNullable<Reads<typeof STEP>>;
export type GateSource = NonNullable<Reads<typeof GATE>>;
export type TransitionSource = NonNullable<Reads<typeof TRANSITION>>;
export type ValidatorSource = NonNullable<Reads<typeof VALIDATOR>>;
export type ValidationStepSource = NonNullable<Reads<typeof VALIDATION_STEP>>;
