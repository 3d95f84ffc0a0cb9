/** Rules about the way to the end: every step can be reached, every live one leads to an end, something is looked at before it. */
import type { Move, Step, StepId } from "../../flow/flow.ts";
import { reachFrom, reachWithoutJumps, stepsWithoutEnd, type Steps } from "../../flow/graph.ts";
import {
  atPart,
  isGated,
  visitsToVerdict,
  witness,
  type At,
  type LoadedFlow,
  type Registered,
} from "./loaded.ts";
import { questionOf } from "../questions/questions.ts";
import type { Machine } from "../stages/machine-parts.ts";
import { error, warning, type Codes, type Finding, type Rules, type Tell } from "./rule.ts";
import { waysFrom, type Ways } from "./ways.ts";

export const rules: Rules = {
  gated: [checkUnreachable, checkUnjudged, checkGatedEnd],
  check: [checkUnreachable, checkCheckedEnd],
  stage: [checkStageWays],
};

export const codes = {
  "FLOW-NO-END": error("no path to an end", "A run that cannot end spends tokens until a limit stops it."),
  "FLOW-DEAD-END": error("dead end", "A step that leads nowhere can only fail the run."),
  "FLOW-CYCLE": error("cycle without an exit", "A run in a cycle spends tokens until a limit stops it."),
  "FLOW-LIVELOCK": error(
    "only repeat",
    "In a step that can only be repeated, the model has no way to finish.",
  ),
  "FLOW-JUMP-TRAP": error(
    "jump into a trap",
    "A model that may name any step will eventually name one that leads nowhere.",
  ),
  "FLOW-UNREACHABLE": warning(
    "unreachable step",
    "Either the step is dead, or a transition to it is missing.",
  ),
  "CHECK-NONE": warning(
    "closure without validator",
    "Only a check that can fail shows that the work is really done.",
  ),
} satisfies Codes;

/** Every entry of the registry counts, whichever verdict type uses it. */
function checkUnreachable(loaded: Registered, tell: Tell): void {
  const { graph, sources } = loaded;
  const entries = [
    graph.entry.step,
    sources.registry.entryStep ?? "",
    ...sources.registry.entryStepMapping.values(),
  ];
  unreachable(loaded, new Set(entries), graph.flow.ids, tell);
}

/** Code may lead where no file says. */
function checkStageWays(machine: Machine, tell: Tell): void {
  const { steps, reach, flow, hooks } = machine;
  if (reach === null || (hooks !== null && /\bnext\b/.test(hooks))) return;
  unreachable(machine, [flow.entry], steps.keys(), tell);
  // A failure is not a way to the end, and siblings end where they are: only their join goes on.
  const onward = new Map(
    [...steps].map(([id, step]) => [id, { ...step, edges: { ok: withoutSiblings(step.edges.ok!) } }]),
  );
  traps(machine, onward, true, tell);
}

function unreachable(loaded: LoadedFlow, entries: Iterable<StepId>, ids: Iterable<StepId>, tell: Tell): void {
  const { steps, words, flow, reach } = loaded;
  const known = [...entries].filter((id) => steps.has(id));
  if (known.length === 0) return;
  const reaches = known.map((id) => (id === flow.entry ? reach : null) ?? reachFrom(id, steps));
  for (const id of ids) {
    if (reaches.some((from) => from.steps.has(id))) continue;
    tell({
      code: "FLOW-UNREACHABLE",
      ...atPart(loaded, "steps", id, ...(words.step === "stage" ? ["id"] : [])),
      message: `Nothing leads to the ${words.step} "${id}" from ${known.map((entry) => `"${entry}"`).join(" or ")}.`,
      fix: `Lead another ${words.step} to it, or remove it.`,
    });
  }
}

