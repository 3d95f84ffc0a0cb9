/** Why a visit of a run went the way it did: the whole chain, worked out again from the run's journal alone. */
import type { Prepared, PreparedFlows } from "../engine/schema/prepared.ts";
import { RunnerError } from "../engine/ports.ts";
import type { Entry, Led } from "../flow/event.ts";
import type { StepCommand } from "../flow/command.ts";
import type { Guard, Label, Step, StepId } from "../flow/flow.ts";
import type { Verdict } from "../flow/verdict.ts";
import { own } from "../flow/json.ts";
import { didYouMean } from "../flow/text/suggest.ts";
import { composer } from "../prompts/compose.ts";
import { momentOf, toldOf, type WhyTold, type WhyMoment } from "./why-moment.ts";
import { traceOf, visitIn, type Trace, type Visit } from "../story/visits.ts";

export type Why = {
  readonly v: 1;
  readonly run: string;
  readonly agent: string;
  readonly digest: string;
  readonly step: StepId;
  readonly visit: number;
  readonly name: string;
  readonly kind: Step["kind"];
  /** The how-manyth visit of the run it was. */
  readonly iteration: number;
  /** The step that led here; null: the run began here. */
  readonly from: StepId | null;
  /** `open`: under way. `stopped`: a resumed run goes on here. `left`: the run ended before it was decided. */
  readonly state: "settled" | "open" | "stopped" | "left";
  readonly system: { readonly file: string | null; readonly text: string };
  /** What held for the answers: of the step, then of each question about its work. */
  readonly contracts: readonly Contract[];
  readonly moments: readonly WhyMoment[];
  readonly decision: Led | null;
  /** What is to be done next, where nothing is decided. */
  readonly pending: { readonly command: StepCommand; readonly told: readonly WhyTold[] } | null;
  /** How the run ended, if it ended here. */
  readonly ended: Verdict | null;
  /** Whether the agent has its schemas and validations shown. */
  readonly inspection: boolean;
};

export type Contract = {
  readonly step: StepId;
  readonly by: Step["by"];
  readonly model: string;
  readonly transcript: Step["transcript"];
  readonly answer: Step["answer"];
  readonly decide: Step["decide"];
  readonly guard: (Omit<Guard, "checks"> & { readonly on: Label; readonly checks: readonly string[] }) | null;
};

/**
 * The chain behind one decision.
 *
 * @param target `STEP` or `STEP@VISIT`; without a visit the last one. By default the decision that was made last, or the
 * visit that the run ended in. STEP_UNKNOWN when there is no such visit.
 */
export function whyIn(trace: Trace, target?: string): Why {
  const visit = target === undefined ? lastOf(trace) : findVisit(trace, target);
  if (visit === undefined)
    throw new RunnerError("STEP_UNKNOWN", "The run ended before any step was visited.");
  return toWhy(trace, visit);
}

/** A journal does not record that its process died: what is open in a run that no living process drives has stopped. */
export function asDriven(one: Why, isDriven: boolean): Why {
  return one.state === "open" && !isDriven ? { ...one, state: "stopped" } : one;
}

/** The same for every visit, in the order in which they were begun. */
export function whyAll(flow: Prepared, entries: readonly Entry[], adopted?: PreparedFlows): readonly Why[] {
  const trace = traceOf(flow, entries, adopted);
  return trace.visits.map((visit) => toWhy(trace, visit));
}

function toWhy(trace: Trace, visit: Visit): Why {
  const { final, bySteps } = trace;
  const { step: id, happened } = visit;
  const flow = happened.at(-1)?.flow ?? visit.flow;
  const step = flow.steps[id]!;
  const { run, agent } = startOf(trace);
  const digest = happened.at(-1)?.digest ?? trace.digest;
  const moments = happened.map(momentOf);
  const decision = moments.findLast(({ led }) => led !== undefined)?.led ?? null;
  const isHere = (lane: { readonly step: StepId; readonly visit: number }) =>
    bySteps.get(lane.step)?.[lane.visit - 1] === visit;
  const open = final.lanes.find(isHere);
  const lane = open ?? final.halted.find(isHere);
  const asked = lane === undefined ? undefined : flow.steps[lane.step];
  const last = happened.at(-1)?.entry;
  return {
    v: 1,
    run,
    agent,
    digest,
    step: id,
    visit: visit.visit,
    name: step.name,
    kind: step.kind,
    iteration: visit.iteration,
    from: visit.from,
    state:
      decision !== null ? "settled" : open !== undefined ? "open" : lane === undefined ? "left" : "stopped",
    system: { file: flow.system.file, text: composer.system(flow) },
    contracts: Object.values(flow.steps)
      .filter((other) => other === step || (other.aside === id && wasAsked(other.id)))
      .map(contractOf),
    moments,
    decision,
    pending:
      lane === undefined || asked === undefined
        ? null
        : {
            command: lane.command,
            told:
              lane.command.type === "ask" && asked.by.kind === "model"
                ? lane.say.map((say) => toldOf(flow, asked, say, final))
                : [],
          },
    ended: last?.event.type === "run.ended" && last === trace.last ? last.event.verdict : null,
    inspection: flow.settings.inspectSchemas,
  };

  function wasAsked(other: StepId): boolean {
    return bySteps.get(other)?.includes(visit) ?? false;
  }
}

function contractOf({ id, by, model, transcript, answer, decide, guard }: Step): Contract {
  const names = guard?.checks.map(({ check }) => check) ?? [];
  return {
    step: id,
    by,
    model,
    transcript,
    answer,
    decide,
    guard: guard === undefined ? null : { ...guard, checks: names },
  };
}

function startOf({ started }: Trace): NonNullable<Trace["started"]> {
  if (started === null) throw new Error("A journal begins with run.started");
  return started;
}

// Which visit is meant.

function lastOf({ visits, newest, decided, last }: Trace): Visit | undefined {
  if (last?.event.type === "run.ended") return newest[0];
  return decided ?? visits.at(-1);
}

/** STEP_UNKNOWN when there is no such visit. */
export function findVisit({ flow, bySteps }: Trace, target: string): Visit {
  const { step: named, visit: number } =
    own(flow.steps, target) === undefined ? (visitIn(target) ?? { step: target }) : { step: target };
  const visits = bySteps.get(named) ?? [];
  const found = number === undefined ? visits.at(-1) : visits[number - 1];
  if (found !== undefined) return found;
  const there = [...bySteps].map(([id, all]) => `${id}${all.length === 1 ? "" : ` (${all.length} times)`}`);
  const listed = `Visited were ${there.slice(0, MOST_LISTED).join(", ")}${there.length > MOST_LISTED ? ", …" : ""}.`;
  if (own(flow.steps, named) === undefined) {
    const near = didYouMean(named, Object.keys(flow.steps));
    throw new RunnerError("STEP_UNKNOWN", `The flow of this run has no step "${named}".${near} ${listed}`);
  }
  const why =
    visits.length === 0
      ? `The run never came to step "${named}". ${listed}`
      : `Step "${named}" was visited ${visits.length === 1 ? "once" : `${visits.length} times`}; there is no visit ${number}. The last is ${named}@${visits.length}.`;
  throw new RunnerError("STEP_UNKNOWN", why);
}

const MOST_LISTED = 20;
