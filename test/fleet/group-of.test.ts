import assert from "node:assert/strict";
import { test } from "node:test";
import { groupOf } from "../../src/fleet/submit.ts";
import type { Source } from "../../src/flow/event.ts";

const rows: readonly (readonly [url: string | null, group: string])[] = [
  ["https://github.com/acme/one.git", "github.com/acme/one"],
  ["git@github.com:acme/one.git", "github.com/acme/one"],
  ["ssh://git@GitHub.com/acme/one", "github.com/acme/one"],
  ["file:///srv/git/one.git", "/srv/git/one"],
  ["-x", "default"],
  [null, "default"],
];

for (const [url, group] of rows)
  test(`runs of ${url} share the slots of ${group}`, () => {
    const remote = url === null ? {} : { remote: { name: "origin", url } };
    const source = { kind: "git", commit: "a".repeat(40), ...remote } as unknown as Source;
    assert.equal(groupOf(source), group);
    assert.equal(groupOf({ kind: "none" }), "default");
  });
