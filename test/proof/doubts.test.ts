/** What a search proves when it finds no way, and what it only has not found. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { prepare } from "../../src/engine/schema/prepared.ts";
import type { Flow } from "../../src/flow/flow.ts";
import type { Json, JsonSchema } from "../../src/flow/json.ts";
import { doubtAbout } from "../../src/proof/doubts.ts";
import { actionSchema, sketchFlow, type StepSketch } from "../../src/testing/flows.ts";
import { generate } from "../../src/testing/generate.ts";

const FLOW = sketchFlow({ work: { edges: { next: null } } });
const WHOLE = { isWhole: true, states: 7 };

test("each thing that a search does not try out is a doubt of its own", () => {
  const withStep = (limits: StepSketch["limits"] & object) =>
    sketchFlow({ work: { edges: { next: null }, limits } });
  const rows: readonly (readonly [
    Partial<Flow>,
    kind: "answers" | "limits",
    isWhole: boolean,
    RegExp | null,
  ])[] = [
    [{}, "answers", true, null],
    [{}, "limits", true, /along circles/],
    [{}, "answers", false, /stopped after 7 states/],
    [{ hooks: {} as unknown as NonNullable<Flow["hooks"]> }, "answers", true, /hooks/],
    [{ stop: { kind: "keyword", text: "DONE" } }, "answers", true, null],
    [{ stop: { kind: "visits", count: 3 } }, "answers", true, /counts visits/],
    [
      {
        stop: {
          kind: "any",
          of: [
            { kind: "keyword", text: "DONE" },
            { kind: "checks", count: 2 },
          ],
        },
      },
      "answers",
      true,
      /counts visits/,
    ],
    [{ limits: { visits: 9, wallMs: 5 } }, "answers", true, null],
    [{ limits: { visits: 9, turns: 5 } }, "answers", true, /turns, tokens/],
    [{ limits: { visits: 9, tokens: 5 } }, "answers", true, /turns, tokens/],
    [{ limits: { visits: 9, costUsd: 5 } }, "answers", true, /turns, tokens/],
    [{ steps: withStep({ tokens: 5 }).steps }, "answers", true, /turns, tokens/],
    [{ steps: withStep({ perAttempt: { turns: 5 } }).steps }, "answers", true, /turns, tokens/],
    [{ settings: { ...FLOW.settings, watch: { repeats: 3 } } }, "answers", true, /repeats/],
  ];
  for (const [change, kind, isWhole, doubt] of rows) {
    const found = doubtAbout({ ...FLOW, ...change }, { kind }, { ...WHOLE, isWhole });
    const about = JSON.stringify([change, kind, isWhole, found]);
    if (doubt === null) assert.equal(found, null, about);
    else assert.match(found ?? "", doubt, about);
  }
});

test("an answer that the schema allows and that is not found proves nothing; one that it refuses does", async () => {
  const labels = ["next", "else"];
  const wanting = (properties: { readonly [name: string]: Json }): JsonSchema => {
    const plain = actionSchema(labels) as { readonly properties: JsonSchema };
    return {
      ...plain,
      required: ["next_action", ...Object.keys(properties)],
      properties: { ...plain.properties, ...properties },
    };
  };
  const rows: readonly (readonly [JsonSchema, isFound: boolean, RegExp | null])[] = [
    [wanting({}), true, null],
    // 51 fits, and is not among the numbers that are tried.
    [wanting({ count: { type: "integer", minimum: 1, not: { maximum: 50 } } }), false, /"work" may exist/],
    [wanting({ inner: { type: "object", required: ["a"], properties: { a: false } } }), false, null],
    [wanting({ count: false }), false, null],
  ];
  for (const [schema, isFound, doubt] of rows) {
    const flow = await prepare(
      sketchFlow({ work: { edges: { next: "late", else: null }, schema }, late: { edges: { next: null } } }),
    );
    const { missing, tests } = await generate(flow, new Map());
    const about = JSON.stringify(schema);
    assert.equal(
      tests.some(({ covers }) => covers.includes("late")),
      isFound,
      about,
    );
    const late = missing.find(({ element }) => element.id === "late");
    assert.equal(late === undefined, isFound, about);
    if (late === undefined) continue;
    if (doubt === null) assert.equal(late.doubt, null, about);
    else assert.match(late.doubt ?? "", doubt, about);
  }
});

test("a prompt that lacks a value on one way is reported with that way, and the rest is shown on the other", async () => {
  const schema = (name: string): JsonSchema => {
    const plain = actionSchema(["next", "skip"]) as { readonly properties: JsonSchema };
    return { ...plain, properties: { ...plain.properties, [name]: { type: "string" } } };
  };
  const flow = sketchFlow({
    begin: { edges: { next: "close", skip: "begin" }, schema: schema("note"), handoff: ["note"] },
    close: { edges: { closing: null }, prompt: "So far: {uv-note}" },
  });
  const needs = [{ variable: "note", from: { step: "begin", key: "note" }, required: true }];
  const made = await generate(
    await prepare({
      ...flow,
      steps: { ...flow.steps, close: { ...flow.steps.close!, needs } },
    }),
    new Map(),
  );
  assert.deepEqual(made.missing, []);
  assert.deepEqual(
    made.astray.map(({ test: { name, script }, why }) => [
      name,
      script.map(({ step, label }) => `${step} ${label}`),
      /reads \{uv-note\}/.test(why),
    ]),
    [["close cannot be asked", ["begin next"], true]],
  );
});
