/** The prompt of a stage: `{{ctx.…}}`, `{{stage.…}}` and `${ctx.…}`, filled in one pass. */
import type { Step } from "../flow/flow.ts";
import { readPath, type Json, type JsonObject } from "../flow/json.ts";
import type { Composed } from "../flow/scene.ts";

export function renderStage(
  { id, name, prompt }: Pick<Step, "id" | "name" | "prompt">,
  ctx: JsonObject,
): Composed {
  const scope: JsonObject = { ctx, stage: { id, name } };
  let missing: string | null = null;
  const text = prompt.text.replaceAll(
    /\\(\{\{|\$\{)|\{\{\s*((?:ctx|stage)[\w.[\]]*)\s*\}\}|\$\{(ctx[\w.[\]]*)\}/g,
    (written, escaped?: string, a?: string, b?: string) => {
      if (escaped !== undefined) return escaped;
      const value = readPath(
        scope,
        (a ?? b ?? "").split(/[.[\]]+/).filter((part) => part !== ""),
      );
      if (value === undefined) missing ??= written;
      return toText(value);
    },
  );
  if (missing === null) return { kind: "text", text };
  const why = `The prompt of stage "${id}" reads ${String(missing)}, and there is no such value.`;
  return { kind: "unaskable", code: "StageCtxUnresolved", why };
}

function toText(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
