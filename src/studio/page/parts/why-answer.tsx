/** What was said to the model, and what came back. */
import type { JSX } from "preact";
import { count } from "../../../flow/text/figures.ts";
import { judgedIn, type Event, type Reply } from "../../../flow/event.ts";
import { supplierText } from "../../../tell/origin-words.ts";
import type { Why } from "../../../tell/why.ts";
import { becauseText, schemaText } from "../../../tell/why-words.ts";
import { dollars } from "../figures.ts";
import { ChainPart, FactRow } from "./chain.tsx";
import { CopyButton } from "./copy.tsx";
import { Foreign, ForeignBlock } from "./foreign.tsx";
import { CalledTools, JsonTree } from "./json.tsx";

type WhyMomentOf = Why["moments"][number];
type Told = NonNullable<Why["pending"]>["told"][number];

export function AnsweredPart({
  why,
  event,
  moment: { asked, at },
}: {
  readonly why: Why;
  readonly event: Extract<Event, { type: "step.answered" }>;
  readonly moment: WhyMomentOf;
}): JSX.Element {
  const { reply } = event;
  const contract = why.contracts.find(({ step }) => step === event.step);
  const schema = contract?.answer.kind === "object" ? contract.answer.schema : null;
  const again = asked !== undefined && asked.attempt > 1 ? ` · attempt ${asked.attempt}` : "";
  return (
    <>
      {asked?.by === "command" && (
        <ChainPart title={`Command${again}`}>
          <ForeignBlock
            text={asked.argv === null ? "nothing: an argument has no value" : asked.argv.join(" ")}
            careful
          />
        </ChainPart>
      )}
      {asked?.by === "model" && (
        <ChainPart
          title={`Turn ${event.turn}${again}`}
          about={[
            event.step === why.step ? "" : `question ${event.step}`,
            asked.heard === 0 ? "" : `after ${count(asked.heard, "message")} in the same conversation`,
          ]
            .filter((part) => part !== "")
            .join(" · ")}
        >
          {asked.told.map((told, place) => (
            <ToldRows key={place} told={told} />
          ))}
        </ChainPart>
      )}
      <ChainPart
        title="Answer"
        about={answerFacts(reply, at)}
        {...(reply.kind === "said" ? {} : { tone: "bad" as const })}
      >
        <ReplyRows reply={reply} />
        {schema !== null && reply.kind === "said" && reply.calls.length === 0 && (
          <p class="soft small">
            Held to <Foreign text={schemaText(schema)} most={400} />
          </p>
        )}
      </ChainPart>
    </>
  );
}

function answerFacts(reply: Reply, at: number): string {
  const time = new Date(at).toLocaleTimeString();
  if (reply.kind !== "said") return time;
  const { inputTokens, outputTokens, costUsd } = reply.usage;
  return `${inputTokens} + ${outputTokens} tokens · ${dollars(costUsd)} · ${time}`;
}

export function ToldRows({ told: { say, prompt, variables, words } }: { readonly told: Told }): JSX.Element {
  const because =
    say.kind === "results" ? `the results of ${count(say.results.length, "tool call")}` : becauseText(say);
  const elsewhere = (prompt?.tried ?? []).filter((path) => path !== prompt?.file);
  return (
    <>
      <dl class="facts">
        {because !== null && <FactRow name="because">{because}</FactRow>}
        {prompt !== null && (
          <FactRow name="prompt">
            {prompt.file === null ? <span class="warn">no file</span> : <Foreign text={prompt.file} mono />}
            {elsewhere.map((path) => (
              <div key={path} class="soft small">
                not at <Foreign text={path} mono />
              </div>
            ))}
          </FactRow>
        )}
        {variables.length > 0 && (
          <FactRow name="variables">
            {variables.map(({ name, value, supplier, missing }) => (
              <div key={name}>
                <Foreign text={name} mono />{" "}
                {value === null ? (
                  <span class="bad">
                    has no value: {missing !== null && <Foreign text={missing} most={400} />}
                  </span>
                ) : (
                  <>
                    = <Foreign text={value} most={300} mono />
                  </>
                )}
                {supplier !== null && <span class="soft small"> from {supplierText(supplier)}</span>}
              </div>
            ))}
          </FactRow>
        )}
      </dl>
      {words?.kind === "text" && (
        <>
          <ForeignBlock text={words.text} fold={14} label="What was said to the model" />
          <div>
            <CopyButton text={words.text}>Copy the prompt</CopyButton>
          </div>
        </>
      )}
      {words?.kind === "unaskable" && (
        <p class="bad">
          <Foreign text={`${words.code}: ${words.why}`} most={1000} />
        </p>
      )}
    </>
  );
}

function ReplyRows({ reply }: { readonly reply: Reply }): JSX.Element {
  const judged = judgedIn(reply);
  const judgements = judged.length > 0 && (
    <ul class="stack tight">
      {judged.map(({ name, denied }, at) => (
        <li key={at}>
          <Foreign text={name} mono />{" "}
          {denied === undefined ? (
            <span class="good">allowed</span>
          ) : (
            <span class="bad">
              denied: <Foreign text={denied} most={400} />
            </span>
          )}
        </li>
      ))}
    </ul>
  );
  switch (reply.kind) {
    case "said":
      return (
        <>
          {reply.text !== "" && <ForeignBlock text={reply.text} fold={16} label="What the model said" />}
          {reply.output !== undefined && (
            <div class="stack tight">
              <span class="soft small">Payload</span>
              <JsonTree value={reply.output} open={3} />
            </div>
          )}
          <CalledTools calls={reply.calls} open={1} />
          {judgements}
        </>
      );
    case "oversized":
      return (
        <p class="bad">
          Refused: <Foreign text={reply.why} most={1000} />
        </p>
      );
    case "fault":
      return (
        <p class="warn">
          {reply.fault.kind}: <Foreign text={reply.fault.message} most={1000} />
        </p>
      );
    case "unaskable":
      return (
        <p class="bad">
          <Foreign text={`${reply.code}: ${reply.why}`} most={1000} />
        </p>
      );
  }
}
