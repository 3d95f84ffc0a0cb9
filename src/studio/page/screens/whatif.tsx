/** What recorded runs would have done with the files as they are now. No model is asked, and no command runs. */
import type { JSX } from "preact";
import { count } from "../../../flow/text/figures.ts";
import type { Refusal } from "../../wire.ts";
import type { AgentsDocument, WhatIfDocument } from "../../wire-agents.ts";
import { useAsk, useAskInParts, type RefusedRequest } from "../ask.ts";
import { ScreenFrame } from "../frame.tsx";
import { go, PageLink } from "../go.tsx";
import { stepFocus, useKeys } from "../keys.ts";
import { useFilesOf } from "../listen.ts";
import { CopyCommand } from "../parts/copy.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { FlowPicture } from "../parts/graph.tsx";
import { SideSigns, sidesLook } from "../parts/side-signs.tsx";
import { Await, Blank, Loading, SoFar } from "../parts/status.tsx";
import { sidesOfWhatIf } from "../sides.ts";
import { runAt, type Route } from "../route.ts";
import { FindingList } from "./findings.tsx";
import { partingVisit, wayWords, whatIfGroups, type WhatIfGroup } from "./whatif-model.ts";

type WhatIfRoute = Extract<Route, { readonly at: "whatif" }>;

export function WhatIfScreen({ route }: { readonly route: WhatIfRoute }): JSX.Element {
  const agents = useAsk<AgentsDocument>("agents");
  const agent = route.agent ?? agents.value?.agents[0]?.agent ?? null;
  return (
    <ScreenFrame
      crumbs={
        route.agent === null
          ? [{ text: "What if" }]
          : [{ text: "What if", to: { at: "whatif", agent: null } }, { text: route.agent }]
      }
    >
      <div class="head">
        <div class="titles">
          <h1>What if</h1>
          <p class="soft">
            What recorded runs would have done with the files as they are now. No model is asked and no
            command runs.
          </p>
        </div>
        {agent !== null && <CopyCommand words={["whatif", "--agent", agent]} isMain />}
      </div>
      <Await asked={agents} what="Loading the agents">
        {({ agents: lines }) =>
          agent === null ? (
            <div class="card">
              <Blank title="There is no agent here." command={["init", "hello"]} />
            </div>
          ) : (
            <>
              {lines.length > 1 && (
                <div class="filters">
                  <select
                    aria-label="Agent"
                    value={agent}
                    onChange={(event) => go({ at: "whatif", agent: event.currentTarget.value })}
                  >
                    {lines.map((line) => (
                      <option key={line.agent} value={line.agent}>
                        {line.agent}
                      </option>
                    ))}
                  </select>
                </div>
              )}
              <WhatIfOf key={agent} agent={agent} />
            </>
          )
        }
      </Await>
    </ScreenFrame>
  );
}

function WhatIfOf({ agent }: { readonly agent: string }): JSX.Element {
  const asked = useAskInParts<WhatIfDocument>(`whatif/${encodeURIComponent(agent)}`, useFilesOf(agent));
  useKeys("What if", {
    n: { about: "Next changed run", run: () => stepFocus("[data-whatif] a", 1) },
    p: { about: "Previous changed run", run: () => stepFocus("[data-whatif] a", -1) },
  });
  const problems = problemsIn(asked.error);
  if (problems !== null)
    return (
      <section class="card">
        <div class="card-head">
          <h2>The files cannot be tried</h2>
        </div>
        <div class="card-body">
          <p>The agent has errors, so no run can be replayed through it.</p>
          <FindingList agent={agent} problems={problems} lit={null} onLight={() => undefined} />
        </div>
      </section>
    );
  return (
    <Await asked={asked} what="Replaying the recorded runs">
      {(document) => (
        <>
          {asked.isLoading && document.isAll && <Loading what="Replaying the recorded runs again" />}
          <SoFar document={document} done={document.runs.length} />
          <Outcome document={document} />
          {document.changes.length > 0 && <Changes document={document} />}
          {document.changed > 0 && (
            <FlowPicture
              outline={document.outline}
              look={sidesLook(sidesOfWhatIf(document))}
              to={(step) => ({ at: "flow", agent, step })}
              rows={1}
              label="Where runs part"
              tools={<SideSigns names={["A: was taken", "B: would be taken"]} />}
            />
          )}
          {whatIfGroups(document.runs).map((group, at) => (
            <Group key={at} group={group} />
          ))}
        </>
      )}
    </Await>
  );
}

