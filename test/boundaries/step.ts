/** A step that is all defaults, but for what a test is about. */
import type { Step } from "../../src/flow/flow.ts";
import type { PermissionMode } from "../../src/flow/settings.ts";

export function stepWith(options: {
  readonly allow?: readonly string[];
  readonly mode?: PermissionMode;
  readonly kind?: Step["kind"];
  readonly completion?: string;
  readonly by?: Step["by"];
}): Step {
  const { allow = ["*"], mode = "acceptEdits", kind = "work", completion, by = { kind: "model" } } = options;
  return {
    id: `${kind}.issue`,
    name: "A step",
    kind,
    by,
    prompt: { file: null, text: "", tried: [], variables: [] },
    transcript: "shared",
    model: "opus",
    tools: { allow, mode },
    answer:
      completion === undefined
        ? { kind: "text" }
        : {
            kind: "object",
            schema: { kind: "any" },
            channel: { kind: "tool", name: completion },
            repairs: 1,
            miss: { kind: "label", label: "miss" },
          },
    decide: { by: "const", label: "done" },
    carry: [],
    needs: [],
    edges: {},
    turns: 10,
  };
}
