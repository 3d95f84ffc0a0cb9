/** What a coding agent sees of the user's environment: settings for git that are passed on do not replace ours. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { passOn } from "../../src/backends/environment.ts";

const OURS = { key: "safe.bareRepository", value: "explicit" };

const cases: readonly [name: string, env: { [name: string]: string }, passed: boolean, at: number][] = [
  ["nothing", {}, true, 0],
  ["one setting", { GIT_CONFIG_COUNT: "1", GIT_CONFIG_KEY_0: "a.b", GIT_CONFIG_VALUE_0: "c" }, true, 1],
  [
    "one setting that says otherwise",
    { GIT_CONFIG_COUNT: "1", GIT_CONFIG_KEY_0: "safe.bareRepository", GIT_CONFIG_VALUE_0: "all" },
    true,
    1,
  ],
  ["a key without its count", { GIT_CONFIG_KEY_0: "a.b", GIT_CONFIG_VALUE_0: "c" }, true, 0],
  ["a count that is not a number", { GIT_CONFIG_COUNT: "many" }, true, 0],
  ["settings that are not passed on", { GIT_CONFIG_COUNT: "3", GIT_CONFIG_KEY_0: "a.b" }, false, 0],
];
for (const [name, env, passed, at] of cases) {
  test(`${name}: ours is the last of the settings`, () => {
    const seen = passOn({ PATH: "/bin", SECRET: "x", ...env }, (each) => passed && each.startsWith("GIT_"));
    assert.equal(seen.GIT_CONFIG_COUNT, String(at + 1));
    assert.deepEqual({ key: seen[`GIT_CONFIG_KEY_${at}`], value: seen[`GIT_CONFIG_VALUE_${at}`] }, OURS);
    if (at > 0) assert.equal(seen.GIT_CONFIG_VALUE_0, env.GIT_CONFIG_VALUE_0);
    assert.deepEqual([seen.PATH, seen.SECRET], ["/bin", undefined]);
  });
}
