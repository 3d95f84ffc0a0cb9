/** How people take part in a run, and what watches over it, as files say it. */
import { QUESTIONS, WATCH, type Settings } from "../../flow/settings.ts";
import { recordOf } from "../text/record.ts";
import type { AgentSource } from "./agent-shape.ts";

const UNITS: { readonly [unit: string]: number } = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Only what is written. */
export function peopleOf({ questions, watch }: AgentSource["runner"]): Pick<Settings, "questions" | "watch"> {
  const { expireAfter, ...asked } = questions;
  const recorded = {
    ...recordOf(QUESTIONS, asked),
    ...(expireAfter !== undefined && { expireMs: millisecondsOf(expireAfter) }),
  };
  const watched = recordOf(WATCH, watch);
  return {
    ...(Object.keys(recorded).length > 0 && { questions: recorded }),
    ...(Object.keys(watched).length > 0 && { watch: watched }),
  };
}

/** The step's own word, else the agent's; what is usual is not written down. */
export function interruptedOf(
  step: "retry" | "ask" | "fail" | undefined,
  agent: "retry" | "ask" | "fail" | undefined,
): { readonly ifInterrupted?: "ask" | "fail" } {
  const wanted = step ?? agent;
  return wanted === undefined || wanted === "retry" ? {} : { ifInterrupted: wanted };
}

function millisecondsOf(text: string): number {
  const [, amount = "0", unit = "ms"] = /^(\d+)(\w+)$/.exec(text) ?? [];
  return Number(amount) * (UNITS[unit] ?? 1);
}
