/** Routes that act on runs: start, pause, stop, resume, answer. What drives a run is always the command, in a process of its own. */
import { resolve } from "node:path";
import type { Journal } from "../engine/ports.ts";
import { defined, type JsonObject } from "../flow/json.ts";
import { hasErrors } from "../flow/problem.ts";
import { HIDDEN_VALUE, holdsRedacted } from "../flow/text/redacted.ts";
import { RunnerError } from "../run/errors.ts";
import { answerQuestion, questionsOf, type Questions } from "../run/people/answer.ts";
import { mailPlace } from "../run/people/mail.ts";
import { pauseRun, stopRun } from "../run/people/steer.ts";
import { foldRun } from "../run/records/fold.ts";
import { peopleSaid, recall } from "../run/records/recall.ts";
import { findRun, readRow, summarise } from "../run/records/runs.ts";
import { acceptImported } from "../run/trust/foreign-state.ts";
import { systemClock } from "../run/world/clock.ts";
import type { OpenQuestion } from "../tell/open-questions.ts";
import {
  flagMember,
  membersOf,
  objectMember,
  onlyMembers,
  required,
  textMember,
  wordMember,
} from "../serve/body.ts";
import { judgeArguments, lineText, runLine, type CommandLine } from "../serve/command-line.ts";
import { RequestRefusal } from "../serve/refusal.ts";
import { reply, journalFor, type StudioAnswer, type StudioRequest, type Studio } from "./route.ts";
import { requireTrusted } from "../serve/trusting.ts";
import type { Refusal } from "./wire.ts";
import type {
  AnsweredDocument,
  ArgumentsRequest,
  StartedDocument,
  StartRequest,
  SteeredDocument,
} from "./wire-acts.ts";

/** Refused before anything is started, where the reason is known here: then it is said per field. */
export async function actStart({ body }: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  const asked = startRequest(body, studio);
  const { agents, parametersOf, driver } = studio.desk;
  const { flow, problems } = await agents.load(asked.agent);
  if (flow === null || hasErrors(problems)) {
    const why = `Agent "${asked.agent}" has errors, so it cannot run.`;
    throw new RequestRefusal(409, "FLOW_INVALID", why, { problems });
  }
  const startable = { flow, parameters: parametersOf(flow) };
  const { errors } = judgeArguments(startable, asked.args);
  const [first] = errors;
  if (first !== undefined)
    throw new RequestRefusal(400, "PARAMETERS_INVALID", errors.map(({ message }) => message).join("\n"), {
      field: first.field ?? "args",
    });
  await requireTrusted(flow, studio, asked.trust);
  const line = runLine(startable, asked);
  const run = await driver.start(line);
  return reply({ v: 1, run, command: shownLine(studio, line) } satisfies StartedDocument, 202);
}

/** The members of a request to start a run, besides the agent. */
const START_MEMBERS = [
  "args",
  "input",
  "model",
  "script",
  "limits",
  "worktree",
  "dryRun",
  "onPermission",
  "trust",
] as const;

function startRequest(body: JsonObject, studio: Studio): StartRequest {
  onlyMembers(body, ["agent", ...START_MEMBERS]);
  const { agent: _agent, ...rest } = body;
  return { agent: required(textMember(body, "agent"), "agent"), ...argumentsRequest(rest, studio) };
}

export function argumentsRequest(body: JsonObject, { project, cwd }: Studio): ArgumentsRequest {
  onlyMembers(body, START_MEMBERS);
  const isAmount = (value: unknown): value is number =>
    typeof value === "number" && Number.isFinite(value) && value >= 0;
  const [script, model] = [textMember(body, "script"), textMember(body, "model")];
  const limits = membersOf(body, "limits", isAmount, "an object of numbers");
  if (script !== undefined && !isBelow(project.root, resolve(cwd, script)))
    throw new RequestRefusal(400, "USAGE", "The script must be a file of this project.", { field: "script" });
  if (script !== undefined && model !== undefined)
    throw new RequestRefusal(400, "USAGE", "A script replaces the model: give one of them.", {
      field: "model",
    });
  const input = textMember(body, "input");
  if (input !== undefined && holdsRedacted(input))
    throw new RequestRefusal(400, "USAGE", HIDDEN_VALUE, { field: "input" });
  const strange = Object.keys(limits ?? {}).find((name) => !/^[\w.-]+$/.test(name));
  if (strange !== undefined)
    throw new RequestRefusal(400, "USAGE", `There is no limit "${strange.slice(0, 80)}".`, {
      field: "limits",
    });
  const optional = {
    input,
    model,
    script,
    limits,
    worktree: flagMember(body, "worktree"),
    dryRun: flagMember(body, "dryRun"),
    onPermission: wordMember(body, "onPermission", ["deny", "halt", "allow"]),
    trust: digestIn(body),
  };
  return { args: objectMember(body, "args") ?? {}, ...defined(optional) };
}

