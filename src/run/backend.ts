/** Which model a run asks, and how far an earlier stretch of the run had come with it. */
import { parseScript, type ScriptReply } from "../backends/script.ts";
import { createScripted } from "../backends/scripted.ts";
import { RunnerError, type Backend } from "../engine/ports.ts";
import type { BackendSpec, Entry, Worktree } from "../flow/event.ts";
import type { Json } from "../flow/json.ts";

export type BackendOptions = {
  /** A model of your own. */
  readonly backend?: Backend;
  /** Or a scripted one: the replies, or the text of a script file with its name. */
  readonly script?: readonly ScriptReply[] | { readonly text: string; readonly file: string };
};

/** The model a run asks: one that was handed in, a script, or the one that the run began with. */
export async function chooseBackend(
  options: BackendOptions,
  agent: string,
  marks: readonly Json[],
  spec?: BackendSpec,
): Promise<Backend> {
  if (options.backend !== undefined) return options.backend;
  const { script } = options;
  if (script !== undefined) {
    return createScripted("file" in script ? await parseScript(script.text, script.file) : script);
  }
  if (spec?.id === "scripted") {
    const { replies } = spec.options as { readonly replies: readonly ScriptReply[] };
    return createScripted(replies, marks);
  }
  throw new RunnerError(
    "NO_BACKEND",
    `There is no model for agent "${agent}": this version drives scripted models only. ` +
      `Pass --script FILE (see docs/scripts.md), or hand in a backend through the API.`,
  );
}

/** What an earlier stretch of the run left behind: its folder, its model, and how far that had come. */
export function recallBackend(past: readonly Entry[]): {
  cwd: string;
  worktree: Worktree | undefined;
  spec: BackendSpec;
  marks: readonly Json[];
} {
  const [first] = past;
  if (first?.event.type !== "run.started") {
    throw new RunnerError("JOURNAL_UNAVAILABLE", "The run has no first entry: its journal is damaged.");
  }
  let spec = first.event.backend;
  let marks: Json[] = [];
  for (const { event } of past) {
    if (event.type === "run.resumed" && event.backend !== undefined) {
      spec = event.backend;
      marks = [];
    }
    if (event.type === "step.answered" && "mark" in event.reply && event.reply.mark !== undefined) {
      marks.push(event.reply.mark);
    }
  }
  const { cwd, worktree } = first.event;
  return { cwd, worktree, spec, marks };
}
