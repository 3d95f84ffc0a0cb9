/**
 * Every finding of this room, one row each: what it is about and why the rule exists. The words for the single case
 * (what, where, how to fix it) are written where the case is found. A rule declares its codes in its own file; here are
 * those of reading files, which more than one file finds.
 *
 * An error about steps that the selected entry never leads to is shown as a warning.
 */
import { codes as agent } from "./agent.ts";
import { codes as commands } from "./commands.ts";
import { codes as complete } from "./complete.ts";
import { codes as data } from "./data.ts";
import { codes as ends } from "./ends.ts";
import { codes as entries } from "./entries.ts";
import { codes as failures } from "./failures.ts";
import { codes as gates } from "./gates.ts";
import { codes as guards } from "./guards.ts";
import { codes as handed } from "./handed.ts";
import { codes as intents } from "./intents.ts";
import { codes as limits } from "./limits.ts";
import { codes as placeholders } from "./placeholders.ts";
import { codes as promptFiles } from "./prompt-files.ts";
import { codes as prompts } from "./prompts.ts";
import { codes as questions } from "./questions.ts";
import { codes as routes } from "./routes.ts";
import { codes as sandbox } from "./sandbox.ts";
import { codes as servers } from "./servers.ts";
import { codes as stages } from "./stages.ts";
import { codes as tools } from "./tools.ts";
import { codes as values } from "./values.ts";
import { codes as verdict } from "./verdict.ts";
import { codes as words } from "./words.ts";
import { error, warning, type Codes } from "./rule.ts";

export type Code = keyof typeof CODES;

