/** An agent and its steps explained, with the digest of the flow and the tools that a step is offered. */
import { offeredIn } from "../boundaries/tools/toolbox.ts";
import { own } from "../flow/json.ts";
import { agentExplained, type AgentExplained, type UserLimits } from "../tell/explain.ts";
import { stepExplained, type StepExplained } from "../tell/explain-step.ts";
import { flowDigest, type LoadedAgent } from "./load.ts";

/** null: the files give no flow. */
export function explainAgent(
  loaded: Omit<LoadedAgent, "project">,
  ofUser?: UserLimits,
): AgentExplained | null {
  const { flow } = loaded;
  return flow === null ? null : agentExplained({ ...loaded, flow }, flowDigest(flow), ofUser);
}

/** null: the flow has no step of that id. */
export function explainStep(loaded: Omit<LoadedAgent, "project">, id: string): StepExplained | null {
  const { flow } = loaded;
  const step = flow === null ? undefined : own(flow.steps, id);
  if (flow === null || step === undefined) return null;
  const offered = step.by.kind === "command" ? [] : offeredIn(flow, step).map(({ name }) => name);
  return stepExplained({ ...loaded, flow }, step, offered);
}
