/** What the models of a flow can cost at the very most, as far as that can be known. */
import { budgetOf } from "../flow/budget.ts";
import type { Flow } from "../flow/flow.ts";
import { readConfig } from "../run/config.ts";
import { RunnerError } from "../run/errors.ts";
import { PRICES_OF } from "../run/model-survey.ts";
import { modelNames, outputOf } from "../run/models.ts";

/**
 * An upper bound for what models write: every response as long as the longest, at the dearest price. null where a name,
 * a price, a length or the number of responses is not known. What is sent to models has no bound.
 */
export function moneyLine(flow: Flow, env: NodeJS.ProcessEnv, model?: string): string | null {
  const { most } = budgetOf(flow).responses;
  const each = longestOutputs(model === undefined ? modelNames(flow) : [model], env);
  if (most === null || each === null || each.length === 0) return null;
  const tokens = most * Math.max(...each.map((one) => one.tokens));
  const usd = most * Math.max(...each.map((one) => one.usd));
  const figures = `${tokens.toLocaleString("en")} tokens of output, $${usd.toFixed(2)}`;
  return `At the very most ${figures} (prices as of ${PRICES_OF}); input is not bounded.`;
}

function longestOutputs(names: readonly string[], env: NodeJS.ProcessEnv) {
  try {
    const around = { config: readConfig(env), env };
    const each = names.map((name) => outputOf(name, around));
    return each.every((one) => one !== null) ? each : null;
  } catch (error) {
    // A name without a meaning: the run that asks for it will say so.
    if (error instanceof RunnerError) return null;
    throw error;
  }
}