const READING = {
  // Files.
  "AC-SERVICE-001": error(
    "agent not found",
    "An agent is the folder .agent/<name>/ with an agent.json in it.",
  ),
  "AC-SERVICE-002": error("broken JSON", "A file that cannot be read in full is not read in part."),
  "AC-SERVICE-003": error(
    "unreadable file",
    "Every path a file names must be readable and stay in the project.",
  ),
  "AC-SERVICE-004": error(
    "registry not readable",
    "The steps registry is the flow; without it nothing can run.",
  ),
  DIALECT: error(
    "mixed dialects",
    "Each written form has a loader of its own; read by another it would mean something else.",
  ),

  // agent.json.
  "AC-VALID-001": error(
    "field of agent.json",
    "A value of the wrong kind would change what the agent does without a word.",
  ),
  "AC-VALID-002": error(
    "incomplete verdict",
    "A verdict type cannot tell the end of a run without its own settings.",
  ),
  "AC-VERDICT-001": warning(
    "nothing to look at on GitHub",
    "Which issue or project a run is about is told by a parameter of that name.",
  ),
  "AC-VERDICT-004": error(
    "verdict module",
    "The module is code that runs on this machine: it is a file of the agent, and part of what is trusted.",
  ),
  "AC-VERDICT-010": error(
    "verdict inside a composite",
    "An end of the graph ends a run by itself; it is no condition that others could wait for.",
  ),
  "LEGACY-GONE": warning(
    "no equivalent",
    "What an earlier version did and this one does not must not look as if it were still done.",
  ),
  "OLD-NAME": warning("old name", "Old names are understood, but only new ones are documented."),
  "UNKNOWN-KEY": warning("unknown key", "A key nobody reads is most often a misspelled one."),
  "DUPLICATE-KEY": warning(
    "key written twice",
    "Of two members with one name a JSON parser keeps the last, and the other one is lost.",
  ),
  "FORBIDDEN-NAME": error(
    "forbidden name",
    "These names reach into the machinery of objects wherever data is keyed by name.",
  ),
  "MODULE-SYNTAX": error(
    "module that does not parse",
    "A module is first loaded in the middle of a run, when tokens have been spent; check parses it without running it.",
  ),
  "MODULE-UNPARSED": warning(
    "module that could not be parsed",
    "Whether the module can be loaded is not known, and neither is anything else about it.",
  ),
  "MODULE-IMPORT": error(
    "import of a missing file",
    "A module whose imports are not there cannot be loaded.",
  ),
  "HOOK-UNKNOWN": warning(
    "hook that nothing calls",
    "Hooks are called by the id of their stage and their own name; anything else in the module has no effect.",
  ),
  "ACTION-HANDLER": error(
    "handler of an action",
    "What the model asks for is done by what is built in or by a module that is part of what is trusted, and by nothing else.",
  ),
  "ACTION-NO-TYPES": warning(
    "actions without types",
    "Only blocks of a declared type are carried out, whatever the model writes.",
  ),
  "ACTION-STRAY": warning(
    "handler of no type",
    "Only blocks of a declared type are carried out, so that this handler is never used.",
  ),
  "ACTION-LOG-ONLY": warning(
    "action that is only told",
    "A block that changes nothing must not look as if it did.",
  ),
  "CONFIG-NOT-ACTED-ON": warning("not acted on", "A setting without effect must not look as if it had one."),
  "MODEL-UNKNOWN": warning(
    "misspelled model",
    "A name that means no model stops the run at its start, unless the user's own settings give it a meaning.",
  ),

  // Parameters.
  "PARAM-FLAG": error("flag used twice", "A value on the command line must mean one parameter."),
  "PARAM-DEFAULT": error(
    "default does not fit",
    "The default is used as if it had been given, so it must fit too.",
  ),
  "PARAM-REQUIRED": warning("required with a default", "A required parameter never takes its default."),
  "PARAM-DESCRIPTION": warning("no description", "The description is what --help shows."),
  "PARAM-BUILT-IN": warning(
    "flag of the command",
    "The parameter wins, so whoever means the built-in flag gets something else.",
  ),
  "PARAM-RESERVED": error(
    "reserved flag",
    "Flags about safety, limits, places and output belong to the user: a project that took one would undo what the user asked for.",
  ),
  "PARAM-UNKNOWN": error("unknown parameter", "A value nobody reads is most often a misspelled flag."),
  "PARAM-MISSING": error("parameter missing", "The prompts rely on every required parameter."),
  "PARAM-TYPE": error(
    "parameter of the wrong type",
    "A value is passed on only as what it was declared to be.",
  ),
  "PARAM-RANGE": error("parameter out of range", "The author declared which values make sense."),

  // The registry and its steps.
  "SR-LOAD-001": error("incomplete registry", "agentId, version and steps are what makes a file a registry."),
  "SR-VALID-001": error(
    "intent not allowed",
    "The kind of a step limits its intents, so that only a closure can end a flow.",
  ),
  "SR-VALID-002": error(
    "gate incomplete",
    "intentField and intentSchemaRef are how the runner finds the model's decision.",
  ),
  "SR-VALID-004": error(
    "field of the registry",
    "A value of the wrong kind would change the flow without a word.",
  ),
  "SR-GATE-003": error(
    "step without gate",
    "In a flow with gates a step without one decides nothing and so leads nowhere.",
  ),
  "GATE-FIELD": warning(
    "field not in the schema",
    "The model fills in what the schema names, and nothing else.",
  ),

  // Routes.
  "SR-TRANS-001": error("unknown target", "The model can only be led to a step that exists."),
  "TRANS-UNUSED": warning(
    "transition never taken",
    "A rule for an intent that cannot be chosen is dead, or the intent was forgotten.",
  ),

  // Schemas.
  FAILED_SCHEMA_RESOLUTION: error(
    "schema not found",
    "A step whose schema cannot be resolved cannot be asked.",
  ),
  SCHEMA_POINTER_ERROR: error("schema pointer", "A step whose schema cannot be resolved cannot be asked."),
  SCHEMA_CIRCULAR_REFERENCE: error(
    "schema refers to itself",
    "Schemas are sent in full, and a circle has no full form.",
  ),
  MALFORMED_SCHEMA_IDENTIFIER: error("malformed schema name", "A doubled # or / names nothing."),

  // Prompts and variables.
  "PR-C3L-004": error("prompt not found", "A step without a prompt has nothing to ask."),
  "PR-RESOLVE-003": error(
    "variable without supplier",
    "A declared variable must have a value when the prompt is made.",
  ),
  "PR-RESOLVE-005": error(
    "undeclared placeholder",
    "A placeholder without a value would reach the model as it stands.",
  ),
  "UV-OPTIONAL": warning(
    "variable may be missing",
    "An optional parameter without a default may have no value when the prompt is made.",
  ),

  // Checks before the end.
  "CHECK-TYPE": error("unknown type of validator", "A check that nobody can judge can never pass."),

  // Stage files and the machine they make. The class of each error begins its reason.
  StageIdInvalid: error(
    "stage id",
    "Validation: the id names the stage in next, in the journal and in keys of other systems, so it has one form.",
  ),
  StageFieldMissing: error(
    "stage without a field",
    "Validation: all eight required fields are the stage's contract; none of them has a default.",
  ),
  StageFieldType: error(
    "field of a stage",
    "Validation: a value of the wrong kind would change what the stage does without a word.",
  ),
  StageToolUnknown: error(
    "unknown tool",
    "Validation: allowedTools narrows the tools there are; a name that is none of them allows nothing.",
  ),
  CompletionToolReserved: error(
    "completion tool of a taken name",
    "Validation: the call that ends a stage must not be the call of a tool.",
  ),
  StageCompletionSchemaInvalid: error(
    "completionSchema",
    "Validation: the schema is sent to the model, and every payload is held against it.",
  ),
  StageInputsInvalid: error(
    "inputsSchema",
    "Validation: every result that the stage is given is held against this schema.",
  ),
  StageRetryPolicyInvalid: error(
    "retryPolicy",
    "Validation: the policy bounds how often a stage is tried, the first time included.",
  ),
  StageTurnCapTooLow: error(
    "turnCap",
    "Validation: a stage needs at least one response of the model, and never an unlimited number.",
  ),
  StageResolutionPolicyInvalid: error(
    "resolutionPolicy",
    "Validation: a gate that says no must lead to something that the author chose.",
  ),
  StageDefinitionInvalid: error(
    "machine not sound",
    "Validation: a machine is a set of stages with one entry, and every way between them is declared.",
  ),
  StageTargetUnknown: error("unknown stage", "Validation: a stage can only lead to one that exists."),
  StageJoinDangling: error(
    "join of no stage",
    "Validation: the join is the stage that goes on when all siblings are done.",
  ),
  InvalidParallelPlan: error("no parallel plan", "ExtensionHost: side by side means two or more stages."),

  // The budget.
  "BUDGET-TURNS": error(
    "over budget",
    "`check --max-turns N` promises that no run takes more answers than N.",
  ),
} satisfies Codes;

export const CODES = {
  ...READING,
  ...agent,
  ...commands,
  ...complete,
  ...data,
  ...ends,
  ...entries,
  ...failures,
  ...gates,
  ...guards,
  ...handed,
  ...intents,
  ...limits,
  ...placeholders,
  ...promptFiles,
  ...prompts,
  ...questions,
  ...routes,
  ...sandbox,
  ...servers,
  ...stages,
  ...tools,
  ...values,
  ...verdict,
  ...words,
};
