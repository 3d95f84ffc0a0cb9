/** A run of some length with repairs, tool calls, waits and a cycle, and the script that answers it. */
import { join } from "node:path";
import type { Loaded, ScriptReply } from "../../src/run/index.ts";
import { actionSchema, sketchFlow } from "../../src/testing/flows.ts";

const say = (action: string, more: object = {}): ScriptReply => ({
  output: { next_action: { action }, ...more },
});

export const ROUNDS = 12;

export function longRun(folder: string): { readonly agent: Loaded; readonly script: readonly ScriptReply[] } {
  const schema = (labels: readonly string[]) => ({ ...actionSchema(labels), additionalProperties: true });
  const flow = sketchFlow(
    {
      "initial.a": { edges: { next: "continuation.a" }, handoff: ["found"], schema: schema(["next"]) },
      "continuation.a": {
        edges: { next: "continuation.b", handoff: "closure.a" },
        handoff: ["round"],
        schema: schema(["next", "handoff"]),
      },
      "continuation.b": { edges: { next: "continuation.a" }, schema: schema(["next"]) },
      "closure.a": { edges: { closing: null }, schema: schema(["closing"]) },
    },
    { limits: { visits: 200 } },
  );
  const script: ScriptReply[] = [say("next", { found: "the cause" })];
  for (let round = 1; round <= ROUNDS; round++) {
    script.push({ calls: [{ name: "TodoWrite", input: { todos: [] } }] });
    script.push(say("next", { round }));
    if (round % 3 === 0) script.push({ text: "no JSON here" });
    script.push(say("next", { filler: "x".repeat(500) }));
  }
  script.push(say("handoff", { round: "last" }), say("closing"));
  const project = { root: folder, agentsDir: join(folder, ".agent"), stateDir: join(folder, ".lockstep") };
  return { agent: { agent: flow.agent, project, flow, problems: [] }, script };
}
