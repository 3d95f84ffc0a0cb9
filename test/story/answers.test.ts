/** Which events can come of which command: every command with every event of a visit. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Event } from "../../src/flow/event.ts";
import type { StepCommand } from "../../src/flow/command.ts";
import { answers } from "../../src/story/replay.ts";

const EVENTS: { readonly [name: string]: object } = {
  answered: { type: "step.answered", turn: 2, reply: { kind: "said" } },
  "answered before": { type: "step.answered", turn: 1, reply: { kind: "said" } },
  unaskable: { type: "step.answered", turn: 1, reply: { kind: "unaskable" } },
  warned: { type: "step.warned" },
  called: { type: "step.called" },
  asked: { type: "step.asked" },
  suspended: { type: "step.suspended" },
  checked: { type: "step.checked" },
  hooked: { type: "step.hooked", hook: "exit" },
  "hooked elsewhere": { type: "step.hooked", hook: "setup" },
  looked: { type: "step.looked" },
  told: { type: "step.told" },
  waited: { type: "step.waited" },
  ended: { type: "run.ended" },
};

const COMMANDS: readonly (readonly [command: object, events: readonly string[]])[] = [
  [{ type: "ask", turn: 2 }, ["answered", "unaskable", "warned"]],
  [{ type: "call" }, ["called", "asked", "suspended"]],
  [{ type: "check" }, ["unaskable", "checked"]],
  [{ type: "hook", hook: "exit" }, ["unaskable", "hooked"]],
  [{ type: "look" }, ["looked"]],
  [{ type: "question" }, ["asked", "suspended", "told"]],
  [{ type: "wait" }, ["waited"]],
];

for (const [command, expected] of COMMANDS)
  test(`what can come of ${JSON.stringify(command)}`, () => {
    const found = Object.entries(EVENTS).filter(([, event]) =>
      answers(command as unknown as StepCommand, event as unknown as Event),
    );
    assert.deepEqual(
      found.map(([name]) => name),
      expected,
    );
  });
