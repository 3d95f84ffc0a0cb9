import assert from "node:assert/strict";
import { test } from "node:test";
import prices from "../../../src/backends/ai-sdk/prices.json" with { type: "json" };
import {
  costOf,
  isFree,
  priceOf,
  PRICES_OF,
  UNPRICED,
  type Price,
} from "../../../src/backends/ai-sdk/prices.ts";
import { isProvider } from "../../../src/backends/ai-sdk/providers.ts";
import { excerpt, listedModels, type Source } from "../../../scripts/prices.ts";
import source from "../../fixtures/prices-source.json" with { type: "json" };

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
  assert.equal(costOf({ input: 1, output: 1, upTo: 200_000 }, tokens), null);
  assert.equal(costOf({ input: 0, output: 0 }, tokens), 0);
  assert.equal(priceOf("ollama", "llama"), null);
  assert.equal(priceOf("openai", "toString"), null);
});

const TIERED: Price = {
  input: 1,
  output: 10,
  cacheRead: 0.1,
  tiers: [
    { above: 200_000, input: 2, output: 20, cacheRead: 0.2, cacheWrite: 3 },
    { above: 500_000, input: 4, output: 40 },
  ],
};
const MILLION = 1_000_000;
const requests: readonly [
  name: string,
  price: Price,
  input: number,
  read: number,
  write: number,
  usd: number,
][] = [
  ["plain", { input: 4, output: 20 }, 100, 0, 0, 400 + 200],
  [
    "cached input without a price of its own costs what other input does",
    { input: 4, output: 20 },
    100,
    60,
    20,
    600,
  ],
  ["read from the cache", { input: 4, output: 20, cacheRead: 0.2 }, 100, 60, 0, 160 + 12 + 200],
  ["written to the cache", { input: 4, output: 20, cacheWrite: 5 }, 100, 0, 60, 160 + 300 + 200],
  ["up to a tier", TIERED, 200_000, 100_000, 0, 100_000 + 10_000 + 100],
  ["above a tier, all of the request", TIERED, 200_001, 100_000, 1, 200_000 + 20_000 + 3 + 200],
  ["above two tiers", TIERED, 500_001, 1, 0, 2_000_000 + 4 + 400],
];
for (const [name, price, input, cacheRead, cacheWrite, usd] of requests) {
  test(`what a request costs: ${name}`, () => {
    const cost = costOf(price, { input, output: 10, cacheRead, cacheWrite });
    assert.equal(Math.round(cost! * MILLION), usd);
  });
}

test("only a price of nothing is free", () => {
  const rows: readonly [Price, boolean][] = [
    [{ input: 0, output: 0 }, true],
    [{ input: 0, output: 1 }, false],
    [{ input: 0, output: 0, cacheRead: 1 }, false],
    [{ input: 0, output: 0, cacheWrite: 1 }, false],
    [{ input: 0, output: 0, tiers: [{ above: 1, input: 1, output: 1 }] }, false],
  ];
  for (const [price, free] of rows) assert.equal(isFree(price), free, JSON.stringify(price));
});

test("the figures are made from the data sets by the script, and by nothing else", () => {
  assert.deepEqual(prices, JSON.parse(JSON.stringify(excerpt(source as Source))));
});

test("what the script makes of a data set", () => {
  const figures = { input: 2, output: 10, cacheRead: 0.2, cacheWrite: 0 };
  const made = excerpt({
    sources: [
      { package: "a", version: "1.0.0", date: "2026-01-02" },
      { package: "b", version: "2.0.0", date: "2026-03-01" },
    ],
    models: {
      "openai/m": {
        ...figures,
        maxOutput: 5,
        tiers: [{ above: 9, ...figures, cacheRead: 0, cacheWrite: 3 }],
      },
      "openai/n": figures,
      "openai/n-2025-01-02": figures,
      "openai/n-2026-01-02": { ...figures, input: 3 },
    },
    listed: ["openai/m", "openai/n-2027-01-02", "openai/o"],
  });
  assert.equal(made.date, "2026-03-01");
  assert.deepEqual(made.unpriced, ["openai/o"]);
  const [plain, dated] = [
    { input: 2, output: 10, cacheRead: 0.2 },
    { input: 3, output: 10, cacheRead: 0.2 },
  ];
  assert.deepEqual(made.models, {
    "openai/m": { ...plain, tiers: [{ above: 9, input: 2, output: 10, cacheWrite: 3 }], maxOutput: 5 },
    "openai/n": plain,
    "openai/n-2026-01-02": dated,
  });
});

test("every model that the provider packages list has a price, or is named as one without", () => {
  const root = new URL("../../..", import.meta.url).pathname;
  const listed = listedModels(root);
  assert.ok(listed.length > 80, String(listed.length));
  const without = listed.filter((ref) => {
    const [provider = "", model = ""] = ref.split("/");
    return priceOf(provider, model) === null;
  });
  assert.deepEqual(without, UNPRICED);
});

test("the models that the three words stand for are priced, with what cached input costs", () => {
  const cached = (provider: string, model: string) => priceOf(provider, model)?.cacheRead;
  assert.equal(cached("anthropic", "claude-opus-5-5"), 0.2);
  assert.equal(cached("anthropic", "claude-sonnet-5-5"), 0.1);
  for (const model of [
    "gemini-pro-latest",
    "gemini-flash-latest",
    "gemini-flash-lite-latest",
    "gemini-2.5-pro",
  ])
    assert.ok((cached("google", model) ?? 0) > 0, model);
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
