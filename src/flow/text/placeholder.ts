/**
 * The placeholders of stage files: `{{ ctx.a.b[0] }}`, `${ctx.a}` and `{{ stage.id }}`. There is nothing else to learn: no
 * conditions, no loops, no expressions. What looks like one and is none stays text.
 */
import type { Path } from "../json.ts";

export type BodyPart = { readonly kind: "text"; readonly text: string } | Placeholder;

export type Placeholder = {
  readonly kind: "value";
  readonly root: "ctx" | "stage";
  /** What follows the root; an array index is a segment too. Never empty. */
  readonly path: Path;
  /** As it stands in the text, braces included. */
  readonly written: string;
  /** Where it begins in the text. */
  readonly at: number;
};

/** Something in braces that names another root, or a root alone: text, and most often a mistake. */
export type Stranger = {
  readonly kind: "stranger";
  readonly name: string;
  readonly written: string;
  readonly at: number;
};

/** Fields of `ctx` that come from the runtime. */
export const CORE_FIELDS = ["upstream", "workflowRunId", "stageExecutionId"] as const;
/** Fields of `ctx` that belong to the runtime and are there for code, never for a prompt. */
export const HIDDEN_FIELDS = ["attempts", "host"] as const;
/** Names in `ctx` that nobody but the runtime may write. */
export const RESERVED_FIELDS: ReadonlySet<string> = new Set([...CORE_FIELDS, ...HIDDEN_FIELDS]);
/** What a placeholder may read of its own stage. */
export const STAGE_FIELDS = ["id", "name"] as const;

/**
 * The text in parts, in one pass: joined again with values in place of placeholders they are what the model reads. A
 * backslash before `{{` or `${` makes the braces plain text, and is not part of it.
 *
 *     parseStageBody("Do {{ctx.task}}")  // → text "Do ", value ctx ["task"]
 */
export function parseStageBody(text: string): readonly BodyPart[] {
  const parts: BodyPart[] = [];
  let plain = "";
  let from = 0;
  for (const match of text.matchAll(patterns().token)) {
    const token = readToken(match);
    if (token.kind === "stranger") continue;
    plain += text.slice(from, match.index);
    from = match.index + match[0].length;
    if (token.kind === "escape") plain += token.braces;
    else {
      if (plain !== "") parts.push({ kind: "text", text: plain });
      plain = "";
      parts.push(token);
    }
  }
  plain += text.slice(from);
  return plain === "" ? parts : [...parts, { kind: "text", text: plain }];
}

export function placeholdersIn(text: string): readonly Placeholder[] {
  return parseStageBody(text).filter((part) => part.kind === "value");
}

export function strangersIn(text: string): readonly Stranger[] {
  return [...text.matchAll(patterns().token)].map(readToken).filter((token) => token.kind === "stranger");
}

/** `parsed.items[0].name` → its segments; null when it is not a path. */
export function parseFieldPath(text: string): Path | null {
  const { path, segment } = patterns();
  return path.test(text) ? text.match(segment)! : null;
}

/** The way back: `["upstream", "0", "parsed"]` → `upstream[0].parsed`. */
export function fieldPathText(path: Path): string {
  return path
    .map((segment, place) =>
      place > 0 && /^\d+$/.test(segment) ? `[${segment}]` : place > 0 ? `.${segment}` : segment,
    )
    .join("");
}

/** Whether a placeholder can read a field of this name. */
export function isFieldName(name: string): boolean {
  return patterns().field.test(name);
}

const NAME = String.raw`[\p{L}\p{N}_-]+`;
const PATH = String.raw`${NAME}(?:\.${NAME}|\[\d{1,9}\])*`;
const TOKEN = String.raw`\\(?<escaped>\{\{|\$\{)|\{\{[ \t]*(?<double>${PATH})[ \t]*\}\}|\$\{[ \t]*(?<single>${PATH})[ \t]*\}`;

/** Made when they are first used: patterns with classes of Unicode take long, and few commands use these. */
function patterns() {
  return (made ??= {
    segment: new RegExp(NAME, "gu"),
    path: new RegExp(`^${PATH}$`, "u"),
    field: new RegExp(`^${NAME}$`, "u"),
    token: new RegExp(TOKEN, "gu"),
  });
}

let made: { readonly [name in "segment" | "path" | "field" | "token"]: RegExp } | null = null;

type Token = { readonly kind: "escape"; readonly braces: string } | Placeholder | Stranger;

function readToken(match: RegExpExecArray): Token {
  const { escaped, double, single } = match.groups!;
  if (escaped !== undefined) return { kind: "escape", braces: escaped };
  const name = double ?? single!;
  const [root, ...path] = name.match(patterns().segment)!;
  const at = { written: match[0], at: match.index };
  if ((root === "ctx" || root === "stage") && path.length > 0) return { kind: "value", root, path, ...at };
  return { kind: "stranger", name, ...at };
}
