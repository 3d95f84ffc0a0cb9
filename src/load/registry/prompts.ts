/** Where the files of this dialect say that prompts are, put into the words of `findPrompt`. */
import type { Files, FindPrompt } from "../../flow/files.ts";
import type { Prompt } from "../../flow/flow.ts";
import type { AgentSource } from "../agent/agent-shape.ts";
import { climptFolder, type Climpt } from "../agent/climpt.ts";
import { DEFAULTS } from "../agent/defaults.ts";
import { readText } from "../text/document.ts";
import { escapesProject, joinPath } from "../text/paths.ts";
import type { RegistrySource } from "./registry-shape.ts";

export type Coordinates = { readonly c2: string; readonly c3: string };

export type Prompts = {
  /** The prompt of a step; without its adaptation when there is no file with it. */
  readonly ofStep: (
    at: Coordinates,
    edition: string,
    adaptation: string | null,
    variables: readonly string[],
  ) => Prompt;
  /** A failure prompt: with its adaptation at each of the places in turn, then at each of them without. */
  readonly ofFailure: (at: readonly Coordinates[], edition: string, adaptation: string | null) => Prompt;
};

export function createPrompts(
  folder: string,
  agent: AgentSource,
  registry: RegistrySource,
  climpt: Climpt,
  findPrompt: FindPrompt,
): Prompts {
  const { c1, pathTemplate, pathTemplateNoAdaptation } = registry;
  const bases = promptFolders(folder, agent, registry, climpt);
  const exact = new Map<string, Prompt>();

  /** With the adaptation and nothing else: both templates are the one that names it. */
  const findExactly = (at: Coordinates, edition: string, adaptation: string | null): Prompt => {
    const key = JSON.stringify([at.c2, at.c3, edition, adaptation]);
    const known = exact.get(key);
    if (known !== undefined) return known;
    const template = adaptation === null ? pathTemplateNoAdaptation : pathTemplate;
    const ref = { c1, c2: at.c2, c3: at.c3, edition, adaptation, bases, variables: [] };
    const found = findPrompt({ ...ref, template, templateNoAdaptation: template });
    exact.set(key, found);
    return found;
  };

  return {
    ofStep: (at, edition, adaptation, variables) =>
      findPrompt({
        c1,
        c2: at.c2,
        c3: at.c3,
        edition,
        adaptation,
        template: pathTemplate,
        templateNoAdaptation: pathTemplateNoAdaptation,
        bases,
        variables,
      }),
    ofFailure: (places, edition, adaptation) => {
      const tried: string[] = [];
      for (const variant of adaptation === null ? [null] : [adaptation, null]) {
        for (const at of places) {
          const prompt = findExactly(at, edition, variant);
          if (prompt.file !== null) return { ...prompt, tried: [...tried, ...prompt.tried] };
          tried.push(...prompt.tried);
        }
      }
      return { file: null, text: "", tried: [...new Set(tried)], variables: [] };
    },
  };
}

/** The system prompt as written, or a sentence of our own when the agent names none and has none. */
export function readSystemPrompt(folder: string, agent: AgentSource, title: string, files: Files): Prompt {
  const path = joinPath(folder, agent.runner.flow.systemPromptPath ?? DEFAULTS.systemPromptPath);
  const prompt = readPromptFile(files, [path]);
  return prompt.file === null ? { ...prompt, text: `You are ${title}. ${agent.description}`.trim() } : prompt;
}

/** The first of the files that can be read. */
export function readPromptFile(files: Files, paths: readonly string[]): Prompt {
  const tried: string[] = [];
  for (const path of paths) {
    const read = readText(files, path);
    tried.push(read.kind === "unreadable" ? `${path} (unreadable: ${read.why})` : path);
    if (read.kind === "text")
      return { file: path, text: withoutFrontMatter(read.text), tried, variables: [] };
  }
  return { file: null, text: "", tried, variables: [] };
}

/** A folder that a file names: below `.agent/` it is meant from the project's root, else first from the agent's folder. */
export function foldersNamed(name: string, agentFolder: string): readonly string[] {
  const fromRoot = joinPath("", name);
  return fromRoot === ".agent" || fromRoot.startsWith(".agent/")
    ? [fromRoot]
    : [joinPath(agentFolder, name), fromRoot];
}

function promptFolders(
  folder: string,
  agent: AgentSource,
  registry: RegistrySource,
  climpt: Climpt,
): readonly string[] {
  const { userPromptsBase } = registry;
  const own =
    userPromptsBase === undefined ? [joinPath(folder, "prompts")] : foldersNamed(userPromptsBase, folder);
  const further = climptFolder(agent.name ?? "", registry.c1, climpt);
  const fallback = joinPath(folder, agent.runner.flow.prompts.fallbackDir);
  return [...new Set([...own, ...(further === null ? [] : [further]), fallback])].filter(
    (base) => !escapesProject(base),
  );
}

function withoutFrontMatter(text: string): string {
  return text.replace(/^---\r?\n(?:[\s\S]*?\r?\n)?---[ \t]*(?:\r?\n|$)/, "").trim();
}
