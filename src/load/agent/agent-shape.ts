/** What agent.json may hold. */
import { DEFAULTS } from "./defaults.ts";
import { isWritten, type Document } from "../text/document.ts";
import { MCP_SERVERS } from "./mcp.ts";
import {
  anything,
  flag,
  group,
  list,
  map,
  number,
  object,
  optional,
  text,
  type Reads,
} from "../../flow/shape.ts";
import {
  ACTIONS,
  BOUNDARIES,
  FINALIZE,
  PLACE,
  GITHUB,
  IF_INTERRUPTED,
  LOGGING,
  QUESTIONS,
  WATCH,
  WORKTREE,
} from "../../flow/settings.ts";
import { LIMIT_FIELDS } from "../../flow/spending.ts";
import { FORMER_TYPES, VERDICT_TYPES } from "./verdict-types.ts";

export const PARAMETER = object("A parameter of the agent.", {
  type: text("Its type.", { required: true, enum: ["string", "number", "boolean", "array"] }),
  description: text("Its text in --help."),
  cli: text("The flag that sets it, such as --issue.", { required: true, pattern: "^--[a-z][a-z0-9-]*$" }),
  required: flag("Whether a run cannot start without it.", { default: false }),
  default: anything("The value when none is given."),
  validation: object("Which values are valid.", {
    min: number("The minimum number or length."),
    max: number("The maximum number or length."),
    pattern: text("A regular expression that the text must match."),
    enum: list("The allowed values.", anything("A value.")),
  }),
});

export const VERDICT_CONFIG = group("Settings of the verdict type.", {
  maxIterations: number("Visits after which count:iteration is complete, and any other run is stopped.", {
    min: 1,
    integer: true,
  }),
  maxChecks: number("count:check: the number of status checks.", { min: 1, integer: true }),
  verdictKeyword: text("detect:keyword: the word that ends the run.", { filled: true }),
  signalType: text("detect:structured: the action block that ends the run.", { filled: true }),
  requiredFields: anything("detect:structured: fields that the signal must have.", {
    types: ["object", "array"],
  }),
  resourceType: text("poll:state: the resource to poll.", {
    enum: ["github-issue", "github-project", "file", "api"],
  }),
  targetState: anything("poll:state: the state that ends the run; for an issue, closed by default.", {
    types: ["string", "object"],
  }),
  path: text(
    "poll:state of a file: its path, relative to the working folder; {uv-name} inserts a parameter.",
    {
      filled: true,
    },
  ),
  url: text("poll:state of an api: its URL; {uv-name} inserts a parameter.", { filled: true }),
  registryPath: text("detect:graph: the steps registry."),
  entryStep: text("detect:graph: the first step, if the registry does not set one."),
  operator: text("meta:composite: how the conditions are combined.", { enum: ["and", "or", "first"] }),
  conditions: list(
    "meta:composite: the verdicts that are combined.",
    object("One verdict.", {
      type: text("Its type.", { required: true, enum: VERDICT_TYPES, old: FORMER_TYPES }),
      config: anything("Its settings.", { types: ["object"] }),
    }),
    { filled: true },
  ),
  handlerPath: text("meta:custom: the module that decides, relative to the agent's folder.", {
    filled: true,
  }),
  settings: anything("meta:custom: settings for the module.", { types: ["object"] }),
});

const FLOW = group("Prompts, schemas and the model.", {
  systemPromptPath: text("The system prompt, relative to the agent's folder.", { filled: true }),
  prompts: group("Where prompts are found.", {
    registry: text("The steps registry, relative to the agent's folder.", {
      default: DEFAULTS.registry,
      filled: true,
    }),
    fallbackDir: text("A further folder for prompts, relative to the agent's folder.", {
      default: DEFAULTS.fallbackDir,
    }),
    strict: flag("Whether a missing prompt file is an error even if a built-in prompt exists.", {
      default: false,
    }),
  }),
  schemas: group("Where schemas are found.", {
    base: text("The folder of the schemas, relative to the project.", { filled: true }),
    inspection: flag("Record each resolved schema and each validation.", { default: false }),
  }),
  defaultModel: text("The default model of the steps: sonnet, opus, haiku, or a provider's model name.", {
    filled: true,
    usual: DEFAULTS.model,
  }),
  askUserAutoResponse: text("The automatic answer to questions for the user.", {
    default: DEFAULTS.autoResponse,
  }),
});

export const AGENT = group("An agent and how it runs.", {
  version: text("The version of this agent.", { default: DEFAULTS.version, pattern: "^\\d+\\.\\d+\\.\\d+$" }),
  name: text("The agent's name, the same as its folder's.", { required: true, pattern: "^[a-z][a-z0-9-]*$" }),
  displayName: text("The display name.", { required: true, mild: true, filled: true }),
  description: text("What the agent is for, in a sentence.", { default: "" }),
  parameters: map("The parameters of the agent.", PARAMETER),
  runner: group(
    "How the agent runs.",
    {
      flow: FLOW,
      verdict: group("How and when a run ends.", {
        type: text("The rule by which it ends.", {
          enum: VERDICT_TYPES,
          old: FORMER_TYPES,
          default: DEFAULTS.verdictType,
        }),
        config: VERDICT_CONFIG,
      }),
      boundaries: BOUNDARIES,
      mcpServers: MCP_SERVERS,
      limits: group("What a run may spend.", LIMIT_FIELDS),
      ifInterrupted: { ...IF_INTERRUPTED, usual: "retry" },
      questions: QUESTIONS,
      watch: WATCH,
      integrations: group("Other services.", { github: GITHUB }),
      actions: ACTIONS,
      execution: group("Where the run works, and what happens to its result.", {
        worktree: WORKTREE,
        finalize: FINALIZE,
        place: PLACE,
      }),
      logging: LOGGING,
    },
    { required: true },
  ),
});

/** The same file beside stages, where nothing in it is required. */
export const AGENT_OF_STAGES = optional(AGENT);

export type AgentSource = Reads<typeof AGENT>;
export type ParameterSource = NonNullable<Reads<typeof PARAMETER>>;
export type VerdictConfig = Reads<typeof VERDICT_CONFIG>;

/** Whether it asks for anything to be changed on GitHub. A label that only prompts speak of asks for nothing. */
export function isWriting(document: Document): boolean {
  const asking = ["defaultClosureAction", "labels/inProgress", "labels/blocked", "labels/completion"];
  return asking.some((key) => isWritten(document, `runner/integrations/github/${key}`.split("/")));
}
