/** `lockstep models`: the names of models, what each means, and why one cannot be asked. Asks nobody. */
import { manual } from "../flow/manual.ts";
import { PRICES_OF, surveyModels, type ModelRow } from "../run/model-survey.ts";
import type { Call } from "./call.ts";
import { shownInLine, table } from "./text.ts";

export async function listModels({ on, screen, host }: Call): Promise<number> {
  const { file, rows } = surveyModels(host.env);
  if (on("json")) {
    screen.document({ v: 1, config: file, prices: PRICES_OF, models: rows });
    return 0;
  }
  const cells = rows.map((row) => [
    shownInLine(row.name, 40),
    shownInLine(row.ref === row.name ? `${row.provider}/${row.model}` : row.ref, 60),
    row.key === null ? "-" : `${row.key.env}${row.key.isSet ? "" : " is not set"}`,
    row.isInstalled ? "installed" : "missing",
    priceText(row.price),
  ]);
  const [head = "", ...lines] = table([["NAME", "MODEL", "KEY", "PACKAGE", "PER MILLION TOKENS"], ...cells]);
  screen.print([screen.out("dim", head), ...lines].join("\n"));
  for (const { name, why } of rows)
    if (why !== null) screen.tell(`${shownInLine(name, 40)}: ${shownInLine(why, 300)}`);
  screen.tell(
    `Prices as of ${PRICES_OF}. Names of your own: ${file ?? "set HOME first"} (${manual("models")})`,
  );
  return 0;
}

function priceText(price: ModelRow["price"]): string {
  return price === null ? "unknown" : `$${price.input} in, $${price.output} out`;
}
