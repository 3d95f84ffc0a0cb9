/** What a test expected and what came, in words that every report of tests uses. */
import type { Json } from "../flow/json.ts";
import { jsonLine } from "../flow/text/harmless.ts";
import type { ListDifference, Unmet } from "./expect.ts";

/** `path`, or `handoff.plan` below a key. */
export function unmetPlace({ key, at }: Unmet): string {
  return at === "" ? key : `${key}.${at}`;
}

/** `expected`, `got` and, of a list, `after`: the first difference is enough. */
export function unmetRows({
  expected,
  got,
  first,
}: Unmet): readonly (readonly [name: string, text: string])[] {
  if (first === undefined)
    return [
      ["expected", valueText(expected)],
      ["got", valueText(got)],
    ];
  const rows = [
    ["expected", itemText(first.expected)],
    ["got", first.anywhere ? nowhereText(first, got) : itemText(first.got)],
  ] as const;
  return first.after === undefined || first.anywhere
    ? rows
    : [...rows, ["after", `${valueText(first.after)} (item ${first.at})`]];
}

function itemText(item: Json | undefined): string {
  return item === undefined ? "the end of the list" : valueText(item);
}

function nowhereText({ at, after }: ListDifference, got: Json | undefined): string {
  const items: readonly Json[] = Array.isArray(got) ? got : [];
  const left = items.slice(at);
  const place = after === undefined ? "" : ` after ${valueText(after)}`;
  if (left.length === 0) return `nothing${place}`;
  const shown = left.slice(0, SHOWN).map(valueText).join(", ");
  return `not one of the ${left.length}${place}: ${shown}${left.length > SHOWN ? ", …" : ""}`;
}

/** More would hide what matters. */
const SHOWN = 3;

/** A value in one line. */
function valueText(value: unknown): string {
  return value === undefined ? "nothing" : typeof value === "string" ? value : jsonLine(value);
}

/** All of it, without colours. */
export function unmetLines(file: string, unmet: Unmet): readonly string[] {
  return [
    `${unmetPlace(unmet)} (${unmet.file ?? file}:${unmet.line})`,
    ...unmetRows(unmet).map(([name, text]) => `  ${name}: ${text}`),
    ...(unmet.diff ?? []).map((line) => `  ${line}`),
  ];
}
