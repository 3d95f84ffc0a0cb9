/** Following a run that a process of its own drives: until it ends, a person has to be asked, or the call has waited enough. */
import type { Journal } from "../engine/ports.ts";
import type { State } from "../engine/decide/state.ts";
import { answerFrom } from "../flow/question.ts";
import { shownInLine } from "../flow/text/harmless.ts";
import { RunnerError } from "../run/errors.ts";
import { answerQuestion, questionsOf } from "../run/people/answer.ts";
import { stopRun } from "../run/people/steer.ts";
import { findRun, readRow, show, summarise } from "../run/records/runs.ts";
import { acceptImported } from "../run/trust/foreign-state.ts";
import { momentsOf } from "../run/watch/follow.ts";
import { systemClock } from "../run/world/clock.ts";
import { RequestRefusal } from "../serve/refusal.ts";
import type { OpenQuestion } from "../tell/open-questions.ts";
import { plainText } from "./fit.ts";
import { choiceMeant, formOf } from "./form.ts";
import type { McpGround, McpAnswer, McpCall } from "./ground.ts";
import { runAnswer } from "./run-document.ts";

/** Some clients take part in so many rounds of one call. */
const MOST_ROUNDS = 8;

/** How the run stands when the call has to be answered. Cancelled by the client, the run is stopped. */
export async function awaitRun(
  ground: McpGround,
  journal: Journal,
  run: string,
  call: McpCall,
  waitSeconds: number,
): Promise<McpAnswer> {
  await follow(ground, journal, run, call, waitSeconds * 1000);
  if (call.signal.aborted && call.isCancelled()) await stop(ground, journal, run);
  const shown = await show(journal, run);
  const [question] = shown.outcome === "waiting" && shown.code !== "PAUSED" ? shown.questions : [];
  const round = (call.said?.round ?? 0) + 1;
  const isDeclined = call.said !== null && call.said.answer === null && question?.id === call.said.question;
  if (question !== undefined && question.id !== "-" && call.canAsk && !isDeclined && round <= MOST_ROUNDS)
    return {
      kind: "ask",
      asked: { run, question: question.id, round },
      ...formOf(shown.agent, ground.redact(question)),
    };
  return runAnswer(shown, { ...ground, hasAnswerTool: !call.canAsk });
}

async function follow(
  { signal: closing, redact }: McpGround,
  journal: Journal,
  run: string,
  call: McpCall,
  ms: number,
): Promise<void> {
  const row = await findRun(journal, run);
  const signal = AbortSignal.any([call.signal, closing, AbortSignal.timeout(ms)]);
  let before = "";
  for await (const moments of momentsOf(journal, row, { clock: systemClock, signal })) {
    const { entry, after } = moments.at(-1)!;
    const now = stateLine(after, redact);
    if (now !== before) call.progress?.(entry.seq, now);
    before = now;
    if (signal.aborted) return;
  }
  // Its end is recorded a moment before its process lets go of it, and until then nobody else can go on with it.
  for (let looks = 0; looks < LOOKS && !signal.aborted; looks += 1) {
    if (!(await findRun(journal, run)).owned) return;
    await systemClock.sleep(LAG_MS, signal);
  }
}

const LAG_MS = 50;
const LOOKS = 200;

/** `initial.note #1 · 2 turns · $0.0123` */
function stateLine({ lanes, usage }: State, redact: McpGround["redact"]): string {
  const steps = lanes.map(({ step, visit }) => `${plainText(shownInLine(redact(step), 80))} #${visit}`);
  const cost = usage.costUsd === null || usage.costUsd === 0 ? [] : [`$${usage.costUsd.toFixed(4)}`];
  const turns = `${usage.turns} ${usage.turns === 1 ? "turn" : "turns"}`;
  return [...(steps.length === 0 ? ["no step under way"] : steps.slice(0, 5)), turns, ...cost].join(" · ");
}

async function stop({ project, env }: McpGround, journal: Journal, run: string): Promise<void> {
  try {
    await stopRun(journal, project.stateDir, run, systemClock, env);
  } catch (error) {
    // It came to rest by itself.
    if (!(error instanceof RunnerError && error.code === "NOT_DRIVEN")) throw error;
  }
}

/** Records an answer and goes on with the run. `choicesHere`: what may be chosen here; null: it is not answered here. */
export async function giveAnswer(
  ground: McpGround,
  journal: Journal,
  given: { readonly run: string; readonly question: string | undefined; readonly answer: string },
  choicesHere: (question: OpenQuestion) => readonly string[] | null,
): Promise<string> {
  const { project, env, typed, redact } = ground;
  const asked = await questionsOf(journal, given.run);
  const { run, questions } = asked;
  const question =
    given.question === undefined && questions.length === 1
      ? questions[0]
      : questions.find(({ id }) => id === given.question);
  if (question === undefined) {
    const ids = questions.map(({ id }) => id).join(", ");
    throw refusal(
      "question",
      `Run ${run} has no open question "${shownInLine(given.question ?? "", 80)}". Open are: ${ids}.`,
    );
  }
  const choices = asked.isNameless ? null : choicesHere(question);
  if (choices === null)
    throw new RequestRefusal(
      403,
      "PERSON_NEEDED",
      `Only a person may answer this. In a terminal: ${typed(`lockstep answer ${run}`)}`,
    );
  const answer = answerFrom({ ...question, choices }, choiceMeant(choices, given.answer, redact));
  if (answer === null) throw refusal("answer", `The answer must be one of: ${choices.join(", ")}.`);
  // The answer lets the run go on: it counts only where the run may.
  await acceptImported(await readRow(journal, await findRun(journal, run)), project.stateDir, { env });
  await answerQuestion(project.stateDir, asked, question, answer, Date.now(), env, "mcp");
  if (!asked.isDriven && !asked.isPaused) await resumeDriven(ground, journal, run);
  return run;
}

function refusal(field: string, why: string): RequestRefusal {
  return new RequestRefusal(400, "USAGE", why, { field });
}

/** Starts the command that goes on with a run; somebody who was faster is as good. */
export async function resumeDriven(
  { driver, settings }: McpGround,
  journal: Journal,
  ref: string,
): Promise<string> {
  const { run, state } = summarise(await findRun(journal, ref));
  if (state === "running") return run;
  if (state === "paused")
    throw new RequestRefusal(
      409,
      "RUN_PAUSED",
      `Somebody paused run ${run}. In a terminal: lockstep continue ${run}`,
    );
  const words = ["resume", run, ...settings.driving, `--on-permission=${settings.onPermission}`];
  try {
    await driver.start({ words }, run);
  } catch (error) {
    if (!(error instanceof RequestRefusal && error.refusal.code === "RUN_OWNED_ELSEWHERE")) throw error;
  }
  return run;
}
