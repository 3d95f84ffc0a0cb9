/** Calls of tools that a step may make, and one that it may not: the gate of the run itself is asked. */
import { judge } from "../boundaries/gate/gate.ts";
import type { Step } from "../flow/flow.ts";
import type { JsonObject } from "../flow/json.ts";

type Call = { readonly name: string; readonly input: JsonObject };

/** For each rule of `allowedTools`, a call that it allows. A rule that allows nothing in this step is left out. */
export function callsWithin(step: Step): readonly { readonly rule: string; readonly call: Call }[] {
  return step.tools.allow.flatMap((rule) => {
    const call = candidates(rule).find((one) => rulesFor(step, one).includes(rule));
    return call === undefined ? [] : [{ rule, call }];
  });
}

/** The rules that allow this call, each by itself. */
export function rulesFor(step: Step, call: Call): readonly string[] {
  const { tools } = step;
  return tools.allow.filter(
    (rule) => refusal({ ...step, tools: { ...tools, allow: [rule] } }, call, [call.name]) === null,
  );
}

/** A call that the step may not make: there always is one, because no command may write to GitHub. */
export function callBeyond(step: Step): Call {
  const known = Object.entries(INPUTS).map(([name, input]) => ({ name, input }));
  const strangers: readonly Call[] = [...known, { name: "Unknown", input: {} }];
  return strangers.find((call) => refusal(step, call, [call.name]) !== null) ?? WRITES_TO_GITHUB;
}

const WRITES_TO_GITHUB: Call = { name: "Bash", input: { command: "gh issue close 1" } };

/** Why the gate refuses the call; null: it may be made. */
export function refusal(step: Step, call: Call, batch: readonly string[]): string | null {
  const judgement = judge(step, call, batch);
  return judgement.allow ? null : judgement.reason;
}

/** Calls that a rule may have been written for: `Bash(git *)`, `mcp__server__*`, `*`, or the name of a tool. */
function candidates(rule: string): readonly Call[] {
  const open = rule.indexOf("(");
  const tool = (open === -1 ? rule : rule.slice(0, open)).trim();
  const limit = open === -1 ? "" : rule.slice(open + 1, -1).trim();
  const commands = [limit.replace(/:\*$/, ""), limit.replaceAll("*", "x"), limit.replaceAll("*", "")];
  const names = tool.includes("*") ? [...Object.keys(INPUTS), tool.replaceAll("*", "x")] : [tool];
  return names.flatMap((name): readonly Call[] => {
    if (name === "Bash" && limit !== "") return commands.map((command) => ({ name, input: { command } }));
    return [{ name, input: INPUTS[name] ?? {} }];
  });
}

/** Input that a tool takes. */
const INPUTS: { readonly [tool: string]: JsonObject } = {
  WebFetch: { url: "https://example.com/" },
  Read: { file_path: "file.txt" },
  Write: { file_path: "file.txt", content: "text" },
  Edit: { file_path: "file.txt", old_string: "a", new_string: "b" },
  Bash: { command: "true" },
  Glob: { pattern: "*" },
  Grep: { pattern: "a" },
  TodoWrite: { todos: [] },
  Task: { description: "a task", prompt: "do it" },
};
