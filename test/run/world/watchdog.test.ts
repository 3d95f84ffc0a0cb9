/** A coding agent is given up only for its silence: whatever else comes of a query stays as it is. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunRequest, TurnResult } from "../../../src/engine/ports.ts";
import { watchOver } from "../../../src/run/world/watchdog.ts";

const fault: TurnResult = { kind: "fault", fault: { kind: "other", message: "refused" } };

/** An agent that ends as it is told to, when it is asked or when it is stopped. */
function ran(
  inactivityMs: number,
  run: (request: RunRequest) => Promise<TurnResult>,
  signal = new AbortController().signal,
) {
  const backend = watchOver({ spec: { id: "x", options: null }, run }, inactivityMs);
  return backend.run!({ signal, gate: () => Promise.resolve(null) } as unknown as RunRequest);
}
const stopped = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve());
  });

test("a fault of the agent itself is reported as it is", async () => {
  assert.equal(await ran(600_000, () => Promise.resolve(fault)), fault);
});

test("an agent that says nothing is given up, whatever it says when it is stopped", async () => {
  const silent = await ran(1, async ({ signal }) => {
    await stopped(signal);
    return fault;
  });
  assert.match(silent.kind === "fault" ? silent.fault.message : "", /\b1 ms\b/);
});

test("an answer that comes after all is taken", async () => {
  const reply = { kind: "reply", text: "late" } as unknown as TurnResult;
  const late = await ran(1, async ({ signal }) => {
    await stopped(signal);
    return reply;
  });
  assert.equal(late, reply);
});

test("what the user stops is not silence", async () => {
  const controller = new AbortController();
  const work = ran(
    600_000,
    async ({ signal }) => {
      controller.abort();
      await stopped(signal);
      return fault;
    },
    controller.signal,
  );
  assert.equal(await work, fault);
});
