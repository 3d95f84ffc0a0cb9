/** What `lockstep check` found about an agent: each finding with its place, why it matters and how to fix it. */
import type { JSX } from "preact";
import type { Problem } from "../../../flow/problem.ts";
import { count } from "../../../flow/text/figures.ts";
import { PageLink } from "../go.tsx";
import { CopyButton } from "../parts/copy.tsx";
import { Foreign } from "../parts/foreign.tsx";

export function FindingCount({
  agent,
  problems,
}: {
  readonly agent: string;
  readonly problems: readonly Problem[];
}): JSX.Element {
  const errors = problems.filter(({ severity }) => severity === "error").length;
  const warnings = problems.length - errors;
  return (
    <p class="row">
      {errors > 0 && <span class="chip bad">{count(errors, "error")}</span>}
      {warnings > 0 && <span class="chip warn">{count(warnings, "warning")}</span>}
      {problems.length === 0 && <span class="chip good">no findings</span>}
      {problems.length > 0 && <PageLink to={{ at: "flow", agent, step: null }}>Show the findings</PageLink>}
    </p>
  );
}

type FindingsProps = {
  readonly agent: string;
  readonly problems: readonly Problem[];
  /** The one whose way is lit in the graph. */
  readonly lit: number | null;
  readonly onLight: (at: number | null) => void;
};

export function FindingList({ agent, problems, lit, onLight }: FindingsProps): JSX.Element {
  return (
    <ol class="findings">
      {problems.map((problem, at) => (
        <li key={at} id={`finding-${at}`} tabIndex={-1} class={lit === at ? "lit" : undefined}>
          <div class="row">
            <span class={`chip ${problem.severity === "error" ? "bad" : "warn"}`}>{problem.severity}</span>
            <code>{problem.code}</code>
            {problem.step !== null && (
              <PageLink to={{ at: "flow", agent, step: problem.step }}>
                <Foreign text={problem.step} most={60} mono />
              </PageLink>
            )}
            <span class="grow" />
            <span class="row place">
              <Foreign text={`${problem.file}:${problem.line}`} most={120} mono />
              <CopyButton text={`${problem.file}:${problem.line}`} label="Copy the place" />
            </span>
          </div>
          <p>
            <strong>
              <Foreign text={problem.message} most={1000} />
            </strong>
          </p>
          <p class="soft">
            <Foreign text={problem.why} most={1000} />
          </p>
          <p>
            <span class="soft">Fix: </span>
            <Foreign text={problem.fix} most={1000} />
          </p>
          {problem.witness.length > 0 && (
            <div class="row small">
              <span class="soft">Shown by</span>
              <span class="mono">
                <Foreign text={problem.witness.join(" → ")} most={300} />
              </span>
              <button
                type="button"
                class="btn small"
                aria-pressed={lit === at}
                onClick={() => onLight(lit === at ? null : at)}
              >
                {lit === at ? "Hide in the graph" : "Show in the graph"}
              </button>
            </div>
          )}
        </li>
      ))}
    </ol>
  );
}
