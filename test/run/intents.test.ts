/** Every word of document 000 from a step of every kind: the seven intents, the seven aliases, and words of neither. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createMemoryJournal, run, type ScriptReply } from "../../src/run/index.ts";
import { agentFiles, projectWith, type StepFile } from "./project.ts";

const INTENTS = ["next", "repeat", "jump", "handoff", "closing", "escalate", "abort"];
const ALIASES: { readonly [word: string]: string } = {
  continue: "next",
  retry: "repeat",
  wait: "repeat",
  done: "closing",
  finished: "closing",
  pass: "next",
  fail: "repeat",
};
const KINDS = {
  work: { id: "continuation.subject", allowed: ["next", "repeat", "jump", "handoff"] },
  verification: { id: "verification.subject", allowed: ["next", "repeat", "jump", "escalate"] },
  closure: { id: "closure.subject", allowed: ["closing", "repeat"] },
} as const;

/** Where each intent of the step under test leads. */
const targets = (self: string): { readonly [intent: string]: string | null } => ({
  next: "continuation.next",
  repeat: self,
  jump: "continuation.jumped",
  handoff: "closure.end",
  escalate: "continuation.escalated",
  closing: null,
});

function project(kind: keyof typeof KINDS): string {
  const { id, allowed } = KINDS[kind];
  const plain = (next: string): StepFile => ({
    kind: "work",
    intents: ["next", "handoff"],
    transitions: { next: { target: next }, handoff: { target: "closure.end" } },
  });
  const rules = allowed
    .filter((intent) => intent !== "jump")
    .map((intent) => [intent, { target: targets(id)[intent] }] as const);
  return projectWith(
    agentFiles("words", {
      "initial.start": plain(id),
      [id]: {
        kind,
        intents: allowed,
        transitions: Object.fromEntries(rules),
        ...(kind === "closure"
          ? {}
          : { gate: { targetField: "next_action.details.target", targetMode: "dynamic" } }),
      },
      "continuation.next": plain("continuation.jumped"),
      "continuation.jumped": plain("continuation.escalated"),
      "continuation.escalated": plain("closure.end"),
      "closure.end": { kind: "closure", intents: ["closing"], transitions: { closing: { target: null } } },
    }),
  );
}

const say = (action: string): ScriptReply => ({
  output: { stepId: "x", next_action: { action, details: { target: "continuation.jumped" } } },
});

for (const kind of Object.keys(KINDS) as (keyof typeof KINDS)[]) {
  const cwd = project(kind);
  const { id, allowed } = KINDS[kind];
  for (const word of [...INTENTS, ...Object.keys(ALIASES), "complete", "NEXT", "Done", "constructor"]) {
    const meant = ALIASES[word.toLowerCase()] ?? word.toLowerCase();
    const accepted = (allowed as readonly string[]).includes(meant);
    const outcome = meant === "abort" ? "ends in failure" : accepted ? `means ${meant}` : "is refused";
    test(`"${word}" from a ${kind} step ${outcome}`, async () => {
      const script = [say("next"), say(word), ...(accepted ? [say("abort")] : [say(word)])];
      const result = await run({ agent: "words", cwd, journal: createMemoryJournal(), script });
      const settled = result.path[1];
      if (meant === "abort") {
        assert.deepEqual([settled?.step, settled?.label, settled?.to], [id, "abort", null]);
        assert.deepEqual([result.success, result.code, result.exitCode], [false, "AGENT_ABORTED", 1]);
      } else if (accepted) {
        assert.deepEqual(
          [settled?.step, settled?.label, settled?.to],
          [id, meant, targets(id)[meant]],
          result.reason,
        );
        assert.equal(result.outcome, meant === "closing" ? "completed" : "failed");
      } else {
        assert.deepEqual([settled?.step, settled?.label, settled?.to], [id, null, null]);
        assert.deepEqual([result.code, result.exitCode], ["FAILED_STEP_ROUTING", 1]);
        assert.match(
          result.reason,
          new RegExp(`^\\[StepFlow\\] No intent produced for iteration 2 on step "${id}"`),
        );
      }
    });
  }
}
