/** An agent as the command line meets it: found by name, loaded once, its parameters turned into flags. */
import type { FileTree } from "../flow/files.ts";
import type { Flow, Parameter } from "../flow/flow.ts";
import { RESERVED_FIELDS } from "../flow/text/placeholder.ts";
import { promptNames, RUNTIME_NAMES } from "../flow/reads.ts";
import { load, type Loaded, type LoadedAgent } from "../run/load.ts";
import { claimOf, type Flag } from "./args.ts";
import { commandNamed, GLOBAL_FLAGS } from "./commands.ts";

/** Loads an agent for a command line, on which some flags are taken. */
export async function loadNamed(name: string, cwd: string, files?: FileTree): Promise<LoadedAgent> {
  const flags = builtIn();
  const claim = (flag: string) => claimOf(flag, flags);
  return await load(name, { cwd, claim, ...(files !== undefined && { files }) });
}

/** Warnings count as errors. */
export function strictly(loaded: Loaded): Loaded {
  return { ...loaded, problems: loaded.problems.map((problem) => ({ ...problem, severity: "error" })) };
}

export function tally({ agent, problems }: Loaded) {
  const errors = problems.filter((problem) => problem.severity === "error").length;
  return { agent, ok: errors === 0, errors, warnings: problems.length - errors };
}

/** What can be given to an agent: its parameters, or, in a form that declares none, whatever its prompts read. */
export function parametersOf(flow: Flow | null): readonly Parameter[] {
  if (flow?.openArguments === undefined) return flow?.parameters ?? [];
  const taken = new Set(flow.parameters.flatMap(({ name, flag }) => [name, flag.slice(2)]));
  const flags = builtIn();
  const names = new Set(Object.values(flow.steps).flatMap(({ prompt }) => promptNames(prompt)));
  const read = [...names]
    .filter((name) => !taken.has(name) && claimOf(name, flags).kind === "free")
    .filter((name) => !RUNTIME_NAMES.includes(name) && !RESERVED_FIELDS.has(name))
    .map((name): Parameter => ({
      name,
      type: "string",
      description: "Read by a prompt",
      flag: `--${name}`,
      required: false,
    }));
  return [...flow.parameters, ...read];
}

/** What was declared in agent.json, as the parser sees it. */
export function toFlags(parameters: readonly Parameter[]): readonly Flag[] {
  return parameters.map(({ flag, type, description }) => ({
    name: flag.slice(2),
    ...(type === "boolean" ? {} : { takes: type.toUpperCase() }),
    help: description,
  }));
}

/** The flags of `lockstep run`, of which some are never given to a parameter. */
export function builtIn(): readonly Flag[] {
  return [...GLOBAL_FLAGS, ...commandNamed("run").flags];
}
