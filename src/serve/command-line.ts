/** The command lines that a server runs, made from what it was asked for. Pure. */
import type { Flow, Parameter } from "../flow/flow.ts";
import { FORBIDDEN_NAMES, type Json, type JsonObject } from "../flow/json.ts";
import { unescapeSegment } from "../flow/json-pointer.ts";
import { shellWord, shown } from "../flow/text/harmless.ts";
import { RESERVED_FIELDS } from "../flow/text/placeholder.ts";
import { INPUT_TEXT, readsInput } from "../flow/text/template.ts";
import { HIDDEN_VALUE, holdsRedacted } from "../flow/text/redacted.ts";
import { coerceParameters } from "../load/parameters.ts";

/** What follows `lockstep`, and what it reads from stdin. */
export type CommandLine = { readonly words: readonly string[]; readonly input?: string };

/** An agent as a line has to know it. */
export type Startable = {
  readonly flow: Flow;
  /** What can be given with a flag, declared or read by a prompt. */
  readonly parameters: readonly Parameter[];
};

/** What a run is started with. */
export type StartRequest = {
  readonly agent: string;
  /** Values as they were typed, or JSON. */
  readonly args: JsonObject;
  readonly input?: string;
  readonly model?: string;
  /** A script file of the project, in place of a model. */
  readonly script?: string;
  readonly limits?: { readonly [limit: string]: number };
  readonly worktree?: boolean;
  readonly dryRun?: boolean;
  readonly onPermission?: "deny" | "halt" | "allow";
  /** The digest that the person ticked. */
  readonly trust?: string;
};

export function runLine({ flow, parameters }: Startable, asked: StartRequest): CommandLine {
  const { agent, args, input, model, script, limits = {}, worktree, dryRun, trust } = asked;
  const { onPermission = "halt" } = asked;
  const known = new Map(parameters.map((parameter) => [parameter.name, parameter]));
  const given = Object.entries(args).flatMap(([name, value]) => {
    const parameter = known.get(name);
    return parameter === undefined
      ? [`${inputFlag(parameters)}=${name}=${textOf(value)}`]
      : flagsFor(parameter, value);
  });
  const words = [
    "run",
    agent,
    ...given,
    ...(input === undefined || input === "" || hasStages(flow) ? [] : [inputFlag(parameters), "-"]),
    ...(script === undefined ? [] : [`--script=${script}`]),
    ...(model === undefined ? [] : [`--model=${model}`]),
    ...Object.entries(limits).map(([name, most]) => limitFlag(name, most)),
    ...(worktree === undefined ? [] : [worktree ? "--worktree" : "--no-worktree"]),
    ...(dryRun === true ? ["--dry-run"] : []),
    `--on-permission=${onPermission}`,
    ...(trust === undefined ? [] : [`--trust=${trust}`]),
  ];
  return { words, ...(words.includes("-") && { input: input ?? "" }) };
}

/** The flag of the input, under the name that it has where a parameter took the usual one. */
function inputFlag(parameters: readonly Parameter[]): string {
  return parameters.some(({ flag }) => flag === "--input") ? "--ls-input" : "--input";
}

/** Whether a prompt reads the text of `--input`. */
export function takesInput(flow: Flow): boolean {
  return Object.values(flow.steps).some(
    ({ prompt, stage }) =>
      stage === undefined && (prompt.variables.includes(INPUT_TEXT) || readsInput(flow, prompt.text)),
  );
}

function hasStages({ steps }: Flow): boolean {
  return Object.values(steps).some(({ stage }) => stage !== undefined);
}

function flagsFor({ flag, type }: Parameter, value: Json): readonly string[] {
  if (type === "boolean" && (value === true || value === "true")) return [flag];
  if (type === "array" && Array.isArray(value))
    return (value as readonly Json[]).map((item) => `${flag}=${textOf(item)}`);
  return [`${flag}=${textOf(value)}`];
}

function textOf(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function limitFlag(name: string, most: number): string {
  switch (name) {
    case "turns":
    case "tokens":
      return `--max-${name}=${most}`;
    case "costUsd":
      return `--max-cost=${most}`;
    case "wallMs":
      return `--max-time=${most}ms`;
    default:
      return `--max=${name}=${most}`;
  }
}

export type ArgumentFault = { readonly field: string | null; readonly message: string };

/** The values a run would start with, and what is wrong with them: the same sentences as on the command line. */
export function judgeArguments(
  { flow, parameters }: Startable,
  given: JsonObject,
): { readonly args: JsonObject; readonly errors: readonly ArgumentFault[] } {
  const { args, problems } = coerceParameters(flow.parameters, given, flow.openArguments ?? false);
  const errors = problems.map(({ pointer, message }) => ({ field: fieldOf(pointer), message }));
  // A parameter also goes by its flag on a command line; here only its name counts.
  const known = new Set<string | null>([
    ...parameters.map(({ name }) => name),
    ...errors.map(({ field }) => field),
  ]);
  const hidden = Object.entries(given)
    .filter(([, value]) => holdsRedacted(textOf(value)))
    .map(([name]) => ({ field: name, message: HIDDEN_VALUE }));
  const strange = Object.keys(given).filter((name) => !known.has(name));
  return { args, errors: [...errors, ...hidden, ...strange.flatMap((name) => strayFault(flow, name))] };
}

/** A name that no flag gives: stages take it with `--input`, everything else not at all. */
function strayFault(flow: Flow, name: string): readonly ArgumentFault[] {
  if (!hasStages(flow) || flow.openArguments !== true)
    return [{ field: name, message: `There is no parameter "${shown(name)}".` }];
  if (RESERVED_FIELDS.has(name) || FORBIDDEN_NAMES.has(name))
    return [{ field: name, message: `--input ${name} cannot be given: the runtime sets it.` }];
  if (name === "" || name.startsWith("@") || name.includes("="))
    return [{ field: name, message: `"${shown(name)}" is not a name that --input takes.` }];
  return [];
}

function fieldOf(pointer: string): string | null {
  const segment = /^\/([^/]+)/.exec(pointer)?.[1];
  return segment === undefined ? null : unescapeSegment(segment);
}

/** A line for a shell; empty where a word holds what cannot be seen, so that nobody pastes it. */
export function lineText(program: string, { words, input }: CommandLine): string {
  const whole = words.map((word) => (word === "-" && input !== undefined ? input : word));
  if (whole.some((word) => shown(word) !== word)) return "";
  return [program, ...whole.map(typedWord)].join(" ");
}

/** The value of a flag is quoted, and not the flag. */
function typedWord(word: string): string {
  const [, flag, value] = /^(--[\w-]+=)(.*)$/s.exec(word) ?? [];
  return flag === undefined || value === undefined ? shellWord(word) : `${flag}${shellWord(value)}`;
}
