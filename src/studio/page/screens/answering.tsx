/** The answers that a question takes, as buttons, keys and words of one's own. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { QuestionSeen } from "../../wire.ts";
import type { AnsweredDocument, AnswerRequest } from "../../wire-acts.ts";
import { act, refusedOf, type RefusedRequest } from "../ask.ts";
import { announce, keysAreOn } from "../keys.ts";
import { CopyCommand } from "../parts/copy.tsx";
import { Foreign } from "../parts/foreign.tsx";
import { Failed } from "../parts/status.tsx";
import { useMayAct } from "../project.ts";
import { becameBy, choicesShown, type Became, type ChoiceShown } from "./inbox-model.ts";

export function AnswerForm({
  question,
  settle,
}: {
  readonly question: QuestionSeen;
  readonly settle: (became: Became) => void;
}): JSX.Element | null {
  const mayAct = useMayAct();
  const [words, setWords] = useState("");
  const [isResting, setResting] = useState(false);
  const [sure, setSure] = useState<ChoiceShown | null>(null);
  const [isSending, setSending] = useState(false);
  const [error, setError] = useState<RefusedRequest | null>(null);
  const card = useRef<HTMLDivElement>(null);
  const choices = choicesShown(question);
  if (!mayAct) return <CopyCommand words={answerWords(question)} />;

  const taken = (document: AnsweredDocument) => {
    announce(`Answered ${document.answer}.`);
    settle({ kind: "sent", ...document });
  };
  const refuse = (reason: unknown) => {
    const refused = refusedOf(reason);
    const became = becameBy(refused.code);
    setSending(false);
    if (became === null) setError(refused);
    else settle(became);
  };
  const send = (answer: string) => {
    if (isSending) return;
    setSending(true);
    setError(null);
    const body: AnswerRequest = { answer, ...(isResting ? { resume: false } : {}) };
    const path = `runs/${encodeURIComponent(question.run)}/questions/${encodeURIComponent(question.id)}`;
    act<AnsweredDocument>(path, body).then(taken, refuse);
  };
  const choose = (choice: ChoiceShown) => (choice.confirm === null ? send(choice.choice) : setSure(choice));
  return (
    <div class="stack" ref={card}>
      <CardKeys holder={card} choices={choices} choose={choose} />
      {sure !== null ? (
        <div class="note warn" role="alertdialog" aria-label="Are you sure?">
          <p>{sure.confirm}</p>
          <div class="actions space-above">
            <button
              type="button"
              class={`btn ${sure.kind}`}
              disabled={isSending}
              onClick={() => send(sure.choice)}
            >
              {sure.words}
            </button>
            <button
              type="button"
              class="btn quiet"
              ref={(button) => button?.focus()}
              onClick={() => setSure(null)}
            >
              Go back
            </button>
          </div>
        </div>
      ) : (
        <div class="actions">
          {choices.map((choice) => (
            <button
              key={choice.choice}
              type="button"
              class={`btn ${choice.kind}`}
              disabled={isSending}
              onClick={() => choose(choice)}
            >
              {choice.words ?? <Foreign text={choice.choice} most={60} />}
              {choice.key !== "" && <kbd aria-hidden="true">{choice.key}</kbd>}
            </button>
          ))}
        </div>
      )}
      {question.free && (
        <form
          class="row"
          onSubmit={(event) => {
            event.preventDefault();
            if (words.trim() !== "") send(words);
          }}
        >
          <label class="grow">
            <span class="hidden">Your own words</span>
            <textarea
              rows={2}
              value={words}
              placeholder="Your own words (Ctrl-Enter sends them)"
              onInput={(event) => setWords(event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key === "Enter" && event.ctrlKey && words.trim() !== "") send(words);
              }}
            />
          </label>
          <button type="submit" class="btn" disabled={isSending || words.trim() === ""}>
            Send
          </button>
        </form>
      )}
      <div class="row small soft">
        {question.isDriven ? (
          <span>A process drives this run: it goes on by itself.</span>
        ) : question.isPaused ? (
          <span>The run is paused: it rests until it is resumed.</span>
        ) : (
          <label class="row tight">
            <input
              type="checkbox"
              checked={isResting}
              onChange={(event) => setResting(event.currentTarget.checked)}
            />
            Answer without resuming the run
          </label>
        )}
        <CopyCommand words={answerWords(question)} />
      </div>
      {error !== null && <Failed error={error} />}
    </div>
  );
}

/** The keys of the choices, while the focus is in this card and in none of its fields. */
function CardKeys({
  holder,
  choices,
  choose,
}: {
  readonly holder: { readonly current: HTMLElement | null };
  readonly choices: readonly ChoiceShown[];
  readonly choose: (choice: ChoiceShown) => void;
}): null {
  useEffect(() => {
    const card = holder.current?.closest<HTMLElement>("[data-question]");
    if (card === null || card === undefined) return;
    const look = (event: KeyboardEvent) => {
      const isField = event.target instanceof HTMLTextAreaElement || event.target instanceof HTMLInputElement;
      if (!keysAreOn.get() || isField || event.ctrlKey || event.metaKey || event.altKey || event.repeat)
        return;
      const choice = choices.find(({ key }) => key !== "" && key === event.key);
      if (choice === undefined) return;
      event.preventDefault();
      choose(choice);
    };
    card.addEventListener("keydown", look);
    return () => card.removeEventListener("keydown", look);
  });
  return null;
}

function answerWords({ run, id, choices, isNameless }: QuestionSeen): readonly string[] {
  return [
    "answer",
    run,
    ...(isNameless ? [] : [id]),
    ...(choices[0] === undefined ? ["--text", "…"] : [choices[0]]),
  ];
}
