/** The budget of a flow as the command line uses it: a limit that `check` holds it to, and a line before a run. */
import { budgetOf, limitName } from "../../tell/budget.ts";
import type { LoadedAgent } from "../../run/load.ts";

/** The agent with one problem more when a run of it could take more answers than `--max-turns` says. */
export function withinBudget(loaded: LoadedAgent, allowed: number | undefined): LoadedAgent {
  if (allowed === undefined) return loaded;
  const { flow, problems } = loaded;
  if (flow === null) return loaded;
  const { answers } = budgetOf(flow);
  if (answers.most !== null && answers.most <= allowed) return loaded;
  const problem = loaded.problemAt(["limits", "visits"], {
    code: "BUDGET-TURNS",
    message:
      answers.most === null
        ? `The number of answers of a run is not limited: ${answers.because}.`
        : `A run can take ${answers.most} model answers, more than ${allowed}: ${answers.because}.`,
    fix: `Lower ${limitName(flow)}${flow.dialect === "stage" ? ", turnCap or maxAttempts" : ""}, or allow more with --max-turns.`,
  });
  return { ...loaded, problems: [...problems, problem] };
}
