/** A flow as a drawing sees it: its steps, every way between them, and what `check` found about each. */
import type { Flow, Label, Move, Step, StepId, StepKind } from "../flow/flow.ts";
import type { Problem } from "../flow/problem.ts";
import { backTargets, branchesOf, isForking, type Branch } from "../flow/branches.ts";
import { survey } from "./outline-survey.ts";

export type Outline = {
  readonly agent: string;
  readonly title: string;
  readonly entry: StepId;
  readonly nodes: readonly OutlineNode[];
  readonly edges: readonly Edge[];
};

export type OutlineNode = {
  readonly id: StepId;
  readonly name: string;
  readonly kind: StepKind;
  readonly by: "model" | "command";
  /** The step that this one asks about; its visits are not counted. */
  readonly aside: StepId | null;
  /**
   * Who picks the label: the answer of the model; a check, be it a question about a step or commands that a fixed label
   * must survive; or the runtime, where there is but one.
   */
  readonly routedBy: "model" | "check" | "runtime";
  /** What must pass before the label that they guard takes effect. */
  readonly checks: readonly string[];
  readonly isEntry: boolean;
  /** Whether any way leads here from the entry. */
  readonly isReached: boolean;
  /** Steps before it on the longest way from the entry, circles left out. */
  readonly rank: number;
  readonly findings: readonly Problem[];
  /** How often tests or runs have settled a visit of it; absent: that was not measured. */
  readonly hits?: number;
};

export type Edge = {
  readonly from: StepId;
  readonly label: Label;
  /** What the path of a run calls the label here. */
  readonly as: Label | null;
  /**
   * The move it is, or belongs to; `back` is the way after a failed check. `join` is the way from each sibling of a
   * fork to the step where they meet; the same way from the step that forked is tacit.
   */
  readonly kind: "goto" | "switch" | "jump" | "fork" | "join" | "back" | "end";
  readonly by: "model" | "runtime" | "check";
  /** What must hold besides the label, in words: `risk = high`, `otherwise`, `up to 3 times`. */
  readonly when: readonly string[];
  readonly to: Target;
  /** It closes a circle: without such edges every way leads forward. */
  readonly isLoop: boolean;
  /** A label that the step accepts without naming it, or the join as the fork names it. Drawings leave it out. */
  readonly isTacit: boolean;
  /** How often tests or runs have taken it; absent: that was not measured. */
  readonly hits?: number;
};

export type Target =
  | { readonly kind: "step"; readonly step: StepId }
  /** A name that does not belong to a step. */
  | { readonly kind: "missing"; readonly step: StepId }
  /** Whichever of many steps the answer names. */
  | { readonly kind: "any"; readonly field: string; readonly among: readonly StepId[] }
  | { readonly kind: "end"; readonly outcome: "completed" }
  | { readonly kind: "end"; readonly outcome: "failed"; readonly code: string };

export function outlineOf(flow: Flow, problems: readonly Problem[] = []): Outline {
  const steps = Object.values(flow.steps);
  const back = backTargets(flow);
  const scenes = scenesOf(flow);
  const edges = steps.flatMap((step) => [
    ...labelEdges(flow, step, scenes.get(step.id) ?? [ALONE]),
    ...backEdges(flow, step, back.get(step.id) ?? []),
  ]);
  const { loops, reached, ranks } = survey(flow, edges);
  const found = Map.groupBy(problems, (problem) => problem.step);
  const nodes = steps.map((step): OutlineNode => ({
    id: step.id,
    name: step.name,
    kind: step.kind,
    by: step.by.kind,
    aside: step.aside ?? null,
    routedBy: routedBy(step),
    checks: step.guard?.checks.map(({ check }) => check) ?? [],
    isEntry: step.id === flow.entry,
    isReached: reached.has(step.id),
    rank: ranks.get(step.id) ?? 0,
    findings: found.get(step.id) ?? [],
  }));
  return {
    agent: flow.agent,
    title: flow.title,
    entry: flow.entry,
    nodes: nodes.toSorted((a, b) => Number(b.isReached) - Number(a.isReached) || a.rank - b.rank),
    edges: edges.map((edge) => withLoop(edge, loops)),
  };
}

