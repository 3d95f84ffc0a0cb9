/** Where the parts of a flow are written in agent.json, machine.yaml and the files of its stages. */
import type { StepId } from "../../flow/flow.ts";
import { own, type Path } from "../../flow/json.ts";
import type { Document } from "../text/document.ts";
import type { Where } from "../text/origin.ts";
import type { StageFile } from "./stage-file.ts";

type Files = {
  readonly agentDocument: Document;
  /** machine.yaml, there or not. */
  readonly document: Document;
  readonly stages: ReadonlyMap<StepId, StageFile>;
};

export function stagePlaces({ agentDocument, document, stages }: Files): Where {
  return ([group = "", id = "", ...rest]) => {
    switch (group) {
      case "entry":
        return { document, path: ["entry"] };
      case "parameters":
        return { document, path: ["inputs", "properties", id, ...rest] };
      case "limits":
      case "checks":
        return { document, path: [group, id, ...rest] };
      case "settings":
        return { document: agentDocument, path: [id, ...rest] };
      case "steps": {
        const stage = stages.get(id);
        // A key of that name is the author's own.
        if (stage === undefined || rest[0] === "model") return null;
        return { document: stage.document, path: stageKeys(rest) };
      }
      default:
        return null;
    }
  };
}

/** How a stage file calls the parts of a step. */
function stageKeys([key, name = "", ...rest]: Path): Path {
  switch (key) {
    case undefined:
      return [];
    case "edges":
      return [own(EDGE_KEYS, name) ?? name, ...(rest[0] === "on" ? ["switch"] : rest)];
    case "answer":
      return ["completionSchema", ...rest];
    case "carry":
      return ["output", ...(name === "" ? [] : [name]), ...rest];
    case "tools":
      return name === "allow" ? ["allowedTools", ...rest] : [key, name];
    case "guard":
      return ["assert"];
    default:
      return [key, ...(name === "" ? [] : [name]), ...rest];
  }
}

const EDGE_KEYS: { readonly [label: string]: string } = {
  ok: "next",
  skip: "next",
  fail: "onFail",
  cap: "onFail",
};
