/** `lockstep answer RUN [CHOICE]` */
import { answerWith, questionOf } from "../run/answer.ts";
import { resume, RunnerError } from "../run/index.ts";
import { UsageError } from "./args.ts";
import type { Call } from "./call.ts";
import { conduct } from "./conduct.ts";
import { withJournal } from "./journal.ts";
import { shown } from "./text.ts";

export async function answerRun(call: Call): Promise<number> {
  const [ref = "", word] = call.words;
  const question = await withJournal(call, async (journal, stateDir) => {
    if (journal === null)
      throw new RunnerError("RUN_UNKNOWN", `There is no run "${ref}": none is recorded in ${stateDir}.`);
    return await questionOf(journal, ref);
  });
  const { run, choices } = question;
  if (word === undefined) {
    const next = choices.map((choice) => `  lockstep answer ${run} ${choice}`).join("\n");
    if (call.on("json")) call.screen.document({ v: 1, ...question });
    else call.screen.print(`${shown(question.question)}\n${next}`);
    return 0;
  }
  const choice = choices.find((one) => one.startsWith(word));
  if (choice === undefined)
    throw new UsageError(`"${word}" is no answer to that.`, { word, candidates: choices });
  return await conduct(call, async (options) => {
    // What else is asked meanwhile waits for another answer.
    return await resume({ onPermission: "halt", ...options, run, ask: answerWith(choice) });
  });
}
