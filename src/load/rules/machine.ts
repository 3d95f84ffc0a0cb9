/** The rules over a machine of stages: everything that can be proved before the first token. */
import type { Move, StepId } from "../../flow/flow.ts";
import { FORBIDDEN_NAMES, isObject, type Path } from "../../flow/json.ts";
import { checkValidator } from "./guards.ts";
import { checkLimits, limitsOfRun } from "./limits.ts";
import { checkPlaceholders } from "./placeholders.ts";
import { isWritten } from "../text/document.ts";
import type { Finding } from "./finding.ts";
import { stepsWithoutEnd } from "./graph.ts";
import { inertGroups, notActedOn } from "../agent/inert.ts";
import { checkCommandList } from "./commands.ts";
import { checkToolNames } from "./tools.ts";
import { checkGitHubTool, checkServers } from "../agent/mcp.ts";
import { witness } from "./loaded.ts";
import { atStage, type Machine } from "../stages/machine-parts.ts";
import { escapeSegment, pointerOf } from "../text/places.ts";
import { promiseOf, valuesAt } from "../registry/promises.ts";
import { checkSizes } from "../registry/prompt-sizes.ts";
import { didYouMean } from "../text/suggest.ts";
import { waysFrom } from "./ways.ts";

export function* checkMachine(machine: Machine): Generator<Finding> {
  yield* checkName(machine);
  yield* checkEntry(machine);
  yield* checkTools(machine);
  yield* checkChecks(machine);
  yield* checkSiblings(machine);
  yield* checkSwitches(machine);
  yield* checkOutput(machine);
  yield* checkFailures(machine);
  // Code may lead where no file says.
  if (!speaksOf(machine, "next")) yield* checkWays(machine);
  yield* checkPlaceholders(machine);
  yield* checkSizes([...machine.steps.values()].map(({ id, prompt }) => ({ prompt, steps: [id] })));
  yield* checkInert(machine);
  yield* checkSpending(machine);
}

function checkSpending(machine: Machine): Iterable<Finding> {
  const { source, document, stages } = machine;
  const steps = [...stages].map(([id, { source: stage }]) => ({
    limits: stage.limits,
    at: atStage(machine, id, "limits"),
    owner: `stage "${id}"`,
  }));
  return checkLimits(limitsOfRun(source.limits, document, "/limits"), steps);
}

/** Whether hooks.mjs may have a function of this name. */
function speaksOf({ hooks }: Machine, word: string): boolean {
  return hooks !== null && new RegExp(`\\b${word}\\b`).test(hooks);
}

function* checkName({ name, source, document, agent, agentDocument }: Machine): Generator<Finding> {
  for (const [said, file, pointer] of [
    [source.id, document, "/id"],
    [agent.name, agentDocument, "/name"],
  ] as const) {
    if (said === undefined || said === name) continue;
    yield {
      code: "AC-NAME",
      document: file,
      pointer,
      message: `The machine in the folder "${name}" calls itself "${said}".`,
      fix: `Write "${name}", or rename the folder.`,
    };
  }
}

function* checkEntry({ source, document, steps, entry, isWhole }: Machine): Generator<Finding> {
  // What could not be read may be the stage that is missing.
  if (!isWhole || steps.has(entry.step)) return;
  const at = { code: "StageDefinitionInvalid", document, pointer: "/entry" } as const;
  if (source.entry !== undefined) {
    const hint = didYouMean(source.entry, steps.keys());
    const message = `The entry stage "${source.entry}" does not exist.${hint}`;
    yield { ...at, message, fix: "Name a stage of the machine." };
    return;
  }
  const names = entry.candidates.map((id) => `"${id}"`).join(", ");
  const message =
    entry.candidates.length === 0
      ? "No stage can be the first: another stage leads to each of them."
      : `The first stage is ambiguous: nothing leads to any of ${names}.`;
  const example = entry.candidates[0] ?? [...steps.keys()][0] ?? "plan";
  yield { ...at, message, fix: `Set it in ${document.file}, for example entry: ${example}.` };
}

function* checkTools(machine: Machine): Generator<Finding> {
  const { agent, agentDocument: document, servers, stages, steps } = machine;
  const tools = agent.runner.boundaries.allowedTools;
  const allowed = { document, pointer: "/runner/boundaries/allowedTools", tools };
  yield* checkToolNames(tools, machine.tools, allowed);
  yield* checkServers(servers, allowed, [...steps.values()]);
  yield* checkCommandList(tools, { document, pointer: allowed.pointer });
  if (agent.runner.integrations.github.enabled) return;
  yield* checkGitHubTool(tools, { document, pointer: allowed.pointer });
  // A stage whose tool is not there is not started.
  for (const [id, { source }] of stages)
    for (const finding of checkGitHubTool(source.allowedTools ?? [], atStage(machine, id, "allowedTools")))
      yield { ...finding, severity: "error" };
}

