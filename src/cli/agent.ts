/** An agent as the command line meets it: found by name, loaded once, its parameters turned into flags. */
import type { FileTree } from "../flow/files.ts";
import type { Flow, Parameter, Prompt } from "../flow/flow.ts";
import { placeholdersIn, RESERVED_FIELDS } from "../flow/text/placeholder.ts";
import type { Problem } from "../flow/problem.ts";
import { CODES } from "../load/rules/codes.ts";
import { didYouMean } from "../load/text/suggest.ts";
import { RUNTIME_NAMES } from "../load/registry/variables.ts";
import { createFiles } from "../run/world/files.ts";
import { load, type Loaded } from "../run/load.ts";
import { listAgents } from "../run/world/project.ts";
import { claimOf, type Flag } from "./args.ts";
import { commandNamed, GLOBAL_FLAGS } from "./commands.ts";

/** Like `load`, with what only the command line can know: which agents there are, and which flags are taken. */
export async function loadAgent(name: string, cwd: string, files?: FileTree): Promise<Loaded> {
  const loaded = await load(name, { cwd, ...(files !== undefined && { files }) });
  return {
    ...loaded,
    problems: [...loaded.problems.map((problem) => naming(problem, loaded)), ...shadowing(loaded)],
  };
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
  const names = new Set(Object.values(flow.steps).flatMap(({ prompt }) => namesIn(prompt)));
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

/** What a prompt reads that somebody may give. */
function namesIn({ text, syntax }: Prompt): readonly string[] {
  if (syntax === "stage")
    return placeholdersIn(text).flatMap(({ root, path }) => (root === "ctx" ? path.slice(0, 1) : []));
  return [...text.matchAll(/\{(?:uv-)?([A-Za-z_]\w*)\}/g)].map((match) => match[1]!);
}

/** What was declared in agent.json, as the parser sees it. */
export function toFlags(parameters: readonly Parameter[]): readonly Flag[] {
  return parameters.map(({ flag, type, description }) => ({
    name: flag.slice(2),
    ...(type === "boolean" ? {} : { takes: type.toUpperCase() }),
    help: description,
  }));
}

/** An agent that is not there: most often it is there under another name. */
function naming(problem: Problem, { agent, project }: Loaded): Problem {
  if (problem.code !== "AC-SERVICE-001") return problem;
  const names = listAgents(project);
  const there =
    names.length === 0
      ? `${project.agentsDir} holds no agent; make one with: lockstep init ${agent}`
      : `there is: ${names.slice(0, 20).join(", ")}`;
  return { ...problem, fix: `${problem.fix}${didYouMean(agent, names)} In this project ${there}.` };
}

/** The flags of `lockstep run`, of which some are never given to a parameter. */
export function builtIn(): readonly Flag[] {
  return [...GLOBAL_FLAGS, ...commandNamed("run").flags];
}

/** Parameters that take the place of a built-in flag: of most of them it is worth knowing, of the reserved ones an error. */
function shadowing({ flow, project, agent }: Loaded): readonly Problem[] {
  const flags = builtIn();
  const taken = (flow?.parameters ?? []).flatMap(({ name, flag }) => {
    const claim = claimOf(flag, flags);
    return claim.kind === "free" ? [] : [{ name, flag, claim }];
  });
  if (taken.length === 0) return [];
  const isStages = flow?.dialect === "stage";
  const file = `.agent/${agent}/${isStages ? "machine.yaml" : "agent.json"}`;
  const read = createFiles(project.root).read(file);
  const source = read.kind === "text" ? read.text : "";
  const written = (name: string, flag: string) => (isStages ? `${name}:` : `"${flag}"`);
  const pointerOf = (name: string) => {
    const segment = name.replaceAll("~", "~0").replaceAll("/", "~1");
    return isStages ? `/inputs/properties/${segment}` : `/parameters/${segment}/cli`;
  };
  return taken.map(({ name, flag, claim: { kind, clash } }) => {
    const isReserved = kind === "reserved";
    const { line, column } = placeOf(written(name, flag), source);
    const code = isReserved ? "PARAM-RESERVED" : "PARAM-BUILT-IN";
    const fix = isStages ? "Rename the parameter" : "Give the parameter another flag";
    return {
      code,
      severity: isReserved ? "error" : "warning",
      file,
      line,
      column,
      pointer: pointerOf(name),
      step: null,
      message: isReserved
        ? `The parameter "${name}" has the flag ${flag}, and no parameter can take ${clash} away from \`lockstep run\`.`
        : `The parameter "${name}" has the flag ${flag}, which \`lockstep run\` has too.`,
      why: CODES[code].why,
      fix: isReserved ? `${fix}.` : `${fix}, or write --ls-${clash.slice(2)} for the built-in one.`,
      witness: [],
    };
  });
}

function placeOf(text: string, source: string): { readonly line: number; readonly column: number } {
  const before = source.slice(0, Math.max(0, source.indexOf(text))).split("\n");
  return { line: before.length, column: before.at(-1)!.length + 1 };
}
