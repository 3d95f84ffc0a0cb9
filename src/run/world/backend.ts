/** Which model a run asks, and how far an earlier stretch of the run had come with it. */
import type { AiSdkOptions, Models } from "../../backends/ai-sdk/ai-sdk.ts";
import { parseScript, type ScriptReply } from "../../backends/scripted/script.ts";
import { createScripted } from "../../backends/scripted/scripted.ts";
import { RunnerError, type Backend } from "../../engine/ports.ts";
import type { BackendSpec } from "../../flow/event.ts";
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
