/** The system prompt of a stage: its body with a value in place of every placeholder. Rendered once in a visit. */
import { cached } from "../flow/cached.ts";
import type { Prompt, Step } from "../flow/flow.ts";
import type { Json, JsonObject, Path } from "../flow/json.ts";
import { CORE_FIELDS, fieldPathText, parseStageBody, type Placeholder } from "../flow/text/placeholder.ts";
import type { Composed } from "../flow/scene.ts";

/** A null that is there renders as nothing; a value that is not there is an error, never a blank. */
export function renderStage(step: Pick<Step, "id" | "name" | "prompt">, ctx: JsonObject): Composed {
  let text = "";
  for (const part of partsOf(step.prompt)) {
    if (part.kind === "text") {
      text += part.text;
      continue;
    }
    const value = stageValue(step, part, ctx);
    if (value === null) return { kind: "unaskable", code: "StageCtxUnresolved", why: why(step, part) };
    text += value;
  }
  return { kind: "text", text };
}

/** The value of a placeholder in a context, as the prompt would show it; null: there is none. */
export function stageValue(
  step: Pick<Step, "id" | "name">,
  { root, path }: Placeholder,
  ctx: JsonObject,
): string | null {
  const value = root === "ctx" ? lookUp(ctx, path) : ownField(step, path);
  return value === undefined ? null : toText(value);
}

const partsOf = cached(({ text }: Prompt) => parseStageBody(text));

/** Own members only, and of a list its elements only. */
function lookUp(ctx: JsonObject, path: Path): Json | undefined {
  let here: Json | undefined = ctx;
  for (const segment of path) {
    if (typeof here !== "object" || here === null || !Object.hasOwn(here, segment)) return undefined;
    if (Array.isArray(here) && !/^\d+$/.test(segment)) return undefined;
    here = (here as JsonObject)[segment];
  }
  return here;
}

function ownField({ id, name }: Pick<Step, "id" | "name">, [field, ...rest]: Path): Json | undefined {
  if (rest.length > 0) return undefined;
  return field === "id" ? id : field === "name" ? name : undefined;
}

function toText(value: Json): string {
  if (value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function why({ id }: Pick<Step, "id">, { root, path, written }: Placeholder): string {
  return `The stage "${id}" reads ${written}, but there is no such value: ${supplierWords(root, path)}.`;
}

/** Who would have to supply it. */
function supplierWords(root: Placeholder["root"], path: Path): string {
  const [field = "", index, ...rest] = path;
  if (root === "stage") return "of the stage itself only stage.id and stage.name can be read";
  if (field === "upstream") {
    const what = rest.length === 0 ? "its result" : `${fieldPathText(rest)} in its result`;
    return `the stage that led here supplies it, number ${index ?? "0"} of those that did, with ${what}`;
  }
  if ((CORE_FIELDS as readonly string[]).includes(field)) return "the runtime supplies it";
  return `it is given with --input ${field}=…, or written by setup in hooks.mjs`;
}
