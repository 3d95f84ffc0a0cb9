/** The class-shaped door: load a definition, make a runner, run it. */
import { hasErrors } from "../flow/problem.ts";
import type { Led } from "../flow/event.ts";
import type { Json } from "../flow/json.ts";
import { load, type Loaded, type LoadOptions } from "./load.ts";
import type { Result } from "../tell/result.ts";
import type { DriveOptions } from "./options.ts";
import { runLoaded } from "./open.ts";

export type AgentDefinition = Loaded;

/** Loads an agent; throws with every problem in the message when it cannot run. */
export async function loadAgentDefinition(
  agent: string,
  options: LoadOptions = {},
): Promise<AgentDefinition> {
  const loaded = await load(agent, options);
  if (!hasErrors(loaded.problems)) return loaded;
  const list = loaded.problems
    .filter((problem) => problem.severity === "error")
    .map((problem) => `  ${problem.file}:${problem.line} [${problem.code}] ${problem.message}`);
  throw new Error(`Agent "${agent}" cannot run:\n${list.join("\n")}`);
}

export type RunnerResult = Result & {
  readonly state: {
    readonly currentStepId: string | null;
    readonly totalIterations: number;
    readonly history: readonly HistoryEntry[];
  };
};

export type HistoryEntry = {
  readonly stepId: string;
  readonly iteration: number;
  readonly transition: string | null;
  readonly checkResult?: { readonly ok: boolean; readonly message: string };
};

/**
 * Runs a loaded agent.
 *
 * @example
 * const runner = new StepFlowRunner(await loadAgentDefinition("iterator"));
 * const result = await runner.run({ args: { issue: 12 }, cwd: process.cwd(), script: replies });
 */
export class StepFlowRunner {
  readonly #definition: AgentDefinition;

  constructor(definition: AgentDefinition) {
    this.#definition = definition;
  }

  async run(
    options: { readonly args?: { readonly [name: string]: Json } } & DriveOptions = {},
  ): Promise<RunnerResult> {
    const { project } = this.#definition;
    const result = await runLoaded(this.#definition, { ...options, cwd: options.cwd ?? project.root });
    return {
      ...result,
      state: {
        currentStepId: result.finalStepId,
        totalIterations: result.iterations,
        history: result.path.map(toHistory),
      },
    };
  }
}

function toHistory(led: Led, index: number): HistoryEntry {
  const entry = { stepId: led.step, iteration: index + 1, transition: led.label };
  if (led.overturned) return { ...entry, checkResult: { ok: false, message: "the checks did not pass" } };
  if (led.check === undefined) return entry;
  return { ...entry, checkResult: { ok: led.check.label === "pass", message: led.check.message } };
}
