/** What the front matter of a stage file and machine.yaml may hold. */
import { DEFAULTS } from "../agent/defaults.ts";
import { MCP_SERVERS } from "../agent/mcp.ts";
import { VALIDATOR_FIELDS } from "../registry/registry-shape.ts";
import { LIMIT_FIELDS, STEP_LIMITS } from "../../flow/spending.ts";
import {
  anything,
  group,
  list,
  map,
  number,
  object,
  text,
  toJsonSchema,
  type Reads,
} from "../../flow/shape.ts";

export const STAGE_ID = "^[a-z][a-z0-9]*(-[a-z0-9]+)*$";

/** `next: end` leads to the end, so no stage is called so. */
export const END = "end";

const STAGE_NAMES = list("Stages.", text("A stage.", { filled: true }), { required: true });
const JOIN = text("The stage that runs when all of them are done; without it the run ends.", {
  filled: true,
});

/** The forms of `next` beside the id of a stage. */
export const PARALLEL = group("Several stages in parallel.", {
  parallel: STAGE_NAMES,
  join: JOIN,
  policy: text(
    "fail-fast: one failure stops the others. independent: all finish, and the join sees each result.",
    {
      enum: ["fail-fast", "independent"],
      default: "fail-fast",
    },
  ),
});
export const SWITCH = group("One of several stages, selected by a value of the result.", {
  switch: text("Where the value is in the result, such as parsed.approved.", {
    required: true,
    filled: true,
  }),
  cases: map("The stage for each value; default for all others.", text("A stage.", { filled: true }), {
    required: true,
  }),
});
export const NEXT_RESULT = group("What a next function returns.", {
  execution: text("How nextStages are run.", { required: true, enum: ["sequential", "parallel"] }),
  nextStages: STAGE_NAMES,
  join: JOIN,
});
const NEXT_SCHEMA = { anyOf: [{ type: "string" }, ...[PARALLEL, SWITCH, NEXT_RESULT].map(toJsonSchema)] };

const REQUIRED = { required: true, missing: "StageFieldMissing" } as const;
const TYPE = { code: "StageFieldType" } as const;
const RETRY = { code: "StageRetryPolicyInvalid" } as const;

/** In the order in which findings are told. */
const STAGE_FIELDS = {
  id: text("The stage id: lowercase letters, digits and single dashes.", {
    ...REQUIRED,
    pattern: STAGE_ID,
    code: "StageIdInvalid",
  }),
  name: text("The display name.", { ...REQUIRED, ...TYPE }),
  allowedTools: list("Exact names of the tools that the stage may call.", text("A tool.", TYPE), {
    ...REQUIRED,
    ...TYPE,
  }),
  completionTool: text(
    "The name of the tool that the model calls to end the stage. Lockstep creates it for the stage.",
    {
      ...REQUIRED,
      ...TYPE,
      pattern: "^[A-Za-z_][A-Za-z0-9_-]{0,63}$",
    },
  ),
  completionSchema: anything("JSON Schema of the arguments of that tool; an object.", {
    ...REQUIRED,
    types: ["object"],
    code: "StageCompletionSchemaInvalid",
  }),
  retryPolicy: object(
    "How often the stage is attempted.",
    {
      maxAttempts: number("Attempts in one visit, including the first.", {
        required: true,
        min: 1,
        integer: true,
        ...RETRY,
      }),
      backoff: text("How the delay between attempts grows, from one second to 30 seconds.", {
        required: true,
        enum: ["none", "linear", "exponential"],
        ...RETRY,
      }),
    },
    { ...REQUIRED, ...RETRY },
  ),
  turnCap: number("Model responses in one attempt.", {
    ...REQUIRED,
    min: 1,
    integer: true,
    code: "StageTurnCapTooLow",
  }),
  resolutionPolicy: text("What happens when the gate does not let the stage begin.", {
    ...REQUIRED,
    enum: ["retry-later", "fail", "skip", "ask"],
    code: "StageResolutionPolicyInvalid",
  }),
  description: text("What the stage does.", TYPE),
  inputsSchema: anything("JSON Schema of each result passed to the stage.", {
    types: ["object"],
    code: "StageInputsInvalid",
  }),
  tags: list("Your own tags.", text("A word.", TYPE), { ...TYPE, default: [] }),
  next: anything("What follows a completed stage: a stage, end, parallel or switch. Default: end.", {
    types: ["string", "object"],
    code: "StageDefinitionInvalid",
    schema: NEXT_SCHEMA,
  }),
  assert: list("Checks of machine.yaml that the result must pass.", text("A check.", TYPE), {
    ...TYPE,
    default: [],
  }),
  gate: text("The check of machine.yaml that must pass before the model is called.", {
    ...TYPE,
    filled: true,
  }),
  onFail: text("The stage that runs when this one failed or ran out of turns.", {
    ...TYPE,
    filled: true,
  }),
  ifInterrupted: text(
    "What happens to a stage that was running when its process died: it runs again, a person is asked, or the run fails.",
    { ...TYPE, enum: ["retry", "ask", "fail"] },
  ),
  share: map(
    "Values shared with all later stages through ctx: a name, and a path that begins with parsed.",
    text("A path.", TYPE),
    TYPE,
  ),
  output: map(
    "Values that later stages may read in addition to the payload: a name, and a path that begins with parsed.",
    text("A path.", TYPE),
    TYPE,
  ),
  limits: STEP_LIMITS,
};
export const STAGE_KEYS: readonly string[] = Object.keys(STAGE_FIELDS);
/** Keys that authors expect to hold here, because they do in agent.json or in other programs. */
const ELSEWHERE = {
  permissionMode: "Set runner.boundaries.permissionMode in agent.json, which holds for all stages.",
  boundaries: "Set runner.boundaries in agent.json, which holds for all stages.",
  sandbox: "Set runner.boundaries.sandbox in agent.json, which holds for all stages.",
  disallowedTools: "List the tools that the stage may call in allowedTools: it has no others.",
  tools: "List the tools that the stage may call in allowedTools.",
  maxTurns: "Set turnCap, or limits.",
  maxAttempts: "Set retryPolicy.maxAttempts.",
};

export const STAGE = group("A stage. You may add keys of your own.", STAGE_FIELDS, {
  open: true,
  elsewhere: ELSEWHERE,
});

const CHECK = object("A command whose exit code says whether a condition holds.", {
  ...VALIDATOR_FIELDS,
  failurePattern: text("The name of its failure; by default the check's name.", { filled: true }),
});

const MACHINE_FIELDS = {
  id: text("The machine's name, the same as its folder's.", { filled: true }),
  entry: text("The first stage; by default the one that no other leads to.", { filled: true }),
  inputs: anything("JSON Schema of the parameters of a run. Each property is a field of ctx and a flag.", {
    types: ["object"],
  }),
  checks: map("Checks, by name.", CHECK),
  mcpServers: MCP_SERVERS,
  limits: group("Limits of a run.", {
    visits: number("Visits of stages.", { default: DEFAULTS.stageVisits, min: 1, integer: true }),
    ...LIMIT_FIELDS,
  }),
  joinRule: text("listed: a join in `nextStages` form is one of nextStages. declared: it may be any stage.", {
    enum: ["listed", "declared"],
    default: "listed",
  }),
};
export const MACHINE_KEYS: readonly string[] = Object.keys(MACHINE_FIELDS);
export const MACHINE = group("The stages as a whole.", MACHINE_FIELDS);

export type StageSource = Reads<typeof STAGE>;
export type MachineSource = Reads<typeof MACHINE>;
