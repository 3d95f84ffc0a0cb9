/** A fork of a run: what stood there, what was edited, and what is sent. */
import { isObject, parseJson, type Json, type JsonObject } from "../../../flow/json.ts";
import { HIDDEN_VALUE, holdsRedacted } from "../../../flow/text/redacted.ts";
import type { Why } from "../../../tell/why.ts";
import type { ForkRequest, JudgedDocument } from "../../wire-acts.ts";

/** What the visit was, as the fields show it. */
export type ForkBefore = {
  /** The last answer of the model; null: there is none to replace. */
  readonly output: string | null;
  /** The answer of this step is text, not JSON. */
  readonly isText: boolean;
  readonly handoff: string;
  readonly prompt: string | null;
  readonly model: string;
  /** A command performs the step: no prompt and no model. */
  readonly isCommand: boolean;
};

export function forkBefore(
  why: Pick<Why, "step" | "contracts" | "moments">,
  handoff: JsonObject,
  { prompt }: Pick<JudgedDocument, "prompt">,
): ForkBefore {
  const contract = why.contracts.find(({ step }) => step === why.step) ?? why.contracts[0];
  const answered = why.moments.findLast(
    ({ event, read }) => event.type === "step.answered" && read !== undefined,
  );
  const isText = contract?.answer.kind === "text";
  const said =
    answered?.event.type === "step.answered" && answered.event.reply.kind === "said"
      ? answered.event.reply
      : null;
  const payload = answered?.read?.payload ?? null;
  return {
    output: isText ? (said?.text ?? null) : payload === null ? null : pretty(payload),
    isText,
    handoff: pretty(handoff),
    prompt,
    model: contract?.model ?? "",
    isCommand: contract?.by.kind === "command",
  };
}

function pretty(value: Json): string {
  return JSON.stringify(value, null, 2);
}

/** The fields as they were typed; null: not opened, so it stays as it was. */
export type ForkEdits = {
  readonly output: string | null;
  readonly handoff: string | null;
  readonly prompt: string | null;
  readonly model: string | null;
  readonly adopt: boolean;
};

export const NO_EDITS: ForkEdits = { output: null, handoff: null, prompt: null, model: null, adopt: false };

export type ForkFault = JudgedDocument["errors"][number];

/** What is sent, and what is wrong with what was typed. An edit that changes nothing is not sent. */
export function forkRequestOf(
  visit: { readonly step: string; readonly visit: number },
  before: ForkBefore,
  edits: ForkEdits,
): { readonly request: ForkRequest; readonly faults: readonly ForkFault[] } {
  const faults: ForkFault[] = [];
  const object = (field: "output" | "handoff", text: string): JsonObject | undefined => {
    const value = parseJson(text);
    if (isObject(value)) return value;
    faults.push({ field, message: value === undefined ? jsonError(text) : "This must be a JSON object." });
  };
  const { step } = visit;
  const output = changed(edits.output, before.output);
  const handoff = changed(edits.handoff, before.handoff);
  const prompt = changed(edits.prompt, before.prompt);
  const model = changed(edits.model, before.model);
  for (const [field, text] of Object.entries({ output, handoff, prompts: edits.adopt ? null : prompt }))
    if (holdsRedacted(text ?? "")) faults.push({ field, message: HIDDEN_VALUE });
  const said = output === null ? undefined : before.isText ? output : object("output", output);
  const handed = handoff === null ? undefined : object("handoff", handoff);
  if (handed !== undefined && !Object.values(handed).every(isObject))
    faults.push({ field: "handoff", message: "Each step must have a JSON object." });
  return {
    request: {
      at: `${step}@${visit.visit}`,
      ...(said === undefined ? {} : { output: said }),
      ...(handed === undefined ? {} : { handoff: handed as { readonly [step: string]: JsonObject } }),
      ...(prompt === null || edits.adopt ? {} : { prompts: { [step]: prompt } }),
      ...(model === null || model.trim() === "" || edits.adopt ? {} : { models: { [step]: model.trim() } }),
      ...(edits.adopt ? { adopt: true } : {}),
    },
    faults,
  };
}

function changed(now: string | null, before: string | null): string | null {
  return now === null || now === before ? null : now;
}

function jsonError(text: string): string {
  try {
    JSON.parse(text);
  } catch (error) {
    if (error instanceof Error) return error.message;
  }
  return "This is not valid JSON.";
}

/** The edits in a few words; empty: a second try. */
export function editedWords(request: ForkRequest): readonly string[] {
  return [
    ...(request.output === undefined ? [] : ["answer"]),
    ...(request.handoff === undefined ? [] : ["handoff"]),
    ...(request.prompts === undefined ? [] : ["prompt"]),
    ...(request.models === undefined ? [] : ["model"]),
    ...(request.adopt === true ? ["files as they are now"] : []),
  ];
}

/** The same as a command; texts are read from files that have to be saved under these names. */
export function forkWords(run: string, request: ForkRequest): readonly string[] {
  return [
    "fork",
    run,
    "--at",
    request.at,
    ...(request.output === undefined ? [] : ["--edit", "output=output.json"]),
    ...(request.handoff === undefined ? [] : ["--edit", "handoff=handoff.json"]),
    ...Object.keys(request.prompts ?? {}).flatMap((step) => ["--edit", `prompt=${step}:prompt.md`]),
    ...Object.entries(request.models ?? {}).flatMap(([step, model]) => ["--edit", `model=${step}:${model}`]),
    ...(request.adopt === true ? ["--adopt"] : []),
  ];
}
