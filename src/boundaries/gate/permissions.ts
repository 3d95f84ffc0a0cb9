/**
 * What people are asked about tool calls: those that the step's mode wants to have approved, and questions of the model
 * itself. No one can allow what another rule of the gate forbids.
 */
import type { Approved, Person, ToolCall, Wish } from "../../engine/ports.ts";
import type { Call, Teller } from "../../flow/event.ts";
import type { Step } from "../../flow/flow.ts";
import { callShown } from "../../flow/text/call-shown.ts";
import { isObject, own, type Json, type JsonObject } from "../../flow/json.ts";
import { PERMISSION_CHOICES, rulingOn } from "../../flow/question.ts";
import { visibleInLine } from "../../flow/text/visible.ts";
import { patternOf, type Judgement } from "./gate.ts";

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

/** Shows the call whole. What had to be cut can be allowed once, but not for the rest of the run. */
export function permissionWish(step: Step, call: Call, index: number): Wish {
  const heading = `Step "${visibleInLine(step.id)}" wants to call ${visibleInLine(call.name)}`;
  const { text, isCut } = callShown(heading, call);
  const asked = { about: "permission", call: index } as const;
  if (isCut) return { ...asked, text, choices: PERMISSION_CHOICES.filter((one) => one !== "allow-run") };
  const pattern = patternOf(call);
  return {
    ...asked,
    text: `${text}\nAllowed for this run would be: ${coverage(call, pattern)}`,
    choices: PERMISSION_CHOICES,
    pattern,
  };
}

/** What `allow-run` allows, in full. */
function coverage({ name }: Call, pattern: string): string {
  if (pattern === name) return `every call of ${visibleInLine(name)} that the step may make`;
  const isPlain = pattern.length <= 120 && visibleInLine(pattern) === pattern;
  return isPlain ? pattern : "exactly the command above";
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