function isBelow(folder: string, path: string): boolean {
  return path.startsWith(`${folder}/`) && !path.includes("\0");
}

/** Exactly a digest: it becomes a word of a command line. */
export function digestIn(body: JsonObject): string | undefined {
  const digest = textMember(body, "trust");
  if (digest !== undefined && !/^[0-9a-f]{64}$/.test(digest))
    throw new RequestRefusal(400, "USAGE", "That is not a digest of what is to be trusted.", {
      field: "trust",
    });
  return digest;
}

export async function actPause(asked: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  return await steer("pause", asked, studio);
}

export async function actStop(asked: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  return await steer("stop", asked, studio);
}

async function steer(
  wish: "pause" | "stop",
  { params, body }: StudioRequest,
  studio: Studio,
): Promise<StudioAnswer> {
  onlyMembers(body, []);
  const { run: ref = "" } = params;
  const journal = await journalFor(studio, ref);
  const how = wish === "pause" ? pauseRun : stopRun;
  const { run, state } = await how(journal, studio.project.stateDir, ref, systemClock, studio.env);
  const command = shownLine(studio, { words: [wish, run] });
  return reply({ v: 1, run, state, command } satisfies SteeredDocument);
}

export async function actResume({ params, body }: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  onlyMembers(body, ["adopt", "trust"]);
  const { run: ref = "" } = params;
  const journal = await journalFor(studio, ref);
  const how = { adopt: flagMember(body, "adopt") ?? false, trust: digestIn(body) };
  return reply(await goOnWith(journal, studio, ref, how), 202);
}

/** Starts the command that goes on with a run: `continue` for one that was paused. */
export async function goOnWith(
  journal: Journal,
  studio: Studio,
  ref: string,
  { adopt = false, trust }: { readonly adopt?: boolean; readonly trust?: string | undefined } = {},
): Promise<StartedDocument> {
  const row = await findRun(journal, ref);
  const { run, state } = summarise(row);
  const isPaused = state === "paused";
  const { offerToFleet } = await import("../run/people/offer.ts");
  // A worker does not see the files as they are here.
  const offered = adopt ? null : await offerToFleet(journal, run, studio.now(), { unpause: isPaused });
  if (offered !== null)
    return { v: 1, run, command: shownLine(studio, { words: [isPaused ? "continue" : "resume", run] }) };
  if (row.owned)
    throw new RequestRefusal(409, "RUN_OWNED_ELSEWHERE", `A process is running run ${run} already.`);
  const { resultIfOver } = await import("../run/resume.ts");
  if ((await resultIfOver(journal, run, studio.now())) !== null)
    throw new RequestRefusal(409, "RUN_OVER", `Run ${run} has ended; there is nothing to resume.`);
  const { current, entries } = await readRow(journal, row);
  const isSettled = peopleSaid(journal, recall(entries).started).onPermission !== undefined;
  const flow = adopt ? (await studio.desk.agents.load(row.agent)).flow : current;
  if (flow !== null) await requireTrusted(flow, studio, trust);
  const line: CommandLine = {
    words: [
      isPaused ? "continue" : "resume",
      run,
      ...(adopt ? ["--adopt", ...(journal.mail === undefined ? [] : ["--here"])] : []),
      ...(isSettled ? [] : ["--on-permission=halt"]),
      ...(trust === undefined ? [] : [`--trust=${trust}`]),
    ],
  };
  await studio.desk.driver.start(line, run);
  return { v: 1, run, command: shownLine(studio, line) };
}

/** The line as the person would type it, without what only the studio needs. */
export function shownLine({ command, where }: Studio, { words, input }: CommandLine): string {
  return lineText(command, { words: [...words, ...where], ...(input !== undefined && { input }) });
}

