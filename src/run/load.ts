/** From the name of an agent to its flow, checked as far as can be without asking a model. */
import { cached } from "../flow/cached.ts";
import { createHash } from "node:crypto";
import type { Flow } from "../flow/flow.ts";
import type { FileRead, FileTree } from "../flow/files.ts";
import { canonicalJson } from "../flow/json.ts";
import type { Claim } from "../flow/parameter-flag.ts";
import { hasErrors, type Problem } from "../flow/problem.ts";
import {
  loadAgent,
  type FolderToTry,
  type LoadResult,
  type LoadWorld,
  type ModelToTry,
  type SchemaToTry,
} from "../load/index.ts";
import { didYouMean } from "../flow/text/suggest.ts";
import { findPrompt } from "../prompts/find.ts";
import { createFiles } from "./world/files.ts";
import { findProject, listAgents, type Project } from "./world/project.ts";

export type Loaded = {
  readonly agent: string;
  readonly project: Project;
  readonly flow: Flow | null;
  readonly problems: readonly Problem[];
};

/** An agent as it was read from its files: the loader says where each part was written. */
export type LoadedAgent = Loaded &
  Pick<LoadResult, "origin" | "checks" | "settings" | "stepsIn" | "problemAt">;

export type LoadOptions = {
  readonly cwd?: string;
  readonly stateDir?: string;
  /** Warnings count as errors. */
  readonly strict?: boolean;
  /** Whether a flag of a parameter is free on the command line that the agent is loaded for. */
  readonly claim?: (flag: string) => Claim;
  /** Read by these instead of from the project's folder. */
  readonly files?: FileTree;
};

/**
 * Loads an agent and reports every problem found; nothing is run.
 *
 * @example
 * const { flow, problems } = await load("iterator", { cwd: "/my/project" });
 */
export async function load(agent: string, options: LoadOptions = {}): Promise<LoadedAgent> {
  const project = findProject(options.cwd ?? process.cwd(), options.stateDir);
  const files = onceOnly(options.files ?? createFiles(project.root));
  const result = await loadAgent(agent, files, (ref) => findPrompt(files, ref), await loadWorld());
  const { flow, origin, checks, settings, stepsIn, problemAt } = result;
  const compiled = [...(await schemaProblems(result.schemas)), ...(await modelProblems(result.models))];
  const problems = [
    ...nameProblems(agent),
    ...result.inOrder([...result.problems, ...compiled]),
    ...(await folderProblems(result.folders, project)),
    ...(flow === null ? [] : await moduleProblems(flow, files)),
    ...(flow === null || options.claim === undefined ? [] : flagProblems(flow, options.claim, problemAt)),
  ].map((problem) => naming(problem, agent, project));
  return {
    agent,
    project,
    flow,
    origin,
    checks,
    settings,
    stepsIn,
    problemAt,
    problems: options.strict ? problems.map((one) => ({ ...one, severity: "error" as const })) : problems,
  };
}

/** A name is written into records and onto terminals, line by line. */
function nameProblems(agent: string): readonly Problem[] {
  if (!/\p{Cc}/u.test(agent)) return [];
  return [
    {
      code: "AC-SERVICE-003",
      severity: "error",
      file: `.agent/${agent}`,
      line: 1,
      column: 1,
      pointer: "",
      step: null,
      message: `The name of the agent has a control character: ${JSON.stringify(agent)}.`,
      why: "The name of an agent is recorded with each run and printed in lists.",
      fix: "Rename its folder below .agent.",
      witness: [],
    },
  ];
}

/** An agent that is not there: most often it is there under another name. */
function naming(problem: Problem, agent: string, project: Project): Problem {
  if (problem.code !== "AC-SERVICE-001") return problem;
  const names = listAgents(project);
  const isPath = /[/\\]/.test(agent);
  const there =
    names.length === 0
      ? `${project.agentsDir} contains no agents; create one with: lockstep init ${isPath ? "NAME" : agent}`
      : `there is: ${names.slice(0, 20).join(", ")}.`;
  const fix = isPath ? namedByPath(agent, names) : `${problem.fix}${didYouMean(agent, names)}`;
  return { ...problem, fix: `${fix} In this project ${there}` };
}

