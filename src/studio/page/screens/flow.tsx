/** One agent: its flow as a picture with what `check` found, what a run can cost, and what holds for each step. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Problem } from "../../../flow/problem.ts";
import { count } from "../../../flow/text/figures.ts";
import type { AgentDocument, CoverageDocument } from "../../wire-agents.ts";
import { useAsk } from "../ask.ts";
import { ScreenFrame } from "../frame.tsx";
import { PageLink } from "../go.tsx";
import { useKeys } from "../keys.ts";
import { useFilesOf } from "../listen.ts";
import { CopyCommand } from "../parts/copy.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { FlowPicture, type GraphLook } from "../parts/graph.tsx";
import { Await, Blank } from "../parts/status.tsx";
import { useMayAct } from "../project.ts";
import type { Route } from "../route.ts";
import { BoundaryPart } from "./boundary-part.tsx";
import { CoveragePart } from "./coverage-part.tsx";
import { FindingList } from "./findings.tsx";
import { takenCounts } from "./flow-model.ts";
import { StepPanel } from "./step-panel.tsx";

type FlowRoute = Extract<Route, { readonly at: "flow" }>;

export function FlowScreen({ route }: { readonly route: FlowRoute }): JSX.Element {
  const { agent, step } = route;
  const version = useFilesOf(agent);
  const asked = useAsk<AgentDocument>(`agents/${encodeURIComponent(agent)}`, version);
  const mayAct = useMayAct();
  const isSound = asked.value?.problems.every(({ severity }) => severity !== "error") ?? false;
  return (
    <ScreenFrame
      crumbs={[
        { text: "Flows", to: { at: "flows" } },
        step === null ? { text: agent } : { text: agent, to: { at: "flow", agent, step: null } },
        ...(step === null ? [] : [{ text: step }]),
      ]}
    >
      <div class="head">
        <div class="titles">
          <h1>
            <Foreign text={agent} most={60} />
          </h1>
          {asked.value?.explained != null && (
            <p class="soft">
              <Foreign text={asked.value.explained.description || asked.value.explained.title} most={200} />
            </p>
          )}
        </div>
        <div class="actions">
          {mayAct && isSound && (
            <PageLink to={{ at: "start", agent }} class="btn primary">
              Start
            </PageLink>
          )}
          <PageLink to={{ at: "whatif", agent }} class="btn">
            What if
          </PageLink>
          <CopyCommand words={["check", agent]} isMain />
        </div>
      </div>
      <Await asked={asked} what="Loading the agent">
        {(document) => <FlowParts document={document} step={step} version={version} />}
      </Await>
    </ScreenFrame>
  );
}

type PartsProps = {
  readonly document: AgentDocument;
  readonly step: string | null;
  readonly version: number;
};

function FlowParts({ document, step, version }: PartsProps): JSX.Element {
  const { agent, outline, problems, explained } = document;
  const [lit, setLit] = useState<number | null>(null);
  const [overlay, setOverlay] = useState<Overlay>(document.taken.runs > 0 ? "runs" : null);
  const mayTest = useMayAct() && problems.every(({ severity }) => severity !== "error");
  const covered = useAsk<CoverageDocument>(
    overlay === "tests" ? `agents/${encodeURIComponent(agent)}/coverage` : null,
    version,
  );
  const toggle = (other: NonNullable<Overlay>) => setOverlay(overlay === other ? null : other);
  const [at, setAt] = useState(-1);
  const walk = (by: 1 | -1) => {
    if (problems.length === 0) return;
    const next = Math.max(0, Math.min(problems.length - 1, at + by));
    setAt(next);
    setLit(next);
    globalThis.document.getElementById(`finding-${next}`)?.focus();
  };
  useKeys("Flow", {
    n: { about: "Next finding", run: () => walk(1) },
    p: { about: "Previous finding", run: () => walk(-1) },
    o: { about: "Show what runs did", run: () => toggle("runs") },
  });
  const shownBy = overlay === "runs" ? document.taken.edges : overlay === null ? null : covered.value?.edges;
  const look = useLook(document, shownBy ?? null, lit === null ? null : (problems[lit] ?? null), step);
  const overlayButton = (of: NonNullable<Overlay>, words: string) => (
    <button type="button" class="btn small" aria-pressed={overlay === of} onClick={() => toggle(of)}>
      {words}
    </button>
  );
  const tools = (
    <>
      {document.taken.runs > 0 && overlayButton("runs", `Taken in ${count(document.taken.runs, "run")}`)}
      {mayTest && overlayButton("tests", "Covered by tests")}
    </>
  );
  return (
    <>
      {explained !== null && <Budget document={document} />}
      <div class={step === null ? "stack" : "flow-columns"}>
        {outline === null ? (
          <div class="card">
            <Blank title="The files hold no flow that can be drawn.">
              <p>The findings below say what is wrong.</p>
            </Blank>
          </div>
        ) : (
          <FlowPicture
            outline={outline}
            look={look}
            to={(id) => ({ at: "flow", agent, step: id })}
            rows={problems.length > 0 ? 2 : 1}
            label="Flow"
            tools={tools}
          />
        )}
        {step !== null && <StepPanel key={step} agent={agent} step={step} version={version} />}
      </div>
      <section class="card">
        <div class="card-head">
          <h2 class="grow">Findings</h2>
          {problems.some(({ mend }) => mend !== undefined) && (
            <CopyCommand words={["check", agent, "--fix"]} />
          )}
        </div>
        {problems.length === 0 ? (
          <p class="card-body">
            <span>
              <span class="chip good">sound</span> <span class="soft">The check found nothing.</span>
            </span>
          </p>
        ) : (
          <FindingList agent={agent} problems={problems} lit={lit} onLight={setLit} />
        )}
      </section>
      {overlay === "tests" && <CoveragePart agent={agent} asked={covered} />}
      {explained !== null && <BoundaryPart agent={agent} version={version} />}
    </>
  );
}

/** What the numbers on the ways are counted in. */
type Overlay = "runs" | "tests" | null;