function problemsIn(error: RefusedRequest | null): NonNullable<Refusal["problems"]> | null {
  return (error?.document as Refusal | null | undefined)?.problems ?? null;
}

function Outcome({ document }: { readonly document: WhatIfDocument }): JSX.Element {
  const { runs, same, changed, stuck, agent } = document;
  if (runs.length === 0)
    return (
      <div class="card">
        <Blank title="No run of this agent is recorded." command={["run", agent]} />
      </div>
    );
  if (changed === 0 && stuck === 0)
    return (
      <p class="note good">
        {runs.length === 1
          ? "The one recorded run would go the same way."
          : `All ${runs.length} runs would go the same way.`}
      </p>
    );
  return (
    <dl class="figures">
      <div>
        <dt>Same way</dt>
        <dd class="good">{same}</dd>
      </div>
      <div>
        <dt>Another way</dt>
        <dd class="warn">{changed}</dd>
      </div>
      <div>
        <dt>Cannot be followed</dt>
        <dd class="soft">{stuck}</dd>
      </div>
    </dl>
  );
}

function Changes({ document }: { readonly document: WhatIfDocument }): JSX.Element {
  return (
    <section class="card">
      <div class="card-head">
        <h2>What changed in the flow</h2>
        <span class="soft">since the newest of these runs</span>
      </div>
      <div class="card-body">
        <ul class="changes">
          {document.changes.map((change, at) => (
            <li key={at} class={change.kind}>
              <span class="chip">{change.kind}</span>
              <span>
                {change.step !== null && <Foreign text={`${change.step}: `} most={60} mono />}
                <Foreign text={change.what} most={80} />
              </span>
              {(change.before !== null || change.after !== null) && (
                <span class="mono small">
                  {change.before !== null && <Foreign text={change.before} most={160} />}
                  {change.before !== null && change.after !== null && " → "}
                  {change.after !== null && <Foreign text={change.after} most={160} />}
                </span>
              )}
            </li>
          ))}
        </ul>
      </div>
    </section>
  );
}

function Group({ group }: { readonly group: WhatIfGroup }): JSX.Element {
  return (
    <section class="card">
      <div class="card-head">
        <h2>
          {group.kind === "stuck" ? "Cannot be followed" : "Another way"}
          {group.at !== null && " from "}
          {group.at !== null && <Foreign text={group.at} most={60} mono />}
        </h2>
        <span class="soft">{count(group.runs.length, "run")}</span>
      </div>
      <div class="scroll" tabIndex={0} role="group" aria-label={`Runs from ${group.at ?? "their end"}`}>
        <table>
          <thead>
            <tr>
              <th scope="col">Run</th>
              <th scope="col">Was</th>
              <th scope="col">Would be</th>
              <th scope="col">
                <span class="hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {group.runs.map((run) => {
              const { was, now } = wayWords(run);
              const visit = partingVisit(run);
              return (
                <tr key={run.run} data-whatif>
                  <td>
                    <PageLink to={runAt(run.run, visit)}>
                      <Foreign text={run.run} most={40} mono />
                    </PageLink>
                  </td>
                  <td>
                    <Foreign text={was} most={160} mono />
                  </td>
                  <td>
                    <Foreign text={now} most={300} mono />
                  </td>
                  <td class="num">
                    {visit !== null && (
                      <PageLink to={{ at: "fork", run: run.run, visit }}>Fork here</PageLink>
                    )}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}
