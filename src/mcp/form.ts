/** The form in which a client asks its person: everything in it can be seen, and what it cannot show whole it does not allow. Pure. */
import { shownInLine } from "../flow/text/harmless.ts";
import { broken, visible, visibleInLine } from "../flow/text/visible.ts";
import type { OpenQuestion } from "../tell/open-questions.ts";
import { cutText, plainText } from "./fit.ts";

/** A call of 100,000 characters, which is the most that a question shows, with its lines broken. */
const LONGEST_QUESTION = 150_000;

type Asked = Pick<OpenQuestion, "step" | "question" | "choices" | "free">;

export type PersonForm = {
  readonly message: string;
  readonly schema: {
    readonly type: "object";
    readonly properties: { readonly answer: { readonly [name: string]: string | readonly string[] } };
    readonly required: readonly ["answer"];
  };
};

export function formOf(agent: string, asked: Asked): PersonForm {
  const text = textOf(asked);
  const choices = formChoices(asked).map(visibleInLine);
  const isClosed = !asked.free && choices.length > 0;
  const offered = choices.length === 0 ? "Your answer" : `One of: ${choices.join(", ")}; or your own words`;
  const answer = isClosed
    ? { type: "string", title: "Answer", enum: [...new Set(choices)] }
    : { type: "string", title: "Answer", description: shownInLine(offered, 400) };
  const more = isCut(text) ? "\nSee all of it, and every choice, with: lockstep answer" : "";
  return {
    message: `The Lockstep agent ${nameShown(agent)} asks in step ${nameShown(asked.step)}:\n\n${cutText(text, LONGEST_QUESTION)}${more}`,
    schema: { type: "object", properties: { answer }, required: ["answer"] },
  };
}

/** What somebody may choose who has not seen everything. */
const CAUTIOUS: ReadonlySet<string> = new Set(["deny", "fail"]);

/** The choices that a form offers, and takes. */
export function formChoices(asked: Asked): readonly string[] {
  const { choices, free } = asked;
  return free || !isCut(textOf(asked)) ? choices : choices.filter((choice) => CAUTIOUS.has(choice));
}

/** What the model wrote is spelled out: the person is about to decide on it. */
function textOf({ question }: Asked): string {
  return broken(visible(question));
}

function isCut(text: string): boolean {
  return text.length > LONGEST_QUESTION;
}

function nameShown(name: string): string {
  return shownInLine(visibleInLine(name), 80);
}

/** The choice that was read in these words: hidden characters in it were spelled out, and secrets were removed. */
export function choiceMeant(
  choices: readonly string[],
  said: string,
  redact: (text: string) => string = (text) => text,
): string {
  if (choices.includes(said)) return said;
  const meant = choices.filter((choice) =>
    [plainText, visibleInLine].some((shown) => shown(redact(choice)) === said),
  );
  return meant.length === 1 ? meant[0]! : said;
}
