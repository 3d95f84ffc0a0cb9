/** Questions to people: how they are named, which answers they take, and how an answer is typed. */
import type { CallResult, Question, Ruling } from "./event.ts";
import type { StepId } from "./flow.ts";
import { shellWord, shownInLine } from "./text/harmless.ts";

export const PERMISSION_CHOICES = ["allow", "allow-run", "deny", "stop"] as const;
export const GRANT_CHOICES = ["allow", "deny", "stop"] as const;

/** How the choices of a question about a tool call are offered, with the letter that is enough to type. */
const OFFERED: { readonly [choice: string]: string } = {
  allow: "[a]llow once",
  "allow-run": "allow for this [r]un",
  deny: "[d]eny",
  stop: "[s]top the run",
};

/** Other words for the choices about a tool call; a choice that is not offered has no other words either. */
const MEANT: { readonly [word: string]: string } = {
  y: "allow",
  yes: "allow",
  once: "allow",
  r: "allow-run",
  run: "allow-run",
  n: "deny",
  no: "deny",
};

/** The choices on one line. */
export function offer(choices: readonly string[], free = false): string {
  if (!free && isAboutCall(choices)) return choices.map((choice) => OFFERED[choice]!).join(" · ");
  return `[${[...choices, ...(free ? ["your own words"] : [])].join("/")}]`;
}

function isAboutCall(choices: readonly string[]): boolean {
  return choices.length > 0 && choices.every((choice) => Object.hasOwn(OFFERED, choice));
}

/**
 * The answer that typed words mean, in any case; null: none, so the question is asked again. A choice may be shortened
 * where that cannot mean another one. Where own words are an answer too, only a whole choice is read as that choice.
 */
export function answerFrom(
  { choices, free = false }: { readonly choices: readonly string[]; readonly free?: boolean },
  typed: string,
): string | null {
  const words = typed.trim();
  const word = words.toLowerCase();
  if (word === "") return null;
  const whole =
    choices.find((choice) => choice === words) ?? choices.find((choice) => choice.toLowerCase() === word);
  if (whole !== undefined) return whole;
  if (free) return words;
  const meant = isAboutCall(choices) && Object.hasOwn(MEANT, word) ? MEANT[word]! : null;
  return meant === null ? choiceOf(choices, word) : choices.includes(meant) ? meant : null;
}

/** What to say to words that are not an answer. Where own words are one, only an empty line is not. */
export function notAnAnswer(typed: string, choices: readonly string[], free = false): string {
  const said = typed.trim() === "" ? "An empty line" : JSON.stringify(typed.trim());
  if (free || choices.length === 0) return `${said} is not an answer.`;
  return `${said} is not one of the choices: ${choices.join(", ")}.`;
}

/** The one that a word is the beginning of; of several, the one that all the others begin with, as `allow` of `a`. */
export function choiceOf(choices: readonly string[], word: string): string | null {
  const begins = (choice: string) => choice.toLowerCase().startsWith(word.toLowerCase());
  const meant = word === "" ? [] : choices.filter(begins);
  return meant.find((choice) => meant.every((other) => other.startsWith(choice))) ?? null;
}

/** The same question has the same name whenever it comes up again, and no other question of its run has it. */
export function questionId(...parts: readonly (string | number)[]): string {
  // FNV-1a: short, and the same everywhere.
  let hash = 0x811c9dc5;
  for (const letter of parts.join("\0")) {
    hash = Math.imul(hash ^ letter.codePointAt(0)!, 0x01000193);
  }
  return `q${(hash >>> 0).toString(36).padStart(7, "0")}`;
}

/** The commands that answer a question, one for each choice; each can be pasted into a shell. */
export function answerCommands(
  command: string,
  { id, choices, free = false }: Pick<Question, "id" | "choices"> & { readonly free?: boolean },
): readonly string[] {
  const typed = id === "-" ? command : `${command} ${shellWord(shownInLine(id, 80))}`;
  // Choices may be words of a model: what a shell would obey is quoted, and what cannot be seen is not offered.
  const pasted = choices.filter((choice) => shownInLine(choice, 400) === choice);
  const given = pasted.map((choice) =>
    /^[a-z][a-z-]*$/.test(choice)
      ? `${typed} ${choice}`
      : `${typed} --text${choice.startsWith("-") ? "=" : " "}${shellWord(choice)}`,
  );
  return free || given.length === 0 ? [...given, `${typed} --text '…'`] : given;
}

/** What was decided about a call; undefined: nothing yet. */
export function rulingOn(ruled: readonly Ruling[] | undefined, call: number): Ruling | undefined {
  return ruled?.find((other) => other.call === call);
}

/** A denied call, as people read it; null: it was not denied. `denied` itself is addressed to the model. */
export function denialText(
  step: StepId,
  { name, denied, grant }: Pick<CallResult, "name" | "denied" | "grant">,
): string | null {
  if (denied === undefined) return null;
  if (grant?.by === "person") return `You denied ${name} in step ${step}.`;
  // The model reads the rule as well; for a person only this part is news.
  if (denied.includes("nobody is there to ask"))
    return `${name} was denied in step ${step}: nobody was there to ask.`;
  return `${name} was denied: ${denied}`;
}

/** Code of a run that waits for the answer to such a question. */
export function waitingCode({ about }: Question): string {
  return about === "permission" || about === "grant" ? "PermissionRequired" : "AnswerRequired";
}
