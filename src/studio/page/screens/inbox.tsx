/** Everything that waits for a person, in all runs: each question with what it is about, and its answers. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { duration } from "../../../flow/text/figures.ts";
import type { QuestionsDocument, QuestionSeen } from "../../wire.ts";
import { useAsk } from "../ask.ts";
import { ScreenFrame } from "../frame.tsx";
import { PageLink } from "../go.tsx";
import { stepFocus, useKeys } from "../keys.ts";
import { useLive, useSeconds } from "../listen.ts";
import { Columns } from "../parts/columns.tsx";
import { CopyCommand } from "../parts/copy.tsx";
import { Diff } from "../parts/diff.tsx";
import { Foreign, ForeignBlock } from "../parts/foreign.tsx";
import { Await, Blank } from "../parts/status.tsx";
import { Ago } from "../parts/time.tsx";
import { runAt } from "../route.ts";
import { AnswerForm } from "./answering.tsx";
import {
  callSeen,
  cardKey,
  deadline,
  nextCards,
  type Became,
  type CallSeen,
  type Card,
} from "./inbox-model.ts";

export function InboxScreen(): JSX.Element {
  const version = useLive((now) => now.questions.version + now.epoch * 1_000_000);
  const asked = useAsk<QuestionsDocument>("questions", version);
  const [cards, setCards] = useState<readonly Card[]>([]);
  useEffect(() => {
    if (asked.value === null) return;
    const document = asked.value;
    setCards((shown) => nextCards(shown, document, Date.now()));
  }, [asked.value]);
  const settle = (question: QuestionSeen, became: Became) =>
    setCards((shown) =>
      shown.map((card) => (cardKey(card.question) === cardKey(question) ? { question, became } : card)),
    );
  const open = cards.filter(({ became }) => became === null).length;
  // From card to card: a key that answers works only in the card that has the focus.
  const step = (by: number) => stepFocus("[data-question]", by);
  useKeys("Inbox", {
    j: { about: "Next question", run: () => step(1) },
    k: { about: "Previous question", run: () => step(-1) },
    ArrowDown: { about: "Next question", run: () => step(1) },
    ArrowUp: { about: "Previous question", run: () => step(-1) },
  });
  return (
    <ScreenFrame crumbs={[{ text: "Inbox" }]}>
      <div class="head">
        <div class="titles">
          <h1>Inbox</h1>
          <p class="soft">
            {open === 0
              ? "Nothing waits for you."
              : open === 1
                ? "One question waits for you."
                : `${open} questions wait for you.`}
          </p>
        </div>
        <CopyCommand words={["runs"]} isMain />
      </div>
      <Await asked={asked} what="Loading the questions">
        {(document) => (
          <>
            {cards.length === 0 ? (
              <div class="card">
                <Blank title="Nothing waits for you.">
                  <p>
                    Questions of all runs appear here as they are asked: permissions, gates, and words that a
                    step needs.
                  </p>
                </Blank>
              </div>
            ) : (
              <div class="stack">
                {cards.map((card) => (
                  <QuestionCard
                    key={cardKey(card.question)}
                    card={card}
                    settle={(became) => settle(card.question, became)}
                  />
                ))}
              </div>
            )}
            <Answered document={document} />
          </>
        )}
      </Await>
    </ScreenFrame>
  );
}

function QuestionCard({
  card,
  settle,
}: {
  readonly card: Card;
  readonly settle: (became: Became) => void;
}): JSX.Element {
  const { question, became } = card;
  const { run, agent, step: at, visit, runAbout } = question;
  const call = question.call === null ? null : callSeen(question.call);
  return (
    <article class="card" data-question tabIndex={-1} aria-label={`Question of ${agent}, step ${at}`}>
      <div class="card-head">
        <h2>
          <Foreign text={agent} most={60} />
        </h2>
        <PageLink to={runAt(run, { step: at, visit })}>
          <Foreign text={`${at}@${visit}`} most={60} mono />
        </PageLink>
        {runAbout !== "" && (
          <span class="soft">
            <Foreign text={runAbout} most={80} />
          </span>
        )}
        <Due question={question} isOpen={became === null} />
      </div>
      <div class="card-body">
        {question.call === null || call === null ? (
          <ForeignBlock text={question.question} careful label="The question" />
        ) : (
          <>
            <p>
              <strong>
                <Foreign text={question.call.name} most={80} />
              </strong>{" "}
              <span class="soft">
                {question.about === "grant" ? "needs more than this step may do." : "wants to do this:"}
              </span>
            </p>
            {call.command !== null && <ForeignBlock text={call.command} careful label="The command" />}
            {call.edits.length > 0 && <Members rest={call.rest} />}
            {call.edits.map((edit, place) => (
              <Diff key={place} before={edit.before} after={edit.after} label="The change" />
            ))}
            {call.edits.length === 0 && <Members rest={call.rest} />}
            <details>
              <summary class="soft small">The question in full</summary>
              <ForeignBlock text={question.question} careful label="The question" />
            </details>
          </>
        )}
        {became === null ? (
          <AnswerForm question={question} settle={settle} />
        ) : (
          <BecameNote became={became} question={question} />
        )}
      </div>
    </article>
  );
}

function Members({ rest }: { readonly rest: CallSeen["rest"] }): JSX.Element | null {
  if (rest.length === 0) return null;
  return (
    <dl class="facts">
      {rest.map(([name, value]) => (
        <Member key={name} name={name} value={value} />
      ))}
    </dl>
  );
}

function Member({ name, value }: { readonly name: string; readonly value: string }): JSX.Element {
  const isShort = value.length <= 120 && !value.includes("\n");
  return (
    <>
      <dt>
        <Foreign text={name} most={60} mono />
      </dt>
      <dd>{isShort ? <Foreign text={value} mono /> : <ForeignBlock text={value} careful label={name} />}</dd>
    </>
  );
}

function Due({
  question,
  isOpen,
}: {
  readonly question: QuestionSeen;
  readonly isOpen: boolean;
}): JSX.Element {
  const now = useSeconds(isOpen);
  const left = deadline(question) - now;
  return (
    <span class="row soft small due">
      <span>
        asked <Ago at={question.askedAt} />
      </span>
      {question.expiresAt !== null && isOpen && (
        <span class={left < 60_000 ? "chip warn" : "chip"}>
          {left <= 0 ? "expired" : `expires in ${duration(left - (left % 1000))}`}
        </span>
      )}
      {question.isPaused && <span class="chip">paused</span>}
    </span>
  );
}

function BecameNote({
  became,
  question,
}: {
  readonly became: Became;
  readonly question: QuestionSeen;
}): JSX.Element {
  const open = <PageLink to={runAt(question.run)}>Open the run</PageLink>;
  switch (became.kind) {
    case "sent":
      return (
        <div class={`note ${became.refusal === undefined ? "good" : "warn"}`}>
          You answered <Foreign text={became.answer} most={80} />. {GOES_ON[became.goesOn]} {open}
          {became.refusal !== undefined && (
            <p>
              <code>{became.refusal.code}</code> <Foreign text={became.refusal.reason} most={1000} />
            </p>
          )}
        </div>
      );
    case "answered":
      return (
        <p class="note">
          Answered elsewhere{became.answer !== null && ": "}
          {became.answer !== null && <Foreign text={became.answer} most={80} />}
          {became.by !== null && " by "}
          {became.by !== null && <Foreign text={became.by} most={40} />}. {open}
        </p>
      );
    case "expired":
      return <p class="note warn">The time to answer is over. {open}</p>;
    case "over":
      return <p class="note">The run ended or went on without this answer. {open}</p>;
  }
}

const GOES_ON = {
  driven: "The process that drives the run takes it from here.",
  resumed: "The run was resumed.",
  no: "The run rests until it is resumed.",
} as const;

function Answered({ document }: { readonly document: QuestionsDocument }): JSX.Element | null {
  if (document.answered.length === 0) return null;
  return (
    <section class="card">
      <div class="card-head">
        <h2>Answered</h2>
      </div>
      <Columns
        label="Answered questions"
        names={["Agent", "Step", "Question", "Answer", "By", "When"]}
        numbers={1}
      >
        {document.answered.map((one, at) => (
          <tr key={`${one.run} ${one.id} ${at}`}>
            <td>
              <Foreign text={one.agent} most={40} />
            </td>
            <td class="nowrap">
              <PageLink to={runAt(one.run, { step: one.step, visit: one.visit })}>
                <Foreign text={`${one.step}@${one.visit}`} most={50} mono />
              </PageLink>
            </td>
            <td>
              <Foreign text={one.question} most={120} />
            </td>
            <td>
              <strong>{one.answer === null ? "none" : <Foreign text={one.answer} most={80} />}</strong>
            </td>
            <td class="nowrap soft">{one.by === null ? "" : <Foreign text={one.by} most={30} />}</td>
            <td class="num soft">
              <Ago at={one.at} />
            </td>
          </tr>
        ))}
      </Columns>
    </section>
  );
}
