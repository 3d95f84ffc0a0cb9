/** The agents of the project: whether each is sound, what a run of it can cost at most, and how its last run went. */
import type { JSX } from "preact";
import { count } from "../../../flow/text/figures.ts";
import type { AgentLine, AgentsDocument } from "../../wire-agents.ts";
import { useAsk } from "../ask.ts";
import { ScreenFrame } from "../frame.tsx";
import { PageLink } from "../go.tsx";
import { useLive } from "../listen.ts";
import { CopyCommand } from "../parts/copy.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { StateChip } from "../parts/state.tsx";
import { Await, Blank } from "../parts/status.tsx";
import { Ago } from "../parts/time.tsx";
import { useMayAct } from "../project.ts";
import { runAt } from "../route.ts";

export function FlowsScreen(): JSX.Element {
  const epoch = useLive((now) => now.epoch);
  const files = useLive((now) => now.files);
  const asked = useAsk<AgentsDocument>("agents", `${epoch} ${[...files.values()].join(" ")}`);
  return (
    <ScreenFrame crumbs={[{ text: "Flows" }]}>
      <div class="head">
        <div class="titles">
          <h1>Flows</h1>
          <p class="soft">The agents of this project, as their files stand now.</p>
        </div>
        <CopyCommand words={["check"]} isMain />
      </div>
      <Await asked={asked} what="Loading the agents">
        {({ agents }) =>
          agents.length === 0 ? (
            <div class="card">
              <Blank title="There is no agent here." command={["init", "hello"]}>
                <p>An agent is a folder below .agent/ with its steps, prompts and schemas.</p>
              </Blank>
            </div>
          ) : (
            <div class="cards">
              {agents.map((line) => (
                <AgentCard key={line.agent} line={line} />
              ))}
            </div>
          )
        }
      </Await>
    </ScreenFrame>
  );
}

function AgentCard({ line }: { readonly line: AgentLine }): JSX.Element {
  const { agent, title, dialect, errors, warnings, budget, runs, last } = line;
  const mayAct = useMayAct();
  return (
    <article class="card">
      <div class="card-head">
        <h2 class="grow">
          <PageLink to={{ at: "flow", agent, step: null }}>
            <Foreign text={agent} most={60} />
          </PageLink>
        </h2>
        {errors > 0 && <span class="chip bad">{count(errors, "error")}</span>}
        {warnings > 0 && <span class="chip warn">{count(warnings, "warning")}</span>}
        {errors + warnings === 0 && <span class="chip good">sound</span>}
      </div>
      <div class="card-body">
        {title !== "" && title !== agent && (
          <p>
            <Foreign text={title} most={160} />
          </p>
        )}
        <dl class="facts">
          <dt>Form</dt>
          <dd>{dialect ?? "cannot be read"}</dd>
          <dt>Upper bound</dt>
          <dd>
            {budget === null
              ? "–"
              : budget.answers.most === null
                ? "none"
                : count(budget.answers.most, "answer")}
            {budget !== null &&
              budget.responses.most !== null &&
              budget.responses.most > (budget.answers.most ?? 0) && (
                <span class="soft">, {budget.responses.most.toLocaleString("en")} model calls</span>
              )}
          </dd>
          <dt>Runs</dt>
          <dd>
            <PageLink to={{ at: "runs", state: "", agent, q: "" }}>{runs}</PageLink>
          </dd>
          <dt>Last run</dt>
          <dd>
            {last === null ? (
              <span class="soft">none yet</span>
            ) : (
              <span class="row">
                <PageLink to={runAt(last.run)}>
                  <StateChip state={last.state} />
                </PageLink>
                <span class="soft">
                  <Ago at={last.createdAt} />
                </span>
              </span>
            )}
          </dd>
        </dl>
        <div class="actions">
          <PageLink to={{ at: "flow", agent, step: null }} class="btn">
            Open
          </PageLink>
          {mayAct && errors === 0 && (
            <PageLink to={{ at: "start", agent }} class="btn primary">
              Start
            </PageLink>
          )}
        </div>
      </div>
    </article>
  );
}
