/** Names of models as files write them: which of them mean something, only the user's settings can say. */
import type { Path } from "../../flow/json.ts";
import type { Problem } from "../../flow/problem.ts";
import type { LoadResult } from "../index.ts";
import { written, type LoadedFlow } from "../rules/loaded.ts";

/** `doubt`: the finding when the name is most likely another one, misspelled. */
export type ModelToTry = { readonly name: string; readonly doubt: (meant: string) => Problem };

export function modelsToTry(loaded: LoadedFlow, problemAt: LoadResult["problemAt"]): readonly ModelToTry[] {
  const ofSteps = [...loaded.entries.keys()].map((id) => ["steps", id, "model"]);
  return [DEFAULT_MODEL, ...ofSteps].flatMap((part) => {
    const name = written(loaded, ...part);
    if (typeof name !== "string" || name === "") return [];
    const doubt = (meant: string) =>
      problemAt(part, {
        code: "MODEL-UNKNOWN",
        message: `Unknown model "${name}". Did you mean "${meant}"?`,
        fix: `Write "${meant}", or define "${name}" under models in your config.json.`,
      });
    return [{ name, doubt }];
  });
}

const DEFAULT_MODEL: Path = ["settings", "runner", "flow", "defaultModel"];
