/** What the tests of an agent cover: how much of each kind, and what no test shows. */
import type { JSX } from "preact";
import { count } from "../../../flow/text/figures.ts";
import type { CoverageDocument } from "../../wire-agents.ts";
import type { Fetched } from "../ask.ts";
import { CopyCommand } from "../parts/copy.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { Await } from "../parts/status.tsx";

/** More gaps than these are left to the command. */
const MOST_GAPS = 50;

export function CoveragePart({
  agent,
  asked,
}: {
  readonly agent: string;
  readonly asked: Fetched<CoverageDocument>;
}): JSX.Element {
  return (
    <section class="card">
      <div class="card-head">
        <h2 class="grow">Covered by tests</h2>
        <CopyCommand words={["coverage", agent]} />
      </div>
      <div class="card-body">
        <Await asked={asked} what="Running the tests of the agent in memory">
          {(document) => <CoverageFacts document={document} />}
        </Await>
      </div>
    </section>
  );
}

function CoverageFacts({ document: { totals, gaps } }: { readonly document: CoverageDocument }): JSX.Element {
  const kinds = Object.entries(totals).filter(([, { of }]) => of > 0);
  return (
    <>
      <dl class="figures">
        {kinds.map(([kind, { covered, of }]) => (
          <div key={kind}>
            <dt>{kind}</dt>
            <dd>
              {covered} of {of}
            </dd>
          </div>
        ))}
      </dl>
      {gaps.length === 0 ? (
        <p class="soft">The tests cover everything.</p>
      ) : (
        <details>
          <summary>{count(gaps.length, "gap")}</summary>
          <ul>
            {gaps.slice(0, MOST_GAPS).map(({ id, file, line }) => (
              <li key={id}>
                <Foreign text={id} most={200} />
                {file !== null && (
                  <span class="soft">
                    {" "}
                    <Foreign text={line === null ? file : `${file}:${line}`} most={200} mono />
                  </span>
                )}
              </li>
            ))}
            {gaps.length > MOST_GAPS && <li class="soft">and {gaps.length - MOST_GAPS} more</li>}
          </ul>
        </details>
      )}
    </>
  );
}
