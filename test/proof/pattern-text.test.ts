/** Texts for regular expressions: each is matched, and within its length. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { textsFor } from "../../src/proof/pattern-text.ts";

const rows: readonly (readonly [pattern: string, least: number, most: number])[] = [
  ["^abc$", 0, Infinity],
  ["^[a-z]{3,5}$", 4, 4],
  ["^(?:yes|no)$", 3, Infinity],
  ["^\\d{4}-\\d{2}$", 0, Infinity],
  ["^[^x]+$", 2, 8],
  ["b+", 5, 9],
  ["^[A-Z]+-[0-9]+$", 0, 6],
  ["^v\\d+\\.\\d+(?:-[a-z]+)?$", 0, Infinity],
  ["^(a|b)*c$", 0, 1],
  ["^\\w+@\\w+\\.com$", 0, Infinity],
];
for (const [pattern, least, most] of rows)
  test(`${pattern} from ${least} to ${most}`, () => {
    const found = [...textsFor(pattern, least, most)].slice(0, 50);
    const fits = found.filter(
      (text) => new RegExp(pattern, "u").test(text) && text.length >= least && text.length <= most,
    );
    assert.ok(fits.length > 0, JSON.stringify(found));
  });
