/** `lockstep why RUN [STEP[@VISIT]]`: the chain behind one decision, to be read from top to bottom. */
import { EXIT } from "../../flow/verdict.ts";
import type { Journal } from "../../run/index.ts";
import { whyPartly } from "../../run/records/reports.ts";
import { readPartly } from "../../run/records/runs.ts";
import { asDriven, whyAll } from "../../tell/why.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { sayPartial, withRunOrFile } from "../journal.ts";
import { whyText } from "../text/why-text.ts";

export async function whyRun(call: CallOf<"why">): Promise<number> {
  const { screen } = call;
  const [ref = "", target] = call.words;
  if (call.flags.all && target !== undefined)
    throw new UsageError(`--all shows every visit; leave out "${target}".`);
  return await withRunOrFile(call, ref, async (journal, run) => {
    const { visits, document, damage } = call.flags.all
      ? await every(journal, run)
      : await one(journal, run, target);
    if (call.flags.json) screen.document(damage === null ? document : { ...document, damaged: damage.why });
    else screen.print(visits.map((visit) => whyText(visit, screen.out, call.flags.full)).join("\n\n\n"));
    return damage === null ? EXIT.completed : sayPartial(call, damage);
  });
}

async function one(journal: Journal, ref: string, target?: string) {
  const { damage, ...visit } = await whyPartly(journal, ref, target);
  return { visits: [visit], document: visit, damage };
}

/** All of them make one document, so the run is read whole. */
async function every(journal: Journal, ref: string) {
  const { row, flow, adopted, entries, damage } = await readPartly(journal, ref);
  const visits = whyAll(flow, entries, adopted).map((visit) => asDriven(visit, row.owned));
  return { visits, document: { v: 1, run: row.id, agent: flow.agent, visits }, damage };
}
