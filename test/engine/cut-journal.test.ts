/** For every prefix of a journal: resuming ends the same way, replays, and what was committed is not asked again. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { replay } from "../../src/story/replay.ts";
import { play } from "./played.ts";
import { scenarios } from "./scenarios.ts";
import { ready } from "../ready.ts";

for (const [name, scenario] of Object.entries(scenarios)) {
  test(`${name}: every cut resumes to the same end`, async () => {
    const whole = await play(scenario);
    assert.notEqual(whole.state.verdict, null);
    const asksOf = (entries: typeof whole.entries) =>
      entries.flatMap(({ event }) =>
        event.type === "step.answered" ? [`${event.step}@${event.visit}/${event.turn}`] : [],
      );
    for (let cut = 1; cut < whole.entries.length; cut++) {
      const past = whole.entries.slice(0, cut);
      const resumed = await play({ ...scenario, past });
      const { verdict, handoff, visits, iterations, failures } = resumed.state;
      assert.deepEqual(
        { verdict, handoff, visits, iterations, failures, path: pathOf(resumed.entries) },
        {
          verdict: whole.state.verdict,
          handoff: whole.state.handoff,
          visits: whole.state.visits,
          iterations: whole.state.iterations,
          failures: whole.state.failures,
          path: pathOf(whole.entries),
        },
        `cut after ${cut}`,
      );
      assert.equal(
        replay(ready(scenario.flow), resumed.entries).difference,
        null,
        `replayed after cut ${cut}`,
      );
      const expected = asksOf(whole.entries).slice(asksOf(past).length);
      assert.deepEqual(resumed.asked.toSorted(), expected.toSorted(), `asked again after cut ${cut}`);
    }
  });
}

function pathOf(entries: Awaited<ReturnType<typeof play>>["entries"]) {
  return entries
    .flatMap(({ led }) => (led === undefined ? [] : [`${led.step}@${led.visit}:${led.label}>${led.to}`]))
    .toSorted();
}
