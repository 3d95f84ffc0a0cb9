/** Tool calls of every kind before the gate, for measuring what it costs. */
import { judge } from "../boundaries/gate/gate.ts";
import { createRedactor } from "../boundaries/redact/redact.ts";
import type { Step } from "../flow/flow.ts";
import type { JsonObject } from "../flow/json.ts";
import { sketchFlow } from "./flows.ts";

export function createGate(): {
  readonly cases: readonly { readonly name: string; readonly judge: () => unknown }[];
  readonly look: () => string;
  readonly text: string;
} {
  const plain = Object.values(sketchFlow({ "initial.issue": { edges: {} } }).steps)[0]!;
  const withTools = (allow: readonly string[]): Step => ({ ...plain, tools: { allow, mode: "acceptEdits" } });
  const call = (name: string, step: Step, tool: string, input: JsonObject) => ({
    name,
    judge: () => judge(step, { name: tool, input }, [tool]),
  });
  const any = withTools(["*"]);
  const listed = withTools(["Read", "Grep", "Bash(git status:*)", "Bash(npm test:*)", "Bash(ls:*)"]);
  const text = [call, createGate, createRedactor, judge].map(String).join("\n").repeat(2);
  const { text: tidy } = createRedactor(() => ["a value that is known", "and another one"]);
  return {
    cases: [
      call("Read", any, "Read", { file_path: "src/index.ts" }),
      call("Write", any, "Write", { file_path: "src/index.ts", content: text }),
      call("Bash", any, "Bash", {
        command: "git add -A && git commit -m 'A message' && npm test 2>&1 | tail -20",
      }),
      call("listed Bash", listed, "Bash", { command: "git status --short && npm test -- --bail" }),
      call("denied Bash", listed, "Bash", { command: "gh issue close 12 && rm -rf build" }),
      call("denied tool", listed, "Edit", { file_path: "a", old_string: "b", new_string: "c" }),
    ],
    look: () => tidy(text),
    text,
  };
}
