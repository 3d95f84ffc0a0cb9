/** What a run and its steps may spend: what the files say, what the user's settings allow, and what is granted by hand. */
import { RunnerError, type Backend } from "../../engine/ports.ts";
import { limitsOn, openBudget } from "../../engine/decide/spend.ts";
import type { Budget } from "../../engine/decide/state.ts";
import type { Flow, Granted, StepLimits } from "../../flow/flow.ts";
import { own } from "../../flow/json.ts";
import { manual } from "../../flow/manual.ts";
import { effectiveLimits, grantedBeside } from "../../flow/spending.ts";
import { didYouMean } from "../../flow/text/suggest.ts";
import { configFile, type UserConfig } from "./config.ts";
import type { DriveOptions } from "../options.ts";

type Spending = { readonly spending?: Granted };

/** Recorded only where that is not just what the flow says. */
export function grantedAtStart(
  flow: Flow,
  ofUser: UserConfig["limits"],
  given: Granted | undefined,
): Spending {
  if (given === undefined && Object.keys(ofUser).length === 0) return {};
  const { visits: _, ...written } = flow.limits;
  const steps = writtenFor(flow, given);
  const settled = { ...effectiveLimits(written, ofUser), ...allowance(ofUser.unmetered), steps };
  return { spending: grantedBeside(settled, given ?? {}) };
}

/** What the run was allowed before it was resumed, with what it is granted now. */
export function grantedOnResume(
  budget: Budget | null,
  flow: Flow,
  ofUser: UserConfig["limits"],
  given: Granted | undefined,
): Spending {
  const allowed = allowance(budget?.granted?.unmetered ?? ofUser.unmetered);
  const isSame = given === undefined && budget?.granted?.unmetered === allowed.unmetered;
  if (isSame || (given === undefined && budget === null)) return {};
  const steps = { ...writtenFor(flow, given), ...budget?.granted?.steps };
  return { spending: grantedBeside({ ...budget?.limits, ...allowed, steps }, given ?? {}) };
}

function allowance(isAllowed: boolean | undefined): Pick<Granted, "unmetered"> {
  return isAllowed === true ? { unmetered: true } : {};
}

/**
 * LIMIT_UNMETERED where a limit on the cost covers a step whose model has no known price. Where the user allows that,
 * it is reported before the first call; gives what was reported.
 */
export function requireMetered(
  flow: Flow,
  { unpriced }: Backend,
  { spending }: Spending,
  { env = process.env, notify }: Pick<DriveOptions, "env" | "notify">,
  before: Budget | null = null,
): readonly string[] {
  const granted = spending ?? before?.granted ?? null;
  const budget = openBudget(flow, granted, before);
  if (budget === null || unpriced === undefined) return [];
  const found = Object.values(flow.steps).flatMap(({ id, by, model }) => {
    const limit = limitsOn(budget, id).find(({ limits }) => limits.costUsd !== undefined);
    const ref = by.kind === "model" && limit !== undefined ? unpriced(model) : null;
    return ref === null ? [] : [{ id, ref, usd: limit!.limits.costUsd! }];
  });
  const [first] = found;
  if (first === undefined) return [];
  const refs = [...new Set(found.map(({ ref }) => ref))];
  const what = `the price of ${refs.join(" and ")} is not known (step "${first.id}")`;
  if (granted?.unmetered === true) {
    const text = `The limit of $${first.usd} is not enforced: ${what}.`;
    notify?.(text);
    return [text];
  }
  const entry = JSON.stringify({ prices: { [first.ref]: { input: 0, output: 0 } } });
  throw new RunnerError(
    "LIMIT_UNMETERED",
    `The limit of $${first.usd} cannot be enforced: ${what}. Add its price in US dollars for a million tokens to ` +
      `${configFile(env) ?? "your config.json"}, such as ${entry} for a model that costs nothing, or pass ` +
      `--allow-unmetered to run without this limit. See ${manual("limits")}.`,
  );
}

function writtenFor(flow: Flow, given: Granted | undefined): { readonly [step: string]: StepLimits } {
  const named = Object.keys(given?.steps ?? {}).map((id) => {
    const step = own(flow.steps, id);
    if (step !== undefined) return [id, step.limits ?? {}] as const;
    const hint = didYouMean(id, Object.keys(flow.steps));
    throw new RunnerError("PARAMETERS_INVALID", `Cannot limit the step "${id}": it does not exist.${hint}`);
  });
  return Object.fromEntries(named);
}
