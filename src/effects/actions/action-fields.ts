/** What the built-in handlers take from a block: the members they know, each held against its kind. Others are left alone. */
import { own, type Json } from "../../flow/json.ts";
import type { Action } from "../../flow/action-blocks.ts";

type Kind =
  | { readonly is: "text"; readonly most: number }
  | { readonly is: "texts"; readonly most: number }
  | { readonly is: "count" }
  | { readonly is: "word"; readonly of: readonly string[] };

type Fields = { readonly [name: string]: Kind };
type Value<K extends Kind> = K extends { is: "count" }
  ? number
  : K extends { is: "texts" }
    ? readonly string[]
    : K extends { is: "word"; of: readonly (infer Word)[] }
      ? Word
      : string;

export type ReadActionFields<F extends Fields> =
  | { readonly ok: true; readonly fields: { readonly [name in keyof F]?: Value<F[name]> } }
  | { readonly ok: false; readonly why: string };

/** Characters that a name, a date or a word may have; a title; and a text, with room for what is put below it. */
const SHORT = 100;
const TITLE = 256;
const TEXT = 60_000;

export const ISSUE_ACTION = {
  action: { is: "word", of: ["progress", "close", "question", "blocked"] },
  issue: { is: "count" },
  body: { is: "text", most: TEXT },
  label: { is: "text", most: SHORT },
} as const satisfies Fields;

export const GITHUB_ISSUE = {
  title: { is: "text", most: TITLE },
  labels: { is: "texts", most: SHORT },
  assignee: { is: "text", most: SHORT },
  rationale: { is: "text", most: TEXT },
  dueDate: { is: "text", most: SHORT },
  priority: { is: "text", most: SHORT },
} as const satisfies Fields;

export const GITHUB_COMMENT = { issueNumber: { is: "count" } } as const satisfies Fields;

export const FILE = {
  filename: { is: "text", most: 1000 },
  mode: { is: "word", of: ["append", "write"] },
} as const satisfies Fields;

/** A member that is null is as good as absent. */
export function readActionFields<F extends Fields>(
  fields: F,
  { type, metadata }: Action,
): ReadActionFields<F> {
  const read: { [name: string]: Json } = {};
  for (const [name, kind] of Object.entries(fields)) {
    const value = own(metadata, name) ?? null;
    if (value === null) continue;
    const fitted = fit(kind, value);
    if (fitted === null)
      return { ok: false, why: `"${name}" of the block of the type "${type}" must be ${wanted(kind)}` };
    read[name] = fitted;
  }
  return { ok: true, fields: read as { readonly [name in keyof F]?: Value<F[name]> } };
}

function fit(kind: Kind, value: Json): Json | null {
  switch (kind.is) {
    case "text":
      return isText(value, kind.most) ? value : null;
    case "texts": {
      if (!Array.isArray(value) || value.length > MOST_TEXTS) return null;
      return value.every((one: Json) => isText(one, kind.most)) ? value : null;
    }
    case "count":
      return toCount(value);
    case "word":
      return typeof value === "string" && kind.of.includes(value) ? value : null;
  }
}

const MOST_TEXTS = 20;

function isText(value: Json, most: number): value is string {
  return typeof value === "string" && value.trim() !== "" && value.length <= most;
}

/** A number above 0, also where it is written as models like to: "12", "#12". */
export function toCount(value: Json | undefined): number | null {
  const number =
    typeof value === "string" && /^#?\d{1,9}$/.test(value) ? Number(value.replace("#", "")) : value;
  return typeof number === "number" && Number.isSafeInteger(number) && number > 0 ? number : null;
}

function wanted(kind: Kind): string {
  switch (kind.is) {
    case "text":
      return `a text of at most ${kind.most} characters that is not empty`;
    case "texts":
      return `a list of at most ${MOST_TEXTS} texts of at most ${kind.most} characters each`;
    case "count":
      return "a whole number above 0";
    case "word":
      return `one of ${kind.of.join(", ")}`;
  }
}
