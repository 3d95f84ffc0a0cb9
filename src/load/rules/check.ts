/** The rules over a loaded flow: everything that can be proved before the first token. Codes and reasons: codes.ts. */
import type { Machine } from "../stages/machine-parts.ts";
import * as agent from "./agent.ts";
import * as commands from "./commands.ts";
import * as complete from "./complete.ts";
import * as data from "./data.ts";
import * as ends from "./ends.ts";
import * as entries from "./entries.ts";
import type { Finding } from "./finding.ts";
import * as gates from "./gates.ts";
import * as guards from "./guards.ts";
import * as handed from "./handed.ts";
import * as intents from "./intents.ts";
import * as limits from "./limits.ts";
import type { Registered } from "./loaded.ts";
import * as placeholders from "./placeholders.ts";
import * as promptFiles from "./prompt-files.ts";
import * as prompts from "./prompts.ts";
import * as questions from "./questions.ts";
import * as routes from "./routes.ts";
import type { Rules } from "./rule.ts";
import * as sandbox from "./sandbox.ts";
import * as servers from "./servers.ts";
import * as stages from "./stages.ts";
import * as tools from "./tools.ts";
import * as verdict from "./verdict.ts";
import * as words from "./words.ts";

/** In the order in which findings are told. */
const SUBJECTS: readonly { readonly rules: Rules }[] = [
  agent,
  sandbox,
  limits,
  tools,
  servers,
  commands,
  entries,
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
  complete,
  questions,
  stages,
  placeholders,
  { rules: agent.inert },
];

/** What an agent with a registry is held to. */
export function* checkFlow(loaded: Registered): Generator<Finding> {
  const { dialect } = loaded.sources;
  for (const { rules } of SUBJECTS) {
    for (const check of rules.all ?? []) yield* check(loaded);
    for (const check of rules.registry ?? []) yield* check(loaded);
    if (dialect !== "check") for (const check of rules.gated ?? []) yield* check(loaded);
    if (dialect === "complete") for (const check of rules.complete ?? []) yield* check(loaded);
    if (dialect === "check") for (const check of rules.check ?? []) yield* check(loaded);
  }
}

/** What an agent made of stages is held to. */
export function* checkMachine(machine: Machine): Generator<Finding> {
  for (const { rules } of SUBJECTS) {
    for (const check of rules.all ?? []) yield* check(machine);
    for (const check of rules.stage ?? []) yield* check(machine);
  }
}
