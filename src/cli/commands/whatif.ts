/** `lockstep whatif --agent NAME [RUN …]` */
import { EXIT } from "../../flow/verdict.ts";
import { load, RunnerError, type WhatIf } from "../../run/index.ts";
import { whatIf } from "../../run/records/whatif.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { withJournal } from "../journal.ts";
import { count, shownInLine, type Paint } from "../text/text.ts";

export async function whatIfRuns(call: CallOf<"whatif">): Promise<number> {
  const agent = call.flags.agent;
  if (agent === undefined) throw new UsageError("whatif needs --agent NAME.");
  const loaded = await load(agent, { cwd: call.cwd });
  const found = await withJournal(call, async (journal, stateDir) => {
    if (journal === null) throw new RunnerError("RUN_UNKNOWN", `No runs are recorded in ${stateDir}.`);
    let done = 0;
    const total = call.words.length || (await journal.count());
    return await whatIf(journal, loaded, call.words, () => {
      done += 1;
      if (total > MANY) call.screen.status(`worked out ${count(done, "run")}`);
    });
  }).finally(() => call.screen.status(null));
  if (call.flags.json) call.screen.document(found);
  else call.screen.print(whatIfText(found, call.screen.out));
  const damaged = found.runs.filter((run) => run.damaged !== undefined).length;
  if (call.flags.check && found.same + damaged < found.runs.length) return EXIT.failed;
  return damaged > 0 ? EXIT.unavailable : EXIT.completed;
}

/** Among more runs than this it is shown how many are done. */
const MANY = 20;

function whatIfText({ runs, same, changed, stuck }: WhatIf, paint: Paint): string {
  const total = `${count(runs.length, "run")}: ${same} the same, ${changed} another way, ${stuck} cannot be followed`;
  return [...runs.filter(({ kind }) => kind !== "same").flatMap((run) => runText(run, paint)), total].join(
    "\n",
  );
}

type Run = WhatIf["runs"][number];
type Led = NonNullable<Run["at"]>["recorded"];
type Verdict = Run["recorded"];

function runText({ run, kind, at, recorded, derived, stuck, damaged }: Run, paint: Paint): readonly string[] {
  const row = (name: string, text: string) => `  ${paint("dim", name.padEnd(7))} ${text}`;
  if (damaged !== undefined)
    return [`${paint("red", run)}  cannot be followed: damaged`, row("damage", shownInLine(damaged, 1000))];
  const heads = {
    path: "takes another way",
    verdict: "ends another way",
    stuck: "cannot be followed",
    same: "",
  };
  return [
    `${paint(kind === "stuck" ? "yellow" : "red", run)}  ${heads[kind]}`,
    ...(at === null
      ? []
      : [
          row("was", ledText(at.recorded)),
          ...(at.derived === null ? [] : [row("now", ledText(at.derived))]),
        ]),
    ...(stuck === null
      ? []
      : [row("stops", `${shownInLine(stuck.step, 80)}@${stuck.visit}: ${shownInLine(stuck.why, 400)}`)]),
    ...(stuck !== null && derived === null
      ? []
      : [row("ends", `${verdictText(recorded)} → ${verdictText(derived)}`)]),
  ];
}

function ledText(led: Led): string {
  if (led === null) return "the end";
  const { step, visit, label, to, overturned } = led;
  const words = `${label ?? "no answer"}${overturned ? " ✗" : ""}`;
  return shownInLine(`${step}@${visit} → ${words} → ${to ?? "end"}`, 240);
}

function verdictText(verdict: Verdict): string {
  return verdict === null ? "open" : `${verdict.outcome}${verdict.code === null ? "" : ` ${verdict.code}`}`;
}
