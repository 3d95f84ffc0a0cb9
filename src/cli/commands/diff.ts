/** `lockstep diff RUN RUN` */
import { compareRuns, type Comparison } from "../../run/index.ts";
import type { CommandCall } from "../call.ts";
import { withRecord } from "../journal.ts";
import { shownInLine, table, type Paint } from "../text/text.ts";

export async function diffRuns(call: CommandCall): Promise<number> {
  const [a = "", b = ""] = call.words;
  const compared = await withRecord(call, a, async (journal) => {
    return await compareRuns(journal, a, b);
  });
  if (call.flags.json) call.screen.document(compared);
  else call.screen.print(comparisonText(compared, call.screen.out));
  return 0;
}

function comparisonText({ runs, same, differences }: Comparison, paint: Paint): string {
  const heads = runs.map(({ run, agent, outcome, iterations }, place) => [
    place === 0 ? "a" : "b",
    run,
    shownInLine(agent, 40),
    outcome,
    `${iterations} iterations`,
  ]);
  if (same) return [...table(heads), paint("green", "✓ no difference")].join("\n");
  const lines = differences.flatMap(({ about, at, a, b }, place) => [
    `${paint(place === 0 ? "bold" : "dim", place === 0 ? `first ${about}` : about)} ${shownInLine(at, 200)}`,
    ...(about === "flow" ? [] : [`  a  ${valueText(a)}`, `  b  ${valueText(b)}`]),
  ]);
  return [...table(heads), ...lines].join("\n");
}

function valueText(value: unknown): string {
  if (Array.isArray(value) && value.every((item) => typeof item === "string"))
    return shownInLine(value.join(", ") || "nothing more", 200);
  return shownInLine(typeof value === "string" ? value : JSON.stringify(value), 200);
}
