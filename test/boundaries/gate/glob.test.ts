import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { compileGlob, matchesWildcard } from "../../../src/boundaries/gate/glob.ts";
import { assertLinear } from "../../linear.ts";

const cases: readonly [pattern: string, yes: readonly string[], no: readonly string[]][] = [
  ["*.ts", ["a.ts", ".ts", ".a.ts"], ["a/b.ts", "a.tsx"]],
  ["**/*.ts", ["a.ts", "a/b.ts", "a/b/c.ts"], ["a.js", "a.ts/b"]],
  ["src/**", ["src/a", "src/a/b", "src"], ["srcs/a", "a/src/b"]],
  ["src/**/test/*.js", ["src/test/a.js", "src/x/y/test/a.js"], ["src/test/x/a.js"]],
  ["a?c", ["abc", "a🙂c"], ["ac", "abbc", "a/c"]],
  ["[abc].x", ["a.x", "c.x"], ["d.x", "ab.x"]],
  ["[a-c0-9].x", ["b.x", "5.x"], ["d.x", "-.x"]],
  ["[!a].x", ["b.x"], ["a.x"]],
  ["[]a].x", ["].x", "a.x"], ["b.x"]],
  ["a[.x", ["a[.x"], ["a.x"]],
  ["*.{ts,tsx}", ["a.ts", "a.tsx"], ["a.js"]],
  ["{a,b/{c,d}}/x", ["a/x", "b/c/x", "b/d/x"], ["b/x"]],
  ["{a}", ["{a}"], ["a"]],
  ["\\*.ts", ["*.ts"], ["a.ts"]],
  ["./src/*", ["src/a"], ["src/a/b"]],
  ["$&", ["$&"], ["x"]],
  ["(a+)+", ["(a+)+"], ["aa"]],
  ["a*b*c", ["abc", "aXbYbZc"], ["ab", "acb"]],
];

describe("a glob", () => {
  for (const [pattern, yes, no] of cases) {
    test(pattern, () => {
      const matches = compileGlob(pattern);
      assert.ok(matches);
      for (const path of yes) assert.equal(matches(path), true, path);
      for (const path of no) assert.equal(matches(path), false, path);
    });
  }

  test("that unfolds into too many is refused", () => {
    assert.equal(compileGlob("{a,b}".repeat(20)), null);
    assert.equal(compileGlob("x".repeat(5_000)), null);
  });

  test("that is hostile takes time in proportion to the path", async () => {
    for (const pattern of ["*a".repeat(400), "**/a/".repeat(150), "[a".repeat(300), "{".repeat(900)]) {
      const matches = compileGlob(pattern);
      assert.ok(matches);
      for (const unit of ["a", "a/"]) await assertLinear(matches, unit, "/b");
    }
  });
});

test("a wildcard minds no slash and no other sign", () => {
  assert.equal(matchesWildcard("git *", "git a/b c"), true);
  assert.equal(matchesWildcard("a.b", "axb"), false);
  assert.equal(matchesWildcard("", ""), true);
  assert.equal(matchesWildcard("", "a"), false);
});