function checkGatedEnd(loaded: Registered, tell: Tell): void {
  // A verdict that can fire ends a run wherever it stands.
  if (loaded.reach === null || !isGated(loaded) || visitsToVerdict(loaded) <= loaded.flow.limits.visits)
    return;
  traps(loaded, loaded.steps, true, tell);
}

/** Checks lead round by design: what counts is that no step is without an end. One without a check is a finding of its own. */
function checkCheckedEnd(loaded: Registered, tell: Tell): void {
  const { graph, steps } = loaded;
  traps(loaded, steps, false, tell, (id) => graph.flow.kinds.has(id) && steps.has(questionOf(id)));
}

/** One finding for each trap, where they are told, and one for the nearest step that leads into traps only. */
function traps(
  loaded: LoadedFlow,
  onward: Steps,
  areTold: boolean,
  tell: Tell,
  isTold: (id: StepId) => boolean = () => true,
): void {
  const { flow, words } = loaded;
  const endless = stepsWithoutEnd(onward);
  // Reached steps are in the order of their distance.
  const stuck = [...(loaded.reach?.steps ?? [])].filter((id) => endless.has(id) && isTold(id));
  if (stuck.length === 0) return;

  const trapped = new Set<StepId>();
  const declared = reachWithoutJumps(flow.entry, onward);
  if (areTold) eachTrap(loaded, onward, stuck, declared.steps, trapped, tell);
  const outside = stuck.filter((id) => !trapped.has(id));
  const [first] = outside;
  // Of stages only the trap itself is told.
  if (first === undefined || !declared.steps.has(first) || words.step === "stage") return;
  tell(withoutEnd(loaded, first, wayIntoTrap(loaded, first, trapped), outside.length - 1));
}

function withoutEnd(loaded: LoadedFlow, id: StepId, way: readonly StepId[], more = 0): Finding {
  const { words } = loaded;
  return {
    code: "FLOW-NO-END",
    ...atWays(loaded, id),
    message: `The ${words.step} "${id}" has no path to an end of the flow.${more === 0 ? "" : ` The same applies to ${more} more.`}`,
    fix: words.howToEnd,
    witness: way,
  };
}

/** A stage has one key for all its ways. */
function atWays(loaded: LoadedFlow, id: StepId): At {
  return atPart(loaded, "steps", id, ...(loaded.words.step === "stage" ? ["edges", "ok"] : []));
}

function eachTrap(
  loaded: LoadedFlow,
  onward: Steps,
  stuck: readonly StepId[],
  declared: ReadonlySet<StepId>,
  trapped: Set<StepId>,
  tell: Tell,
): void {
  const byJump = new Map<StepId, StepId[]>();
  for (const { trap, ways } of trapsIn(loaded, onward, stuck)) {
    for (const id of trap) trapped.add(id);
    const first = stuck.find((id) => trap.includes(id))!;
    const isDeclared = declared.has(first) || loaded.words.step === "stage";
    const jumper = isDeclared ? undefined : witness(loaded, first).find((id) => jumpsTo(onward, id, first));
    if (jumper === undefined) tell(aboutTrap(loaded, trap, first, ways.roundTrip(first)));
    else byJump.set(jumper, [...(byJump.get(jumper) ?? []), first]);
  }
  for (const [jumper, targets] of byJump) {
    const [first] = targets;
    const others = targets.length === 1 ? "" : ` and ${targets.length - 1} more`;
    tell({
      code: "FLOW-JUMP-TRAP",
      ...atPart(loaded, "steps", jumper, "structuredGate", "targetField"),
      message: `"jump" of the step "${jumper}" can lead to "${first}"${others}, which has no path to an end of the flow.`,
      fix: `Give targetField an enum in the schema without such steps, or add a transition from "${first}" to a closure.`,
      witness: witness(loaded, jumper, first!),
    });
  }
}

type Trap = { readonly trap: readonly StepId[]; readonly ways: Ways };