export async function actAnswer({ params, body }: StudioRequest, studio: Studio): Promise<StudioAnswer> {
  onlyMembers(body, ["answer", "resume"]);
  const { run: ref = "", question: id = "" } = params;
  const said = required(textMember(body, "answer"), "answer");
  const wantsMore = flagMember(body, "resume") ?? true;
  const journal = await journalFor(studio, ref);
  const { asked, question } = await openQuestionOf(journal, ref, id);
  if (!(question.free ? said.trim() !== "" : question.choices.includes(said)))
    throw new RequestRefusal(400, "USAGE", `"${said.slice(0, 80)}" is not an answer to this question.`, {
      field: "answer",
    });
  const { run } = asked;
  const { stateDir } = studio.project;
  // The answer lets the run go on: it counts only where the run may.
  const row = await findRun(journal, run);
  await acceptImported(await readRow(journal, row), stateDir, { env: studio.env });
  const words = ["answer", run, ...(asked.isNameless ? [] : [id]), `--text=${said}`];
  const settled = { v: 1, run, question: id, answer: said } as const;
  if (asked.isNameless) {
    // It was asked before questions had names: only the process that goes on with the run can be told.
    const line = { words: [...words, "--on-permission=halt"] };
    await studio.desk.driver.start(line, run);
    return reply({
      ...settled,
      goesOn: "resumed",
      command: shownLine(studio, line),
    } satisfies AnsweredDocument);
  }
  const place = mailPlace(journal, stateDir);
  const how = { wakes: wantsMore && !asked.isPaused };
  await answerQuestion(place, asked, question, said, studio.now(), studio.env, "studio", how);
  const more = wantsMore ? await goesOn(journal, studio, asked) : ({ goesOn: "no" } as const);
  const command = shownLine(studio, { words: wantsMore ? words : [...words, "--no-resume"] });
  return reply({ ...settled, ...more, command } satisfies AnsweredDocument);
}

/** The answer is recorded by now, whatever becomes of the run. */
async function goesOn(
  journal: Journal,
  studio: Studio,
  { run, isDriven, isPaused }: Questions,
): Promise<Pick<AnsweredDocument, "goesOn" | "refusal">> {
  if (isDriven) return { goesOn: "driven" };
  if (isPaused) return { goesOn: "no" };
  try {
    await goOnWith(journal, studio, run);
    return { goesOn: "resumed" };
  } catch (error) {
    const refusal = refusalIn(error);
    if (refusal === null) throw error;
    // Somebody else was faster.
    return refusal.code === "RUN_OWNED_ELSEWHERE" ? { goesOn: "driven" } : { goesOn: "no", refusal };
  }
}

export function refusalIn(error: unknown): Refusal | null {
  if (error instanceof RequestRefusal) return error.refusal;
  return error instanceof RunnerError ? { v: 1, code: error.code, reason: error.message } : null;
}

/** The question, where it is open; else what became of it, in words. */
async function openQuestionOf(
  journal: Journal,
  ref: string,
  id: string,
): Promise<{ readonly asked: Questions; readonly question: OpenQuestion }> {
  const asked = await questionsOf(journal, ref).catch((error: unknown) => {
    if (error instanceof RunnerError && error.code === "NO_QUESTION") return null;
    throw error;
  });
  const question = asked?.questions.find((one) => one.id === id);
  if (asked !== null && question !== undefined) return { asked, question };
  throw await whatBecameOf(journal, ref, id);
}

async function whatBecameOf(journal: Journal, ref: string, id: string): Promise<RequestRefusal> {
  const row = await findRun(journal, ref);
  const found = { isAsked: false, told: null as { answer: string | null; by: string } | null };
  const { state } = await foldRun(journal, row, ({ entry: { event } }) => {
    if (event.type === "step.asked" && event.question.id === id) found.isAsked = true;
    if (event.type === "step.told" && event.id === id)
      found.told = { answer: event.answer, by: event.by ?? "nobody" };
  });
  const { isAsked, told } = found;
  if (told?.by === "expired")
    return new RequestRefusal(409, "QUESTION_EXPIRED", `Nobody answered question ${id} in time.`);
  if (told !== null && told.answer !== null) {
    const who = WHO_SAID[told.by] ?? told.by;
    return new RequestRefusal(
      409,
      "QUESTION_ANSWERED",
      `Question ${id} was answered ${who}: ${told.answer}.`,
    );
  }
  if (!isAsked) return new RequestRefusal(404, "NO_QUESTION", `Run ${row.id} has no question "${id}".`);
  const isOver = state.pending.length === 0 && state.halted.length === 0;
  return isOver
    ? new RequestRefusal(409, "RUN_OVER", `Run ${row.id} has ended, so the question is no longer open.`)
    : new RequestRefusal(409, "QUESTION_ANSWERED", `Question ${id} was settled without an answer.`);
}

const WHO_SAID: { readonly [by: string]: string } = {
  terminal: "at the terminal",
  answer: "with `lockstep answer`",
  studio: "in the studio",
  mcp: "through an MCP client",
  file: "by a file",
  hook: "by the project's code",
  setting: "by a setting",
};
