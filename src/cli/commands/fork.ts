/** `lockstep fork RUN --at STEP[@VISIT]`: a new run that shares the past of another. */
import { isObject, parseJsonObject } from "../../flow/json.ts";
import { fork, RunnerError, type Edits } from "../../run/index.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { conduct } from "../conduct.ts";
import { readGiven } from "../given-file.ts";

export async function forkRun(call: CallOf<"fork">): Promise<number> {
  const [run = ""] = call.words;
  const at = call.flags.at;
  if (at === undefined) throw new UsageError("fork needs --at STEP or --at STEP@VISIT.");
  const edits = call.flags.edit.reduce((so, written) => withEdit(call, so, written), {} as Edits);
  const adopt = call.flags.adopt;
  if (adopt && (edits.prompts ?? edits.models) !== undefined)
    throw new UsageError("--adopt uses the current files; edit the prompt or the model there.");
  return await conduct(call, async (options) => await fork({ ...options, run, at, edits, adopt }));
}

function withEdit(call: CallOf<"fork">, edits: Edits, written: string): Edits {
  const [, kind = "", value = ""] = /^([a-z]+)=(.+)$/s.exec(written) ?? [];
  switch (kind) {
    case "output":
      return {
        ...edits,
        output:
          parseJsonObject(readGiven(call, value, "EDIT_INVALID")) ?? readGiven(call, value, "EDIT_INVALID"),
      };
    case "handoff":
      return { ...edits, handoff: handoffIn(call, value) };
    case "prompt": {
      const [step, file] = parted(written, value);
      return {
        ...edits,
        prompts: { ...edits.prompts, [step]: { file, text: readGiven(call, file, "EDIT_INVALID") } },
      };
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
    throw new UsageError(`--edit ${written} does not name a step: write it as STEP:VALUE.`);
  return [step, rest];
}

function handoffIn(call: CallOf<"fork">, file: string): NonNullable<Edits["handoff"]> {
  const value = parseJsonObject(readGiven(call, file, "EDIT_INVALID"));
  if (value === null || !Object.values(value).every(isObject)) {
    const why = `${file} must contain a JSON object with an object for each step: { "STEP": { "NAME": VALUE } }.`;
    throw new RunnerError("EDIT_INVALID", why);
  }
  return value as NonNullable<Edits["handoff"]>;
}
