/** Runs that are started together: all of them run, and only so many open in one turn of the event loop. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { createMemoryJournal, runLoaded, type Backend } from "../../../src/run/index.ts";
import { actionSchema, sketchFlow } from "../../../src/testing/flows.ts";

const MOST = 128;

describe("run: runs that are started together", () => {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-begin-"));
  after(() => rmSync(folder, { recursive: true }));
  const flow = sketchFlow(
    { "initial.issue": { edges: { next: "initial.issue" }, schema: actionSchema(["next"]) } },
    { stop: { kind: "visits", count: 2 }, limits: { visits: 2 } },
  );
  const project = { root: folder, agentsDir: join(folder, ".agent"), stateDir: join(folder, "state") };
  const backend: Backend = {
    spec: { id: "sketch", options: null },
    turn: () => {
      const usage = { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: null };
      const output = { next_action: { action: "next" } };
      return Promise.resolve({ kind: "reply", text: "", calls: [], output, usage });
    },
  };

  for (const { runs, most } of [
    { runs: 1, most: 1 },
    { runs: MOST, most: MOST },
    { runs: MOST + 1, most: MOST },
    { runs: 5 * MOST + 3, most: MOST },
  ])
    it(`${runs} at once begin in their order, at most ${most} in a turn`, async () => {
      const journal = createMemoryJournal();
      // What began before is over, and this counts a turn before the runs of the next one begin.
      for (let turn = 0; turn < 3; turn++) await setImmediate();
      const inTurns: number[] = [0];
      let isOver = false;
      const count = () => {
        inTurns.push(0);
        if (!isOver) globalThis.setImmediate(count);
      };
      globalThis.setImmediate(count);
      const begun: number[] = [];
      const results = await Promise.all(
        Array.from({ length: runs }, (_, place) =>
          runLoaded(
            { agent: flow.agent, project, flow, problems: [] },
            {
              cwd: folder,
              journal,
              backend,
              sandbox: "off",
              onRun: () => {
                begun.push(place);
                inTurns[inTurns.length - 1]! += 1;
              },
            },
          ),
        ),
      );
      isOver = true;
      assert.equal(results.filter(({ success, iterations }) => success && iterations === 2).length, runs);
      assert.equal(Math.max(...inTurns), most, inTurns.join(" "));
      assert.deepEqual(begun, [...begun.keys()]);
    });
});