/** The picture with what is known of each step: findings, the way that shows one, and how often runs were there. */
function useLook(
  document: AgentDocument,
  shownBy: readonly number[] | null,
  lit: Problem | null,
  selected: string | null,
): GraphLook {
  const { outline } = document;
  const counts = useMemo(
    () => (outline === null || shownBy === null ? null : takenCounts(outline, shownBy)),
    [outline, shownBy],
  );
  const way = lit === null || lit.witness.length === 0 ? null : new Set(lit.witness);
  return {
    step: (id) => {
      const found = outline?.nodes.find((node) => node.id === id)?.findings ?? [];
      const isWrong = found.some(({ severity }) => severity === "error");
      return {
        ...(found.length > 0 ? { note: count(found.length, "finding") } : {}),
        ...(isWrong ? { tone: "bad" as const } : found.length > 0 ? { tone: "warn" as const } : {}),
        isSelected: id === selected || way?.has(id) === true,
        isFaint: way !== null && !way.has(id),
      };
    },
    taken: (ways) => (counts === null ? null : ways.reduce((sum, key) => sum + (counts.get(key) ?? 0), 0)),
  };
}

function Budget({ document }: { readonly document: AgentDocument }): JSX.Element | null {
  if (document.explained === null) return null;
  const { budget, steps, dialect, ends } = document.explained;
  const checks = new Set([...ends.checks, ...steps.flatMap((step) => step.checks)]);
  const bound = (most: number | null) => (most === null ? "no bound" : most.toLocaleString("en"));
  return (
    <section class="card">
      <div class="card-body">
        <dl class="figures">
          <div>
            <dt>Form</dt>
            <dd>{dialect}</dd>
          </div>
          <div>
            <dt>Steps</dt>
            <dd>{steps.length}</dd>
          </div>
          <div>
            <dt>Visits at most</dt>
            <dd>{bound(budget.visits.most)}</dd>
          </div>
          <div>
            <dt>Answers at most</dt>
            <dd>{bound(budget.answers.most)}</dd>
          </div>
          <div>
            <dt>Model calls at most</dt>
            <dd>{bound(budget.responses.most)}</dd>
          </div>
          <div>
            <dt>Checks</dt>
            <dd>{checks.size === 0 ? "none" : checks.size}</dd>
          </div>
        </dl>
        <p class="soft small">
          <Foreign
            text={`Answers: ${budget.answers.because}. Model calls: ${budget.responses.because}.`}
            most={400}
          />
          {document.costLine !== null && " "}
          {document.costLine !== null && <Foreign text={document.costLine} most={300} />}
        </p>
      </div>
    </section>
  );
}
