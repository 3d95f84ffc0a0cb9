/** `lockstep why RUN [STEP[@VISIT]]`: the chain behind one decision, to be read from top to bottom. */
import { EXIT } from "../../flow/verdict.ts";
import { findRun, RunnerError, type Journal } from "../../run/index.ts";
import { readPartly } from "../../run/records/runs.ts";
import { asDriven, whyAll, whyOf } from "../../run/records/why.ts";
import { UsageError } from "../args.ts";
import type { Call } from "../call.ts";
import { sayPartial, withJournal } from "../journal.ts";
import { whyText } from "../text/why-text.ts";

export async function whyRun(call: Call): Promise<number> {
  const { screen } = call;
  const [ref = "", target] = call.words;
  if (call.on("all") && target !== undefined)
    throw new UsageError(`--all is for every visit; "${target}" names one.`);
  return await withJournal(call, async (journal, stateDir) => {
    if (journal === null) {
      throw new RunnerError("RUN_UNKNOWN", `There is no run "${ref}": none is recorded in ${stateDir}.`);
    }
    const { visits, document, damage } = call.on("all")
      ? await every(journal, ref)
      : await one(journal, ref, target);
    if (call.on("json")) screen.document(damage === null ? document : { ...document, damaged: damage.why });
    else screen.print(visits.map((visit) => whyText(visit, screen.out, call.on("full"))).join("\n\n\n"));
    return damage === null ? EXIT.completed : sayPartial(call, damage);
  });
}

async function one(journal: Journal, ref: string, target?: string) {
  const { damage, ...visit } = await whyOf(journal, await findRun(journal, ref), target);
  return { visits: [visit], document: visit, damage };
}

/** All of them make one document, so the run is read whole. */
async function every(journal: Journal, ref: string) {
  const { row, flow, adopted, entries, damage } = await readPartly(journal, ref);
  const visits = whyAll(flow, entries, adopted).map((visit) => asDriven(visit, row.owned));
  return { visits, document: { v: 1, run: row.id, agent: flow.agent, visits }, damage };
}
