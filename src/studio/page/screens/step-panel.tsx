/** What holds for one step of an agent: its contract, prompt, checks, limits and boundary, and where each is written. */
import type { ComponentChildren, JSX } from "preact";
import type { Supplier } from "../../../flow/reads.ts";
import { conditionText } from "../../../tell/graph-words.ts";
import type { Edge } from "../../../tell/outline.ts";
import type { ContractRow, StepExplained } from "../../../tell/explain-step.ts";
import type { Sourced } from "../../../tell/explain.ts";
import type { StepDocument } from "../../wire-agents.ts";
import { useAsk } from "../ask.ts";
import { PageLink } from "../go.tsx";
import { CopyCommand } from "../parts/copy.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { Await } from "../parts/status.tsx";

export function StepPanel({
  agent,
  step,
  version,
}: {
  readonly agent: string;
  readonly step: string;
  readonly version: unknown;
}): JSX.Element {
  const path = `agents/${encodeURIComponent(agent)}/steps/${encodeURIComponent(step)}`;
  const asked = useAsk<StepDocument>(path, version);
  return (
    <section class="card" aria-label={`Step ${step}`}>
      <div class="card-head">
        <h2 class="grow">
          <Foreign text={step} most={80} mono />
        </h2>
        <PageLink to={{ at: "flow", agent, step: null }} class="btn quiet small" label="Close the step">
          Close
        </PageLink>
      </div>
      <div class="card-body">
        <Await asked={asked} what="Loading the step">
          {(document) => <StepFacts document={document} />}
        </Await>
        <CopyCommand words={["explain", agent, step]} />
      </div>
    </section>
  );
}

function StepFacts({ document }: { readonly document: StepExplained }): JSX.Element {
  const {
    kind,
    by,
    prompt,
    variables,
    answer,
    gate,
    contract,
    handoff,
    model,
    mode,
    tools,
    guard,
    stage,
    limits,
    ifInterrupted,
  } = document;
  return (
    <>
      <p class="row">
        <span class="chip">{kind}</span>
        <span class="chip">{by.kind === "command" ? "performed by a command" : "performed by a model"}</span>
        <Origin origin={document.origin} />
      </p>
      {contract.length > 0 && <ContractTable agent={document.agent} rows={contract} />}
      <Part title="Prompt" isShown={prompt !== null}>
        {prompt !== null && (
          <>
            <p>
              {prompt.file === null ? (
                <span class="bad">No prompt file was found.</span>
              ) : (
                <Foreign text={prompt.file} most={200} mono />
              )}
            </p>
            {prompt.file === null && (
              <ul class="small soft">
                {prompt.tried.map((place) => (
                  <li key={place}>
                    tried <Foreign text={place} most={200} mono />
                  </li>
                ))}
              </ul>
            )}
          </>
        )}
        {variables.length > 0 && (
          <dl class="facts">
            {variables.map(({ name, supplier }) => (
              <FactPair key={name} name={name}>
                {supplier === null ? <span class="bad">nothing supplies it</span> : supplierText(supplier)}
              </FactPair>
            ))}
          </dl>
        )}
      </Part>
      <Part title="Answer" isShown>
        <dl class="facts">
          <dt>Form</dt>
          <dd>
            {answer.kind === "text" ? (
              "any text"
            ) : answer.schema === null ? (
              "any object"
            ) : (
              <Foreign text={answer.schema} most={160} mono />
            )}
          </dd>
          {gate !== null && (
            <>
              <dt>Decides by</dt>
              <dd>
                <Foreign text={gate.field.value} most={100} mono />
                {gate.fallback !== null && <span class="soft">, else {gate.fallback}</span>}
              </dd>
            </>
          )}
          {handoff.length > 0 && (
            <>
              <dt>Hands on</dt>
              <dd>
                <Foreign text={handoff.map(({ key }) => key).join(", ")} most={300} mono />
              </dd>
            </>
          )}
        </dl>
      </Part>
      <Part title="Checks" isShown={guard !== null}>
        {guard !== null && (
          <ul class="stack">
            {guard.checks.map((check) => (
              <li key={check.name} class="stack tight">
                <span class="row">
                  <strong>
                    <Foreign text={check.name} most={60} />
                  </strong>
                  <span class="soft small">
                    before <Foreign text={guard.on} most={40} /> takes effect
                  </span>
                </span>
                {check.kind === "command" && <Foreign text={check.command} most={300} mono />}
                {check.kind === "file" && <Foreign text={`file ${check.path}`} most={300} mono />}
                <span class="small soft">
                  fails as <Foreign text={check.pattern} most={60} mono />; retry prompt{" "}
                  {check.edition === null ? (
                    "not found: the general one is used"
                  ) : (
                    <Foreign text={check.edition} most={160} mono />
                  )}
                </span>
              </li>
            ))}
          </ul>
        )}
      </Part>
      <Part title="Model, tools and limits" isShown>
        <dl class="facts">
          <FactPair name="model">
            <SourcedText value={model} />
          </FactPair>
          <FactPair name="mode">
            <SourcedText value={mode} />
          </FactPair>
          <FactPair name="tools">
            <Foreign text={tools.offered.length === 0 ? "none" : tools.offered.join(", ")} most={400} mono />
          </FactPair>
          <FactPair name="answers">
            at most {limits.answers} a visit, {limits.repairs} of them repairs
          </FactPair>
          <FactPair name="model calls">at most {limits.responses} a visit</FactPair>
          {limits.spending.map((row) => (
            <FactPair key={row.key} name={row.key}>
              <SourcedText value={row} />
            </FactPair>
          ))}
          <FactPair name="if interrupted">
            <SourcedText value={ifInterrupted} />
          </FactPair>
        </dl>
      </Part>
      <Part title="Stage" isShown={stage !== null}>
        {stage !== null && (
          <dl class="facts">
            <FactPair name="attempts">{stage.attempts}</FactPair>
            <FactPair name="turns">at most {stage.turnCap}</FactPair>
            <FactPair name="tools">
              <Foreign text={stage.envelope.join(", ")} most={300} mono />
            </FactPair>
            {stage.gate !== null && (
              <FactPair name="gate">
                <Foreign text={stage.gate} most={200} mono />
              </FactPair>
            )}
          </dl>
        )}
      </Part>
    </>
  );
}