/** The nearest part of the path that names an agent, as in `.agent/notes/agent.json`. */
function namedByPath(path: string, names: readonly string[]): string {
  const name = path.split(/[/\\]/).findLast((part) => names.includes(part));
  return `Write the name of the agent${name === undefined ? "" : `, ${name},`} instead of a path.`;
}

/** Parameters whose flag is one of the command line. A flag that is reserved is an error, any other is worth knowing. */
function flagProblems(
  { parameters, dialect }: Flow,
  claim: NonNullable<LoadOptions["claim"]>,
  problemAt: LoadResult["problemAt"],
): readonly Problem[] {
  const isStages = dialect === "stage";
  const fix = isStages ? "Rename the parameter" : "Give the parameter another flag";
  return parameters.flatMap(({ name, flag }) => {
    const claimed = claim(flag);
    if (claimed.kind === "free") return [];
    const { kind, clash } = claimed;
    const found =
      kind === "reserved"
        ? ({
            code: "PARAM-RESERVED",
            message: `The parameter "${name}" uses the flag ${flag}, but ${clash} of \`lockstep run\` is reserved.`,
            fix: `${fix}.`,
          } as const)
        : ({
            code: "PARAM-BUILT-IN",
            message: `The parameter "${name}" has the flag ${flag}, which is also a flag of \`lockstep run\`.`,
            fix: `${fix}, or write --ls-${clash.slice(2)} for the built-in one.`,
          } as const);
    return [problemAt(["parameters", name, ...(isStages ? [] : ["cli"])], found)];
  });
}

/** The names of tools are those of the toolbox itself. */
async function loadWorld(): Promise<LoadWorld> {
  const { OFFERED } = await import("../boundaries/tools/toolbox.ts");
  const { TOOL_NAMES } = await import("../boundaries/gate/gate.ts");
  return { tools: { offered: OFFERED, known: TOOL_NAMES }, digest: sha256 };
}

/** What was read stays as it was read: a prompt is looked at by its step and again by the rules. */
function onceOnly({ read, list }: FileTree): FileTree {
  const known = new Map<string, FileRead>();
  let length = 0;
  const within = (found: FileRead): FileRead => {
    length += found.kind === "text" ? found.text.length : 0;
    if (length <= MOST_OF_AGENT) return found;
    return {
      kind: "unreadable",
      why: `the agent's files hold more than ${MOST_OF_AGENT} characters together`,
    };
  };
  return {
    list,
    read: (path) => {
      const before = known.get(path);
      if (before !== undefined) return before;
      const found = within(read(path));
      known.set(path, found);
      return found;
    },
  };
}

/** Characters that the files of one agent may hold together. */
const MOST_OF_AGENT = 16 * 1024 * 1024;

/** Every problem of an agent; `ok` when it can run. */
export async function check(agent: string, options: LoadOptions = {}): Promise<Findings> {
  const { problems } = await load(agent, options);
  return { v: 1, agent, ok: !hasErrors(problems), problems };
}

export type Findings = {
  readonly v: 1;
  readonly agent: string;
  readonly ok: boolean;
  readonly problems: readonly Problem[];
};

/** Equal flows have equal digests, whatever the order of their keys. */
export const flowDigest = cached((flow: Flow) => sha256(canonicalJson(flow)));

export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** Compiling every schema of a very large flow would take too long; its schemas are compiled when they are first used. */
const MOST_COMPILED = 512;
const MOST_LENGTH = 1_000_000;
const PAUSE_LENGTH = 50_000;

