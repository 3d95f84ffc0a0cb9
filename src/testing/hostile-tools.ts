/** The tools of a fuzzed run: a box that notes what it runs, and asks the gate about it again. */
import { judge } from "../boundaries/gate/gate.ts";
import { offerOf } from "../boundaries/tools/toolbox.ts";
import type { Toolbox } from "../engine/ports.ts";
import type { Call, CallResult } from "../flow/event.ts";
import type { Step } from "../flow/flow.ts";
import type { HostileSurroundings } from "./hostile-surroundings.ts";

export type Box = (step: Step, call: Call, batch: readonly string[]) => CallResult;

const OFFER = offerOf({ isReachable: false, absent: "deny" }, true);

/** The box notes what it runs, and the gate is asked about that once more: whatever let the call through. */
export function toolboxOf(
  toolbox: ((box: Box, usual: Toolbox) => Toolbox) | undefined,
  outside: Pick<HostileSurroundings, "tool">,
  trespasses: string[],
): Toolbox {
  const box: Box = (step, { id, name, input }, batch) => {
    const judgement = judge(step, { name, input }, batch);
    const isDone = step.answer.kind === "object" && isCompletion(step, batch);
    if (!judgement.allow) trespasses.push(`${name} ran, although the gate refuses it: ${judgement.reason}`);
    else if (isDone) trespasses.push(`${name} ran, although it was called beside the completion`);
    return { id, name, ...outside.tool(name) };
  };
  const call: Toolbox["call"] = (step, calls) => {
    const batch = calls.map(({ name }) => name);
    return Promise.resolve(
      calls.map((one): CallResult => {
        const judgement = judge(step, one, batch);
        if (judgement.allow) return box(step, one, batch);
        const { reason } = judgement;
        return { id: one.id, name: one.name, ok: false, content: reason, denied: reason };
      }),
    );
  };
  const usual: Toolbox = {
    offer: OFFER,
    judge: (step, one, batch) => {
      const judgement = judge(step, one, batch);
      return judgement.allow ? null : judgement.reason;
    },
    call,
    callGranted: async (step, calls, _about, signal) => ({
      kind: "results",
      results: await call(step, calls, signal),
    }),
  };
  return toolbox?.(box, usual) ?? usual;
}

function isCompletion({ answer }: Step, batch: readonly string[]): boolean {
  return answer.kind === "object" && answer.channel.kind === "tool" && batch.includes(answer.channel.name);
}
