/** What the model says and what stages are made of, in rows of several subjects. */
import type { ScriptReply } from "../../../src/run/index.ts";
import type { Ran } from "../stage-project.ts";

// What the model says.
export const done = (payload: object = {}, more: Partial<ScriptReply> = {}): ScriptReply => ({
  output: payload as NonNullable<ScriptReply["output"]>,
  ...more,
});
export const of = (step: string, reply: ScriptReply = done()): ScriptReply => ({ ...reply, step });
export const prose: ScriptReply = { text: "Let me think." };
export const write = (file: string, content = "x") => ({
  name: "Write",
  input: { file_path: file, content },
});
export const read = (file: string) => ({ name: "Read", input: { file_path: file } });
export const calls = (...list: NonNullable<ScriptReply["calls"]>): ScriptReply => ({ calls: list });

// What stages are made of.
export const TEXT = { type: "string" };
export const WANTS = (...names: readonly string[]) => ({
  completionSchema: {
    type: "object",
    required: names,
    properties: Object.fromEntries(names.map((name) => [name, TEXT])),
    additionalProperties: false,
  },
});
export const TRIES = (maxAttempts: number, backoff = "none") => ({ retryPolicy: { maxAttempts, backoff } });

export const check = (command: string) => ({ type: "command", command, successWhen: "exitCode:0" });
export const GROUP = { next: { parallel: ["a", "b"], join: "meet" } };
export const asks = (ran: Ran, stage: string) => ran.asked.filter(({ asker }) => asker.step === stage);
export const first = (ran: Ran, stage: string) => asks(ran, stage)[0]!;
