/** `lockstep models`: the names of models, what each means, and why one is not available. No model is called. */
import { manual } from "../../flow/manual.ts";
import {
  PRICE_SOURCES,
  PRICES_OF,
  surveyModels,
  UNPRICED,
  type ModelRow,
} from "../../run/world/model-survey.ts";
import type { CommandCall } from "../call.ts";
import { headed, shownInLine } from "../text/text.ts";

export async function listModels({ flags, screen, host }: CommandCall): Promise<number> {
  const { file, rows } = surveyModels(host.env);
  if (flags.json) {
    const about = { prices: PRICES_OF, priceSources: PRICE_SOURCES, unpriced: UNPRICED };
    screen.document({ v: 1, config: file, ...about, models: rows });
    return 0;
  }
  const cells = rows.map((row) => [
    shownInLine(row.name, 40),
    shownInLine(row.ref === row.name ? `${row.provider}/${row.model}` : row.ref, 60),
    row.key === null ? "-" : `${row.key.env}${row.key.isSet ? "" : " is not set"}`,
    row.isInstalled ? "installed" : "missing",
    priceText(row.price),
  ]);
  const head = ["NAME", "MODEL", "KEY", "PACKAGE", "PER MILLION TOKENS"];
  screen.print(headed(screen.out, [head, ...cells]).join("\n"));
  for (const [faults, same] of Map.groupBy(rows, (row) => row.faults)) {
    if (faults === null) continue;
    const names = same.map(({ name }) => shownInLine(name, 40)).join(", ");
    screen.tell(`${names}: ${shownInLine(same.length === 1 ? same[0]!.why! : `each ${faults}`, 300)}`);
  }
  const sources = PRICE_SOURCES.map((source) => `${source.package} ${source.version}`).join(", ");
  screen.tell(`Prices of ${PRICES_OF} (${sources}). No price is known for ${UNPRICED.join(", ")}.`);
  screen.tell(`Your own names and prices: ${file ?? "set HOME first"} (${manual("models")})`);
  return 0;
}

function priceText(price: ModelRow["price"]): string {
  if (price === null) return "unknown";
  const { input, output, cacheRead = input, tiers = [] } = price;
  const more = tiers.length === 0 ? "" : `, more above ${tiers[0]!.above.toLocaleString("en")} tokens`;
  return `$${input} in, $${cacheRead} cached, $${output} out${more}`;
}
