/** What the inbox shows of questions: in which order, what became of each, what a choice is called, and the call in question. */
import { isObject, type Json } from "../../../flow/json.ts";
import type { QuestionsDocument, QuestionSeen } from "../../wire.ts";
import type { AnsweredDocument } from "../../wire-acts.ts";

/** A question that was shown stays where it is: nothing moves under the pointer, and its card says what became of it. */
export type Card = { readonly question: QuestionSeen; readonly became: Became | null };

export type Became =
  | { readonly kind: "answered"; readonly answer: string | null; readonly by: string | null }
  | ({ readonly kind: "sent" } & Pick<AnsweredDocument, "answer" | "goesOn" | "refusal">)
  | { readonly kind: "expired" }
  /** The run ended, or went on without an answer. */
  | { readonly kind: "over" };

/** A visit may ask several questions, one after the other, under the same id. */
export function cardKey({ run, step, visit, id, askedAt }: QuestionSeen): string {
  return [run, step, visit, id, askedAt].join("\n");
}

/** Cards that are shown keep their order; new questions come after them, the nearest deadline first. */
export function nextCards(
  cards: readonly Card[],
  { open, answered }: Pick<QuestionsDocument, "open" | "answered">,
  now: number,
): readonly Card[] {
  const asked = new Map(open.map((question) => [cardKey(question), question]));
  const kept = cards.map((card): Card => {
    const question = asked.get(cardKey(card.question));
    // What the server still lists as open may have been answered here a moment ago.
    if (card.became !== null) return card;
    return question === undefined
      ? { ...card, became: becameOf(card.question, answered, now) }
      : { question, became: null };
  });
  const known = new Set(kept.map(({ question }) => cardKey(question)));
  const added = open.filter((question) => !known.has(cardKey(question))).toSorted(byDeadline);
  return [...kept, ...added.map((question) => ({ question, became: null }))];
}

function byDeadline(a: QuestionSeen, b: QuestionSeen): number {
  return deadline(a) - deadline(b) || a.askedAt - b.askedAt;
}

export function deadline({ expiresAt }: Pick<QuestionSeen, "expiresAt">): number {
  return expiresAt === null ? Number.MAX_SAFE_INTEGER : Date.parse(expiresAt);
}

function becameOf(question: QuestionSeen, answered: QuestionsDocument["answered"], now: number): Became {
  const { run, step, visit, id } = question;
  const found = answered.find(
    (one) =>
      one.run === run && one.step === step && one.visit === visit && (one.id === id || one.id === null),
  );
  if (found !== undefined) return { kind: "answered", answer: found.answer, by: found.by };
  return { kind: deadline(question) <= now ? "expired" : "over" };
}

/** What a refusal of the server says about a question. */
export function becameBy(code: string): Became | null {
  if (code === "QUESTION_ANSWERED") return { kind: "answered", answer: null, by: null };
  if (code === "QUESTION_EXPIRED") return { kind: "expired" };
  return code === "NO_QUESTION" ? { kind: "over" } : null;
}

export type ChoiceShown = {
  readonly choice: string;
  /** null: the choice itself, which is foreign text. */
  readonly words: string | null;
  readonly key: string;
  readonly kind: "primary" | "plain" | "danger";
  /** What a second question says before it is sent; null: it is sent at once. */
  readonly confirm: string | null;
};

const PERMISSION: { readonly [choice: string]: Omit<ChoiceShown, "choice"> } = {
  allow: { words: "Allow once", key: "a", kind: "primary", confirm: null },
  "allow-run": {
    words: "Allow for this run",
    key: "r",
    kind: "plain",
    confirm: "Calls of this form will not be asked about again in this run.",
  },
  deny: { words: "Deny", key: "d", kind: "plain", confirm: null },
  stop: { words: "Stop the run", key: "s", kind: "danger", confirm: "The run ends here." },
};

/** Letters for choices about a tool call, figures for all others. */
export function choicesShown({
  about,
  choices,
}: Pick<QuestionSeen, "about" | "choices">): readonly ChoiceShown[] {
  const isAboutCall =
    (about === "permission" || about === "grant") &&
    choices.every((choice) => Object.hasOwn(PERMISSION, choice));
  return choices.map((choice, at) =>
    isAboutCall
      ? { choice, ...PERMISSION[choice]! }
      : { choice, words: null, key: at < 9 ? String(at + 1) : "", kind: "plain", confirm: null },
  );
}

/** A call as a person decides on it: what it does first, then every other member of its input. */
export type CallSeen = {
  readonly command: string | null;
  readonly edits: readonly { readonly before: string; readonly after: string }[];
  readonly rest: readonly (readonly [name: string, value: string])[];
};

export function callSeen({ name, input }: NonNullable<QuestionSeen["call"]>): CallSeen {
  if (!isObject(input)) return { command: null, edits: [], rest: [["input", textOf(input)]] };
  const command = name === "Bash" && typeof input.command === "string" ? input.command : null;
  const edits = editsOf(input);
  const shown = new Set([
    ...(command === null ? [] : ["command"]),
    ...(edits.length === 0 ? [] : ["old_string", "new_string", "edits"]),
  ]);
  const rest = Object.entries(input).filter(([member]) => !shown.has(member));
  return { command, edits, rest: rest.map(([member, value]) => [member, textOf(value)]) };
}

/** `old_string` and `new_string`, or a list of such pairs; anything else in it is shown as it is. */
function editsOf(input: { readonly [name: string]: Json }): CallSeen["edits"] {
  const pairs =
    Array.isArray(input.edits) && !("old_string" in input) ? (input.edits as readonly Json[]) : [input];
  const edits = pairs.map((pair) =>
    isObject(pair) &&
    typeof pair.old_string === "string" &&
    typeof pair.new_string === "string" &&
    (pair === input || Object.keys(pair).length === 2)
      ? { before: pair.old_string, after: pair.new_string }
      : null,
  );
  return edits.every((edit) => edit !== null) ? edits : [];
}

function textOf(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
