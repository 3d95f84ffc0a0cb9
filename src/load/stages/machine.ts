/**
 * The front door for agents made of stages: `.agent/<name>/stages/*.md`, and beside them, if there are any, machine.yaml,
 * hooks.mjs and agent.json. Pure over `files`; never throws, whatever the files hold.
 */
import type { FileTree } from "../../flow/files.ts";
import type { Check, Flow, Module, Prompt, StepId } from "../../flow/flow.ts";
import { isObject, type JsonSchema } from "../../flow/json.ts";
import type { Problem } from "../../flow/problem.ts";
import { loadActions } from "../agent/actions.ts";
import { AGENT_OF_STAGES, type AgentSource } from "../agent/agent-shape.ts";
import { aboutAgent, open, settingsOf } from "../agent/agent-file.ts";
import type { LoadResult, LoadWorld, SchemaToTry } from "../index.ts";
import { onlyProblems, resultOf } from "../result.ts";
import { stagePlaces } from "./stage-places.ts";
import { checkMachine, toProblem } from "../codes.ts";
import { DEFAULTS } from "../agent/defaults.ts";
import { emptyDocument, readText, unreadable, type Document } from "../text/document.ts";
import type { Finding } from "../rules/rule.ts";
import { reachFrom } from "../../flow/graph.ts";
import { buildCheck } from "../registry/guards.ts";
import { modernAgent } from "../agent/legacy.ts";
import { serversOf, type Declared } from "../agent/mcp.ts";
import { findFirstStage, type Machine } from "./machine-parts.ts";
import { joinPath } from "../text/paths.ts";
import { pointerOf } from "../../flow/json-pointer.ts";
import { limitsOf } from "../../flow/spending.ts";
import { readShape } from "../text/shape.ts";
import { MEND_YAML, readStageFile, withDraft, type StageFile } from "./stage-file.ts";
import { loadInputs } from "./stage-inputs.ts";
import { buildStage } from "./stage-step.ts";
import { MACHINE, MACHINE_KEYS, STAGE_KEYS, type MachineSource } from "./stage-shape.ts";
import { readYaml } from "../text/yaml.ts";

/** The stage files, in the order of their names. */
export function stagePaths(name: string, files: FileTree): readonly string[] {
  const folder = joinPath(".agent", `${name}/stages`);
  const names = files.list(folder) ?? [];
  return names.filter((file) => /^[^.].*\.md$/.test(file)).map((file) => `${folder}/${file}`);
}

export function loadMachine(name: string, files: FileTree, world: LoadWorld): LoadResult {
  const findings: Finding[] = [];
  const folder = joinPath(".agent", name);
  const { agent, agentDocument } = readAgent(name, folder, files, findings);
  const { machine, machineDocument, isBroken } = readMachine(folder, files, findings);
  const nothing = () => sorted(onlyProblems(findings, `${folder}/stages`));
  const second = secondFlow(agent, folder, files);
  if (second !== null) findings.push(second);
  if (second !== null) return nothing();

  const paths = stagePaths(name, files);
  const stages = new Map<StepId, StageFile>();
  const unread: string[] = [];
  const room = { left: DEFAULTS.yamlLength };
  for (const path of paths) {
    const file = readStageFile(files, path, findings, room);
    if (file === null || file.id === "") unread.push(path);
    else if (stages.has(file.id)) findings.push(twice(file, stages.get(file.id)!));
    else stages.set(file.id, file);
  }
  if (paths.length === 0) findings.push(noStages(folder));
  if (stages.size === 0) return nothing();

  const known = new Set([...stages.keys(), ...unread.map(stemOf)]);
  const servers: readonly Declared[] = [
    serversOf(agent, agentDocument),
    { document: machineDocument, pointer: "/mcpServers", servers: machine.mcpServers },
  ];
  const tools = {
    ...world.tools,
    allowed: agent.runner.boundaries.allowedTools,
    servers: isBroken ? null : new Set(servers.flatMap((place) => [...place.servers.keys()])),
  };
  const moves = { known, joinRule: machine.joinRule, findings };
  const steps = new Map([...stages].map(([id, file]) => [id, buildStage(file, agent, tools, moves)]));
  const machineReader = { document: machineDocument, code: "StageDefinitionInvalid", findings } as const;
  const inputs = loadInputs(machine.inputs, machineReader);
  const actions = loadActions(agent, {
    folder,
    files,
    digest: world.digest,
    parameters: inputs.parameters,
    isOpen: inputs.isOpen,
    reader: { document: agentDocument, code: "AC-VALID-001", findings },
  });
  const entry = findFirstStage(machine, steps);
  const hooks = readHooks(folder, files, world, findings);
  const flow: Flow = {
    ir: 1,
    agent: name,
    dialect: "stage",
    title: agent.displayName ?? agent.name ?? machine.id ?? name,
    description: agent.description,
    parameters: inputs.parameters,
    ...(inputs.isOpen && { openArguments: true }),
    system: NO_PROMPT,
    entry: entry.step,
    steps: Object.fromEntries(steps),
    checks: Object.fromEntries(checksOf(machine).map((check) => [check.name, check])),
    stop: { kind: "end" },
    limits: { visits: machine.limits.visits, ...limitsOf(machine.limits) },
    ...(hooks !== null && {
      hooks: { ...hooks.module, ...(machine.joinRule === "declared" && { joinRule: "declared" }) },
    }),
    constants: {},
    criteria: "The work is done when a stage that leads nowhere else is done.",
    settings: {
      ...settingsOf(agent, agentDocument, actions, servers.slice(1)),
      verdict: { type: "detect:graph", config: {} },
    },
  };
  const whole: Machine = {
    name,
    agent,
    agentDocument,
    source: machine,
    document: machineDocument,
    stages,
    steps,
    servers,
    flow,
    entry,
    isWhole: unread.length === 0 && !isBroken,
    // A stage that nothing leads to must be sound all the same, so that every stage counts.
    live: null,
    entries: new Map([...stages].map(([id, { source }]) => [id, source])),
    runLimits: machine.limits,
    words: { step: "stage", agent: "machine", way: "next", howToEnd: HOW_TO_END },
    where: stagePlaces({ agentDocument, document: machineDocument, stages }),
    files,
    tools: world.tools,
    hooks: hooks?.text ?? null,
    reach: steps.has(entry.step) ? reachFrom(entry.step, steps) : null,
  };
  // What the rules would miss may stand in the machine.yaml that could not be read.
  if (!isBroken) checkMachine(whole, (finding) => findings.push(finding));
  const problems = toProblems(findings, stages);
  return sorted(resultOf(whole, `${folder}/stages`, problems, [...schemasOf(whole)]));
}

