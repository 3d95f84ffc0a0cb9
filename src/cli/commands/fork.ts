/** `lockstep fork RUN --at STEP[@VISIT]`: a new run that shares the past of another. */
import { resolve } from "node:path";
import { isObject, type JsonObject } from "../../flow/json.ts";
import { readWritten } from "../../run/world/files.ts";
import { fork, RunnerError, type Edits } from "../../run/index.ts";
import { UsageError } from "../args.ts";
import type { Call } from "../call.ts";
import { conduct } from "../conduct.ts";

export async function forkRun(call: Call): Promise<number> {
  const [run = ""] = call.words;
  const at = call.text("at");
  if (at === undefined) throw new UsageError("fork needs --at STEP or --at STEP@VISIT.");
  const edits = call.all("edit").reduce((so, written) => withEdit(call, so, written), {} as Edits);
  const adopt = call.on("adopt");
  if (adopt && (edits.prompts ?? edits.models) !== undefined)
    throw new UsageError("--adopt takes the flow of the files; edit the prompt or the model there.");
  return await conduct(call, async (options) => await fork({ ...options, run, at, edits, adopt }));
}

function withEdit(call: Call, edits: Edits, written: string): Edits {
  const [, kind = "", value = ""] = /^([a-z]+)=(.+)$/s.exec(written) ?? [];
  switch (kind) {
    case "output":
      return { ...edits, output: objectIn(readText(call, value)) ?? readText(call, value) };
    case "handoff":
      return { ...edits, handoff: handoffIn(call, value) };
    case "prompt": {
      const [step, file] = parted(written, value);
      return { ...edits, prompts: { ...edits.prompts, [step]: { file, text: readText(call, file) } } };
    }
    case "model": {
      const [step, model] = parted(written, value);
      return { ...edits, models: { ...edits.models, [step]: model } };
    }
    default:
      throw new UsageError(
        `--edit knows output=FILE, handoff=FILE, prompt=STEP:FILE and model=STEP:NAME, not "${written}".`,
      );
  }
}

function parted(written: string, value: string): readonly [step: string, rest: string] {
  const [, step, rest] = /^([^:]+):(.+)$/s.exec(value) ?? [];
  if (step === undefined || rest === undefined)
    throw new UsageError(`--edit ${written} names no step: write it as STEP:VALUE.`);
  return [step, rest];
}

function handoffIn(call: Call, file: string): NonNullable<Edits["handoff"]> {
  const value = objectIn(readText(call, file));
  if (value === null || !Object.values(value).every(isObject)) {
    const why = `${file} must hold a JSON object with an object for each step: { "STEP": { "NAME": VALUE } }.`;
    throw new RunnerError("EDIT_INVALID", why);
  }
  return value as NonNullable<Edits["handoff"]>;
}

function objectIn(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

function readText(call: Call, file: string): string {
  try {
    return readWritten(resolve(call.cwd, file));
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new RunnerError("EDIT_INVALID", `${file} cannot be read: ${why}`, { cause });
  }
}
