/** `lockstep why RUN [STEP[@VISIT]]`: the chain behind one decision, to be read from top to bottom. */
import { EXIT } from "../flow/verdict.ts";
import { RunnerError } from "../run/index.ts";
import { readPartly } from "../run/runs.ts";
import { asDriven, why, whyAll, type Why } from "../run/why.ts";
import { UsageError } from "./args.ts";
import type { Call } from "./call.ts";
import { sayPartial, withJournal } from "./journal.ts";
import { whyText } from "./why-text.ts";

export async function whyRun(call: Call): Promise<number> {
  const { screen } = call;
  const [ref = "", target] = call.words;
  if (call.on("all") && target !== undefined)
    throw new UsageError(`--all is for every visit; "${target}" names one.`);
  return await withJournal(call, async (journal, stateDir) => {
    if (journal === null) {
      throw new RunnerError("RUN_UNKNOWN", `There is no run "${ref}": none is recorded in ${stateDir}.`);
    }
    const { row, flow, adopted, entries, damage } = await readPartly(journal, ref);
    const found: readonly Why[] = call.on("all")
      ? whyAll(flow, entries, adopted)
      : [why(flow, entries, target, adopted)];
    const visits = found.map((one) => asDriven(one, row.owned));
    if (call.on("json")) {
      const document = call.on("all") ? { v: 1, run: row.id, agent: flow.agent, visits } : visits[0]!;
      screen.document(damage === null ? document : { ...document, damaged: damage.why });
    } else {
      const texts = visits.map((one) => whyText(one, screen.out, call.on("full")));
      screen.print(texts.join("\n\n\n"));
    }
    return damage === null ? EXIT.completed : sayPartial(call, damage);
  });
}
