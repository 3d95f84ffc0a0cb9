/** Questions to people: how they are named, what can be said to them, and how that is typed. */
import type { Question, Ruling } from "./event.ts";

export const PERMISSION_CHOICES = ["allow", "allow-run", "deny", "stop"] as const;
export const GRANT_CHOICES = ["allow", "deny", "stop"] as const;

/** How the choices of a question about a tool call are offered, with the letter that is enough to type. */
const OFFERED: { readonly [choice: string]: string } = {
  allow: "[a]llow once",
  "allow-run": "allow for this [r]un",
  deny: "[d]eny",
  stop: "[s]top the run",
};

/** What can be said, on one line. */
export function offer(choices: readonly string[], free = false): string {
  if (choices.length > 0 && !free && choices.every((choice) => Object.hasOwn(OFFERED, choice)))
    return choices.map((choice) => OFFERED[choice]!).join(" · ");
  return `[${[...choices, ...(free ? ["your own words"] : [])].join("/")}]`;
}

/** The choice that a word means: the word itself, or what all that begin with it begin with, as `allow` of `a`. */
export function choiceOf(choices: readonly string[], word: string): string | null {
  if (choices.includes(word)) return word;
  if (["r", "run"].includes(word) && choices.includes("allow-run")) return "allow-run";
  const meant = word === "" ? [] : choices.filter((choice) => choice.startsWith(word));
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

/** What to type, with the first choice as the example. */
export function howToAnswer(run: string, { id, choices, free }: Question): string {
  const [first, ...others] = choices;
  const typed = `lockstep answer ${run} ${id} ${first ?? "--text '…'"}`;
  const rest = [...others, ...(free && first !== undefined ? ["--text '…'"] : [])];
  return rest.length === 0 ? typed : `${typed} (or ${rest.join(", ")})`;
}

/** What was decided about a call; undefined: nothing yet. */
export function rulingOn(ruled: readonly Ruling[] | undefined, call: number): Ruling | undefined {
  return ruled?.find((other) => other.call === call);
}

/** Code of a run that waits for the answer to such a question. */
export function waitingCode({ about }: Question): string {
  return about === "permission" || about === "grant" ? "PermissionRequired" : "AnswerRequired";
}