function Part({
  title,
  isShown,
  children,
}: {
  readonly title: string;
  readonly isShown: boolean;
  readonly children: ComponentChildren;
}): JSX.Element | null {
  if (!isShown) return null;
  return (
    <section class="stack tight part">
      <h3>{title}</h3>
      {children}
    </section>
  );
}

function FactPair({
  name,
  children,
}: {
  readonly name: string;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <>
      <dt>
        <Foreign text={name} most={60} />
      </dt>
      <dd>{children}</dd>
    </>
  );
}

function SourcedText({ value: { value, origin } }: { readonly value: Sourced<unknown> }): JSX.Element {
  const text =
    typeof value === "string" ? value : value instanceof Object ? JSON.stringify(value) : String(value);
  return (
    <span class="row">
      <Foreign text={text} most={200} mono />
      <Origin origin={origin} />
    </span>
  );
}

function Origin({ origin }: { readonly origin: Sourced["origin"] }): JSX.Element {
  if (origin.kind === "default") return <span class="small soft">default</span>;
  return (
    <span class="small soft">
      <Foreign text={`${origin.file}:${origin.line}`} most={100} mono />
      {origin.kind === "overruled" && " (overruled)"}
    </span>
  );
}

/** Each label: whether the schema can say it, whether it is allowed, and where it leads. */
function ContractTable({
  agent,
  rows,
}: {
  readonly agent: string;
  readonly rows: readonly ContractRow[];
}): JSX.Element {
  return (
    <section class="stack tight part">
      <h3>Contract</h3>
      <div class="scroll" tabIndex={0} role="group" aria-label="Contract of the step">
        <table class="contract">
          <thead>
            <tr>
              <th scope="col">Label</th>
              <th scope="col">Schema</th>
              <th scope="col">Allowed</th>
              <th scope="col">Leads to</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.label} class={row.mismatches.length > 0 ? "wrong" : undefined}>
                <th scope="row">
                  <Foreign text={row.label} most={40} mono />
                </th>
                <td>
                  {row.schema === null ? (
                    <span class="soft">any word</span>
                  ) : row.schema.length === 0 ? (
                    <span class={row.mismatches.length > 0 ? "bad" : "soft"}>cannot say it</span>
                  ) : (
                    <Foreign text={row.schema.join(", ")} most={80} mono />
                  )}
                </td>
                <td>{row.allowed ? "yes" : <span class="bad">no</span>}</td>
                <td>
                  {row.leads.length === 0 && <span class="bad">nowhere</span>}
                  {row.leads.map((edge, at) => (
                    <div key={at}>
                      <EdgeTarget agent={agent} edge={edge} />
                    </div>
                  ))}
                  {row.mismatches.map((text) => (
                    <p key={text} class="bad small">
                      <Foreign text={text} most={300} />
                    </p>
                  ))}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function EdgeTarget({ agent, edge }: { readonly agent: string; readonly edge: Edge }): JSX.Element {
  const condition = conditionText(edge);
  const { to } = edge;
  return (
    <>
      {to.kind === "step" && (
        <PageLink to={{ at: "flow", agent, step: to.step }}>
          <Foreign text={to.step} most={60} mono />
        </PageLink>
      )}
      {to.kind === "missing" && (
        <span class="bad">
          <Foreign text={to.step} most={60} mono /> (there is no such step)
        </span>
      )}
      {to.kind === "any" && (
        <span>
          the step that <Foreign text={to.field} most={60} mono /> names
        </span>
      )}
      {to.kind === "end" && (
        <span>{to.outcome === "completed" ? "end: completed" : `end: failed (${to.code})`}</span>
      )}
      {condition !== "" && (
        <span class="soft small">
          {" "}
          <Foreign text={condition} most={120} />
        </span>
      )}
    </>
  );
}

function supplierText(supplier: Supplier): JSX.Element {
  switch (supplier.kind) {
    case "parameter":
      return (
        <>
          parameter <Foreign text={supplier.flag} most={60} mono />
        </>
      );
    case "input":
    case "handoff":
      return (
        <>
          {supplier.kind === "input" ? "input" : "handoff"} of{" "}
          <Foreign text={`${supplier.step}: ${supplier.key}`} most={100} mono />
        </>
      );
    case "runtime":
      return <>the runtime</>;
    case "section":
      return (
        <>
          section <Foreign text={supplier.file ?? ""} most={100} mono />
        </>
      );
    case "constant":
      return <Foreign text={supplier.value} most={100} mono />;
    case "argument":
      return <>an argument of the run</>;
  }
}
