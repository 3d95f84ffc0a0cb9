/** Where the values of an agent made of stages were written, asked in the words of the other forms. */
import type { FileTree } from "../../flow/files.ts";
import type { StepId } from "../../flow/flow.ts";
import { own, type Path } from "../../flow/json.ts";
import { DEFAULTS } from "../agent/defaults.ts";
import { emptyDocument, readDocument, readText, type Document } from "../text/document.ts";
import { modernAgent } from "../agent/legacy.ts";
import { stagePaths } from "./machine.ts";
import { lookUp, type Origins } from "../agent/origin.ts";
import { joinPath } from "../text/paths.ts";
import { readStageFile } from "./stage-file.ts";
import { readYaml } from "../text/yaml.ts";

export function readMachineOrigins(name: string, files: FileTree): Origins {
  const folder = joinPath(".agent", name);
  const agent = modernAgent(readDocument(files, `${folder}/agent.json`).document, []);
  const machine = readMachine(files, `${folder}/machine.yaml`);
  const stages = new Map<StepId, Document>();
  const room = { left: DEFAULTS.yamlLength };
  for (const path of stagePaths(name, files)) {
    const file = readStageFile(files, path, [], room);
    if (file !== null && !stages.has(file.id)) stages.set(file.id, file.document);
  }
  const inStage = (id: StepId, path: Path) => {
    const document = stages.get(id);
    return document === undefined ? null : lookUp(document, path);
  };
  return {
    registryFile: `${folder}/stages`,
    agent: (path) => {
      const [group, ...rest] = path;
      if (group === "parameters") return lookUp(machine, ["inputs", "properties", ...rest]);
      return lookUp(group === "limits" ? machine : agent, path);
    },
    registry: ([group = "", id = "", ...path]) => {
      if (group === "entryStep") return lookUp(machine, ["entry"]);
      if (group === "validationSteps") return inStage(id, ["assert"]);
      if (group !== "steps") return null;
      const [key, label = ""] = path;
      return inStage(id, key === "transitions" ? [own(WRITTEN_AS, label) ?? label] : path);
    },
  };
}

/** Which key of a stage says where a label leads. */
const WRITTEN_AS: { readonly [label: string]: string } = {
  ok: "next",
  skip: "next",
  fail: "onFail",
  cap: "onFail",
};

function readMachine(files: FileTree, file: string): Document {
  const read = readText(files, file);
  const yaml = read.kind === "text" ? readYaml(file, read.text) : null;
  return yaml?.kind === "read" ? yaml.document : emptyDocument(file);
}
