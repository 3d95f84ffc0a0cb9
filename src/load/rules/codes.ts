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
  "VERDICT-NEVER": error(
    "verdict never fires",
    "A run that nothing ends in success spends tokens until its ceiling, and then fails.",
  ),
  "VERDICT-UNTOLD": warning(
    "model not told how to end",
    "A model can only give the word or the block that somebody tells it about.",
  ),
  "VERDICT-CLOSES": warning(
    "issue closed by a count",
    "A count tells that a run is over, and not that its work is done.",
  ),
  "AC-NAME": warning(
    "name differs from folder",
    "The folder's name starts the agent; a second name misleads.",
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
  "SANDBOX-HOST": error(
    "host of the sandbox",
    "A list of hosts is worth as much as its widest entry: commands can send there whatever they can read.",
  ),
  "SANDBOX-PATH": error(
    "folder of the sandbox",
    "Whoever can write the home folder, the record of runs or the list of what is trusted is not confined.",
  ),
  "TOOL-UNKNOWN": warning(
    "unknown tool",
    "A name that no tool has allows nothing, so the steps have fewer tools than the list seems to say.",
  ),
  "BASH-LIST-OPEN": warning(
    "list of commands that is no limit",
    "A list compares how commands begin. Many programs run or write anything by their options, and then the list keeps an honest model on the road and stops no other.",
  ),
  "ARGUMENT-OPTION": warning(
    "value that could be an option",
    "A value of the handoff comes from a model. One that begins with a dash is an option to the program, and options can run or write anything.",
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
  "MCP-NAME": error(
    "name of a server",
    "It is part of the names of the server's tools, which must be told apart and be taken by every model.",
  ),
  "MCP-SERVER": error(
    "server of tools",
    "A server is started by its command or asked at its address, and neither is guessed.",
  ),
  "MCP-SECRET": error(
    "secret in a file",
    "What an agent's files hold is shared, recorded with every run and shown: a key in it is a secret no longer.",
  ),
  "MCP-UNDECLARED": warning(
    "tool of no server",
    "Only servers that the agent declares are started, so the tools of any other are never there.",
  ),
  "MCP-UNUSED": warning(
    "server without use",
    "A server is started only when a step may use its tools; this one looks as if it were there.",
  ),
  "GITHUB-TOOL-OFF": warning(
    "tool of GitHub, which is switched off",
    "Where GitHub is not used, no step is offered the tool that reads it; its name looks as if it were there.",
  ),
  "CONFIG-NOT-ACTED-ON": warning("not acted on", "A setting without effect must not look as if it had one."),
  "MODEL-UNKNOWN": warning(
    "misspelled model",
    "A name that means no model stops the run at its start, unless the user's own settings give it a meaning.",
  ),
  "PR-SYSTEM": error(
    "system prompt not found",
    "The agent would run without the instructions its author wrote.",
  ),

  // Parameters.
  "PARAM-FLAG": error("flag used twice", "A value on the command line must mean one parameter."),
  "PARAM-DEFAULT": error(
    "default does not fit",
    "The default is used as if it had been given, so it must fit too.",
  ),
  "PARAM-REQUIRED": warning("required with a default", "A required parameter never takes its default."),
  "PARAM-DESCRIPTION": warning("no description", "The description is what --help shows."),
  "PARAM-UNREAD": warning("parameter never read", "A value that no prompt reads changes nothing."),
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
  "SR-LOAD-002": error(
    "registry of another agent",
    "A registry that names another agent was copied or misplaced.",
  ),
  "SR-VALID-001": error(
    "intent not allowed",
    "The kind of a step limits its intents, so that only a closure can end a flow.",
  ),
  "SR-VALID-002": error(
    "gate incomplete",
    "intentField and intentSchemaRef are how the runner finds the model's decision.",
  ),
  "SR-VALID-003": error(
    "enum and allowedIntents differ",
    "What the model may say and what the runner accepts are one contract.",
  ),
  "SR-VALID-004": error(
    "field of the registry",
    "A value of the wrong kind would change the flow without a word.",
  ),
  "SR-ENTRY-001": error("no entry step", "The first step is never guessed."),
  "SR-ENTRY-002": error("entryStep unknown", "A run must begin at a step that exists."),
  "SR-ENTRY-003": error("entryStepMapping unknown", "A run must begin at a step that exists."),
  "SR-GATE-003": error(
    "step without gate",
    "In a flow with gates a step without one decides nothing and so leads nowhere.",
  ),
  "SR-GATE-004": error(
    "graph without gates",
    "detect:graph ends at a terminal of the graph, and only gates lead there.",
  ),
  "SR-GATE-SCHEMA": warning(
    "gate without schema",
    "Without a schema the model is not told what to answer, and nothing is validated.",
  ),
  "GATE-FIELD": warning(
    "field not in the schema",
    "The model fills in what the schema names, and nothing else.",
  ),
  "GATE-FALLBACK": warning(
    "fallbackIntent not allowed",
    "A fallback outside of allowedIntents is passed over for another one.",
  ),
  "GATE-OPTIONAL": warning(
    "intent not required",
    "A model may leave out what its schema does not require, and without an intent the step decides nothing.",
  ),
  "GATE-FALLBACK-NEVER": warning(
    "fallbackIntent never taken",
    "A fallback that cannot be taken looks like safety that is not there.",
  ),
  "HANDOFF-FIELD": warning(
    "handoff field not in the schema",
    "A field the schema does not name is never there to be handed on.",
  ),
  "HANDOFF-KEY": error("handoff keys collide", "Two fields under one key would overwrite each other."),
  "DATA-NEVER": error(
    "read before it is handed on",
    "A prompt with a value that is not there yet cannot be made.",
  ),
  "DATA-SKIPPED": warning(
    "way around the supplier",
    "On such a way the prompt cannot be made, and the run fails there.",
  ),
  "INPUT-SHADOWED": warning("input never read", "A parameter of the same name is looked up first."),
  "INPUT-SOURCE": error("input without source", "An input is read from what another step hands on."),

  // Routes.
  "SR-TRANS-001": error("unknown target", "The model can only be led to a step that exists."),
  "SR-TRANS-002": error("no target", "Only closing may end a flow; any other intent must lead to a step."),
  "SR-TRANS-003": error("next without a rule", "An intent the model may choose must lead somewhere."),
  "SR-TRANS-004": error("handoff without a rule", "An intent the model may choose must lead somewhere."),
  "SR-TRANS-005": error("handoff without target", "A handoff is to another step."),
  "SR-TRANS-006": error("handoff to an unknown step", "The model can only be led to a step that exists."),
  "SR-TRANS-007": error("escalate without a rule", "An intent the model may choose must lead somewhere."),
  "SR-TRANS-008": error("escalate without target", "An escalation is to another step."),
  "SR-TRANS-009": error("escalate to an unknown step", "The model can only be led to a step that exists."),
  "SR-TRANS-010": error("jump without target", "A jump needs a declared target, or a field that names one."),
  "TRANS-CONDITION": error(
    "unknown condition",
    "A condition reads one key of the data that the step itself hands on.",
  ),
  "TRANS-BOTH": warning(
    "target beside a condition",
    "A transition leads to one target, or to the one that its condition selects; the other is ignored.",
  ),
  "TRANS-DEFAULT": warning("no default", "A value that was not foreseen leads nowhere and ends the run."),
  "TRANS-CLOSING": warning(
    "closing without a rule",
    "The keys of transitions and the enum should show the same contract.",
  ),
  "TRANS-UNUSED": warning(
    "transition never taken",
    "A rule for an intent that cannot be chosen is dead, or the intent was forgotten.",
  ),
  "TRANS-REPEAT": warning(
    "repeat without a rule",
    "The keys of transitions and the enum should show the same contract.",
  ),
  "FLOW-NO-END": error("no way to an end", "A run that cannot end spends tokens until a limit stops it."),
  "FLOW-DEAD-END": error("dead end", "A step that leads nowhere can only fail the run."),
  "FLOW-CYCLE": error("circle without a way out", "A run in a circle spends tokens until a limit stops it."),
  "FLOW-LIVELOCK": error(
    "only repeat",
    "A step that can only be repeated gives the model no way to say that it is done.",
  ),
  "FLOW-JUMP-TRAP": error(
    "jump into a trap",
    "A model that may name any step will one day name one that leads nowhere.",
  ),
  "FLOW-JUMP-TARGET": error(
    "jump to an unknown step",
    "What the schema lets the model name must be a step of the flow.",
  ),
  "FLOW-UNREACHABLE": warning(
    "unreachable step",
    "A step that nothing leads to is dead, or a transition was forgotten.",
  ),
  "FLOW-NEXT-CLOSURE": warning(
    "next into a closure",
    "Work is delegated to a closure by handoff; next goes on working.",
  ),
  "FLOW-HANDOFF-WORK": warning("handoff to work", "A handoff is meant to lead towards the closure."),

  // Steps with check prompts.
  "STEP-ID-FORM": warning(
    "step id of another form",
    "An id made of a hash stays the same wherever its step is moved.",
  ),
  "STEP-NO-WAY": error("no way on", "Only its check says where a run goes on after a step."),
  "TRANS-EMPTY": error("empty transition", "A transition that says nothing would end a run without a word."),

  // Flows with a complete intent.
  "COMPLETE-TARGET": error(
    "complete leads elsewhere",
    "complete always leads to a complete.* step, so that a flow which is done never goes round once more.",
  ),
  "COMPLETE-SCHEMA": error(
    "schema of a strict flow",
    "A schema by JSON pointer that fixes stepId lets no answer through that was meant for another step.",
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
  "SCHEMA-STEP-ID": error(
    "stepId of another step",
    "The step's id is put into the answer before it is checked, so the schema must take it.",
  ),
  "SCHEMA-STEP-ID-OPEN": warning(
    "stepId not fixed",
    "A const tells the model which step it answers for; the other schemas of this flow have one.",
  ),
  "SCHEMA-UNIQUE": warning(
    "uniqueItems without maxItems",
    "Objects in a list are compared each with each other: a long list would take minutes to check.",
  ),
  MALFORMED_SCHEMA_IDENTIFIER: error("malformed schema name", "A doubled # or / names nothing."),

  // Prompts and variables.
  "PR-C3L-004": error("prompt not found", "A step without a prompt has nothing to ask."),
  "PROMPT-FALLBACK-USED": warning(
    "built-in prompt",
    "What a step is asked should be the author's words; built-in ones know nothing of the work.",
  ),
  "PROMPT-SIZE": warning(
    "very long prompt",
    "A prompt is sent with every request of its step, and one that no model can take fails the run.",
  ),
  "FALLBACK-KEY": warning("unknown fallbackKey", "A key that is not in the catalogue stands in for nothing."),
  "PR-EDITION": warning(
    "failure prompt not found",
    "The model hears of the failed check in general words only.",
  ),
  "FAILURE-NAME": warning(
    "name without a value in a failure prompt",
    "The model would read an empty place where the failure should be named.",
  ),
  "FAILURE-BLOCK": warning(
    "braces in a failure prompt",
    "What is not a tag of the language of failure prompts, or is not closed, is sent to the model unchanged.",
  ),
  "PR-RESOLVE-003": error(
    "variable without supplier",
    "A declared variable must have a value when the prompt is made.",
  ),
  "PR-RESOLVE-005": error(
    "undeclared placeholder",
    "A placeholder without a value would reach the model as it stands.",
  ),
  "UV-EARLY": error(
    "variable not there yet",
    "On the first visit of a run there is no earlier one to tell of.",
  ),
  "UV-OPTIONAL": warning(
    "variable may be missing",
    "An optional parameter without a default may have no value when the prompt is made.",
  ),
  "UV-UNDECLARED": warning(
    "variable not declared",
    "uvVariables is the list by which a reader and the checks know what a prompt needs.",
  ),
  "UV-FRONT-MATTER": warning(
    "front matter differs",
    "Two lists of the same variables that differ: one of them is out of date.",
  ),
  "PR-INTENT": warning(
    "intent in the prompt",
    "A model does what the prompt says, and an answer that the gate refuses costs a round or the run.",
  ),
  "UV-PLAIN": warning(
    "placeholder without uv-",
    "Only {uv-name} is replaced; other braces reach the model as they stand.",
  ),

  "SECTION-UNUSED": warning("section never used", "A text that no prompt takes in never reaches the model."),
  "STDIN-UNDECLARED": warning(
    "input not declared",
    "A step that uses stdin is not asked without input; any other is asked with nothing in its place.",
  ),
  "STDIN-UNREAD": warning("input never read", "What is piped in would not reach the model."),
  "C3L-PATTERN": warning(
    "coordinate outside of the pattern",
    "Climpt, whose configuration is here too, would not find this prompt.",
  ),

  // Checks before the end.
  "CHECK-UNKNOWN": error("unknown validator", "A check that does not exist cannot pass."),
  "CHECK-PATTERN": error(
    "unknown failure pattern",
    "The pattern chooses the prompt that tells the model what failed.",
  ),
  "CHECK-TYPE": error("unknown type of validator", "A check that nobody can judge can never pass."),
  "CHECK-PARAM": error(
    "unusable parameter",
    "Values reach a command as variables of its shell: a name that changes which commands are found, or a value that no variable can hold, must not get there.",
  ),
  "CHECK-VALUE": warning(
    "value not supplied",
    "To a shell a name without a value is empty text, and the command then means something else.",
  ),
  "CHECK-SUCCESS": error("unknown successWhen", "A check without a rule for success can never pass."),
  "CHECK-EXTRACTOR": error("unknown extractor", "The parameter would always be empty in the failure prompt."),
  "CHECK-CANNOT-FAIL": warning("check cannot fail", "A command that always succeeds proves nothing."),
  "CHECK-NONE": warning(
    "closure without validator",
    "Only a check that can fail tells work that is done from work that is said to be done.",
  ),
  "CHECK-VALIDATOR-UNUSED": warning(
    "validator never used",
    "A validator that no closure asks for gives a false sense of safety.",
  ),
  "CHECK-PATTERN-UNUSED": warning(
    "failure pattern never used",
    "A pattern that no validator names is dead, or a name was misspelled.",
  ),
  "CHECK-BORROWED": warning(
    "checks under another name",
    "Checks belong to the closure whose id is their key; anything else is a guess.",
  ),
  "CHECK-UNUSED": warning("checks never run", "Checks that no step asks for give a false sense of safety."),

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
  StageCtxForbidden: error(
    "placeholder of the runtime",
    "Validation: a body is rendered once, before the first attempt, so attempts and host mean nothing in it.",
  ),
  StageCtxUnresolved: error(
    "placeholder without a value",
    "Validation: a placeholder without a value stops the stage before the model is asked; it is never a blank.",
  ),
  StageTargetUnknown: error("unknown stage", "Validation: a stage can only lead to one that exists."),
  StageJoinDangling: error(
    "join of no stage",
    "Validation: the join is the stage that goes on when all siblings are done.",
  ),
  InvalidParallelPlan: error("no parallel plan", "ExtensionHost: side by side means two or more stages."),
  "STAGE-PLACEHOLDER": warning(
    "no placeholder",
    "Only ctx and stage have values; anything else in braces reaches the model as it stands.",
  ),
  "STAGE-CAP-SUCCESS": warning(
    "failure goes on as success",
    "When a stage that ran out of turns leads on like one that was done, nobody notices that it was not.",
  ),

  // The budget.
  "LIMIT-INVALID": error(
    "unusable limit",
    "A limit of nothing stops every run, and a word of warning after the end helps nobody.",
  ),
  "LIMIT-ABOVE": warning(
    "limit never reached",
    "The narrower limit was written to hold: above the wider one it says nothing, which is hardly meant.",
  ),
  "BUDGET-TURNS": error(
    "over budget",
    "`check --max-turns N` promises that no run takes more answers than N.",
  ),
} as const satisfies { readonly [code: string]: Rule };

function error(title: string, why: string): Rule {
  return { severity: "error", title, why };
}

function warning(title: string, why: string): Rule {
  return { severity: "warning", title, why };
}
