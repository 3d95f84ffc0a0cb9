/**
 * Every finding of this room, one row each: what it is about and why the rule exists. The words for the single case
 * (what, where, how to fix it) are written where the case is found. A rule declares its codes in its own file; here are
 * those of reading files, which more than one file finds.
 *
 * An error about steps that the selected entry never leads to is shown as a warning.
 */
import * as agent from "./rules/agent.ts";
import * as commands from "./rules/commands.ts";
import * as complete from "./rules/complete.ts";
import * as data from "./rules/data.ts";
import * as ends from "./rules/ends.ts";
import * as entries from "./rules/entries.ts";
import * as failures from "./rules/failures.ts";
import * as gates from "./rules/gates.ts";
import * as guards from "./rules/guards.ts";
import * as handed from "./rules/handed.ts";
import * as inert from "./rules/inert.ts";
import * as intents from "./rules/intents.ts";
import * as limits from "./rules/limits.ts";
import * as placeholders from "./rules/placeholders.ts";
import * as promptFiles from "./rules/prompt-files.ts";
import * as prompts from "./rules/prompts.ts";
import * as questions from "./rules/questions.ts";
import * as routes from "./rules/routes.ts";
import * as sandbox from "./rules/sandbox.ts";
import * as schemas from "./rules/schemas.ts";
import * as servers from "./rules/servers.ts";
import * as stages from "./rules/stages.ts";
import * as tests from "./rules/tests.ts";
import * as tools from "./rules/tools.ts";
import * as values from "./rules/values.ts";
import * as verdict from "./rules/verdict.ts";
import * as words from "./rules/words.ts";
import type { Registered } from "./rules/loaded.ts";
import { error, warning, type Codes, type Finding, type Rule, type Rules, type Tell } from "./rules/rule.ts";
import { spotOf } from "./text/origin.ts";
import type { Document } from "./text/document.ts";
import type { StepId } from "../flow/flow.ts";
import type { Problem } from "../flow/problem.ts";
import type { Machine } from "./stages/machine-parts.ts";

