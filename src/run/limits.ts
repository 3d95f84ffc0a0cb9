/** What a run and its steps may spend: what the files say, what the user's settings allow, and what is granted by hand. */
import { fold } from "../engine/drive.ts";
import { RunnerError } from "../engine/ports.ts";
import type { Flow, Granted, Limits, StepLimits } from "../flow/flow.ts";
import { own } from "../flow/json.ts";
import { effectiveLimits, grantedBeside } from "../load/spending.ts";
import { didYouMean } from "../load/suggest.ts";
import type { RecordedRun } from "./runs.ts";

type Spending = { readonly spending?: Granted };

/** Told only where that is not just what the flow says. */
export function grantedAtStart(flow: Flow, ofUser: Limits, given: Granted | undefined): Spending {
  if (given === undefined && Object.keys(ofUser).length === 0) return {};
  const { visits: _, ...written } = flow.limits;
  const steps = writtenFor(flow, given);
  return { spending: grantedBeside({ ...effectiveLimits(written, ofUser), steps }, given ?? {}) };
}

/** What the run was allowed before it was resumed, with what it is granted now. */
export function grantedOnResume(recorded: RecordedRun, flow: Flow, given: Granted | undefined): Spending {
  if (given === undefined) return {};
  const { budget } = fold(recorded.flow, recorded.entries, recorded.adopted);
  const steps = { ...writtenFor(flow, given), ...budget?.granted?.steps };
  return { spending: grantedBeside({ ...budget?.limits, steps }, given) };
}

function writtenFor(flow: Flow, given: Granted | undefined): { readonly [step: string]: StepLimits } {
  const named = Object.keys(given?.steps ?? {}).map((id) => {
    const step = own(flow.steps, id);
    if (step !== undefined) return [id, step.limits ?? {}] as const;
    const hint = didYouMean(id, Object.keys(flow.steps));
    throw new RunnerError("PARAMETERS_INVALID", `There is no step "${id}" to limit.${hint}`);
  });
  return Object.fromEntries(named);
}