async function schemaProblems(schemas: readonly SchemaToTry[]): Promise<readonly Problem[]> {
  if (schemas.length === 0 || schemas.length > MOST_COMPILED) return [];
  const { faultPath, prepareSchemas, schemaFault } = await import("../engine/schema/schema.ts");
  await prepareSchemas(schemas.map(({ schema }) => schema));
  // Steps that share a part of a schema share what is wrong with it.
  const problems = new Map<string, Problem>();
  let length = 0;
  for (const { schema, refuse } of schemas) {
    length += JSON.stringify(schema).length;
    if (length > MOST_LENGTH) break;
    const fault = schemaFault(schema);
    if (fault !== null) {
      const problem = refuse(fault, faultPath(schema));
      const key = `${problem.file} ${problem.pointer}`;
      if (!problems.has(key)) problems.set(key, problem);
    }
    // A large one takes a while: somebody may want to leave.
    if (length > PAUSE_LENGTH) await new Promise((resolve) => setImmediate(resolve));
  }
  return [...problems.values()];
}

/** Names that are one slip away from a name that means something here. Any other may be for a coding agent to know. */
async function modelProblems(models: readonly ModelToTry[]): Promise<readonly Problem[]> {
  if (models.length === 0) return [];
  const { misspelledModel } = await import("./world/models.ts");
  return models.flatMap(({ name, doubt }) => {
    const meant = misspelledModel(name, process.env);
    return meant === null ? [] : [doubt(meant)];
  });
}

/** Where the folders of the sandbox really lead. What the paths alone show was found before. */
async function folderProblems(
  folders: readonly FolderToTry[],
  project: Project,
): Promise<readonly Problem[]> {
  if (folders.length === 0) return [];
  const { refusePath } = await import("../boundaries/sandbox/policy.ts");
  const { placesOf } = await import("./world/sandbox.ts");
  const places = placesOf(project, project.root, process.env);
  return folders.flatMap(({ path, refuse }) => {
    const why = refusePath(path, places);
    return why === null ? [] : [refuse(why)];
  });
}

/** Modules that cannot be loaded, and hooks that nothing calls. Nothing of them is run. */
async function moduleProblems(flow: Flow, files: FileTree): Promise<readonly Problem[]> {
  const { actions } = flow.settings;
  if (flow.hooks === undefined && flow.stop.kind === "end" && !actions.enabled) return [];
  const { brokenModule, importedBy, modulesOf, skippedModules, strayHooks, unparsedModule } =
    await import("../load/modules.ts");
  const problems: Problem[] = [];
  const seen = new Set<string>();
  const skipped = new Set<string>();
  const mostOf = <T extends { readonly file: string }>(modules: readonly T[]): readonly T[] => {
    const room = Math.max(0, MOST_MODULES - seen.size);
    for (const { file } of modules.slice(room)) skipped.add(file);
    return modules.slice(0, room);
  };
  let next = mostOf(modulesOf(flow, files));
  while (next.length > 0) {
    const { parseModules } = await import("../effects/modules/module-parse.ts");
    for (const { file } of next) seen.add(file);
    const further = [];
    for (const [index, parsed] of (await parseModules(next)).entries()) {
      const module = next[index]!;
      if (parsed.kind === "broken") {
        const { what, line, column } = parsed;
        problems.push(brokenModule(module, what, { line, column }));
      }
      if (parsed.kind === "unknown") problems.push(unparsedModule(module, parsed.why));
      if (parsed.kind !== "parsed") continue;
      const imported = importedBy(module, parsed.imports, files);
      problems.push(...imported.problems);
      further.push(...imported.further);
      if (module.file === flow.hooks?.file) problems.push(...strayHooks(module, flow));
    }
    const unseen = further.filter(({ file }) => !seen.has(file));
    next = mostOf([...new Map(unseen.map((module) => [module.file, module])).values()]);
  }
  return [...problems, ...skippedModules([...skipped], MOST_MODULES)];
}

const MOST_MODULES = 64;
