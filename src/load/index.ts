/**
 * The door of this room: an agent's files in, a flow, where each part of it was written, and a list of problems out. Pure
 * over what it is given; never throws, whatever the files hold.
 *
 *     const { flow, origin, problems } = await loadAgent("iterator", files, findPrompt, { tools, digest: sha256 });
 */
import type { Digest, FileTree, FindPrompt } from "../flow/files.ts";
import type { Check, Flow } from "../flow/flow.ts";
import type { Json, JsonSchema, Path } from "../flow/json.ts";
import type { Problem } from "../flow/problem.ts";
import { readClimpt } from "./agent/climpt.ts";
import type { Code } from "./codes.ts";
import type { ToolNames } from "./rules/tools.ts";
import type { OriginOf } from "./text/origin.ts";
import { joinPath } from "./text/paths.ts";

export type { ValueOrigin, OriginOf, Written } from "./text/origin.ts";

/** `flow` is null only when there is nothing to build; beside errors it may be there to be shown, never to be run. */
export type LoadResult = {
  readonly flow: Flow | null;
  readonly origin: OriginOf;
  /** Every check that is declared, also those that no step uses. */
  readonly checks: { readonly [name: string]: Check };
  /** Every setting of agent.json in the order of its declaration: what is written, or else its default. */
  readonly settings: readonly SettingValue[];
  /** The file or folder that holds the steps. */
  readonly stepsIn: string;
  readonly problems: readonly Problem[];
  /** A problem at a part of the flow that only the surroundings can find: the disk, the command line, a budget. */
  readonly problemAt: (part: Path, finding: Found) => Problem;
  /** The order in which problems are told, those that were found later among them. */
  readonly inOrder: (problems: readonly Problem[]) => readonly Problem[];
  readonly schemas: readonly SchemaToTry[];
  readonly models: readonly ModelToTry[];
  readonly folders: readonly FolderToTry[];
};

export type SettingValue = { readonly path: Path; readonly value: Json };

export type Found = { readonly code: Code; readonly message: string; readonly fix: string };

/** What only a compiler can judge, and the problem when it does not compile; `path` is where in the schema. */
export type SchemaToTry = {
  readonly schema: JsonSchema;
  readonly refuse: (fault: string, path: Path) => Problem;
};

/** `doubt`: the finding when the name is most likely another one, misspelled. */
export type ModelToTry = { readonly name: string; readonly doubt: (meant: string) => Problem };

/** A folder that commands may write to, and the problem when it leads where it must not. */
export type FolderToTry = { readonly path: string; readonly refuse: (why: string) => Problem };

/** What the loader has to know of the program around it. */
export type LoadWorld = {
  readonly tools: ToolNames;
  /** The digest of a module's text. */
  readonly digest: Digest;
};

/** An agent whose folder has stages is made of them. Only such an agent needs a parser for YAML. */
export async function loadAgent(
  name: string,
  files: FileTree,
  findPrompt: FindPrompt,
  world: LoadWorld,
): Promise<LoadResult> {
  if (files.list(joinPath(".agent", `${name}/stages`)) !== null)
    return (await import("./stages/machine.ts")).loadMachine(name, files, world);
  const { loadRegistry } = await import("./registry/registry-agent.ts");
  return loadRegistry(name, files, findPrompt, world, await readClimpt(files));
}