/** Checks exist, can fail, and are asked for. */
function* checkChecks(machine: Machine): Generator<Finding> {
  const { stages, source, document } = machine;
  const { checks } = source;
  const users = new Map<string, StepId[]>();
  for (const [id, { source: stage }] of stages) {
    const asked = [
      ...stage.assert.map((name, index) => [name, ["assert", index]] as const),
      ...(stage.gate === undefined ? [] : [[stage.gate, ["gate"]] as const]),
    ];
    for (const [name, path] of asked) {
      users.set(name, [...(users.get(name) ?? []), id]);
      if (checks.has(name)) continue;
      yield {
        code: "CHECK-UNKNOWN",
        ...atStage(machine, id, ...path),
        message: `The stage "${id}" uses the check "${name}", which does not exist.${didYouMean(name, checks.keys())}`,
        fix: `Add "${name}" to checks in ${document.file}, or correct the name.`,
      };
    }
  }
  for (const [name, check] of checks) {
    const at = { document, pointer: `/checks/${escapeSegment(name)}` };
    if (FORBIDDEN_NAMES.has(name))
      yield {
        code: "FORBIDDEN-NAME",
        ...at,
        message: `"${name}" is not a valid check name.`,
        fix: "Rename it.",
      };
    for (const finding of checkValidator(at, name, check, null, users.get(name) ?? [])) {
      yield finding.code === "SR-VALID-004" ? { ...finding, code: "StageDefinitionInvalid" } : finding;
    }
    if (users.has(name)) continue;
    yield {
      code: "CHECK-VALIDATOR-UNUSED",
      ...at,
      message: `No assert or gate uses the check "${name}", so it never runs.`,
      fix: `Use "${name}" in a stage, or remove it.`,
    };
  }
}

/** Siblings end where they are: only the join goes on. */
function* checkSiblings(machine: Machine): Generator<Finding> {
  const { steps } = machine;
  const told = new Set<StepId>();
  for (const { id: owner, edges } of steps.values()) {
    if (edges.ok?.kind !== "fork") continue;
    for (const id of edges.ok.steps) {
      const sibling = steps.get(id);
      if (sibling === undefined || told.has(id)) continue;
      told.add(id);
      const onward = sibling.edges.ok;
      if (onward !== undefined && !isTerminal(onward)) {
        const nested = onward.kind === "fork" ? "fans out itself" : "leads to another stage";
        yield {
          code: "StageDefinitionInvalid",
          ...atStage(machine, id, "next"),
          message: `The stage "${id}" runs in parallel after "${owner}", but ${nested}.`,
          fix: "Remove its next, and continue from the join.",
          witness: witness(machine, id),
        };
      }
      const failure = sibling.edges.fail;
      const recovery = failure?.kind === "goto" ? steps.get(failure.step) : undefined;
      if (recovery === undefined || isTerminal(recovery.edges.ok!)) continue;
      yield {
        code: "StageDefinitionInvalid",
        ...atStage(machine, id, "onFail"),
        message: `The stage "${id}" runs in parallel, and its onFail leads to "${recovery.id}", which leads to another stage.`,
        fix: `Let onFail lead to a stage without next: the parallel group of "${id}" has failed anyway.`,
        witness: witness(machine, id, recovery.id),
      };
    }
  }
}

function isTerminal(move: Move): boolean {
  if (move.kind !== "switch") return move.kind === "end";
  return [...Object.values(move.cases), ...(move.otherwise === undefined ? [] : [move.otherwise])].every(
    isTerminal,
  );
}

function* checkSwitches(machine: Machine): Generator<Finding> {
  for (const [id, { edges, answer }] of machine.steps) {
    const move = edges.ok;
    if (move?.kind !== "switch") continue;
    const [root, ...field] = move.on;
    const schema =
      root === "parsed" && answer.kind === "object" && answer.schema.kind === "schema"
        ? answer.schema.schema
        : true;
    const promised = promiseOf(schema, field);
    if (promised === "never" || promised === "unnamed") {
      yield {
        code: "GATE-FIELD",
        ...atStage(machine, id, "next", "switch"),
        message: `The stage "${id}" switches on "${move.on.join(".")}", which its completionSchema does not name.`,
        fix: `Add "${field.join(".")}" to completionSchema, or correct the path.`,
      };
    }
    const values = valuesAt(schema, field);
    const isCovered = promised === "sure" && values?.every((value) => Object.hasOwn(move.cases, value));
    if (move.otherwise === undefined && isCovered !== true) {
      yield {
        code: "TRANS-DEFAULT",
        ...atStage(machine, id, "next", "cases"),
        message: `The switch of the stage "${id}" has no default: any other value, or a missing one, ends the run.`,
        fix: "Add default with the id of a stage, or end.",
      };
    }
    for (const value of values === null ? [] : Object.keys(move.cases)) {
      if (values!.includes(value)) continue;
      yield {
        code: "TRANS-UNUSED",
        ...atStage(machine, id, "next", "cases", value),
        message: `The case "${value}" of the stage "${id}" is never taken: completionSchema allows ${values!.join(", ")}.${didYouMean(value, values!)}`,
        fix: "Correct the value, or remove the case.",
      };
    }
  }
}

