/** Rules about the end of a flow: that every live step can get there, and that something is looked at before it. */
import type { Move, Step, StepId } from "../../flow/flow.ts";
import type { Finding } from "./finding.ts";
import { reachWithoutJumps, stepsWithoutEnd, type Steps } from "./graph.ts";
import { gateForm } from "../registry/gate-forms.ts";
import { atStep, visitsToVerdict, witness, type Registered } from "./loaded.ts";
import { waysFrom } from "./ways.ts";

export function* checkEnds(loaded: Registered): Generator<Finding> {
  const isGated = [...loaded.sources.registry.steps.values()].some(
    (step) => step.structuredGate !== undefined,
  );
  if (loaded.reach === null || !isGated) return;
  yield* checkUnjudged(loaded, loaded.reach.steps);
  // A verdict that can fire ends a run wherever it stands.
  if (visitsToVerdict(loaded) <= loaded.flow.limits.visits) return;
  yield* checkTraps(loaded, loaded.reach.steps);
}

/** One finding for each trap, and one for the nearest step that leads into traps only. */
function* checkTraps(loaded: Registered, live: ReadonlySet<StepId>): Generator<Finding> {
  const { graph, flow } = loaded;
  const endless = stepsWithoutEnd(graph.steps);
  // Reached steps are in the order of their distance.
  const stuck = [...live].filter((id) => endless.has(id));
  const [nearest] = stuck;
  if (nearest === undefined) return;

  const ways = waysFrom(flow.entry, graph.steps);
  const declared = reachWithoutJumps(flow.entry, graph.steps);
  const trapped = new Set<StepId>();
  const byJump = new Map<StepId, StepId[]>();
  for (const trap of ways.traps()) {
    if (!endless.has(trap[0]!)) continue;
    for (const id of trap) trapped.add(id);
    const inside = new Set(trap);
    const first = stuck.find((id) => inside.has(id))!;
    const way = witness(loaded, first);
    const jumper = declared.steps.has(first) ? undefined : way.find((id) => jumpsTo(graph.steps, id, first));
    if (jumper === undefined) yield aboutTrap(loaded, trap, first, ways.roundTrip(first));
    else byJump.set(jumper, [...(byJump.get(jumper) ?? []), first]);
  }
  for (const [jumper, targets] of byJump) {
    const [first] = targets;
    const others = targets.length === 1 ? "" : ` and ${targets.length - 1} more`;
    yield {
      code: "FLOW-JUMP-TRAP",
      ...atStep(loaded, jumper, "structuredGate", "targetField"),
      message: `"jump" of the step "${jumper}" can lead to "${first}"${others}, which has no path to an end of the flow.`,
      fix: `Give targetField an enum in the schema without such steps, or add a transition from "${first}" to a closure.`,
      witness: witness(loaded, jumper, first!),
    };
  }
  const outside = stuck.find((id) => !trapped.has(id));
  if (outside === undefined || !declared.steps.has(outside)) return;
  const more = stuck.filter((id) => !trapped.has(id)).length - 1;
  yield {
    code: "FLOW-NO-END",
    ...atStep(loaded, outside),
    message: `The step "${outside}" has no path to an end of the flow.${more === 0 ? "" : ` The same applies to ${more} more.`}`,
    fix: gateForm(loaded.sources.dialect).howToEnd,
    witness: wayIntoTrap(loaded, outside, trapped),
  };
}

function aboutTrap(
  loaded: Registered,
  trap: readonly StepId[],
  first: StepId,
  round: readonly StepId[],
): Finding {
  const { steps } = loaded;
  const at = atStep(loaded, first);
  const way = witness(loaded, first, ...round.slice(1));
  if (round.length === 0) {
    return {
      code: "FLOW-DEAD-END",
      ...at,
      message: `The step "${first}" leads nowhere: ${wordsFor(steps.get(first)!)}.`,
      fix: `Allow an intent that leads to another step. ${gateForm(loaded.sources.dialect).howToEnd}`,
      witness: way,
    };
  }
  const names =
    trap.length === 1 ? `The step "${first}" leads` : `The steps ${quoted(trap)} lead only to each other`;
  const only = trap.length === 1 ? " only to itself" : "";
  if (trap.every((id) => onlyRepeats(steps.get(id)!))) {
    return {
      code: "FLOW-LIVELOCK",
      ...at,
      message: `${names}${only}, and only by "repeat": only a limit can end the run.`,
      fix: "Allow an intent that leads to another step, and add its transition.",
      witness: way,
    };
  }
  return {
    code: "FLOW-CYCLE",
    ...at,
    message: `${names}${only}: no transition leaves this cycle.`,
    fix: gateForm(loaded.sources.dialect).howToEnd,
    witness: way,
  };
}

function wordsFor({ decide }: Step): string {
  const labels = decide.by === "field" ? [...decide.allow, ...decide.always] : [];
  return labels.length === 0 ? "it gives no intent" : `it can only give ${quoted(labels)}`;
}

function onlyRepeats({ edges }: Step): boolean {
  return Object.entries(edges).every(([label, move]) => label === "repeat" || move.kind === "end");
}

function jumpsTo(steps: Steps, id: StepId, target: StepId): boolean {
  const edges = steps.get(id)?.edges ?? {};
  return Object.values(edges).some((move) => jumpTargets(move).includes(target));
}

function jumpTargets(move: Move): readonly StepId[] {
  return move.kind === "jump" ? move.among : [];
}

/** To the step, and on by the first way at hand until the trap has closed. */
function wayIntoTrap(loaded: Registered, from: StepId, trapped: ReadonlySet<StepId>): readonly StepId[] {
  const { reach } = loaded;
  const inside = [...(reach?.steps ?? [])].find((id) => trapped.has(id) && reach!.pathTo(id).includes(from));
  return inside === undefined ? witness(loaded, from) : witness(loaded, inside);
}

/** Tools that leave something behind. Where none can be used there is nothing that a check could look at. */
const CHANGING: ReadonlySet<string> = new Set(["*", "Write", "Edit", "MultiEdit", "NotebookEdit", "Bash"]);

/** A flow that changes things and ends on the model's word alone. */
function* checkUnjudged(loaded: Registered, live: ReadonlySet<StepId>): Generator<Finding> {
  const { steps, judged } = loaded.graph;
  const all = [...live].map((id) => steps.get(id)!);
  if (!all.some(mayChange)) return;
  for (const { id, kind, guard, by, decide } of all) {
    const closes = kind === "close" && by.kind === "model" && decide.by === "field";
    if (!closes || guard !== undefined || !decide.allow.includes("closing") || judged.has(id)) continue;
    yield {
      code: "CHECK-NONE",
      ...atStep(loaded, id),
      message: `The closure "${id}" ends the flow without any validator: nothing checks the model's claim that the work is done.`,
      fix: `Add "${id}" to validationSteps with a validator, such as one that runs the tests.`,
      witness: witness(loaded, id),
    };
  }
}

function mayChange({ by, tools }: Step): boolean {
  if (by.kind === "command") return true;
  return tools.mode !== "plan" && tools.allow.some((tool) => CHANGING.has(tool.replace(/\(.*$/s, "")));
}

function quoted(words: readonly string[]): string {
  const shown = words.slice(0, 5).map((word) => `"${word}"`);
  const rest = words.length - shown.length;
  return rest > 0 ? `${shown.join(", ")} and ${rest} more` : shown.join(", ");
}
