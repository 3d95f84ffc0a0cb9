import assert from "node:assert/strict";
import { test } from "node:test";
import { total, withDiscount } from "./cart.js";

test("a total counts how many of each item there are", () => {
  assert.equal(
    total([
      { price: 5, quantity: 2 },
      { price: 1, quantity: 3 },
    ]),
    13,
  );
});

test("a discount is a share of the sum", () => {
  assert.equal(withDiscount(200, 10), 180);
});
