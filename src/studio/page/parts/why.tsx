/** Why a visit went the way it did: the chain behind its decision, from what was said to where it led. */
import type { JSX } from "preact";
import { count, duration } from "../../../flow/text/figures.ts";
import type { CallResult, Event } from "../../../flow/event.ts";
import type { Json } from "../../../flow/json.ts";
import { eventWords } from "../../../tell/event-words.ts";
import type { Why } from "../../../tell/why.ts";
import { commandText, UNDECIDED } from "../../../tell/why-words.ts";
import { ChainPart } from "./chain.tsx";
import { Foreign, ForeignBlock } from "./foreign.tsx";
import { JsonTree } from "./json.tsx";
import { AnsweredPart, ToldRows } from "./why-answer.tsx";
import { ChecksPart, EdgePart, ReadPart } from "./why-read.tsx";

type WhyMomentOf = Why["moments"][number];

/** `closing ✗ tests-pass (tests-failed) → continuation.issue` */
export function DecisionLine({ why }: { readonly why: Why }): JSX.Element {
  const { decision, state, moments } = why;
  if (decision === null) return <span class="warn">{UNDECIDED[state]}</span>;
  const { label, to, overturned, fork } = decision;
  const results = moments.findLast(({ checked }) => checked?.overturned)?.checked?.results ?? [];
  return (
    <span class="decision">
      <b>{label === null ? "no answer" : <Foreign text={label} most={40} />}</b>
      {overturned === true && (
        <span class="bad">
          {" ✗ "}
          {results
            .filter(({ ok }) => !ok)
            .map(({ name, pattern }) => (
              <Foreign key={name} text={`${name} (${pattern})`} most={120} />
            ))}
        </span>
      )}
      {" → "}
      {fork !== undefined && <Foreign text={`${fork.join(" ∥ ")}, then `} most={200} />}
      {to === null ? "end" : <Foreign text={to} most={80} />}
    </span>
  );
}

/** Every part of the chain, in the order in which it happened. */
export function WhyChain({ why }: { readonly why: Why }): JSX.Element {
  return (
    <div class="chain">
      {why.system.text !== "" && (
        <ChainPart title="System prompt" about={why.system.file ?? ""} isOpen={false}>
          <ForeignBlock text={why.system.text} label="System prompt" />
        </ChainPart>
      )}
      {why.moments.map((moment) => (
        <Happened key={moment.seq} why={why} moment={moment} />
      ))}
      {why.pending !== null && (
        <ChainPart title={why.state === "stopped" ? "When the run is resumed" : "Under way"} tone="live">
          <p>{commandText(why.pending.command)}</p>
          {why.pending.told.map((told, at) => (
            <ToldRows key={at} told={told} />
          ))}
        </ChainPart>
      )}
      <Contracts why={why} />
    </div>
  );
}

function Happened({ why, moment }: { readonly why: Why; readonly moment: WhyMomentOf }): JSX.Element {
  const { event, read, checked, followed } = moment;
  return (
    <>
      {event.type === "step.answered" && <AnsweredPart why={why} event={event} moment={moment} />}
      {read !== undefined && (
        <ReadPart why={why} step={"step" in event ? event.step : why.step} read={read} />
      )}
      {checked !== undefined && <ChecksPart why={why} checked={checked} />}
      <Other event={event} />
      {followed !== undefined && <EdgePart followed={followed} />}
    </>
  );
}

function Contracts({ why }: { readonly why: Why }): JSX.Element | null {
  const schemas = why.contracts.flatMap(({ step, answer }) =>
    answer.kind === "object" && answer.schema.kind === "schema"
      ? [{ step, name: answer.schema.name, schema: answer.schema.schema }]
      : [],
  );
  if (schemas.length === 0) return null;
  return (
    <ChainPart title="Schemas" about={schemas.map(({ name }) => name).join(", ")} isOpen={false}>
      {schemas.map(({ step, schema }) => (
        <JsonTree key={step} value={schema as Json} open={1} />
      ))}
    </ChainPart>
  );
}

function CallRow({
  result: { name, ok, content, denied, grant },
}: {
  readonly result: CallResult;
}): JSX.Element {
  return (
    <div class="stack tight">
      <div class="row">
        <span class={ok ? "good" : "bad"}>{denied !== undefined ? "denied" : ok ? "✓" : "✗"}</span>
        <Foreign text={name} mono />
        {grant !== undefined && (
          <span class="soft small">
            {grant.decision} by {grant.by}
          </span>
        )}
      </div>
      <ForeignBlock text={denied ?? content} fold={8} />
    </div>
  );
}

/** What needs a line or two and no more. */
function Other({ event }: { readonly event: Event }): JSX.Element | null {
  switch (event.type) {
    case "step.called":
      return (
        <ChainPart title="Tools" about={count(event.results.length, "call")}>
          {event.results.map((result) => (
            <CallRow key={result.id} result={result} />
          ))}
        </ChainPart>
      );
    case "step.waited":
      return (
        <ChainPart title="Wait">
          <p>Waited {duration(event.ms)}.</p>
        </ChainPart>
      );
    case "step.looked":
      return (
        <ChainPart title="Outside">
          {event.sights.map(({ met, what }, at) => (
            <p key={at}>
              <span class={met ? "good" : "soft"}>{met ? "met" : "not met"}</span>{" "}
              <Foreign text={what} most={400} />
            </p>
          ))}
        </ChainPart>
      );
    case "step.hooked": {
      const { hook, result } = event;
      if (result.kind === "absent") return null;
      return (
        <ChainPart title={`Hook ${hook}`} {...(result.kind === "gave" ? {} : { tone: "bad" as const })}>
          {result.kind === "gave" ? (
            <JsonTree value={result.value} />
          ) : (
            <p class="bad">
              <Foreign text={result.message} most={1000} />
            </p>
          )}
        </ChainPart>
      );
    }
    case "step.asked":
      return (
        <ChainPart title="Question to a person" tone="warn">
          <ForeignBlock text={event.question.text} careful />
        </ChainPart>
      );
    case "step.told":
      return (
        <ChainPart title="Answer of a person" about={event.by ?? ""}>
          <p>
            <Foreign
              text={
                event.answer ?? (event.by === "expired" ? "nothing in time" : "nothing: no one was available")
              }
              most={1000}
            />
          </p>
        </ChainPart>
      );
    case "run.resumed":
      return <p class="soft">The run was resumed.</p>;
    case "run.edited":
      return (
        <ChainPart title="Edited">
          <JsonTree value={event.handoff} />
        </ChainPart>
      );
    case "run.ended": {
      const { outcome, code, reason } = event.verdict;
      return (
        <ChainPart
          title="The run ended"
          about={`${outcome}${code === null ? "" : ` ${code}`}`}
          tone={outcome === "completed" ? "good" : outcome === "failed" ? "bad" : "warn"}
        >
          <p>
            <Foreign text={reason} most={2000} />
          </p>
        </ChainPart>
      );
    }
    default: {
      const words = eventWords(event);
      return words === null ? null : (
        <ChainPart title={words.title}>
          <p>
            <span class="soft">{words.name}</span> <Foreign text={words.text} most={1000} />
          </p>
        </ChainPart>
      );
    }
  }
}
