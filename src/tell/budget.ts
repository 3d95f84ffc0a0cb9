/**
 * The upper bound of what a run can cost, proved from the limits of its flow before the first token.
 *
 * An answer is a response that gives a step's result, fit or not; between answers a model may use tools, so that the
 * responses of a visit can be many more. Requests that brought no response (rate limits, a broken connection) and what a
 * resumed run has to ask again are not counted.
 */
import type { Flow, Step } from "../flow/flow.ts";
import { mostVisits } from "../flow/rules.ts";
import { forgives, hasForks, most, toGraph, worst, type FlowGraph, type Worst } from "./budget-worst.ts";

export type AnswerBudget = {
  /** Visits of steps, questions about another step included. */
  readonly visits: Bound;
  readonly answers: Bound;
  readonly responses: Bound;
  /** The most that a single visit can take: 1 answer and so many repairs, and responses in all. */
  readonly perVisit: { readonly answers: number; readonly responses: number };
};

/** `most` is null when nothing bounds it. `because` says what does, in words. */
export type Bound = { readonly most: number | null; readonly because: string };

/** Holds for every run of the flow, whatever the model says. */
export function budgetOf(flow: Flow): AnswerBudget {
  const whole = toGraph(flow);
  const graph = { ...whole, ...ceilingOf(whole) };
  const steps = [...graph.steps.values()];
  const bound = (weight: (step: Step) => number, words: (each: number) => string) =>
    toBound(worst(graph, weight), graph, words);
  return {
    visits: bound(
      () => 1,
      () => "",
    ),
    answers: spared(
      bound(answersOf, (each) => answerWords(each, steps)),
      graph,
    ),
    responses: spared(
      bound(responsesOf, (each) => ` × ${each} model calls`),
      graph,
    ),
    perVisit: { answers: most(steps.map(answersOf)), responses: most(steps.map(responsesOf)) },
  };
}

/** The same, unless the limits on responses allow even less: of the run, or of all its steps together. */
function spared(bound: Bound, { flow, steps }: FlowGraph): Bound {
  const ofRun = flow.limits.turns ?? Infinity;
  const ofSteps = [...steps.values()].reduce(
    (sum, { by, limits: own }) => sum + (by.kind === "command" ? 0 : (own?.turns ?? Infinity)),
    0,
  );
  const least = Math.min(ofRun, ofSteps);
  if (least >= (bound.most ?? Infinity)) return bound;
  const because = ofRun <= ofSteps ? `the limit of ${ofRun} turns` : "the limits of its steps on turns";
  return { most: least, because };
}

/** The upper bound in a few words: `24 answers (12 iterations × 2 tries), 2,400 model calls including tool use`. */
export function budgetLine({ answers, responses }: AnswerBudget): string {
  if (answers.most === null) return `no upper bound (${answers.because})`;
  const most = `${figure(answers.most, "answer")} (${answers.because})`;
  if (responses.most === null || responses.most <= answers.most) return most;
  return `${most}, ${figure(responses.most, "model call")} including tool use`;
}

/** What a run can cost, in one line. */
export function costLine(flow: Flow): string {
  const budget = budgetOf(flow);
  if (budget.answers.most === null) return `No upper bound: ${budget.answers.because}.`;
  return `Upper bound: ${budgetLine(budget)}.`;
}

function figure(value: number, what: string): string {
  return `${value.toLocaleString("en")} ${what}${value === 1 ? "" : "s"}`;
}

/** Answers that one visit of the step can take. In a stage every response may be one. */
export function answersOf(step: Step): number {
  const responses = responsesOf(step);
  if (step.stage !== undefined || step.by.kind === "command") return responses;
  return Math.min(responses, step.answer.kind === "text" ? 1 : 1 + step.answer.repairs);
}

/** Responses that one visit of the step can take. */
export function responsesOf({ by, turns, stage, limits }: Step): number {
  if (by.kind === "command") return 0;
  const inAttempt = Math.min(turns, limits?.perAttempt?.turns ?? turns);
  return Math.min(inAttempt * (stage?.attempts ?? 1), limits?.turns ?? Infinity);
}

/** The most visits of counted steps, and what keeps them down, in words. */
type Ceiling = { readonly visits: number; readonly ceiling: string };

/**
 * The ceiling of the flow, or the count after which its stop rule ends it for certain; then each failed check before
 * that end costs one visit more. While something else is being fixed the count may be passed without a word.
 */
function ceilingOf(graph: FlowGraph): Ceiling {
  const { flow, returns } = graph;
  const { stop, stopGuard, limits } = flow;
  const all = [...graph.steps.values()];
  const isPlain = all.every(({ by, aside }) => by.kind === "model" && aside === undefined);
  // An unusable first answer is forgiven, and the second visit is the first that can be judged.
  const count = Math.max(mostVisits(stop, flow), all.some(forgives) ? 2 : 1);
  const retries = stopGuard?.onFailure === "retry" ? stopGuard.maxFailures - 1 : 0;
  const isSure = isPlain && returns.length === 0 && !hasForks(graph);
  if (!isSure || count + retries > limits.visits)
    return { visits: limits.visits, ceiling: figure(limits.visits, visitName(flow)) };
  const more = retries === 0 ? "" : ` + ${retries} after failed checks`;
  const ceiling = `${figure(count, visitName(flow))}${more}`;
  return { visits: count + retries, ceiling };
}

function toBound(
  { most, by, heaviest }: Worst,
  { visits, ceiling, returns }: FlowGraph & Ceiling,
  times: (each: number) => string,
): Bound {
  const back = returns.reduce((sum, one) => sum + one.times, 0);
  switch (by) {
    case "visits": {
      if (most !== visits * heaviest) return { most, because: `${ceiling} on the most expensive path` };
      const product = times(heaviest);
      const isSum = product !== "" && ceiling.includes(" + ");
      return { most, because: `${isSum ? `(${ceiling})` : ceiling}${product}` };
    }
    case "shape":
      return {
        most,
        because: `the longest path through the flow${back === 0 ? "" : `, going back ${back === 1 ? "once" : `${back} times`} after failed checks`}`,
      };
    case "nothing":
      return { most: null, because: "questions about a step form a loop that has no limit" };
  }
}

function visitName({ dialect }: Flow): string {
  return dialect === "stage" ? "visit" : "iteration";
}

/** What the ceiling on visits is called where it is written. */
export function limitName({ dialect }: Flow): string {
  return dialect === "stage" ? "limits.visits" : "maxIterations";
}

function answerWords(each: number, steps: readonly Step[]): string {
  const single = most(steps.map(answersOf));
  const isPlain = steps.some(({ stage }) => stage !== undefined);
  if (each === 1) return "";
  return each !== single || isPlain ? ` × ${each} answers` : ` × ${each} tries`;
}
