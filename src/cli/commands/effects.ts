/** `lockstep effects RUN` */
import { EXIT } from "../../flow/verdict.ts";
import { show, type Result } from "../../run/index.ts";
import type { CommandCall } from "../call.ts";
import { withRecord } from "../journal.ts";
import { headed, shownInLine } from "../text/text.ts";

export async function listEffects(call: CommandCall): Promise<number> {
  const { screen } = call;
  const [ref = ""] = call.words;
  return await withRecord(call, ref, async (journal) => {
    const { run, effects, outcome, reason } = await show(journal, ref);
    const isDamaged = outcome === "damaged";
    if (call.flags.json) screen.document({ v: 1, run, effects, ...(isDamaged && { damaged: reason }) });
    else if (effects.length === 0 && !isDamaged)
      screen.tell(`Run ${run} has no effects outside its own folder.`);
    else if (effects.length > 0) {
      const head = ["KIND", "TARGET", "STATE", "WHEN", "DETAIL"];
      screen.print(headed(screen.out, [head, ...effects.map(cells)]).join("\n"));
    }
    if (!isDamaged) return EXIT.completed;
    screen.complain(`The other effects of the run are unknown. ${call.typed(shownInLine(reason, 1000))}`);
    return EXIT.unavailable;
  });
}

function cells({ kind, target, state, at, detail }: Result["effects"][number]): readonly string[] {
  const when = new Date(at).toISOString().slice(0, 19).replace("T", " ");
  return [shownInLine(kind, 40), shownInLine(target, 80) || "-", state, when, shownInLine(detail, 600)];
}