function routedBy({ decide, aside, guard }: Step): OutlineNode["routedBy"] {
  if (decide.by === "field") return aside === undefined ? "model" : "check";
  return guard === undefined ? "runtime" : "check";
}

export type EdgeDraft = Omit<Edge, "isLoop">;

function withLoop(edge: EdgeDraft, loops: ReadonlySet<EdgeDraft>): Edge {
  return { ...edge, isLoop: loops.has(edge) };
}

/**
 * What a step is part of while it is visited: nothing, a fork whose siblings meet again, or a fork that has failed and
 * only ends on its sibling's own way.
 */
type Scene =
  | { readonly kind: "alone" }
  | { readonly kind: "beside"; readonly from: StepId; readonly fork: Fork }
  | { readonly kind: "failed" };
type Fork = Extract<Move, { kind: "fork" }>;

const ALONE: Scene = { kind: "alone" };
const FAILED_FORK: Scene = { kind: "failed" };
const SIBLING_FAILURE = { kind: "end", outcome: "failed", code: "ParallelSiblingFailure" } as const;

/** Every scene that a step can be visited in, as the engine would take its edges. Empty where nothing forks. */
function scenesOf(flow: Flow): ReadonlyMap<StepId, readonly Scene[]> {
  const scenes = new Map<StepId, Scene[]>();
  const open: [StepId, Scene][] = [];
  const add = (id: StepId, scene: Scene) => {
    const known = scenes.get(id) ?? [];
    if (!Object.hasOwn(flow.steps, id) || known.length === MOST_SCENES) return;
    if (known.some((other) => isSameScene(other, scene))) return;
    scenes.set(id, [...known, scene]);
    open.push([id, scene]);
  };
  const walk = (start: StepId) => {
    add(start, ALONE);
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const [id, scene] = next;
      const step = flow.steps[id]!;
      if (step.guard?.back.kind === "goto") add(step.guard.back.step, scene);
      for (const [label, edge] of Object.entries(step.edges)) {
        for (const { move } of branchesOf(edge)) {
          const taken = movesIn(scene, step, label, move);
          if (taken.kind === "goto") add(taken.step, taken.scene);
          if (taken.kind === "jump") for (const to of taken.among) add(to, scene);
          if (taken.kind !== "fork") continue;
          for (const to of taken.steps) add(to, { kind: "beside", from: id, fork: taken });
          if (taken.join !== null) add(taken.join, scene);
        }
      }
    }
  };
  const forking = Object.values(flow.steps).filter(isForking);
  if (forking.length === 0) return scenes;
  walk(flow.entry);
  for (const { id } of forking) if (!scenes.has(id)) walk(id);
  return scenes;
}

/** Far more forks than a stage can sensibly belong to: a drawing of a broken flow ends too. */
const MOST_SCENES = 64;

function isSameScene(a: Scene, b: Scene): boolean {
  if (a.kind !== "beside" || b.kind !== "beside") return a.kind === b.kind;
  return a.from === b.from && a.fork.join === b.fork.join && a.fork.policy === b.fork.policy;
}

type Taken =
  | (Extract<Move, { kind: "goto" }> & { readonly scene: Scene })
  | { readonly kind: "join"; readonly fork: Fork; readonly from: StepId }
  | Extract<Branch["move"], { kind: "jump" | "fork" | "end" }>;

/** What a move comes to in a scene. A stage beside others that is not content takes its group with it, or only itself. */
function movesIn(scene: Scene, step: Step, label: Label, move: Branch["move"]): Taken {
  if (scene.kind === "beside") {
    const { fork, from } = scene;
    const isContent = step.stage === undefined || label === "ok";
    if (!isContent && fork.policy === "independent") return { kind: "join", fork, from };
    if (!isContent) return move.kind === "goto" ? { ...move, scene: FAILED_FORK } : SIBLING_FAILURE;
    if (move.kind === "end")
      return move.outcome === "completed" ? { kind: "join", fork, from } : SIBLING_FAILURE;
  }
  if (scene.kind === "failed" && move.kind === "end") return SIBLING_FAILURE;
  return move.kind === "goto" ? { ...move, scene } : move;
}

