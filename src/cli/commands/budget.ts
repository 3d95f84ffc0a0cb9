/** The budget of a flow as the command line uses it: a limit that `check` holds it to, and a line before a run. */
import { budgetLine, budgetOf, limitName } from "../../tell/budget.ts";
import type { Flow } from "../../flow/flow.ts";
import { CODES } from "../../load/rules/codes.ts";
import type { Loaded } from "../../run/index.ts";
import { UsageError } from "../args.ts";

/** The agent with one problem more when a run of it could take more answers than `--max-turns` says. */
export async function withinBudget(loaded: Loaded, said: string | undefined): Promise<Loaded> {
  if (said === undefined) return loaded;
  const allowed = Number(said);
  if (!/^\d+$/.test(said) || !Number.isSafeInteger(allowed)) {
    throw new UsageError(`--max-turns takes a whole number, not "${said}".`);
  }
  const { flow, agent, problems } = loaded;
  if (flow === null) return loaded;
  const { answers } = budgetOf(flow);
  if (answers.most !== null && answers.most <= allowed) return loaded;
  const isStages = flow.dialect === "stage";
  const path = isStages ? ["limits", "visits"] : ["runner", "verdict", "config", "maxIterations"];
  const file = `.agent/${agent}/${isStages ? "machine.yaml" : "agent.json"}`;
  const { originsOf } = await import("../../run/records/explain.ts");
  const written = (await originsOf(loaded)).agent(path)?.origin;
  const place =
    written?.kind === "written" ? written : { file, line: 1, column: 1, pointer: `/${path.join("/")}` };
  const { severity, why } = CODES["BUDGET-TURNS"];
  return {
    ...loaded,
    problems: [
      ...problems,
      {
        code: "BUDGET-TURNS",
        severity,
        file: place.file,
        line: place.line,
        column: place.column,
        pointer: place.pointer,
        step: null,
        message:
          answers.most === null
            ? `Nothing limits the answers of a run: ${answers.because}.`
            : `A run can take ${answers.most} answers of the model, more than ${allowed}: ${answers.because}.`,
        why,
        fix: `Lower ${limitName(flow)}${isStages ? ", turnCap or maxAttempts" : ""}, or allow more with --max-turns.`,
        witness: [],
      },
    ],
  };
}

/** What a run can cost, in one line. */
export function costLine(flow: Flow): string {
  const budget = budgetOf(flow);
  if (budget.answers.most === null) return `No upper bound: ${budget.answers.because}.`;
  return `Upper bound: ${budgetLine(budget)}.`;
}
