/** What a run may still spend. Looked at before each question to the model, so that nothing is asked beyond a limit. */
import type { Command, Say, Usage } from "../flow/event.ts";
import type { Flow, Spending } from "../flow/flow.ts";
import type { Lane, State } from "./state.ts";
import { haltAll } from "./visit.ts";

/** Ends the run where it stands when the next question would go beyond a limit; tells the model once when it is near. */
export function bounded(flow: Flow, state: State): State {
  const limits = state.spending ?? flow.limits;
  if (!isLimited(limits) || state.verdict !== null) return state;
  const asks = state.pending.filter(({ type }) => type === "ask").length;
  if (asks === 0) return state;
  const spent = spentOf(state.usage, limits);
  // Questions under way are spent already, so that siblings cannot go beyond the limit together.
  const beyond = spent.find(({ name, used, most }) => (name === "turns" ? used + asks > most : used >= most));
  if (beyond !== undefined) return haltAll(state, "BUDGET_EXHAUSTED", exhausted(beyond));
  const near = state.warned ? undefined : spent.find(({ used, most }) => used >= most * SOFT);
  return near === undefined ? state : tellAll({ ...state, warned: true }, near);
}

/** From this share of a limit on, the model is told once. */
const SOFT = 0.8;

type Spent = { readonly name: keyof Spending; readonly used: number; readonly most: number };

function isLimited({ turns, tokens, costUsd }: Spending): boolean {
  return turns !== undefined || tokens !== undefined || costUsd !== undefined;
}

/** What is not known to cost anything is not counted; a run with unknown prices is bounded by its other limits. */
function spentOf({ turns, inputTokens, outputTokens, costUsd }: Usage, limits: Spending): readonly Spent[] {
  const used = { turns, tokens: inputTokens + outputTokens, costUsd: costUsd ?? 0 };
  return (["turns", "tokens", "costUsd"] as const).flatMap((name) => {
    const most = limits[name];
    return most === undefined ? [] : [{ name, used: used[name], most }];
  });
}

export function exhausted({ name, used, most }: Spent): string {
  return `The limit of ${amount(name, most)} is reached: ${amount(name, used)} used. Resume the run with a higher one.`;
}

function amount(name: keyof Spending, value: number): string {
  switch (name) {
    case "turns":
      return `${value} turns`;
    case "tokens":
      return `${value} tokens`;
    case "costUsd":
      return `$${value}`;
    case "wallMs":
      return `${value} ms`;
  }
}

function tellAll(state: State, { name, used, most }: Spent): State {
  const say: Say = {
    kind: "budget",
    text: `${amount(name, used)} of ${amount(name, most)} are used. Come to an end soon.`,
  };
  const lanes = state.lanes.map((lane) => told(lane, say));
  return { ...state, lanes, pending: lanes.map(({ command }): Command => command) };
}

function told(lane: Lane, say: Say): Lane {
  if (lane.command.type !== "ask") return lane;
  const says = [...lane.say, say];
  return { ...lane, say: says, command: { ...lane.command, say: says } };
}
