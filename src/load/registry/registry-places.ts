/** Where the parts of a flow are written in agent.json and steps_registry.json. */
import type { StepId } from "../../flow/flow.ts";
import { own, type Path } from "../../flow/json.ts";
import type { Dialect } from "./dialect.ts";
import type { Where } from "../text/origin.ts";
import type { Graph, Sources } from "./registry.ts";

export function registryPlaces(sources: Sources, graph: Graph): Where {
  const { agentDocument, registryDocument, dialect } = sources;
  const inAgent = (...path: Path) => ({ document: agentDocument, path });
  const inRegistry = (...path: Path) => ({ document: registryDocument, path });
  return (part) => {
    const [group = "", id = "", ...rest] = part;
    switch (group) {
      case "entry":
        return graph.entry.path === null ? inAgent(...ENTRY_OF_VERDICT) : inRegistry(...graph.entry.path);
      case "limits":
        return id === "visits" ? inAgent(...MOST_VISITS) : inAgent("runner", ...part);
      case "settings":
        return inAgent(id, ...rest);
      case "checks":
        return inRegistry("validators", id, ...rest);
      case "steps":
        return rest[0] === "guard"
          ? inRegistry("validationSteps", graph.judged.get(id)?.key ?? id, ...rest.slice(1))
          : inRegistry("steps", ...stepPath(id, graph.steps.get(id)?.aside, rest, dialect));
      default:
        return inAgent(...part);
    }
  };
}

const ENTRY_OF_VERDICT: Path = ["runner", "verdict", "config", "entryStep"];
const MOST_VISITS: Path = ["runner", "verdict", "config", "maxIterations"];

function stepPath(id: StepId, aside: StepId | undefined, part: Path, dialect: Dialect): Path {
  const [key = "", name = "", ...rest] = part;
  if (aside !== undefined) {
    if (key === "edges") return [aside, "check", own(QUESTION_KEYS, name) ?? name, ...rest];
    // What a question shares with the step that it is about is written there.
    return INHERITED.has(key) ? [aside, ...registryKeys(part)] : [aside, "check", ...registryKeys(part)];
  }
  // With gates a prompt is named by several keys of its step.
  const isWhole = key === "prompt" && name === "" && dialect !== "check";
  return [id, ...(isWhole ? [] : registryKeys(part))];
}

const QUESTION_KEYS: { readonly [label: string]: string } = { pass: "onPass", fail: "onFail" };
const INHERITED = new Set(["model", "tools", "limits"]);

/** How the registry calls the parts of a step. */
function registryKeys([key, name, ...rest]: Path): Path {
  switch (`${key}/${name}`) {
    case "answer/schema":
      return ["outputSchemaRef", ...rest];
    case "decide/path":
      return ["structuredGate", "intentField"];
    case "tools/mode":
      return ["permissionMode"];
    case "prompt/variables":
      return ["uvVariables", ...rest];
  }
  const others = name === undefined ? [] : [name, ...rest];
  if (key === "edges") {
    const [label, inside, ...value] = others;
    const keys = inside === undefined ? [] : [own(EDGE_KEYS, inside) ?? inside, ...value];
    return label === undefined ? ["transitions"] : ["transitions", label, ...keys];
  }
  if (key === "carry") return ["structuredGate", "handoffFields", ...others];
  if (key === "needs") return ["inputs", ...others];
  return key === undefined ? [] : [key, ...others];
}

const EDGE_KEYS: { readonly [key: string]: string } = { on: "condition", cases: "targets" };
