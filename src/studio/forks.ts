/** Routes about forks: what one would share, recording it, and going on with it. */
import { isObject, type Json, type JsonObject } from "../flow/json.ts";
import { HIDDEN_VALUE, holdsRedacted } from "../flow/text/redacted.ts";
import { RunnerError } from "../run/errors.ts";
import { partRun, previewFork, type Edits, type PartOptions, type Parted } from "../run/fork.ts";
import { readRun } from "../run/records/runs.ts";
import { digestIn, goOnWith, refusalIn, shownLine } from "./acts.ts";
import { flagMember, isPlainObject, membersOf, onlyMembers, required, textMember } from "../serve/body.ts";
import { RequestRefusal } from "../serve/refusal.ts";
import { reply, journalFor, type StudioAnswer, type StudioRequest, type Studio } from "./route.ts";
import { requireTrusted } from "../serve/trusting.ts";
import type { JudgedDocument, StartedDocument } from "./wire-acts.ts";

/** What a fork would share, and what is wrong with its edits. */
export async function judgeFork({ params, body }: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  const { asked } = forkRequest(params.run ?? "", body);
  const journal = await journalFor(studio, asked.run);
  try {
    return reply(judgedDocument(await previewFork(journal, asked, studio.now())));
  } catch (error) {
    const field = error instanceof RunnerError ? FIELD_OF[error.code] : undefined;
    if (!(error instanceof RunnerError) || field === undefined) throw error;
    const errors = [{ field, message: error.message }];
    return reply({
      v: 1,
      errors,
      sharedUntil: 0,
      shared: [],
      costLine: null,
      prompt: null,
    } satisfies JudgedDocument);
  }
}

const FIELD_OF: { readonly [code: string]: string } = { EDIT_INVALID: "output", STEP_UNKNOWN: "at" };

function judgedDocument({ seq, shared, misfits, budget, prompt }: Parted): JudgedDocument {
  return {
    v: 1,
    errors: misfits.map((message) => ({ field: "output", message })),
    sharedUntil: seq,
    shared: shared.map(({ step, visit, seq: at }) => ({ step, visit, seq: at })),
    costLine: budget,
    prompt,
  };
}

/** Records the fork, and leaves it at rest. */
export async function actPart({ params, body }: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  const { asked, adopt } = forkRequest(params.run ?? "", body);
  const run = await parted(asked, studio);
  return reply(
    { v: 1, run, command: shownLine(studio, forkLine(asked, adopt)) } satisfies StartedDocument,
    201,
  );
}

/** Records the fork, and starts the command that goes on with it. */
export async function actFork({ params, body }: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  const { asked, adopt, trust } = forkRequest(params.run ?? "", body);
  const journal = await journalFor(studio, asked.run);
  const { row, current } = await readRun(journal, asked.run);
  const flow = adopt ? (await studio.desk.agents.load(row.agent)).flow : current;
  if (flow !== null) await requireTrusted(flow, studio, trust);
  const run = await parted(asked, studio);
  const command = shownLine(studio, forkLine(asked, adopt));
  try {
    await goOnWith(journal, studio, run, { adopt, trust });
    return reply({ v: 1, run, command } satisfies StartedDocument, 202);
  } catch (error) {
    const refusal = refusalIn(error);
    if (refusal === null) throw error;
    return reply({ v: 1, run, command, refusal } satisfies StartedDocument, 202);
  }
}

async function parted(asked: PartOptions, studio: Studio): Promise<string> {
  const { run } = await partRun(await journalFor(studio, asked.run), asked, studio.now(), studio);
  return run!;
}

type Forking = { readonly asked: PartOptions; readonly adopt: boolean; readonly trust: string | undefined };

function forkRequest(run: string, body: JsonObject): Forking {
  onlyMembers(body, ["at", "output", "handoff", "prompts", "models", "adopt", "trust"]);
  const isText = (value: Json): value is string => typeof value === "string";
  const prompts = membersOf(body, "prompts", isText, "an object with a text for each step");
  const models = membersOf(body, "models", isText, "an object with a name for each step");
  const handoff = membersOf(body, "handoff", isPlainObject, "an object with an object for each step");
  const output = outputIn(body);
  const adopt = flagMember(body, "adopt") ?? false;
  if (adopt && (prompts ?? models) !== undefined) {
    const why =
      "A fork that adopts the current files takes its prompts and models from them: edit them there.";
    throw new RequestRefusal(400, "USAGE", why, { field: "adopt" });
  }
  for (const [field, edit] of Object.entries({ output, handoff, prompts }))
    if (edit !== undefined && holdsRedacted(JSON.stringify(edit)))
      throw new RequestRefusal(400, "USAGE", HIDDEN_VALUE, { field });
  const edits: Edits = {
    ...(output !== undefined && { output }),
    ...(handoff !== undefined && { handoff }),
    ...(models !== undefined && { models }),
    ...(prompts !== undefined && { prompts: fromPage(prompts) }),
  };
  const at = required(textMember(body, "at"), "at");
  return { asked: { run, at, edits }, adopt, trust: digestIn(body) };
}

function outputIn({ output }: JsonObject): JsonObject | string | undefined {
  if (output === undefined || typeof output === "string" || isObject(output)) return output;
  throw new RequestRefusal(400, "USAGE", `"output" must be an object or a text.`, { field: "output" });
}

function fromPage(prompts: { readonly [step: string]: string }): NonNullable<Edits["prompts"]> {
  return Object.fromEntries(
    Object.entries(prompts).map(([step, text]) => [step, { file: "(edited in the studio)", text }]),
  );
}

/** The same fork by the command: texts are read from files that have to be saved under these names. */
function forkLine({ run, at, edits = {} }: PartOptions, adopt: boolean) {
  const { output, handoff, prompts = {}, models = {} } = edits;
  return {
    words: [
      "fork",
      run,
      `--at=${at}`,
      ...(output === undefined ? [] : ["--edit=output=output.json"]),
      ...(handoff === undefined ? [] : ["--edit=handoff=handoff.json"]),
      ...Object.keys(prompts).map((step) => `--edit=prompt=${step}:prompt.md`),
      ...Object.entries(models).map(([step, model]) => `--edit=model=${step}:${model}`),
      ...(adopt ? ["--adopt"] : []),
    ],
  };
}