function* labelEdges(flow: Flow, step: Step, scenes: readonly Scene[]): Generator<EdgeDraft> {
  const drawn = new Set<string>();
  for (const scene of scenes) {
    for (const edge of edgesIn(flow, step, scene, scenes.length > 1)) {
      const key = JSON.stringify(edge);
      if (!drawn.has(key)) yield edge;
      drawn.add(key);
    }
  }
}

function* edgesIn(flow: Flow, step: Step, scene: Scene, isOneOfMany: boolean): Generator<EdgeDraft> {
  const { decide } = step;
  for (const [label, move] of Object.entries(step.edges)) {
    // Only a gate skips a stage, or code that no drawing knows.
    if (label === "skip" && step.stage?.gate === undefined && step.stage && !flow.hooks) continue;
    const isUnsaid = decide.by === "field" ? decide.always.includes(label) : step.stage !== undefined;
    const by = decide.by === "field" ? "model" : "runtime";
    for (const branch of branchesOf(move)) {
      const taken = movesIn(scene, step, label, branch.move);
      const isFailure = move.kind === "end" && move.outcome === "failed";
      const isTacit = isUnsaid && isFailure && taken.kind === "end";
      const as = "as" in branch.move ? (branch.move.as ?? null) : null;
      const common = { from: step.id, label, as, by, isTacit } as const;
      if (taken.kind === "join") {
        const when = isOneOfMany ? [...branch.when, `started by ${taken.from}`] : branch.when;
        yield { ...common, when, kind: "join", to: joinTarget(flow, taken.fork) };
        continue;
      }
      const kind = move.kind === "switch" && taken.kind === "goto" ? "switch" : taken.kind;
      for (const way of waysOf(flow, taken)) yield { ...common, kind, when: branch.when, ...way };
    }
  }
}

function joinTarget(flow: Flow, { join }: Fork): Target {
  return join === null ? { kind: "end", outcome: "completed" } : stepTarget(flow, join);
}

function* backEdges(flow: Flow, step: Step, targets: readonly StepId[]): Generator<EdgeDraft> {
  const common = {
    from: step.id,
    label: step.guard?.on ?? "",
    as: null,
    kind: "back",
    by: "check",
    isTacit: false,
  } as const;
  const isCaller = step.guard?.back.kind === "caller" && targets.length > 1;
  for (const to of targets) {
    const when = isCaller && to !== step.id ? ["check failed", `came from ${to}`] : ["check failed"];
    yield { ...common, when, to: stepTarget(flow, to) };
  }
}

function* waysOf(
  flow: Flow,
  move: Branch["move"],
): Generator<{ readonly to: Target; readonly kind?: "join"; readonly isTacit?: true }> {
  switch (move.kind) {
    case "goto":
      yield { to: stepTarget(flow, move.step) };
      return;
    case "fork":
      for (const id of move.steps) yield { to: stepTarget(flow, id) };
      yield { to: joinTarget(flow, move), kind: "join", isTacit: true };
      return;
    case "end":
      yield {
        to:
          move.outcome === "completed"
            ? { kind: "end", outcome: "completed" }
            : { kind: "end", outcome: "failed", code: move.code },
      };
      return;
    case "jump": {
      const { among, field } = move;
      if (among.length > FEW) yield { to: { kind: "any", field: field.join("."), among } };
      else for (const id of among) yield { to: stepTarget(flow, id) };
    }
  }
}

/** A jump to more steps than this is one edge to all of them. */
const FEW = 4;

function stepTarget(flow: Flow, id: StepId): Target {
  return Object.hasOwn(flow.steps, id) ? { kind: "step", step: id } : { kind: "missing", step: id };
}
