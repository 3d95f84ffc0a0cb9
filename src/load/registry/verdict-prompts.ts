/** What a step is asked when it has neither a prompt file nor a fallbackKey: built-in prompts by verdict type. */
import { isObject, own, readPath, type Json, type JsonObject } from "../../flow/json.ts";
import type { AgentSource } from "../agent/agent-shape.ts";
import type { VerdictType } from "../agent/verdict-types.ts";

/** A text with the values that only it has. */
export type BuiltInText = {
  readonly name: string;
  readonly text: string;
  readonly values: { readonly [name: string]: string };
};

/** `first`: the step begins the run, so there is nothing to look back on. `written`: what agent.json holds. */
export function verdictWords(agent: AgentSource, written: Json, isFirst: boolean): BuiltInText {
  const { type, config } = agent.runner.verdict;
  const settings = readPath(written, ["runner", "verdict", "config"]) ?? {};
  const child = type === "meta:composite" ? config.conditions?.[0]?.type : undefined;
  if (child === undefined) return wordsOf(type, settings, isFirst);
  return wordsOf(child, readPath(settings, ["conditions", "0", "config"]) ?? {}, isFirst);
}

/** The settings of a verdict that prompts can tell, by the names they have there. */
export function signalValues(settings: Json): { readonly [name: string]: string } {
  if (!isObject(settings)) return {};
  const type = own(settings, "signalType");
  if (typeof type !== "string") return {};
  const fields = own(settings, "requiredFields");
  const sample = sampleOf(fields);
  return {
    signal_type: type,
    signal_sample: JSON.stringify(sample, null, 2),
    ...(Object.keys(sample).length > 0 && { required_fields: fieldsText(fields) }),
  };
}

function wordsOf(type: VerdictType, settings: Json, isFirst: boolean): BuiltInText {
  const config = isObject(settings) ? settings : {};
  const { first, onward } = TEXTS[type](config);
  const text = isFirst ? first : `${onward.head}\n\n{uv-previous_summary}\n\n${onward.task}`;
  return { name: type, text, values: { ...signalValues(config), ...valuesOf(config) } };
}

type Texts = { readonly first: string; readonly onward: { readonly head: string; readonly task: string } };

const ITERATION = "This is iteration {uv-iteration}.";

const TEXTS: { readonly [type in VerdictType]: (config: JsonObject) => Texts } = {
  "count:iteration": () => ({
    first: `This is the first iteration of {uv-max_iterations}.
Take stock of what is there, then do the piece of work that helps most.`,
    onward: {
      head: "This is iteration {uv-iteration} of {uv-max_iterations}; {uv-remaining} remain after it.",
      task: "Go on from there: do what helps most next, and check it before you report.",
    },
  }),
  "count:check": () => ({
    first: `There will be {uv-max_checks} status checks, then the run is over.
Look at how things stand, and do what is due.`,
    onward: {
      head: "Status checks so far: {uv-check_count} of {uv-max_checks}.",
      task: "Look at how things stand now, not at what was said before, and do what is due.",
    },
  }),
  "poll:state": (config) => {
    const about = resourceLine(config);
    return {
      first: `${about}\nDo what is needed for that, and check it.`,
      onward: { head: about, task: "Do what is still missing, and check it." },
    };
  },
  "detect:keyword": () => ({
    first: `Do the work you are here for, and verify it.
When it is done and verified, and only then, write {uv-completion_keyword}.`,
    onward: {
      head: ITERATION,
      task: "Go on from there.\nWhen the work is done and verified, and only then, write {uv-completion_keyword}.",
    },
  }),
  "detect:structured": () => {
    const signal = `When the work is done and verified, and only then, give this block with the fields filled in:

\`\`\`{uv-signal_type}
{uv-signal_sample}
\`\`\``;
    return {
      first: `Do the work you are here for, and verify it.\n${signal}`,
      onward: { head: ITERATION, task: `Go on from there. ${signal}` },
    };
  },
  "detect:graph": () => ({
    first: `The step is {uv-step_id}.
{uv-step_name}
{uv-step_description}
Do what it is there for, and report what came of it.`,
    onward: {
      head: "The step is {uv-step_id}.\n{uv-step_name}\n{uv-step_description}",
      task: "Do what the step is there for, and report what came of it.",
    },
  }),
  "meta:composite": () => PLAIN,
  "meta:custom": () => PLAIN,
};

const PLAIN: Texts = {
  first: "Do the work you are here for, and check it before you report.",
  onward: { head: ITERATION, task: "Go on from there, and check your work before you report." },
};

/** One line about what is looked at from outside. It never tells the model to close an issue: that is not its business. */
function resourceLine(config: JsonObject): string {
  switch (own(config, "resourceType")) {
    case "file":
      return "Work until the file {uv-resource} is as it should be.";
    case "api":
      return "Work until {uv-resource} answers as it should.";
    case "github-project":
      return "Work on project {uv-project} until it is settled.";
    default:
      return "Work on issue {uv-issue} until it is settled.";
  }
}

function valuesOf(config: JsonObject): { readonly [name: string]: string } {
  const rows: readonly (readonly [name: string, value: Json | undefined])[] = [
    ["completion_keyword", own(config, "verdictKeyword")],
    ["max_checks", own(config, "maxChecks")],
    ["resource", own(config, "path") ?? own(config, "url")],
  ];
  return Object.fromEntries(
    rows.flatMap(([name, value]) =>
      typeof value === "string" || typeof value === "number" ? [[name, String(value)]] : [],
    ),
  );
}

/** A signal that would be taken, but for the fields whose values only the model knows. */
function sampleOf(fields: Json | undefined): JsonObject {
  if (isObject(fields)) return fields;
  const names: readonly Json[] = Array.isArray(fields) ? fields : [];
  return Object.fromEntries(
    names.flatMap((name) => (typeof name === "string" ? [[name, `<${name}>`] as const] : [])),
  );
}

function fieldsText(fields: Json | undefined): string {
  if (!isObject(fields)) return Object.keys(sampleOf(fields)).join(", ");
  return Object.entries(fields)
    .map(([name, value]) => `${name} = ${JSON.stringify(value)}`)
    .join(", ");
}
