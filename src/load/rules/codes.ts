/**
 * Every finding of this room, one row each: what it is about and why the rule exists. The words for the single case
 * (what, where, how to mend it) are written where the case is found.
 *
 * An error about steps that the selected entry never leads to is shown as a warning.
 */

export type Code = keyof typeof CODES;

export type Rule = { readonly severity: "error" | "warning"; readonly title: string; readonly why: string };

export const CODES = {
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
  "VERDICT-NEVER": error(
    "verdict never fires",
    "A run that cannot succeed spends tokens until a limit stops it, and then fails.",
  ),
  "VERDICT-UNTOLD": warning(
    "model not told how to end",
    "A model can only give a keyword or a block that a prompt asks it for.",
  ),
  "VERDICT-CLOSES": warning(
    "issue closed by a count",
    "A count shows that a run is over, not that its work is done.",
  ),
  "AC-NAME": warning(
    "name differs from folder",
    "The folder's name starts the agent; a second name misleads.",
  ),
  "LEGACY-GONE": warning(
    "no equivalent",
    "A setting of an earlier version that no longer has an effect must not look as if it still had one.",
  ),
  "OLD-NAME": warning("old name", "Old names are understood, but only new ones are documented."),
  "UNKNOWN-KEY": warning("unknown key", "An unknown key is usually a misspelled one."),
  "DUPLICATE-KEY": warning(
    "key written twice",
    "When a key occurs twice, a JSON parser keeps the last value and drops the first.",
  ),
  "FORBIDDEN-NAME": error(
    "forbidden name",
    "These names have a special meaning in JavaScript objects, so they cannot be keys.",
  ),
  "SANDBOX-HOST": error(
    "sandbox host",
    "A host list is only as strict as its widest entry: commands can send anything they can read to an allowed host.",
  ),
  "SANDBOX-PATH": error(
    "sandbox folder",
    "A command that can write to the home folder, the run records or the trust list is not confined.",
  ),
  "TOOL-UNKNOWN": warning(
    "unknown tool",
    "An unknown tool name allows nothing, so steps have fewer tools than the list suggests.",
  ),
  "BASH-LIST-OPEN": warning(
    "command list that can be bypassed",
    "A command list only compares how commands begin. Many programs can run or write anything through their options, so the list guides a cooperative model but does not stop any other.",
  ),
  "ARGUMENT-OPTION": warning(
    "value that could be an option",
    "Handoff values come from a model. A program reads a value that begins with a dash as an option, and options can run or write anything.",
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
  "MCP-NAME": error(
    "server name",
    "The server name is part of its tools' names, which must be unique and valid for every model.",
  ),
  "MCP-SERVER": error("MCP server", "A server needs either a command to start or an address to connect to."),
  "MCP-SECRET": error(
    "secret in a file",
    "An agent's files are shared, recorded with every run and displayed, so a key in them does not stay secret.",
  ),
  "MCP-UNDECLARED": warning(
    "tool of an undeclared server",
    "Only servers that the agent declares are started, so tools of other servers are never available.",
  ),
  "MCP-UNUSED": warning(
    "unused server",
    "A server is started only when a step may use its tools, so this one is never started.",
  ),
  "GITHUB-TOOL-OFF": warning(
    "GitHub tool while GitHub is disabled",
    "When GitHub is disabled, no step is offered the tool that reads it.",
  ),
  "CONFIG-NOT-ACTED-ON": warning(
    "setting without effect",
    "A setting without effect must not look as if it had one.",
  ),
  "MODEL-UNKNOWN": warning(
    "misspelled model",
    "An unknown model name stops the run at its start, unless the user's settings define it.",
  ),
  "PR-SYSTEM": error(
    "system prompt not found",
    "Without it, the agent would run without its author's instructions.",
  ),

  // Parameters.
  "PARAM-FLAG": error("flag used twice", "A flag must set exactly one parameter."),
  "PARAM-DEFAULT": error(
    "default does not fit",
    "The default is used like a given value, so it must be valid too.",
  ),
  "PARAM-REQUIRED": warning("required with a default", "A required parameter never takes its default."),
  "PARAM-DESCRIPTION": warning("no description", "The description is what --help shows."),
  "PARAM-UNREAD": warning("parameter never read", "A value that no prompt reads changes nothing."),
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
  "SR-LOAD-002": error(
    "registry of another agent",
    "A registry that names another agent was probably copied or misplaced.",
  ),
  "SR-VALID-001": error(
    "intent not allowed",
    "The kind of a step limits its intents, so that only a closure can end a flow.",
  ),
  "SR-VALID-002": error(
    "gate incomplete",
    "The runner needs intentField and intentSchemaRef to find the model's decision.",
  ),
  "SR-VALID-003": error(
    "enum and allowedIntents differ",
    "The model must be able to give exactly the intents that the runner accepts.",
  ),
  "SR-VALID-004": error("registry field", "A value of the wrong type would silently change the flow."),
  "SR-ENTRY-001": error("no entry step", "The first step is never guessed."),
  "SR-ENTRY-002": error("entryStep unknown", "A run must begin at a step that exists."),
  "SR-ENTRY-003": error("entryStepMapping unknown", "A run must begin at a step that exists."),
  "SR-GATE-003": error(
    "step without gate",
    "In a flow with gates, a step without one decides nothing and leads nowhere.",
  ),
  "SR-GATE-004": error(
    "graph without gates",
    "detect:graph ends at a terminal of the graph, and only gates lead there.",
  ),
  "SR-GATE-SCHEMA": warning(
    "gate without schema",
    "Without a schema, the model does not know the answer format, and nothing is validated.",
  ),
  "GATE-FIELD": warning("field not in the schema", "The model only fills in fields that the schema names."),
  "GATE-FALLBACK": warning(
    "fallbackIntent not allowed",
    "A fallback outside allowedIntents is ignored, and another one is used.",
  ),
  "GATE-OPTIONAL": warning(
    "intent not required",
    "A model may omit what its schema does not require, and without an intent the step decides nothing.",
  ),
  "GATE-FALLBACK-NEVER": warning(
    "fallbackIntent never taken",
    "A fallback that cannot be taken only looks like a safeguard.",
  ),
  "HANDOFF-FIELD": warning(
    "handoff field not in the schema",
    "A field that the schema does not name has no value to hand on.",
  ),
  "HANDOFF-KEY": error("handoff keys collide", "Two fields under one key would overwrite each other."),
  "DATA-NEVER": error("read before it is handed on", "A prompt cannot be rendered before its values exist."),
  "DATA-SKIPPED": warning(
    "path around the supplier",
    "On that path the prompt cannot be rendered, and the run fails.",
  ),
  "INPUT-SHADOWED": warning("input never read", "A parameter of the same name takes precedence."),
  "INPUT-SOURCE": error("input without source", "An input reads a value that another step hands on."),

  // Routes.
  "SR-TRANS-001": error("unknown target", "A transition can only lead to a step that exists."),
  "SR-TRANS-002": error("no target", "Only closing may end a flow; any other intent must lead to a step."),
  "SR-TRANS-003": error("next without a rule", "An intent the model may choose must lead somewhere."),
  "SR-TRANS-004": error("handoff without a rule", "An intent the model may choose must lead somewhere."),
  "SR-TRANS-005": error("handoff without target", "A handoff must name the step it leads to."),
  "SR-TRANS-006": error("handoff to an unknown step", "A transition can only lead to a step that exists."),
  "SR-TRANS-007": error("escalate without a rule", "An intent the model may choose must lead somewhere."),
  "SR-TRANS-008": error("escalate without target", "An escalation must name the step it leads to."),
  "SR-TRANS-009": error("escalate to an unknown step", "A transition can only lead to a step that exists."),
  "SR-TRANS-010": error("jump without target", "A jump needs a declared target, or a field that names one."),
  "TRANS-CONDITION": error(
    "unknown condition",
    "A condition must name a key of the data that the step itself hands on.",
  ),
  "TRANS-BOTH": warning(
    "target beside a condition",
    "A transition has either one target or targets selected by a condition; the other is ignored.",
  ),
  "TRANS-DEFAULT": warning("no default", "Without a default, an unexpected value ends the run."),
  "TRANS-CLOSING": warning("closing without a rule", "The keys of transitions should match the enum."),
  "TRANS-UNUSED": warning(
    "transition never taken",
    "Either the rule is dead, or its intent is missing from allowedIntents.",
  ),
  "TRANS-REPEAT": warning("repeat without a rule", "The keys of transitions should match the enum."),
  "FLOW-NO-END": error("no path to an end", "A run that cannot end spends tokens until a limit stops it."),
  "FLOW-DEAD-END": error("dead end", "A step that leads nowhere can only fail the run."),
  "FLOW-CYCLE": error("cycle without an exit", "A run in a cycle spends tokens until a limit stops it."),
  "FLOW-LIVELOCK": error(
    "only repeat",
    "In a step that can only be repeated, the model has no way to finish.",
  ),
  "FLOW-JUMP-TRAP": error(
    "jump into a trap",
    "A model that may name any step will eventually name one that leads nowhere.",
  ),
  "FLOW-JUMP-TARGET": error(
    "jump to an unknown step",
    "Every step that the schema lets the model name must exist in the flow.",
  ),
  "FLOW-UNREACHABLE": warning(
    "unreachable step",
    "Either the step is dead, or a transition to it is missing.",
  ),
  "FLOW-NEXT-CLOSURE": warning(
    "next into a closure",
    "Use handoff to reach a closure; next is for continuing work.",
  ),
  "FLOW-HANDOFF-WORK": warning("handoff to a work step", "A handoff should lead towards a closure."),

  // Steps with check prompts.
  "STEP-ID-FORM": warning("unusual step id", "A hash as id stays the same when its step is moved."),
  "STEP-NO-WAY": error("no onward path", "Only the check of a step decides where the run continues."),
  "TRANS-EMPTY": error("empty transition", "An empty transition would silently end a run."),

  // Flows with a complete intent.
  "COMPLETE-TARGET": error(
    "complete leads elsewhere",
    "complete must lead to a complete.* step, so that a finished flow never loops again.",
  ),
  "COMPLETE-SCHEMA": error(
    "schema of a strict flow",
    "A strict flow needs a schema by JSON pointer that fixes stepId, so that answers for other steps are rejected.",
  ),

  // Schemas.
  FAILED_SCHEMA_RESOLUTION: error("schema not found", "A step cannot run without its schema."),
  SCHEMA_POINTER_ERROR: error("schema pointer", "A step cannot run without its schema."),
  SCHEMA_CIRCULAR_REFERENCE: error(
    "schema refers to itself",
    "Schemas are sent with all references expanded, which is impossible for a circular one.",
  ),
  "SCHEMA-STEP-ID": error(
    "stepId of another step",
    "Lockstep adds the step's id to the answer before validating it, so the schema must accept it.",
  ),
  "SCHEMA-STEP-ID-OPEN": warning(
    "stepId not fixed",
    "A const makes the model name the step it answers for; the other schemas of this flow have one.",
  ),
  "SCHEMA-UNIQUE": warning(
    "uniqueItems without maxItems",
    "uniqueItems compares every pair of objects, so a long list would take minutes to validate.",
  ),
  MALFORMED_SCHEMA_IDENTIFIER: error(
    "malformed schema name",
    "A schema name with ## or // cannot be resolved.",
  ),

  // Prompts and variables.
  "PR-C3L-004": error("prompt not found", "A step cannot run without a prompt."),
  "PROMPT-FALLBACK-USED": warning(
    "built-in prompt",
    "Built-in prompts know nothing about the task; the author should write the prompt of each step.",
  ),
  "PROMPT-SIZE": warning(
    "very long prompt",
    "The prompt is sent with every request of its step, and one that exceeds the model's context fails the run.",
  ),
  "FALLBACK-KEY": warning(
    "unknown fallbackKey",
    "A fallbackKey must be in the catalogue of built-in prompts.",
  ),
  "PR-EDITION": warning(
    "failure prompt not found",
    "Without it, the model only gets a general description of the failed check.",
  ),
  "FAILURE-NAME": warning(
    "unknown name in a failure prompt",
    "The model would read an empty string instead of the details of the failure.",
  ),
  "FAILURE-BLOCK": warning(
    "braces in a failure prompt",
    "Unknown or unclosed tags are sent to the model unchanged.",
  ),
  "PR-RESOLVE-003": error(
    "variable without supplier",
    "A declared variable must have a value when the prompt is rendered.",
  ),
  "PR-RESOLVE-005": error(
    "undeclared placeholder",
    "A placeholder without a value would be sent to the model unchanged.",
  ),
  "UV-EARLY": error(
    "variable not yet available",
    "The first visit of a run has no previous visit to report on.",
  ),
  "UV-OPTIONAL": warning(
    "variable may be missing",
    "An optional parameter without a default may have no value when the prompt is rendered.",
  ),
  "UV-UNDECLARED": warning(
    "variable not declared",
    "Readers and checks rely on uvVariables to know what a prompt needs.",
  ),
  "UV-FRONT-MATTER": warning("front matter differs", "One of the two lists of variables is out of date."),
  "PR-INTENT": warning(
    "intent in the prompt",
    "A model follows its prompt; an answer that the gate rejects costs a retry or the run.",
  ),
  "UV-PLAIN": warning(
    "placeholder without uv-",
    "Only {uv-name} is replaced; other braces are sent to the model unchanged.",
  ),

  "SECTION-UNUSED": warning(
    "section never used",
    "A section that no prompt includes never reaches the model.",
  ),
  "STDIN-UNDECLARED": warning(
    "input not declared",
    "Without usesStdin, the step runs even without input, and {input_text} is then empty.",
  ),
  "STDIN-UNREAD": warning("input never read", "Piped input would not reach the model."),
  "C3L-PATTERN": warning(
    "prompt coordinate outside the pattern",
    "Climpt, which is also configured in this project, would not find this prompt.",
  ),

  // Checks before the end.
  "CHECK-UNKNOWN": error("unknown validator", "A validator must exist to be run."),
  "CHECK-PATTERN": error(
    "unknown failure pattern",
    "The failure pattern selects the prompt that describes the failure to the model.",
  ),
  "CHECK-TYPE": error("unknown type of validator", "Lockstep can only run the known types of validators."),
  "CHECK-PARAM": error(
    "unusable parameter",
    "Values are passed to commands as shell variables, so a name must not change how commands run, and a value must fit into a variable.",
  ),
  "CHECK-VALUE": warning(
    "value not supplied",
    "The shell replaces a missing value by an empty string, which changes the meaning of the command.",
  ),
  "CHECK-SUCCESS": error("unknown successWhen", "A validator needs a valid success rule to pass."),
  "CHECK-EXTRACTOR": error("unknown extractor", "The parameter would always be empty in the failure prompt."),
  "CHECK-CANNOT-FAIL": warning("check cannot fail", "A command that always succeeds proves nothing."),
  "CHECK-NONE": warning(
    "closure without validator",
    "Only a check that can fail shows that the work is really done.",
  ),
  "CHECK-VALIDATOR-UNUSED": warning(
    "validator never used",
    "A validator that no closure uses gives a false sense of safety.",
  ),
  "CHECK-PATTERN-UNUSED": warning(
    "failure pattern never used",
    "Either the pattern is dead, or a validator misspells its name.",
  ),
  "CHECK-BORROWED": warning(
    "checks under another name",
    "Checks belong to the closure whose id is their key.",
  ),
  "CHECK-UNUSED": warning("checks never run", "Checks that no step uses give a false sense of safety."),

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
  StageCtxForbidden: error(
    "placeholder of the runtime",
    "Validation: a body is rendered once, before the first attempt, so attempts and host are not available in it.",
  ),
  StageCtxUnresolved: error(
    "placeholder without a value",
    "Validation: a placeholder without a value stops the stage before the model is called; it is never left blank.",
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
  "STAGE-PLACEHOLDER": warning(
    "no placeholder",
    "Only ctx and stage have values; anything else in braces is sent to the model unchanged.",
  ),
  "STAGE-CAP-SUCCESS": warning(
    "failure goes on as success",
    "When success and failure lead to the same stage, a stage that ran out of turns looks like a success.",
  ),

  // The budget.
  "LIMIT-INVALID": error(
    "unusable limit",
    "A limit of 0 stops every run, and a soft limit above the hard one never warns.",
  ),
  "LIMIT-ABOVE": warning(
    "limit never reached",
    "A limit above the one that encloses it has no effect, which is probably not intended.",
  ),
  "BUDGET-TURNS": error(
    "over budget",
    "`check --max-turns N` guarantees that no run takes more than N answers.",
  ),
} as const satisfies { readonly [code: string]: Rule };

function error(title: string, why: string): Rule {
  return { severity: "error", title, why };
}

function warning(title: string, why: string): Rule {
  return { severity: "warning", title, why };
}
