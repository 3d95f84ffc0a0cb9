/** A visit beside the graph: why it went the way it did. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useAsk } from "../ask.ts";
import { PageLink } from "../go.tsx";
import { useMayAct } from "../project.ts";
import { runAt, visitText, type VisitName } from "../route.ts";
import type { WhyDocument } from "../../wire.ts";
import { CopyCommand } from "./copy.tsx";
import { Foreign } from "./foreign.tsx";
import { Await } from "./status.tsx";
import { DecisionLine, WhyChain } from "./why.tsx";

type InspectorProps = {
  readonly run: string;
  readonly visit: VisitName;
  readonly version: number;
  readonly isNever?: boolean;
  readonly isAlone?: boolean;
};

export function Inspector({
  run,
  visit,
  version,
  isNever = false,
  isAlone = false,
}: InspectorProps): JSX.Element {
  const path = isNever ? null : `runs/${encodeURIComponent(run)}/why/${encodeURIComponent(visitText(visit))}`;
  const settled = useSettled(path);
  const asked = useAsk<WhyDocument>(settled, version);
  return (
    <section class={isAlone ? "card inspector alone" : "card inspector"} aria-label="Why">
      <div class="card-head">
        <h2 class="grow mono">
          <Foreign text={visitText(visit)} most={60} />
        </h2>
        {!isAlone && (
          <PageLink to={{ at: "why", run, visit }} class="btn quiet small">
            Open
          </PageLink>
        )}
      </div>
      <div class="card-body" tabIndex={0} role="group" aria-label="The chain behind the decision">
        {isNever ? (
          <p class="soft">The run has not visited this step.</p>
        ) : (
          <Await asked={asked}>{(why) => <WhyOf run={run} why={why} />}</Await>
        )}
      </div>
    </section>
  );
}

const MOVING = 120;

/** The value once it has stayed the same for a moment: while the slider moves, not every visit is asked for. */
function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(() => value), MOVING);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

function WhyOf({ run, why }: { readonly run: string; readonly why: WhyDocument }): JSX.Element {
  const mayAct = useMayAct();
  const { step, visit, visits, from, iteration, name } = why;
  const place = visits.findIndex((one) => one.visit === visit);
  const before = visits[place - 1];
  const after = visits[place + 1];
  return (
    <>
      <div class="stack tight">
        <p class="sentence">
          <DecisionLine why={why} />
        </p>
        <p class="soft small">
          {name !== step && (
            <>
              <Foreign text={name} most={80} />
              {" · "}
            </>
          )}
          {from === null ? (
            "the run began here"
          ) : (
            <>
              came from <Foreign text={from} most={80} mono />
            </>
          )}{" "}
          · iteration {iteration}
        </p>
        {(why.decision?.notes ?? []).map((note) => (
          <p key={note} class="warn small">
            <Foreign text={note} most={400} />
          </p>
        ))}
      </div>
      <div class="actions">
        {before !== undefined && (
          <PageLink to={runAt(run, before)} replace class="btn small">
            ← {visitText(before)}
          </PageLink>
        )}
        {after !== undefined && (
          <PageLink to={runAt(run, after)} replace class="btn small">
            {visitText(after)} →
          </PageLink>
        )}
        <PageLink to={{ at: "talk", run, of: null }} class="btn small">
          Conversation
        </PageLink>
        {mayAct && (
          <PageLink to={{ at: "fork", run, visit: { step, visit } }} class="btn small">
            Fork from here
          </PageLink>
        )}
      </div>
      <WhyChain why={why} />
      <CopyCommand words={["why", run, visitText({ step, visit })]} />
    </>
  );
}
