/** Which model a run asks, and how far an earlier stretch of the run had come with it. */
import type { AiSdkOptions, Models } from "../../backends/ai-sdk/ai-sdk.ts";
import { parseScript, type ScriptReply } from "../../backends/scripted/script.ts";
import { createScripted } from "../../backends/scripted/scripted.ts";
import { RunnerError, type Backend } from "../../engine/ports.ts";
import { RecordDamaged } from "../../journal/errors.ts";
import type { BackendSpec, Entry, Worktree } from "../../flow/event.ts";
import type { Flow } from "../../flow/flow.ts";
import { isObject, own, type Json } from "../../flow/json.ts";
import { BACKENDS, type BackendNeed } from "./backend-table.ts";

export type BackendOptions = {
  /** A model of your own. */
  readonly backend?: Backend;
  /** Or a scripted one: the replies, or the text of a script file with its name. */
  readonly script?: readonly ScriptReply[] | { readonly text: string; readonly file: string };
  /** Or one of `BACKENDS`, by its id. */
  readonly use?: string;
  /** The model that all steps ask, whatever they name. */
  readonly model?: string;
};

/** The backend `ai-sdk` for models of your own choice; see there. */
export async function createAiSdk(models: Models, options?: AiSdkOptions): Promise<Backend> {
  return await (await import("../../backends/ai-sdk/ai-sdk.ts")).createAiSdk(models, options);
}

/** The run asks whatever the process that drives it asks by default; a model may be named. */
export const ANY_BACKEND = "any";

/** The model a run asks: one that was handed in, a script, one that was named, or the one that the run began with. */
export async function chooseBackend(
  options: BackendOptions,
  flow: Flow,
  around: Pick<BackendNeed, "env" | "config" | "stateDir" | "root" | "blobs">,
  past: { readonly spec?: BackendSpec; readonly marks: readonly Json[] } = { marks: [] },
): Promise<Backend> {
  if (options.backend !== undefined) return options.backend;
  const { script, use } = options;
  if (script !== undefined) {
    return createScripted("file" in script ? await parseScript(script.text, script.file) : script);
  }
  const { spec, marks } = past;
  const isAny = spec?.id === ANY_BACKEND;
  const model = options.model ?? (isAny ? modelIn(spec.options) : undefined);
  const again = use === undefined && options.model === undefined && !isAny ? spec : undefined;
  const id = again?.id ?? use ?? around.config.defaultBackend ?? "ai-sdk";
  const row = own(BACKENDS, id);
  if (row === undefined) {
    const what =
      again === undefined
        ? `Unknown backend "${id}". Use one of: ${Object.keys(BACKENDS).join(", ")}.`
        : `The run used the backend "${id}", which only the program that started it provides: pass it again, or name a model.`;
    throw new RunnerError("NO_BACKEND", what);
  }
  const named = { ...(model !== undefined && { model }), ...(again && { recorded: again.options }) };
  const backend = await row.make({ flow, ...around, marks, ...named });
  return row.unconfinable ? { ...backend, unconfinable: true } : backend;
}

function modelIn(options: Json): string | undefined {
  const model = isObject(options) ? own(options, "model") : undefined;
  return typeof model === "string" ? model : undefined;
}

/** How long a watcher may take to end the program of a run whose owner died; 0: there is no watcher. */
export function watcherMs({ id }: BackendSpec): number {
  return own(BACKENDS, id)?.watched ? 3000 : 0;
}

/** What an earlier stretch of the run left behind: its folder, its model, and how far that had come. */
export type Recalled = {
  readonly cwd: string;
  readonly worktree: Worktree | undefined;
  readonly spec: BackendSpec;
  readonly marks: readonly Json[];
  /** A model was asked before: what it was granted may be left to do. */
  readonly isAsked: boolean;
};

export function recallBackend(past: readonly Entry[]): Recalled {
  const [first] = past;
  if (first?.event.type !== "run.started") {
    throw new RecordDamaged("The run has no first entry: its journal is damaged.");
  }
  let spec = first.event.backend;
  let marks: Json[] = [];
  let isAsked = false;
  for (const { event } of past) {
    isAsked ||= event.type === "step.asked";
    if (event.type === "run.resumed" && event.backend !== undefined) {
      spec = event.backend;
      marks = [];
    }
    if (event.type === "step.answered" && "mark" in event.reply && event.reply.mark !== undefined) {
      marks.push(event.reply.mark);
    }
  }
  const { cwd, worktree } = first.event;
  return { cwd, worktree, spec, marks, isAsked };
}
