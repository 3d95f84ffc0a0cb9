/** Asking a module of the project whether the run is over. */
import type { Glance, OutsideRule } from "../../engine/ports.ts";
import type { Sight } from "../../flow/event.ts";
import { isObject, type Json } from "../../flow/json.ts";
import type { ModuleHost } from "./module-host.ts";

/**
 * The module's default export is called with the definition and the arguments of the run. It gives a handler, which is
 * kept and asked each time, or the answer itself.
 */
export const VERDICT_ADAPTER = String.raw`(module) => {
  let handler = null;
  const wrong = (code, message) => { throw Object.assign(new Error(message), { code }); };
  const verdict = (finished, reason) => {
    if (typeof finished !== "boolean") wrong("AC-VERDICT-007", "It says neither true nor false.");
    return { finished, reason: typeof reason === "string" ? reason : "" };
  };
  return {
    isFinished: async (definition, args, summary) => {
      if (typeof module.default !== "function") wrong("AC-VERDICT-006", "Its default export is not a function.");
      const made = handler ?? (await module.default(definition, args, summary));
      if (made === null || typeof made !== "object") return verdict(made, "");
      if (typeof made.isFinished !== "function") return verdict(made.finished, made.reason);
      handler = made;
      await handler.setCurrentIteration?.(summary.iteration);
      await handler.setCurrentSummary?.(summary);
      const finished = await handler.isFinished();
      return verdict(finished, await handler.getVerdictDescription?.());
    },
  };
}`;

/** A module that fails says nothing, so the run is not over; what went wrong is what was seen. */
export async function askModule(
  host: ModuleHost,
  { module, config }: Extract<OutsideRule, { kind: "module" }>,
  agent: string,
  glance: Glance,
  signal: AbortSignal,
): Promise<Sight> {
  const definition: Json = { name: agent, runner: { verdict: { type: "meta:custom", config } } };
  const { iteration, step, said, payload } = glance;
  const responses = said === "" ? [] : [said];
  const summary: Json = { iteration, stepId: step, assistantResponses: responses, structuredOutput: payload };
  const result = await host.call(["isFinished"], [definition, glance.args, summary], signal);
  if (result.kind === "threw")
    return { met: false, what: `${module.file}: ${result.code}: ${result.message}` };
  const answer = result.kind === "gave" && isObject(result.value) ? result.value : {};
  const met = answer.finished === true;
  const reason = typeof answer.reason === "string" && answer.reason !== "" ? answer.reason : null;
  return {
    met,
    what: reason ?? `${module.file} says that the run is ${met ? "over" : "not over"}`,
  };
}