const HOW_TO_END = "Let a stage lead to end, for instance by a switch on its result.";
const NO_PROMPT: Prompt = { file: null, text: "", tried: [], variables: [] };

/** A stage that nothing leads to must be sound all the same, so that every stage counts. */
function toProblems(
  findings: readonly Finding[],
  stages: ReadonlyMap<StepId, StageFile>,
): readonly Problem[] {
  const owners = new Map([...stages].map(([id, { document }]) => [document, id]));
  const withOwner = (finding: Finding): Finding => {
    const owner = owners.get(finding.document);
    return finding.steps !== undefined || owner === undefined ? finding : { ...finding, steps: [owner] };
  };
  return findings.map((finding) => toProblem(withOwner(finding), null));
}

function sorted(result: LoadResult): LoadResult {
  return { ...result, problems: inOrder(result.problems), inOrder };
}

/** By file, and in a file by field. */
function inOrder(problems: readonly Problem[]): readonly Problem[] {
  return problems.toSorted(
    (a, b) =>
      (a.file < b.file ? -1 : Number(a.file > b.file)) ||
      rankOf(a) - rankOf(b) ||
      a.line - b.line ||
      a.column - b.column,
  );
}

function rankOf({ file, pointer }: Problem): number {
  const [, key = ""] = pointer.split(/[/#]/);
  if (key === "") return -1;
  const keys = file.endsWith("/machine.yaml") ? MACHINE_KEYS : STAGE_KEYS;
  const place = keys.indexOf(key);
  return place === -1 ? keys.length : place;
}

function readAgent(
  name: string,
  folder: string,
  files: FileTree,
  findings: Finding[],
): { readonly agent: AgentSource; readonly agentDocument: Document } {
  const file = `${folder}/agent.json`;
  const isThere = files.read(file).kind !== "missing";
  const written = isThere ? open(files, file, aboutAgent(name, folder), findings) : null;
  const agentDocument = written === null ? emptyDocument(file) : modernAgent(written, findings);
  const reader = { document: agentDocument, code: "AC-VALID-001", findings } as const;
  return { agent: readShape(AGENT_OF_STAGES, agentDocument.value ?? {}, "", reader), agentDocument };
}

function readMachine(
  folder: string,
  files: FileTree,
  findings: Finding[],
): { readonly machine: MachineSource; readonly machineDocument: Document; readonly isBroken: boolean } {
  const file = `${folder}/machine.yaml`;
  const code = "StageDefinitionInvalid";
  const without = (isBroken: boolean) => ({
    machine: readShape(MACHINE, {}, "", { document: emptyDocument(file), code, findings: [] }),
    machineDocument: emptyDocument(file),
    isBroken,
  });
  const read = readText(files, file);
  if (read.kind === "missing") return without(false);
  if (read.kind === "unreadable") {
    findings.push(unreadable(file, read.why));
    return without(true);
  }
  const yaml = readYaml(file, read.text);
  if (yaml.kind === "broken") {
    for (const { document, what } of yaml.faults) {
      const message = `${file} is not valid YAML: ${what}.`;
      findings.push({ code, document, pointer: "", message, fix: MEND_YAML });
    }
    return without(true);
  }
  const { document } = yaml;
  if (document.value !== null && !isObject(document.value)) {
    const message = `${file} must contain keys with values.`;
    const fix = "Write keys such as entry: plan, or remove the file.";
    findings.push({ code, document, pointer: "", message, fix });
    return without(true);
  }
  const machine = readShape(MACHINE, document.value ?? {}, "", { document, code, findings });
  return { machine, machineDocument: document, isBroken: false };
}

/** A folder holds one flow. */
function secondFlow({ runner }: AgentSource, folder: string, files: FileTree): Finding | null {
  const named = joinPath(folder, runner.flow.prompts.registry);
  const file = [named, joinPath(folder, DEFAULTS.registry)].find((path) => files.read(path).kind === "text");
  if (file === undefined) return null;
  return {
    code: "DIALECT",
    document: emptyDocument(file),
    pointer: "",
    message: `${folder} contains two flows: the stages in ${folder}/stages and the registry ${file}.`,
    fix: "Move one of them to a folder of its own below .agent, or remove it.",
  };
}

function readHooks(
  folder: string,
  files: FileTree,
  { digest }: LoadWorld,
  findings: Finding[],
): { readonly module: Module; readonly text: string } | null {
  const file = `${folder}/hooks.mjs`;
  const read = files.read(file);
  if (read.kind === "text") return { module: { file, digest: digest(read.text) }, text: read.text };
  if (read.kind !== "missing") findings.push(unreadable(file, read.why, ", or remove it"));
  return null;
}

function checksOf({ checks }: MachineSource): readonly Check[] {
  return [...checks].flatMap(([name, source]) => {
    const failurePattern = source.failurePattern ?? name;
    const check = buildCheck(name, new Map(), { ...source, failurePattern }, { failurePatterns: new Map() });
    return check === null ? [] : [check];
  });
}

function* schemasOf({ stages, steps, source, document }: Machine): Generator<SchemaToTry> {
  const toTry = (
    schema: JsonSchema,
    finding: Omit<Finding, "message" | "fix">,
    what: string,
  ): SchemaToTry => ({
    schema,
    refuse: (fault, path) => {
      const message = `${what} is not a valid JSON Schema: ${fault}.`;
      const pointer = finding.pointer + pointerOf(path);
      return toProblem({ ...finding, pointer, message, fix: "Fix the schema at this position." }, null);
    },
  });
  for (const [id, { document: file }] of stages) {
    const { answer, stage } = steps.get(id)!;
    const at = { document: file, steps: [id] };
    if (answer.kind === "object" && answer.schema.kind === "schema") {
      const place = { ...at, code: "StageCompletionSchemaInvalid", pointer: "/completionSchema" } as const;
      yield toTry(answer.schema.schema, place, `completionSchema of the stage "${id}"`);
    }
    if (stage?.inputs?.kind === "schema") {
      const place = { ...at, code: "StageInputsInvalid", pointer: "/inputsSchema" } as const;
      yield toTry(stage.inputs.schema, place, `inputsSchema of the stage "${id}"`);
    }
  }
  if (isObject(source.inputs)) {
    const place = { document, code: "StageDefinitionInvalid", pointer: "/inputs" } as const;
    yield toTry(withDraft(source.inputs), place, "inputs");
  }
}

function stemOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1, -".md".length);
}

function twice(file: StageFile, first: StageFile): Finding {
  return {
    code: "StageDefinitionInvalid",
    document: file.document,
    pointer: "/id",
    steps: [file.id],
    message: `duplicateId: the stage "${file.id}" is already defined in ${first.document.file}.`,
    fix: "Give one of them another id.",
  };
}

function noStages(folder: string): Finding {
  return {
    code: "StageDefinitionInvalid",
    document: emptyDocument(`${folder}/stages`),
    pointer: "",
    message: `There is no stage in ${folder}/stages.`,
    fix: `Write one, such as ${folder}/stages/plan.md.`,
  };
}
