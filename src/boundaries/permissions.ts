/**
 * What people are asked about tool calls: those that the step's mode wants to have approved, and questions of the model
 * itself. Whatever another rule of the gate forbids is nobody's to allow.
 */
import type { Approved, Person, Wish } from "../engine/ports.ts";
import type { Call, Teller } from "../flow/event.ts";
import type { Step } from "../flow/flow.ts";
import { isObject, own, type Json, type JsonObject } from "../flow/json.ts";
import { PERMISSION_CHOICES, rulingOn } from "../flow/question.ts";
import { patternOf, type Judgement, type ToolCall } from "./gate.ts";

/** Who may be asked about tool calls. */
export type Permitting = {
  readonly person: Pick<Person, "isReachable" | "absent">;
  /** AskUserQuestion goes to a person, where there is one. */
  readonly asksUser?: boolean;
};

export type Permission =
  | { readonly kind: "free" }
  | { readonly kind: "allowed" | "denied"; readonly by: Teller }
  | { readonly kind: "ask" };

/** What holds for a call that a person has to approve. */
export function permissionFor(
  call: ToolCall,
  index: number,
  judgement: Judgement,
  { ruled, allowed }: Approved,
  { person }: Permitting,
): Permission {
  if (judgement.allow || judgement.asks === undefined) return { kind: "free" };
  const ruling = rulingOn(ruled, index);
  if (ruling !== undefined) {
    const isAllowed = ruling.answer === "allow" || ruling.answer === "allow-run";
    return { kind: isAllowed ? "allowed" : "denied", by: ruling.by };
  }
  if (allowed.includes(patternOf(call))) return { kind: "allowed", by: "terminal" };
  if (person.isReachable) return { kind: "ask" };
  return person.absent === "allow" ? { kind: "allowed", by: "setting" } : { kind: "denied", by: "headless" };
}

export function permissionWish(step: Step, call: Call, index: number): Wish {
  const pattern = patternOf(call);
  const what = JSON.stringify(call.input).slice(0, 400);
  return {
    about: "permission",
    text:
      `Step "${step.id}" wants to call ${call.name}: ${what}\n` +
      `Let it, this once (allow)? From now on whenever it is ${shortened(pattern)} (allow-run)? ` +
      "Or not (deny), and end the run as well (stop)?",
    choices: PERMISSION_CHOICES,
    call: index,
    pattern,
  };
}

/** null: there is nothing to ask a person. */
export function userWish(
  { name, input }: Call,
  index: number,
  { person, asksUser }: Permitting,
): Wish | null {
  if (name !== "AskUserQuestion" || asksUser !== true || !person.isReachable) return null;
  const { text, choices } = readQuestion(input);
  return text === "" ? null : { about: "user", text, choices, free: true, call: index };
}

type Readable = { readonly text: string; readonly choices: readonly string[] };

/** One question may be answered with one of its options; several are answered in words. */
function readQuestion(input: JsonObject): Readable {
  const listed = own(input, "questions");
  const questions = (Array.isArray(listed) ? (listed as readonly Json[]) : []).filter(isObject);
  const single = own(input, "question");
  const all = [...(typeof single === "string" ? [{ question: single }] : []), ...questions];
  const texts = all.map((question) => questionText(question)).filter((text) => text !== "");
  return { text: texts.join("\n"), choices: texts.length === 1 ? optionsOf(all[0] ?? {}) : [] };
}

function questionText(question: JsonObject): string {
  const text = own(question, "question");
  const options = optionsOf(question);
  if (typeof text !== "string") return "";
  return options.length === 0 ? text : `${text} (${options.join(" / ")})`;
}

function optionsOf(question: JsonObject): readonly string[] {
  const options = own(question, "options");
  if (!Array.isArray(options)) return [];
  return (options as readonly Json[]).flatMap((option) => {
    const label = isObject(option) ? own(option, "label") : option;
    return typeof label === "string" && label !== "" ? [label] : [];
  });
}

function shortened(text: string): string {
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}
