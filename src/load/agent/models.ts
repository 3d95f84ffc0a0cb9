/** Names of models as files write them: which of them mean something, only the user's settings can say. */
import type { StepId } from "../../flow/flow.ts";
import type { Problem } from "../../flow/problem.ts";
import { isWritten, type Document } from "../text/document.ts";
import { toProblem, type Finding } from "../rules/finding.ts";

/** `doubt`: the finding when the name is most likely another one, misspelled. */
export type ModelToTry = { readonly name: string; readonly doubt: (meant: string) => Problem };

type Written = {
  readonly name: string | undefined;
  readonly at: { readonly document: Document; readonly pointer: string; readonly steps?: readonly StepId[] };
};

export function modelsToTry(
  written: readonly Written[],
  live: ReadonlySet<StepId> | null,
): readonly ModelToTry[] {
  return written.flatMap(({ name, at }) => {
    if (name === undefined) return [];
    const doubt = (meant: string) => {
      const finding: Finding = {
        code: "MODEL-UNKNOWN",
        ...at,
        message: `There is no model "${name}". Did you mean "${meant}"?`,
        fix: `Write "${meant}", or give "${name}" a meaning in the models of your config.json.`,
      };
      return toProblem(finding, live);
    };
    return [{ name, doubt }];
  });
}

/** The model of every step that names none, where agent.json says one. */
export function defaultModel(name: string | undefined, document: Document): Written {
  const pointer = "/runner/flow/defaultModel";
  const isThere = isWritten(document, ["runner", "flow", "defaultModel"]);
  return { name: isThere ? name : undefined, at: { document, pointer } };
}
