/** `lockstep answer RUN [QUESTION] [CHOICE | --text TEXT]` */
import { answerCommands, answerFrom, choiceOf, notAnAnswer } from "../../flow/question.ts";
import { broken, visible } from "../../flow/text/visible.ts";
import { answerQuestion, answerWith, questionsOf, type Questions } from "../../run/people/answer.ts";
import { mailPlace } from "../../run/people/mail.ts";
import { requireRecord } from "../../run/records/journal.ts";
import { acceptImported } from "../../run/trust/foreign-state.ts";
import { readRun } from "../../run/records/runs.ts";
import { resume } from "../../run/resume.ts";
import type { OpenQuestion } from "../../tell/open-questions.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { conduct, journalAccess } from "../conduct.ts";
import { withOwnJournal, withRecord } from "../journal.ts";
import { shown } from "../text/text.ts";

export async function answerRun(call: CallOf<"answer">): Promise<number> {
  const [ref = ""] = call.words;
  const asked = await withRecord(call, ref, async (journal) => await questionsOf(journal, ref));
  const said = readAnswer(call, asked);
  if (said === null) return showQuestions(call, asked);
  const { run } = asked;
  if (asked.isNameless)
    return await conduct(call, async (options) => {
      // What else is asked meanwhile waits for another answer.
      return await resume({ onPermission: "halt", ...options, run, ask: answerWith(said.answer) });
    });
  // The answer lets the run go on: it counts only where the run may.
  const wakes = call.flags.resume !== false && !asked.isPaused;
  const queue = await withOwnJournal(call, ref, async (journal, stateDir) => {
    const record = requireRecord(journal, ref, stateDir);
    const access = journalAccess(call, call.host.stopped());
    await acceptImported(await readRun(record, run), stateDir, access);
    const place = mailPlace(record, stateDir);
    const how = { wakes };
    await answerQuestion(place, asked, said.question, said.answer, Date.now(), call.host.env, "answer", how);
    return (await record.mail?.fleet?.queueOf(run)) ?? null;
  });
  const goesOn = wakes && queue === null && !asked.isDriven;
  if (goesOn)
    return await conduct(call, async (options) => await resume({ onPermission: "halt", ...options, run }));
  const { id } = said.question;
  if (call.flags.json) call.screen.document({ v: 1, run, question: id, answer: said.answer });
  else
    call.screen.print(
      `Answered ${id}: ${shown(said.answer)}. ${call.typed(whatComes(asked, wakes && queue !== null))}`,
    );
  return 0;
}

function whatComes({ run, isDriven, isPaused }: Questions, isWoken: boolean): string {
  if (isWoken) return "A worker of the fleet continues the run.";
  if (isDriven) return "The process that runs it continues the run.";
  return isPaused
    ? `The run is paused; continue with: lockstep continue ${run}`
    : `Continue with: lockstep resume ${run}`;
}

type Said = { readonly question: OpenQuestion; readonly answer: string };

/** null: nothing was said, so the questions are to be shown. */
function readAnswer(call: CallOf<"answer">, { run, questions }: Questions): Said | null {
  const [, first, second] = call.words;
  const text = call.flags.text;
  if (second !== undefined && text !== undefined)
    throw new UsageError("Give either CHOICE or --text, not both.");
  const [only] = questions;
  const isNamed = second !== undefined || (first !== undefined && text !== undefined);
  const isChoice = first !== undefined && !isNamed && only !== undefined && questions.length === 1;
  const word = text ?? second ?? (isChoice ? first : undefined);
  if (word === undefined && first === undefined) return null;
  if (word === undefined || (!isNamed && questions.length > 1)) {
    const ids = questions.map(({ id }) => id);
    const why = `Run ${run} has ${questions.length} open questions: say which one, by its id.`;
    throw new UsageError(why, { word: first ?? "", candidates: ids });
  }
  const question = isNamed ? named(questions, first ?? "") : only!;
  const choice = text !== undefined && question.free ? text : answerFrom(question, word);
  if (choice === null) throw new UsageError(notAnAnswer(word, question.choices, question.free));
  return { question, answer: choice };
}

function named(questions: readonly OpenQuestion[], word: string): OpenQuestion {
  const ids = questions.map(({ id }) => id);
  const id = choiceOf(ids, word);
  const question = questions.find((other) => other.id === id);
  if (question === undefined)
    throw new UsageError(`There is no open question "${word}".`, { word, candidates: ids });
  return question;
}

function showQuestions(call: CallOf<"answer">, { run, agent, questions }: Questions): number {
  if (call.flags.json) call.screen.document({ v: 1, ...questions[0], run, agent, questions });
  else call.screen.print(questions.map((question) => questionText(call, run, question)).join("\n\n"));
  return 0;
}

function questionText({ typed }: CallOf<"answer">, run: string, open: OpenQuestion): string {
  const { id, step, visit, question, expiresAt } = open;
  return [
    `${id === "-" ? "" : `${id} · `}${step}@${visit}${expiresAt === null ? "" : ` · open until ${expiresAt}`}`,
    broken(visible(question)),
    ...answerCommands(typed(`lockstep answer ${run}`), open).map((command) => `  ${command}`),
  ].join("\n");
}