export type { Rule } from "./rules/rule.ts";
export type Code = keyof typeof READING | CodeOf<(typeof SUBJECTS)[number]>;

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
    "Each dialect has its own loader; a file that mixes two would be misread by either.",
  ),

  // agent.json.
  "AC-VALID-001": error(
    "agent.json field",
    "A value of the wrong type would silently change what the agent does.",
  ),
  "AC-VALID-002": error(
    "incomplete verdict",
    "A verdict type cannot detect the end of a run without its settings.",
  ),
  "AC-VERDICT-001": warning(
    "nothing to look at on GitHub",
    "The issue or project of a run comes from the parameter of that name.",
  ),
  "AC-VERDICT-004": error(
    "verdict module",
    "The module is code that runs on this machine, so it must be one of the agent's trusted files.",
  ),
  "AC-VERDICT-010": error(
    "verdict inside a composite",
    "The end of the graph always ends the run, so a composite cannot wait for it.",
  ),
  "LEGACY-GONE": warning(
    "no equivalent",
    "A setting of an earlier version that no longer has an effect must not look as if it still had one.",
  ),
  "OLD-NAME": warning("old name", "Old names are understood, but only new ones are documented."),
  "UNKNOWN-KEY": warning("unknown key", "A key that is misspelled or in the wrong place has no effect."),
  "DUPLICATE-KEY": warning(
    "key written twice",
    "When a key occurs twice, a JSON parser keeps the last value and drops the first.",
  ),
  "FORBIDDEN-NAME": error(
    "forbidden name",
    "These names have a special meaning in JavaScript objects, so they cannot be keys.",
  ),
  "MODULE-SYNTAX": error(
    "module that does not parse",
    "A module is loaded in the middle of a run, after tokens have been spent; check parses it beforehand without running it.",
  ),
  "MODULE-UNPARSED": warning(
    "module that could not be parsed",
    "Lockstep could not check whether the module can be loaded.",
  ),
  "MODULE-IMPORT": error("import of a missing file", "A module with missing imports cannot be loaded."),
  "HOOK-UNKNOWN": warning(
    "hook that nothing calls",
    "Hooks are looked up by stage id and hook name; any other export has no effect.",
  ),
  "ACTION-HANDLER": error(
    "action handler",
    "Only built-in handlers and trusted modules carry out actions that a model asks for.",
  ),
  "ACTION-NO-TYPES": warning(
    "actions without types",
    "Only blocks of a declared type are carried out, whatever the model writes.",
  ),
  "ACTION-STRAY": warning(
    "handler without a type",
    "Only blocks of a declared type are carried out, so this handler is never used.",
  ),
  "ACTION-LOG-ONLY": warning(
    "action that is only logged",
    "A block that changes nothing must not look as if it did.",
  ),
  "MODEL-UNKNOWN": warning(
    "misspelled model",
    "An unknown model name stops the run at its start, unless the user's settings define it.",
  ),

  // Parameters.
  "PARAM-FLAG": error("flag used twice", "A flag must set exactly one parameter."),
  "PARAM-DEFAULT": error(
    "default does not fit",
    "The default is used like a given value, so it must be valid too.",
  ),
  "PARAM-REQUIRED": warning("required with a default", "A required parameter never takes its default."),
  "PARAM-DESCRIPTION": warning("no description", "The description is what --help shows."),
  "PARAM-BUILT-IN": warning(
    "parameter hides a built-in flag",
    "The parameter takes precedence, so the built-in flag can no longer be used.",
  ),
  "PARAM-RESERVED": error(
    "reserved flag",
    "Flags for safety, limits, locations and output belong to the user; a project must not redefine them.",
  ),
  "PARAM-UNKNOWN": error("unknown parameter", "An unknown flag is usually a misspelled one."),
  "PARAM-MISSING": error("parameter missing", "The prompts rely on every required parameter."),
  "PARAM-TYPE": error("parameter of the wrong type", "A value must have the declared type."),
  "PARAM-RANGE": error("parameter out of range", "The author declared which values make sense."),

  // The registry and its steps.
  "SR-LOAD-001": error("incomplete registry", "A registry must have agentId, version and steps."),
  "SR-VALID-001": error(
    "intent not allowed",
    "The kind of a step limits its intents, so that only a closure can end a flow.",
  ),
  "SR-VALID-002": error(
    "gate incomplete",
    "The runner needs intentField and intentSchemaRef to find the model's decision.",
  ),
  "SR-VALID-004": error("registry field", "A value of the wrong type would silently change the flow."),

  // Schemas.
  FAILED_SCHEMA_RESOLUTION: error("schema not found", "A step cannot run without its schema."),
  SCHEMA_POINTER_ERROR: error("schema pointer", "A step cannot run without its schema."),
  SCHEMA_CIRCULAR_REFERENCE: error(
    "schema refers to itself",
    "Schemas are sent with all references expanded, which is impossible for a circular one.",
  ),
  MALFORMED_SCHEMA_IDENTIFIER: error(
    "malformed schema name",
    "A schema name with ## or // cannot be resolved.",
  ),

  // Prompts and variables.
  "PR-RESOLVE-003": error(
    "variable without supplier",
    "A declared variable must have a value when the prompt is rendered.",
  ),
  "UV-OPTIONAL": warning(
    "variable may be missing",
    "An optional parameter without a default may have no value when the prompt is rendered.",
  ),

  // Checks before the end.
  "CHECK-TYPE": error("unknown type of validator", "Lockstep can only run the known types of validators."),

  // Stage files and the machine they make. The class of each error begins its reason.
  StageIdInvalid: error(
    "stage id",
    "Validation: the id is used in next, in the journal and in keys of other systems, so its format is fixed.",
  ),
  StageFieldMissing: error(
    "missing stage field",
    "Validation: a stage must set all eight required fields; none of them has a default.",
  ),
  StageFieldType: error(
    "stage field",
    "Validation: a value of the wrong type would silently change what the stage does.",
  ),
  StageToolUnknown: error(
    "unknown tool",
    "Validation: allowedTools selects from the available tools; an unknown name allows nothing.",
  ),
  CompletionToolReserved: error(
    "completion tool name already taken",
    "Validation: the completion tool must not have the name of another tool.",
  ),
  StageCompletionSchemaInvalid: error(
    "completionSchema",
    "Validation: the schema is sent to the model, and every payload is validated against it.",
  ),
  StageInputsInvalid: error(
    "inputsSchema",
    "Validation: every result passed to the stage is validated against this schema.",
  ),
  StageRetryPolicyInvalid: error(
    "retryPolicy",
    "Validation: the policy limits the number of attempts, including the first.",
  ),
  StageTurnCapTooLow: error(
    "turnCap",
    "Validation: a stage needs at least one model response, and the number must be limited.",
  ),
  StageResolutionPolicyInvalid: error(
    "resolutionPolicy",
    "Validation: the author must choose what happens when a gate says no.",
  ),
  StageDefinitionInvalid: error(
    "invalid machine",
    "Validation: a machine is a set of stages with one entry, and every transition between them is declared.",
  ),
  StageTargetUnknown: error("unknown stage", "Validation: a stage can only lead to one that exists."),
  StageJoinDangling: error(
    "unknown join stage",
    "Validation: the join is the stage that runs when all parallel stages are done.",
  ),
  InvalidParallelPlan: error(
    "invalid parallel plan",
    "ExtensionHost: a parallel plan needs two or more stages.",
  ),

  // The budget.
  "BUDGET-TURNS": error(
    "over budget",
    "`check --max-turns N` guarantees that no run takes more than N answers.",
  ),
} satisfies Codes;

