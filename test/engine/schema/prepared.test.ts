/** A flow is prepared by whatever runs it: what its schemas need is not for the caller to know. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonSchema } from "../../../src/flow/json.ts";
import { actionSchema, sketchFlow } from "../../../src/testing/flows.ts";
import { play } from "../../../src/testing/scenario.ts";

const ACTION = actionSchema(["closing"]) as { readonly properties: JsonSchema };
const DRAFT = "https://json-schema.org/draft/2020-12/schema";

const schemas: readonly [name: string, schema: JsonSchema, bad: unknown, good: unknown][] = [
  ["2020-12", { $schema: DRAFT, prefixItems: [{ type: "number" }] }, ["x"], [1]],
  ["a format", { type: "string", format: "date" }, "tomorrow", "2026-11-16"],
];

for (const [name, { $schema, ...day }, bad, good] of schemas) {
  test(`the testing kit plays a flow with ${name}`, async () => {
    const properties = { ...ACTION.properties, day };
    const schema = { ...ACTION, properties, required: ["day"], ...($schema !== undefined && { $schema }) };
    const flow = sketchFlow({ "closure.a": { edges: { closing: null }, schema } });
    const answer = (day: unknown) => ({ output: { day, next_action: { action: "closing" } } });
    const { state, asked } = await play({ flow, model: [answer(bad), answer(good)] as never });
    assert.equal(state.verdict?.outcome, "completed");
    assert.equal(asked.length, 2);
  });
}