/** Groups of steps that lead to each other and to nothing else, each once, from where a run can get to. */
function* trapsIn({ flow, words }: LoadedFlow, onward: Steps, stuck: readonly StepId[]): Generator<Trap> {
  const isStuck = new Set(stuck);
  const told = new Set<StepId>();
  // A stage may be reached only by a failure, which does not count as a path.
  for (const start of words.step === "stage" ? stuck : [flow.entry]) {
    if (told.has(start)) continue;
    const ways = waysFrom(start, onward);
    for (const trap of ways.traps()) {
      const first = trap.find((id) => isStuck.has(id));
      if (first === undefined || told.has(first)) continue;
      for (const id of trap) told.add(id);
      yield { trap, ways };
    }
  }
}

function aboutTrap(
  loaded: LoadedFlow,
  trap: readonly StepId[],
  first: StepId,
  round: readonly StepId[],
): Finding {
  const { steps, words } = loaded;
  const way = witness(loaded, first, ...round.slice(1));
  const common = { ...atWays(loaded, first), witness: way };
  if (round.length === 0) {
    if (words.step === "stage") return withoutEnd(loaded, first, way);
    return {
      ...common,
      code: "FLOW-DEAD-END",
      message: `The ${words.step} "${first}" leads nowhere: ${wordsFor(steps.get(first)!)}.`,
      fix: `Allow an intent that leads to another step. ${words.howToEnd}`,
    };
  }
  const who =
    trap.length === 1
      ? `The ${words.step} "${first}" leads only to itself`
      : `The ${words.step}s ${quoted(trap)} lead only to each other`;
  if (trap.every((id) => onlyRepeats(steps.get(id)!))) {
    return {
      ...common,
      code: "FLOW-LIVELOCK",
      message: `${who}, and only by "repeat": only a limit can end the run.`,
      fix: "Allow an intent that leads to another step, and add its transition.",
    };
  }
  return {
    ...common,
    code: "FLOW-CYCLE",
    message: `${who}: no ${words.way} leaves this cycle.`,
    fix: words.howToEnd,
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
  return Object.values(edges).some((move) => move.kind === "jump" && move.among.includes(target));
}

/** To the step, and on by the first way at hand until the trap has closed. */
function wayIntoTrap(loaded: LoadedFlow, from: StepId, trapped: ReadonlySet<StepId>): readonly StepId[] {
  const { reach } = loaded;
  const inside = [...(reach?.steps ?? [])].find((id) => trapped.has(id) && reach!.pathTo(id).includes(from));
  return witness(loaded, inside ?? from);
}

/** Where a run goes on after a fork: at its join, or not at all. */
function withoutSiblings(move: Move): Move {
  if (move.kind !== "fork") return move;
  return move.join === null ? { kind: "end", outcome: "completed" } : { kind: "goto", step: move.join };
}

/** Tools that leave something behind. Where none can be used there is nothing that a check could look at. */
const CHANGING: ReadonlySet<string> = new Set(["*", "Write", "Edit", "MultiEdit", "NotebookEdit", "Bash"]);

/** A flow that changes things and ends on the model's word alone. */
function checkUnjudged(loaded: Registered, tell: Tell): void {
  if (loaded.reach === null || !isGated(loaded)) return;
  const all = [...loaded.reach.steps].map((id) => loaded.steps.get(id)!);
  if (!all.some(mayChange)) return;
  for (const { id, kind, guard, by, decide } of all) {
    const closes = kind === "close" && by.kind === "model" && decide.by === "field";
    if (!closes || guard !== undefined || !decide.allow.includes("closing") || loaded.graph.judged.has(id))
      continue;
    tell({
      code: "CHECK-NONE",
      ...atPart(loaded, "steps", id),
      message: `The closure "${id}" ends the flow without any validator: nothing checks the model's claim that the work is done.`,
      fix: `Add "${id}" to validationSteps with a validator, such as one that runs the tests.`,
      witness: witness(loaded, id),
    });
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