/** In the order in which findings are reported. */
const SUBJECTS = [
  agent,
  sandbox,
  limits,
  tools,
  servers,
  commands,
  entries,
  schemas,
  gates,
  intents,
  routes,
  handed,
  ends,
  promptFiles,
  verdict,
  prompts,
  words,
  data,
  guards,
  values,
  failures,
  complete,
  questions,
  stages,
  placeholders,
  inert,
  tests,
] as const satisfies readonly { readonly codes: Codes; readonly rules?: Rules }[];

type CodeOf<S> = S extends { readonly codes: infer C } ? keyof C : never;

export const CODES: { readonly [code in Code]: Rule } = Object.assign(
  {},
  READING,
  ...SUBJECTS.map(({ codes }) => codes),
);

const RULES: readonly Rules[] = SUBJECTS.flatMap((subject) => ("rules" in subject ? [subject.rules] : []));

/** Placed, weighed, and with the reason of its rule. `live`: the steps that the selected entry can lead to. null: unknown, so every step counts. */
export function toProblem(finding: Finding, live: ReadonlySet<StepId> | null): Problem {
  const rule = CODES[finding.code];
  const { steps } = finding;
  const step = steps?.find((id) => live?.has(id) ?? true) ?? null;
  const dead = steps !== undefined && step === null;
  return {
    code: finding.code,
    severity: dead ? "warning" : (finding.severity ?? rule.severity),
    ...spotOf(finding.document, finding.pointer),
    step: step ?? steps?.[0] ?? null,
    message: finding.message,
    why: rule.why,
    fix: finding.fix,
    witness: finding.witness ?? [],
    // In a file of an earlier form the places are not where they are read.
    ...(finding.mend !== undefined && isMendable(finding.document) && { mend: finding.mend }),
  };
}

function isMendable({ written, isYaml }: Document): boolean {
  return written === undefined && isYaml === undefined;
}

/** What an agent with a registry is held to. */
export function checkFlow(loaded: Registered, tell: Tell): void {
  const { dialect } = loaded.sources;
  for (const rules of RULES) {
    for (const check of rules.all ?? []) check(loaded, tell);
    for (const check of rules.registry ?? []) check(loaded, tell);
    if (dialect !== "check") for (const check of rules.gated ?? []) check(loaded, tell);
    if (dialect === "complete") for (const check of rules.complete ?? []) check(loaded, tell);
    if (dialect === "check") for (const check of rules.check ?? []) check(loaded, tell);
  }
}

/** What an agent made of stages is held to. */
export function checkMachine(machine: Machine, tell: Tell): void {
  for (const rules of RULES) {
    for (const check of rules.all ?? []) check(machine, tell);
    for (const check of rules.stage ?? []) check(machine, tell);
  }
}
