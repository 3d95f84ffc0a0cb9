/** How an expectation of a test is written: a comparison of numbers, and one decision of a path. */

export type NumberBound = { readonly sign: "<=" | ">=" | "<" | ">"; readonly bound: number };

/** `<= 8`; null: it compares nothing. */
export function readComparison(text: string): NumberBound | null {
  const [, sign, bound] = /^(<=|>=|<|>) *(-?\d+(?:\.\d+)?)$/.exec(text) ?? [];
  return sign === undefined ? null : { sign: sign as NumberBound["sign"], bound: Number(bound) };
}

export function isWithin(value: number, { sign, bound }: NumberBound): boolean {
  if (sign === "<=") return value <= bound;
  if (sign === ">=") return value >= bound;
  return sign === "<" ? value < bound : value > bound;
}

/** What is absent is not looked at, but for the pattern: without one, no check overturned the label. */
export type WrittenLeg = {
  readonly step: string;
  readonly label?: string;
  readonly pattern?: string;
  readonly to?: string;
};

/** `STEP LABEL [x PATTERN] [-> TARGET]`; null: it is not written so. */
export function readLeg(text: string): WrittenLeg | null {
  return (LEG.exec(text)?.groups as WrittenLeg | undefined) ?? null;
}

const LEG = /^(?<step>\S+)(?: (?!x |-> )(?<label>\S+))?(?: x (?<pattern>\S+))?(?: -> (?<to>.+))?$/;
