import assert from "node:assert/strict";
import { test } from "node:test";
import prices from "../../src/backends/prices.json" with { type: "json" };
import { costOf, priceOf, PRICES_OF } from "../../src/backends/prices.ts";
import { isProvider } from "../../src/backends/providers.ts";

const tokens = { input: 1_000_000, output: 100_000, cacheRead: 0, cacheWrite: 0 };

test("a response costs what its tokens cost, cached ones less", () => {
  const price = { input: 4, output: 20, cacheRead: 0.4, cacheWrite: 5 };
  assert.equal(costOf(price, tokens), 6);
  assert.equal(
    costOf(price, { ...tokens, cacheRead: 500_000, cacheWrite: 100_000 }),
    0.4 * 4 + 0.2 + 0.5 + 2,
  );
});

test("what is not known is not made up", () => {
  assert.equal(costOf(null, tokens), null);
  assert.equal(costOf({ input: 1, output: 1 }, { ...tokens, cacheRead: 1 }), null);
  assert.equal(costOf({ input: 1, output: 1, upTo: 200_000 }, tokens), null);
  assert.equal(costOf({ input: 0, output: 0 }, tokens), 0);
  assert.equal(priceOf("ollama", "llama"), null);
  assert.equal(priceOf("openai", "toString"), null);
});

test("a dated name costs what its family does, and both protocols of a provider cost the same", () => {
  assert.deepEqual(priceOf("openai", "gpt-5-2025-08-07"), priceOf("openai-chat", "gpt-5"));
  assert.deepEqual(
    priceOf("anthropic", "claude-haiku-4-5-20251001"),
    priceOf("anthropic", "claude-haiku-4-5"),
  );
  assert.equal(priceOf("openai", "gpt-5-nano-pro"), null);
});

test("every price is of a known provider and makes sense", () => {
  assert.match(PRICES_OF, /^\d{4}-\d{2}-\d{2}$/);
  for (const [ref, price] of Object.entries<{ input: number; output: number; cacheRead?: number }>(
    prices.models,
  )) {
    assert.ok(isProvider(ref.split("/")[0]!), ref);
    assert.ok(price.input > 0 && price.output > price.input, ref);
    assert.ok((price.cacheRead ?? 0) < price.input, ref);
  }
});
