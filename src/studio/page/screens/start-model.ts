/** The form that starts a run: which field a parameter gets, and what is sent for what was typed. */
import type { Parameter } from "../../../flow/flow.ts";
import { isObject, own, type Json, type JsonObject } from "../../../flow/json.ts";
import { holdsRedacted } from "../../../flow/text/redacted.ts";
import type { StartRequest } from "../../wire-acts.ts";

/** How a parameter is typed in: `lines` one value a line, `json` an object as JSON. */
export type FieldKind = "choice" | "switch" | "number" | "lines" | "json" | "text";

export function fieldKind({ type, validation }: Pick<Parameter, "type" | "validation">): FieldKind {
  if (validation?.enum !== undefined && type !== "array" && type !== "object") return "choice";
  switch (type) {
    case "boolean":
      return "switch";
    case "number":
      return "number";
    case "array":
      return "lines";
    case "object":
      return "json";
    case "string":
      return "text";
  }
}

/** A value as it stands in the field; a switch holds `true` or nothing. */
export function typedText(kind: FieldKind, value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  if (kind === "switch") return value === true ? "true" : "";
  if (kind === "lines" && Array.isArray(value)) return (value as readonly Json[]).map(plain).join("\n");
  return plain(value, kind === "json" ? 2 : undefined);
}

function plain(value: Json, indent?: number): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, indent);
}

export type Typed = { readonly [name: string]: string };
/** Names and values of an agent that takes any argument. */
export type FreeRow = { readonly name: string; readonly value: string };

/** What the fields hold at first: defaults, or the arguments of an earlier run. What was hidden has to be typed again. */
export function firstTyped(parameters: readonly Parameter[], earlier: JsonObject = {}): Typed {
  const hidden = hiddenIn(earlier);
  return Object.fromEntries(
    parameters.map((parameter) => {
      const { name } = parameter;
      const value = own(earlier, name) ?? parameter.default;
      return [name, hidden.has(name) ? "" : typedText(fieldKind(parameter), value)];
    }),
  );
}

/** Arguments of which a secret was hidden on their way here: a mark in its place is not the value. */
export function hiddenIn(earlier: JsonObject): ReadonlySet<string> {
  return new Set(
    Object.entries(earlier)
      .filter(([, value]) => holdsRedacted(plain(value)))
      .map(([name]) => name),
  );
}

/** Arguments of an earlier run that no parameter declares. */
export function freeRows(parameters: readonly Parameter[], earlier: JsonObject): readonly FreeRow[] {
  const declared = new Set(parameters.map(({ name }) => name));
  const hidden = hiddenIn(earlier);
  return Object.entries(earlier)
    .filter(([name]) => !declared.has(name))
    .map(([name, value]) => ({ name, value: hidden.has(name) ? "" : plain(value) }));
}

/**
 * The arguments as they are sent. An empty field is not given, so that the agent's default holds; the server judges the
 * rest as the command line does.
 */
export function sentArgs(
  parameters: readonly Parameter[],
  typed: Typed,
  free: readonly FreeRow[] = [],
): JsonObject {
  const declared = parameters.flatMap((parameter): readonly (readonly [string, Json])[] => {
    const value = valueOf(parameter, own(typed, parameter.name) ?? "");
    return value === undefined ? [] : [[parameter.name, value]];
  });
  const open = free
    .filter(({ name }) => name.trim() !== "")
    .map(({ name, value }) => [name.trim(), value] as const);
  return Object.fromEntries([...declared, ...open]);
}

function valueOf(parameter: Parameter, text: string): Json | undefined {
  const kind = fieldKind(parameter);
  if (kind === "switch") {
    const isOn = text === "true";
    return isOn !== (parameter.default === true) || parameter.required ? isOn : undefined;
  }
  if (kind === "lines") {
    const lines = text.split("\n").filter((line) => line.trim() !== "");
    return lines.length === 0 ? undefined : lines;
  }
  // What the agent takes by itself need not be on the line.
  return text === "" || text === typedText(kind, parameter.default) ? undefined : text;
}

/** What the field says about itself below its name. */
export function fieldHint({ type, validation, default: fallback, required }: Parameter): string {
  const { min, max, pattern } = validation ?? {};
  return [
    ...(type === "array" ? ["one value a line"] : type === "object" ? ["a JSON object"] : []),
    ...(min !== undefined && max !== undefined
      ? [`${min} to ${max}`]
      : min !== undefined
        ? [`at least ${min}`]
        : max !== undefined
          ? [`at most ${max}`]
          : []),
    ...(pattern === undefined ? [] : [`must match ${pattern}`]),
    ...(!required && fallback !== undefined && type !== "boolean" ? [`default ${plain(fallback)}`] : []),
  ].join(" · ");
}

/** Everything else that a run is started with. */
export type StartChoices = {
  readonly input: string;
  /** A name of a model; "": that of the agent. */
  readonly model: string;
  readonly script: string;
  readonly turns: string;
  readonly costUsd: string;
  readonly minutes: string;
  readonly worktree: "" | "yes" | "no";
  readonly isDry: boolean;
  readonly onPermission: "" | NonNullable<StartRequest["onPermission"]>;
};

export const NO_CHOICES: StartChoices = {
  input: "",
  model: "",
  script: "",
  turns: "",
  costUsd: "",
  minutes: "",
  worktree: "",
  isDry: false,
  onPermission: "",
};

export function startRequest(
  agent: string,
  args: JsonObject,
  given: StartChoices,
  trust: string | null,
): StartRequest {
  const limits = Object.fromEntries(
    [
      ["turns", Number(given.turns)] as const,
      ["costUsd", Number(given.costUsd)] as const,
      ["wallMs", Number(given.minutes) * 60_000] as const,
    ].filter(([, most]) => Number.isFinite(most) && most > 0),
  );
  return {
    agent,
    args,
    ...(given.input === "" ? {} : { input: given.input }),
    ...(given.script.trim() === ""
      ? given.model === ""
        ? {}
        : { model: given.model }
      : { script: given.script.trim() }),
    ...(Object.keys(limits).length === 0 ? {} : { limits }),
    ...(given.worktree === "" ? {} : { worktree: given.worktree === "yes" }),
    ...(given.isDry ? { dryRun: true } : {}),
    ...(given.onPermission === "" ? {} : { onPermission: given.onPermission }),
    ...(trust === null ? {} : { trust }),
  };
}

/** The sentences of a refusal, by field; those that belong to none stand under "". */
export function fieldErrors(
  errors: readonly { readonly field: string | null; readonly message: string }[],
): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const { field, message } of errors) {
    const list = found.get(field ?? "") ?? [];
    found.set(field ?? "", [...list, message]);
  }
  return found;
}

/** Whether a text is a JSON object, for a field that has to hold one: the reason where it is not. */
export function jsonFault(text: string): string | null {
  if (text.trim() === "") return null;
  try {
    return isObject(JSON.parse(text)) ? null : "This is not a JSON object.";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
