/** Which forms the parts of a record have that Lockstep makes: a journal that came with a clone may hold anything. */
import { isObject, own } from "./json.ts";
import type { Outcome } from "./verdict.ts";

/** Letters, digits, - and _: a shell takes it as one word, and a terminal prints it as it is. */
export function isRunId(value: unknown): value is string {
  return typeof value === "string" && /^\w[\w-]{0,63}$/.test(value);
}

/** Milliseconds that are a date. */
export function isTime(value: unknown): value is number {
  return typeof value === "number" && Math.abs(value) <= LAST_TIME;
}

/** Why a value is not an entry that Lockstep can have made; null: it may be one. */
export function entryFault(value: unknown): string | null {
  if (!isObject(value)) return "is not an object";
  // Plain reads: this is done for every entry that is read, and no prototype has these names.
  const { at, underWay, led, event } = value;
  if (!isTime(at)) return "has no time";
  if (underWay !== undefined && underWay !== null && !(Array.isArray(underWay) && underWay.every(isText)))
    return "has steps under way that are not texts";
  if (led !== undefined && !(isObject(led) && isText(led["step"]) && isTextOrNull(led["to"])))
    return "has a decision without steps";
  if (!isObject(event) || !isText(event["type"])) return "has no event";
  if (!isTextOrNull(event["step"] ?? null)) return "has a step that is not a text";
  return event["type"] === "run.ended" ? verdictFault(own(event, "verdict")) : null;
}

function verdictFault(verdict: unknown): string | null {
  if (!isObject(verdict)) return "has no verdict";
  const [outcome, code] = [own(verdict, "outcome"), own(verdict, "code")];
  if (!isText(outcome) || !Object.hasOwn(OUTCOMES, outcome)) return "has an outcome that does not exist";
  if (code !== null && !(isText(code) && /^[\w.:-]{1,100}$/.test(code)))
    return "has a code that is not a name";
  if (!isText(own(verdict, "reason"))) return "has a verdict without a reason";
  return isTextOrNull(own(verdict, "step")) ? null : "has a verdict without a step";
}

const OUTCOMES: { readonly [outcome in Outcome]: true } = {
  completed: true,
  failed: true,
  waiting: true,
  interrupted: true,
};

/** The last one that JavaScript knows. */
const LAST_TIME = 8.64e15;

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isTextOrNull(value: unknown): boolean {
  return value === null || isText(value);
}
