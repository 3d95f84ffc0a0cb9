/** `lockstep why RUN [STEP[@VISIT]]`: the chain behind one decision, to be read from top to bottom. */
import { readRun, RunnerError } from "../run/index.ts";
import { asDriven, why, whyAll, type Why } from "../run/why.ts";
import { UsageError } from "./args.ts";
import type { Call } from "./call.ts";
import { withJournal } from "./journal.ts";
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
    const { row, flow, adopted, entries } = await readRun(journal, ref);
    const found: readonly Why[] = call.on("all")
      ? whyAll(flow, entries, adopted)
      : [why(flow, entries, target, adopted)];
    const visits = found.map((one) => asDriven(one, row.owned));
    if (call.on("json")) {
      screen.document(call.on("all") ? { v: 1, run: row.id, agent: flow.agent, visits } : visits[0]);
      return 0;
    }
    const texts = visits.map((one) => whyText(one, screen.out, call.on("full")));
    screen.print(texts.join("\n\n\n"));
    return 0;
  });
}
