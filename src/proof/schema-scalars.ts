/** Texts and numbers that fit demands of a JSON Schema: likely and small ones first. */
import { own, type JsonObject } from "../flow/json.ts";
import { FORMATS } from "./formats.ts";
import { textsFor } from "./pattern-text.ts";
import { demandedLimit } from "./schema-demands.ts";

export function* textsWithin(
  { name }: { readonly name?: string },
  demands: readonly JsonObject[],
): Generator<string> {
  const least = demandedLimit(demands, "minLength", Math.max, 0);
  const most = demandedLimit(demands, "maxLength", Math.min, Infinity);
  for (const { format } of demands)
    if (typeof format === "string") yield* (own(FORMATS, format) ?? []).filter((text) => text.length <= most);
  for (const { pattern } of demands) if (typeof pattern === "string") yield* textsFor(pattern, least, most);
  const words = [
    name ?? "text",
    "text",
    "other",
    ...Array.from({ length: 40 }, (_, at) => `text ${at + 1}`),
    "",
  ];
  // A length counts characters, of which some take two places.
  for (const word of words) {
    const text = word.length < least ? word.padEnd(Math.min(least, LONGEST_TEXT), word || "a") : word;
    yield text.length > most ? text.slice(0, most) : text;
  }
  yield "\u{1f600}".repeat(Math.min(least, LONGEST_TEXT));
}

const LONGEST_TEXT = 1_000_000;

export function* numbersWithin(demands: readonly JsonObject[], isInteger: boolean): Generator<number> {
  const steps = demands.flatMap(({ multipleOf }) => (typeof multipleOf === "number" ? [multipleOf] : []));
  const step = isInteger && !steps.every(Number.isInteger) ? 1 : (steps[0] ?? (isInteger ? 1 : 0));
  const least = Math.max(
    demandedLimit(demands, "minimum", Math.max, -Infinity),
    demandedLimit(demands, "exclusiveMinimum", Math.max, -Infinity),
  );
  const most = Math.min(
    demandedLimit(demands, "maximum", Math.min, Infinity),
    demandedLimit(demands, "exclusiveMaximum", Math.min, Infinity),
  );
  const candidates = [0, 1, least, most, least + 1, most - 1, (least + most) / 2, least + 1e-6, most - 1e-6];
  for (const near of candidates.filter(Number.isFinite)) {
    if (step === 0) yield near;
    else for (const times of [0, 1, -1, 2]) yield (Math.round(near / step) + times) * step;
  }
  const product = steps.reduce((all, one) => all * one, 1);
  yield product;
  for (let at = 2; at < 12; at++) yield at;
  if (!isInteger) yield 0.5;
}
