/** What is different between two flows: nothing is missed, and equal ones have no differences. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { changeText, flowChanges } from "../../src/story/changes.ts";
import { differences } from "../../src/flow/difference.ts";
import type { Flow } from "../../src/flow/flow.ts";
import type { Json } from "../../src/flow/json.ts";
import { sketchFlow } from "../../src/testing/flows.ts";
import { JOURNALS } from "../run/golden.ts";

const flows = readdirSync(JOURNALS).flatMap((file) => {
  const bundle = JSON.parse(readFileSync(join(JOURNALS, file), "utf8")) as {
    flows: { [digest: string]: Flow };
  };
  return Object.entries(bundle.flows);
});

test("flows differ exactly when their digests do", () => {
  for (const [one, a] of flows)
    for (const [other, b] of flows) assert.equal(flowChanges(a, b).length === 0, one === other);
});

test("no leaf of a flow changes unseen", () => {
  for (const [, flow] of flows) {
    for (const path of leaves(flow)) {
      const changed = structuredClone(flow);
      change(changed, path);
      const lines = flowChanges(flow, changed).map(changeText);
      assert.ok(lines.length > 0, path.join("/"));
      assert.ok(
        lines.every((line) => /^[-+~] \S/.test(line) && !line.includes("\n")),
        lines.join("\n"),
      );
    }
  }
});

test("each change is told in one line", () => {
  const end = { kind: "end", outcome: "failed", code: "GAVE_UP" } as const;
  const before = sketchFlow({
    "initial.a": { edges: { next: "closure.a" }, prompt: "One\nTwo" },
    "closure.a": { edges: { closing: null, repeat: "closure.a" } },
    "old.a": { edges: { next: "closure.a" } },
  });
  const after = sketchFlow(
    {
      "initial.a": {
        edges: { next: { kind: "fork", steps: ["x", "y"], join: "closure.a" } },
        prompt: "One\n2",
      },
      "closure.a": { edges: { closing: end, jump: { kind: "jump", field: ["to"], among: [] } }, turns: 7 },
      x: { edges: { next: null } },
      y: { edges: { next: null } },
    },
    { limits: { visits: 9 }, stop: { kind: "visits", count: 3 } },
  );
  assert.deepEqual(flowChanges(before, after).map(changeText), [
    "~ initial.a: edge next: closure.a → x + y then closure.a",
    "~ initial.a: prompt: inline.md, 1 lines in, 1 out",
    "~ closure.a: edge closing: end → end (GAVE_UP)",
    "+ closure.a: edge jump: where to says",
    "- closure.a: edge repeat: closure.a",
    "~ closure.a: answer: schema /properties/next_action/properties/action/enum/1",
    "~ closure.a: gate: /allow/1",
    "~ closure.a: limit turns: 50 → 7",
    "+ step x",
    "+ step y",
    "- step old.a",
    "~ limit visits: 20 → 9",
    "~ stop rule: /kind, /count",
  ]);
});

test("differences name the deepest places", () => {
  const rows: readonly [before: Json | undefined, after: Json | undefined, pointers: readonly string[]][] = [
    [{ a: [1, 2] }, { a: [1, 2] }, []],
    [{ a: [1, 2] }, { a: [1, 3, 4] }, ["/a/1", "/a/2"]],
    [{ "a/b": { "~": 1 } }, { "a/b": {} }, ["/a~1b/~0"]],
    [[], {}, [""]],
    [undefined, null, [""]],
    [JSON.parse('{"__proto__":1}') as Json, {}, ["/__proto__"]],
  ];
  for (const [before, after, pointers] of rows)
    assert.deepEqual(
      differences(before, after).map(({ pointer }) => pointer),
      pointers,
    );
});

type Path = readonly (string | number)[];

function leaves(value: Json, path: Path = []): readonly Path[] {
  if (typeof value !== "object" || value === null) return [path];
  return Object.entries(value).flatMap(([key, member]) => leaves(member, [...path, key]));
}

function change(value: Json, path: Path): void {
  const [head, ...rest] = path;
  const object = value as { [key: string]: Json };
  if (rest.length > 0) change(object[head!]!, rest);
  else {
    const leaf = object[head!];
    object[head!] = typeof leaf === "string" ? `${leaf}!` : "other";
  }
}