function* checkOutput(machine: Machine): Generator<Finding> {
  for (const [id, { stage, answer }] of machine.steps) {
    if (answer.kind !== "object" || answer.schema.kind !== "schema") continue;
    for (const { key, path } of stage?.output ?? []) {
      const promised = promiseOf(answer.schema.schema, path.slice(1));
      if (promised !== "never" && promised !== "unnamed") continue;
      yield {
        code: "HANDOFF-FIELD",
        ...atStage(machine, id, "output", key),
        message: `"${key}" in output of the stage "${id}" is ${path.join(".")}, which its completionSchema does not name.`,
        fix: `Add "${path.slice(1).join(".")}" to completionSchema, or correct the path.`,
      };
    }
  }
}

/** A stage that ran out of turns must not lead on as if it had been done. */
function* checkFailures(machine: Machine): Generator<Finding> {
  for (const [id, { edges }] of machine.steps) {
    const { ok, cap } = edges;
    if (ok?.kind !== "goto" || cap?.kind !== "goto" || ok.step !== cap.step) continue;
    yield {
      code: "STAGE-CAP-SUCCESS",
      ...atStage(machine, id, "onFail"),
      message: `The stage "${id}" leads to "${ok.step}" when it is done, and also when it failed or ran out of turns.`,
      fix: "Let onFail lead to a stage that deals with the failure, or remove it.",
    };
  }
}

/** Every stage can be reached, and an end from every stage without anything going wrong first. */
function* checkWays(machine: Machine): Generator<Finding> {
  const { steps, reach, entry } = machine;
  if (reach === null) return;
  for (const id of steps.keys()) {
    if (reach.steps.has(id)) continue;
    yield {
      code: "FLOW-UNREACHABLE",
      ...atStage(machine, id, "id"),
      message: `Nothing leads to the stage "${id}" from "${entry.step}".`,
      fix: "Lead a stage to it with next, or remove its file.",
    };
  }
  yield* checkEnds(machine, [...reach.steps]);
}

/** One finding for each group of stages that lead to each other and to nothing else. `live` is in order of distance. */
function* checkEnds(machine: Machine, live: readonly StepId[]): Generator<Finding> {
  const onward = new Map(
    [...machine.steps].map(([id, step]) => [id, { ...step, edges: { ok: withoutSiblings(step.edges.ok!) } }]),
  );
  const endless = stepsWithoutEnd(onward);
  const stuck = live.filter((id) => endless.has(id));
  const told = new Set<StepId>();
  for (const id of stuck) {
    const ways = waysFrom(id, onward);
    for (const trap of ways.traps()) {
      const first = stuck.find((one) => trap.includes(one));
      if (first === undefined || told.has(first)) continue;
      told.add(first);
      const round = ways.roundTrip(first).slice(1);
      const names = trap.map((one) => `"${one}"`).join(", ");
      yield {
        code: round.length === 0 ? "FLOW-NO-END" : "FLOW-CYCLE",
        ...atStage(machine, first, "next"),
        message:
          round.length === 0
            ? `The stage "${first}" has no path to an end.`
            : trap.length === 1
              ? `The stage ${names} leads only to itself.`
              : `The stages ${names} lead only to each other: no next leaves this cycle.`,
        fix: "Let a stage lead to end, for instance by a switch on its result.",
        witness: witness(machine, first, ...round),
      };
    }
  }
}

/** Where a run goes on after a fork: at its join, or not at all. */
function withoutSiblings(move: Move): Move {
  if (move.kind !== "fork") return move;
  return move.join === null ? { kind: "end", outcome: "completed" } : { kind: "goto", step: move.join };
}

const UNUSED_IN_AGENT: readonly { readonly path: Path; readonly what: string; readonly fix: string }[] = [
  {
    path: ["parameters"],
    what: "a machine declares its parameters as inputs in machine.yaml",
    fix: "Move them to inputs in machine.yaml.",
  },
  {
    path: ["runner", "verdict"],
    what: "a run of stages ends where next leads",
    fix: "Remove it; limits.visits in machine.yaml bounds a run.",
  },
  {
    path: ["runner", "flow", "systemPromptPath"],
    what: "the body of a stage is its whole system prompt",
    fix: "Remove it, or move its text into the stages.",
  },
];

function* checkInert({ agent, agentDocument }: Machine): Generator<Finding> {
  for (const { path, what, fix } of UNUSED_IN_AGENT) {
    if (!isObject(agentDocument.value) || !isWritten(agentDocument, path)) continue;
    const message = `${path.join(".")} has no effect here: ${what}.`;
    yield notActedOn(agentDocument, pointerOf(path), message, fix);
  }
  yield* inertGroups({ agent, agentDocument, hasIssue: true });
}
