/** What a command that takes long lets V8 have for young objects, seen in the process of the command. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createWorld, script, writeAgent } from "./world.ts";

/** Notes that the memory was bounded, then makes much that is soon garbage, and prints how large the memory became. */
const SPY = `
const v8 = process.getBuiltinModule("node:v8");
const { setFlagsFromString } = v8;
let bounded = false;
v8.setFlagsFromString = (flags) => {
  setFlagsFromString(flags);
  bounded = true;
  let kept = [];
  for (let round = 0; round < 40; round++, kept = [])
    for (let made = 0; made < 200_000; made++) if (made % 20 === 0) kept.push([{ made }]);
};
process.on("exit", () => {
  const { space_size } = v8.getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space");
  process.stderr.write(JSON.stringify({ bounded, megabytes: space_size / 1024 / 1024 }) + "\\n");
});`;

for (const { what, args, isBounded } of [
  {
    what: "a run that waits",
    args: ["run", "hello", "--topic", "tea", "--script", "slow.json"],
    isBounded: true,
  },
  {
    what: "a search",
    args: ["fuzz", "hello", "--runs", "3000"],
    isBounded: false,
  },
])
  test(`young objects have ${isBounded ? "little memory" : "the memory that V8 gives"}: ${what}`, async () => {
    using world = createWorld();
    writeAgent(world, "hello");
    world.write("spy.mjs", SPY);
    world.write("slow.json", script({ error: { kind: "rate-limit", retryAfterMs: 500 } }));
    const { stderr } = await world.lockstep(args, { env: { NODE_OPTIONS: "--import ./spy.mjs" } });
    const seen = JSON.parse(stderr.trimEnd().split("\n").at(-1)!) as { bounded: boolean; megabytes: number };
    assert.equal(seen.bounded, isBounded, stderr);
    // Unbounded it is 64 MB or more after so much garbage.
    if (isBounded) assert.ok(seen.megabytes <= 32, `${seen.megabytes} MB`);
  });
