/** Rules about agent.json as a whole: names that agree, and folders in the project. */
import { foldersNamed } from "../registry/prompts.ts";
import type { Machine } from "../stages/machine-parts.ts";
import type { Document } from "../text/document.ts";
import { escapesProject } from "../text/paths.ts";
import type { LoadedFlow, Registered } from "./loaded.ts";
import { error, warning, type Codes, type Finding, type Rules, type Tell } from "./rule.ts";

export const rules: Rules = {
  all: [checkName],
  registry: [checkRegistryName, checkFolders],
  stage: [checkMachineName],
};

export const codes = {
  "AC-NAME": warning(
    "name differs from folder",
    "The folder's name starts the agent; a second name misleads.",
  ),
  "SR-LOAD-002": error(
    "registry of another agent",
    "A registry that names another agent was probably copied or misplaced.",
  ),
} satisfies Codes;

function checkName({ name, agent, agentDocument, words }: LoadedFlow, tell: Tell): void {
  if (agent.name !== undefined && agent.name !== name)
    tell(misnamed(name, agent.name, agentDocument, "/name", words.agent));
}

function checkMachineName({ name, source, document, words }: Machine, tell: Tell): void {
  if (source.id !== undefined && source.id !== name)
    tell(misnamed(name, source.id, document, "/id", words.agent));
}

function misnamed(name: string, said: string, document: Document, pointer: string, what: string): Finding {
  return {
    code: "AC-NAME",
    document,
    pointer,
    message: `The ${what} in the folder "${name}" calls itself "${said}".`,
    fix: `Set "${pointer.slice(1)}" to "${name}", or rename the folder.`,
  };
}

function checkRegistryName({ name, sources }: Registered, tell: Tell): void {
  const { agent, registry, registryDocument } = sources;
  const { agentId } = registry;
  if (agentId === undefined || agentId === name || agentId === agent.name) return;
  tell({
    code: "SR-LOAD-002",
    document: registryDocument,
    pointer: "/agentId",
    message: `The registry belongs to "${agentId}", but the agent is "${agent.name ?? name}".`,
    fix: `Set "agentId" to "${agent.name ?? name}".`,
  });
}

/** Every folder that a file names lies in the project. */
function checkFolders({ name, sources }: Registered, tell: Tell): void {
  const { agent, agentDocument, registry, registryDocument, questions } = sources;
  const { prompts, schemas } = agent.runner.flow;
  const named = (folder: string) => foldersNamed(folder, `.agent/${name}`);
  const rows: readonly (readonly [Document, string, string | undefined])[] = [
    [agentDocument, "/runner/flow/prompts/fallbackDir", prompts.fallbackDir],
    [agentDocument, "/runner/flow/schemas/base", schemas.base],
    [registryDocument, "/userPromptsBase", registry.userPromptsBase],
    [registryDocument, "/schemasBase", registry.schemasBase],
    [registryDocument, "/basePath", questions?.basePath],
  ];
  for (const [document, pointer, folder] of rows) {
    if (folder === undefined) continue;
    // Prompts with checks are looked for in the first of them only.
    const folders = pointer === "/basePath" ? named(folder).slice(0, 1) : named(folder);
    if (!folders.every(escapesProject)) continue;
    tell({
      code: "AC-SERVICE-003",
      document,
      pointer,
      message: `The folder "${folder}" is outside the project; Lockstep reads nothing there.`,
      fix: "Name a folder inside the project.",
    });
  }
}
