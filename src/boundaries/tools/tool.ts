/** What a tool is to the toolbox, and the few things all tools share. */
import type { ToolSpec } from "../../engine/ports.ts";
import type { Json, JsonObject, JsonSchema } from "../../flow/json.ts";
import { misfit } from "../../flow/plain-schema.ts";
import type { Programs } from "../../flow/machine/programs.ts";
import type { AskGitHub } from "./github.ts";
import type { Ground } from "../gate/paths.ts";

export type Tool = {
  readonly spec: ToolSpec;
  /** `input` fits the spec. A throw becomes an error result. */
  readonly run: (
    input: JsonObject,
    world: ToolSurroundings,
    signal: AbortSignal,
  ) => ToolOutcome | Promise<ToolOutcome>;
};

/** What tools work on. They hold nothing of it themselves, so that one set of tools serves every run. */
export type ToolSurroundings = {
  readonly ground: Ground;
  /** The folder that commands start in. */
  readonly cwd: string;
  /** Exactly what commands see of the environment: narrowed, nothing secret in it. */
  readonly env: () => ToolEnv;
  readonly exec: RunToolProcess;
  /** How ripgrep is started; like a command, unless said. */
  readonly search?: RunToolProcess;
  /** What tools start themselves. Absent: nothing but the shell of the system. */
  readonly programs?: Pick<Programs, "bash" | "rg">;
  /** What a model sees of a text; absent: all of it. */
  readonly tidy?: (text: string) => string;
  /** What AskUserQuestion is answered with. */
  readonly autoResponse: string;
  /** Absent: GitHub is switched off. */
  readonly github?: AskGitHub;
  /** The call that is being made. It has the same id when a resumed run makes it again. */
  readonly call: string;
};

/** Runs a line for `sh -c`, or an argument vector, to its end; see `runProcess` in the effects room. */
export type RunToolProcess = (options: {
  readonly command: string | readonly string[];
  readonly cwd: string;
  readonly env: ToolEnv;
  readonly timeoutMs: number;
  readonly maxOutputBytes: number;
  readonly signal: AbortSignal;
  readonly reportsNamespace?: true;
}) => Promise<{
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
  readonly aborted: boolean;
}>;

export type ToolEnv = { readonly [name: string]: string | undefined };

export type ToolOutcome =
  | { readonly kind: "done"; readonly content: string }
  | { readonly kind: "failed"; readonly content: string }
  /** The boundary said no. */
  | { readonly kind: "refused"; readonly why: string };

/** `properties` are JSON Schemas; `Input` is the type they describe, with `required` as its required members. */
export function defineTool<Input>(definition: {
  readonly name: string;
  readonly description: string;
  readonly required: readonly (keyof Input & string)[];
  readonly properties: { readonly [name in keyof Input & string]-?: JsonSchema };
  readonly run: (
    input: Input,
    world: ToolSurroundings,
    signal: AbortSignal,
  ) => ToolOutcome | Promise<ToolOutcome>;
}): Tool {
  const { name, description, required, properties, run } = definition;
  const input: JsonSchema = { type: "object", properties, required, additionalProperties: false };
  return {
    spec: { name, description, input },
    run: (value, world, signal) => run(value as Input, world, signal),
  };
}

export function done(content: string): ToolOutcome {
  return { kind: "done", content };
}

export function failedCall(content: string): ToolOutcome {
  return { kind: "failed", content };
}

/** The first thing about `value` that does not fit, naming the field; null if all fits. */
export function inputFault(schema: JsonSchema, value: Json): string | null {
  const found = misfit(schema, value);
  if (found === null) return null;
  return `${found.path.length === 0 ? "the input" : `"${found.path.join(".")}"`} ${found.what}`;
}

/** What goes to the model is cut in its middle when it is longer than this. */
const MAX_CONTENT_BYTES = 64 * 1024;

/** Head and tail of a long text, with a note of what is missing between them. */
export function clipOutput(text: string, limit = MAX_CONTENT_BYTES): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= limit) return text;
  const half = limit >> 1;
  const head = bytes.toString("utf8", 0, half).replace(/\uFFFD$/, "");
  const tail = bytes.toString("utf8", bytes.length - half).replace(/^\uFFFD+/, "");
  return `${head}\n[… ${bytes.length - 2 * half} bytes cut …]\n${tail}`;
}
