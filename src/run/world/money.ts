/** The upper bound of what the models of a flow can cost, as far as that can be known. */
import { budgetOf } from "../../tell/budget.ts";
import type { Flow } from "../../flow/flow.ts";
import { readConfig } from "./config.ts";
import { RunnerError } from "../errors.ts";
import { PRICES_OF } from "./model-survey.ts";
import { modelNames, outputOf } from "./models.ts";

/**
 * What models can write: every response as long as the longest, at the highest price. null where a name, a price, a
 * length or the number of responses is not known. What is sent to models has no bound.
 */
export function moneyLine(flow: Flow, env: NodeJS.ProcessEnv, model?: string): string | null {
  const { most } = budgetOf(flow).responses;
  const each = longestOutputs(model === undefined ? modelNames(flow) : [model], env);
  if (most === null || each === null || each.length === 0) return null;
  const tokens = most * Math.max(...each.map((one) => one.tokens));
  const usd = most * Math.max(...each.map((one) => one.usd));
  const cost = usd.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  return (
    `Upper bound of the output: ${tokens.toLocaleString("en")} tokens, $${cost} (prices of ${PRICES_OF}), if every ` +
    `response were as long as its model can make it. Input has no upper bound.`
  );
}

function longestOutputs(names: readonly string[], env: NodeJS.ProcessEnv) {
  try {
    const around = { config: readConfig(env), env };
    const each = names.map((name) => outputOf(name, around));
    return each.every((one) => one !== null) ? each : null;
  } catch (error) {
    // An unknown name: the run that asks for it reports that.
    if (error instanceof RunnerError) return null;
    throw error;
  }
}
