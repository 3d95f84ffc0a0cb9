/** What a test expects, held against the flow: an expectation that means nothing would silently hold for every run. */
import { readComparison, readLeg } from "../flow/expectation.ts";
import { EXPECT_KEYS, type Expected, type ExpectKey } from "../flow/flow-test.ts";
import type { Flow } from "../flow/flow.ts";
import { isObject, type Json } from "../flow/json.ts";
import { escapeSegment } from "../flow/json-pointer.ts";
import { patternFault } from "../flow/text/pattern.ts";
import { didYouMean } from "../flow/text/suggest.ts";
import type { Outcome } from "../flow/verdict.ts";
import type { Code } from "./codes.ts";
import { testCheck } from "./test-around.ts";
import { reportTest, testStep, valuesIn, type TestReading } from "./test-reading.ts";
import { escapesProject, joinPath } from "./text/paths.ts";
import { showValue } from "./text/shape.ts";

/** `lines`: where each expectation is written. Without any: the run completes, and nothing is warned of. */
export function testExpected(
  reading: TestReading,
  { expect }: { readonly expect: Json | undefined },
  pointer: string,
): Expected {
  if (!isObject(expect)) return { lines: {}, values: { outcome: "completed", warnings: [] } };
  const lines: { [key: string]: number } = {};
  if (Object.keys(expect).length === 0)
    reportTest(
      reading,
      "TEST-KEY",
      `${pointer}/expect`,
      "expect is empty, so the test would pass however the run goes.",
      "Write what is expected, or remove expect: then the run has to complete.",
    );
  for (const [key, value] of Object.entries(expect)) {
    const at = `${pointer}/expect/${escapeSegment(key)}`;
    lines[key] = reading.document.place(at).line;
    const known = EXPECT_KEYS.find((one) => one === key);
    if (known === undefined)
      reportTest(
        reading,
        "TEST-KEY",
        at,
        `"${key}" cannot be expected.${didYouMean(key, EXPECT_KEYS)}`,
        `Use one of: ${EXPECT_KEYS.join(", ")}.`,
      );
    else RULES[known]({ reading, at, name: `expect.${key}` }, value);
  }
  return { lines, values: expect };
}

/** A value of a test file: where it is, and how a message names it. */
type Place = { readonly reading: TestReading; readonly at: string; readonly name: string };
type Check = (place: Place, value: Json) => void;

function report({ reading, at }: Place, message: string, fix: string, code: Code = "TEST-KEY"): void {
  reportTest(reading, code, at, message, fix);
}

function below({ reading, at, name }: Place, key: string | number): Place {
  return { reading, at: `${at}/${escapeSegment(String(key))}`, name: `${name}.${key}` };
}

/** false: it is of another kind, and that is reported. */
function refuse(place: Place, value: Json, wanted: string): false {
  report(place, `${place.name} is ${showValue(value)}, but must be ${wanted}.`, `Write ${wanted}.`);
  return false;
}

/* Values */

/** Texts that begin a regular expression are valid ones, wherever they stand. */
const anyValue: Check = (place, value) => {
  if (typeof value === "string") pattern(place, value);
  else if (Array.isArray(value))
    for (const [at, item] of (value as readonly Json[]).entries()) anyValue(below(place, at), item);
  else if (isObject(value))
    for (const [key, member] of Object.entries(value)) anyValue(below(place, key), member);
};

function pattern(place: Place, text: string): void {
  if (!text.startsWith("re:")) return;
  const why = text === "re:" ? "it is empty, and matches every text" : patternFault(text.slice(3));
  if (why !== null)
    report(
      place,
      `${place.name} holds a pattern that cannot be used, "${text}": ${why}.`,
      "Write a regular expression of JavaScript after re:, without slashes around it.",
    );
}

const text: Check = (place, value) => {
  if (typeof value === "string") pattern(place, value);
  else refuse(place, value, "a text");
};

const amount: Check = (place, value) => {
  if (typeof value === "number" && value >= 0) return;
  const compared = typeof value === "string" ? readComparison(value) : null;
  if (compared !== null) {
    const { sign, bound } = compared;
    if ((sign === ">=" && bound <= 0) || (sign === ">" && bound < 0))
      report(place, `${place.name} is ${showValue(value)}, which is always so.`, 'Compare with more: "> 0".');
    return;
  }
  const isQuoted = typeof value === "string" && /^\s*\d+(?:\.\d+)?\s*$/.test(value);
  if (isQuoted)
    report(place, `${place.name} is the text "${value}".`, `Write ${value.trim()} without quotation marks.`);
  else refuse(place, value, 'a number of at least 0, or a comparison such as "<= 8"');
};

const orAbsent =
  (check: Check): Check =>
  (place, value) => {
    if (value !== "absent") check(place, value);
  };

const oneOf =
  (words: readonly string[]): Check =>
  (place, value) => {
    if (typeof value === "string" && value.startsWith("re:")) pattern(place, value);
    else if (typeof value !== "string" || !words.includes(value))
      report(
        place,
        `${place.name} is ${showValue(value)}.${typeof value === "string" ? didYouMean(value, words) : ""}`,
        `Use one of: ${words.join(", ")}.`,
      );
  };

const listOf =
  (item: Check): Check =>
  (place, value) => {
    if (!Array.isArray(value)) return void refuse(place, value, "a list");
    const items = value as readonly Json[];
    if (items.length > 0 && items.every((one) => one === "..."))
      report(
        place,
        `${place.name} holds nothing but "...", which any list fits.`,
        "Name at least one item, or remove it.",
      );
    for (const [at, one] of items.entries())
      if (typeof one === "string" && one.startsWith("re:")) pattern(below(place, at), one);
      else if (one !== "...") item(below(place, at), one);
  };

/** `absent` for all of it, or what each member is. */
const membersOf =
  (member: (place: Place, key: string, value: Json) => void): Check =>
  (place, value) => {
    if (!isObject(value)) return void refuse(place, value, "an object");
    if (Object.keys(value).length === 0)
      report(place, `${place.name} is empty, which is always so.`, "Write what is expected, or remove it.");
    for (const [key, one] of Object.entries(value)) member(below(place, key), key, one);
  };

/** Words that are looked for: a text or a list of texts, not empty. */
export function checkWords(reading: TestReading, value: Json, at: string, name: string): void {
  const place = { reading, at, name };
  const words = valuesIn(value);
  const isEmpty = words.length === 0 || words.includes("");
  if (isEmpty)
    report(place, `${name} holds no word, so nothing is looked for.`, "Write the words, or remove it.");
  for (const word of words)
    if (typeof word === "string") pattern(place, word);
    else
      report(
        place,
        `${name} holds something that is not a text.`,
        `Write ${name} as a text or a list of texts.`,
      );
}

/* Names */

const step: Check = ({ reading, at, name }, value) => {
  if (typeof value !== "string") refuse({ reading, at, name }, value, "a step");
  else if (value.startsWith("re:")) pattern({ reading, at, name }, value);
  else testStep(reading, value, at);
};

/** What is wrong with one decision of a path: how it is written, or steps that are not in the flow. */
export function legFaults(
  { steps }: Pick<Flow, "steps">,
  written: Json,
): { readonly form: string | null; readonly unknown: readonly string[] } {
  const leg = typeof written === "string" ? readLeg(written) : null;
  if (leg === null) return { form: `${showValue(written)} is not a decision of a path.`, unknown: [] };
  const targets = leg.to === undefined || leg.to === "end" ? [] : leg.to.replace(/^fork /, "").split("+");
  return { form: null, unknown: [leg.step, ...targets].filter((id) => !Object.hasOwn(steps, id)) };
}

export const LEG_FORMS = "Write STEP, STEP LABEL, STEP LABEL x PATTERN or STEP LABEL -> TARGET.";

const leg: Check = (place, value) => {
  const { form, unknown } = legFaults(place.reading.flow, value);
  if (form !== null) report(place, form, LEG_FORMS);
  for (const id of unknown) testStep(place.reading, id, place.at);
};

const checkResult: Check = (place, value) => {
  const [, name, state] = /^(.+) (\S+)$/.exec(typeof value === "string" ? value : "") ?? [];
  if (name === undefined || (state !== "passed" && state !== "failed"))
    return void refuse(place, value, "NAME passed, or NAME failed");
  testCheck(place.reading, name, place.at);
};

const call: Check = (place, value) => {
  if (typeof value !== "string" || !/^\S+(?: (?:ok|denied|failed))?$/.test(value))
    refuse(place, value, "TOOL, TOOL ok, TOOL denied or TOOL failed");
};

const handedOn = membersOf((place, id, value) => {
  const from = testStep(place.reading, id, place.at);
  anyValue(place, value);
  if (from === null || from.stage !== undefined || !isObject(value)) return;
  const keys = from.carry.map(({ key }) => key);
  for (const [key, one] of Object.entries(value))
    if (one === "absent" && !keys.includes(key))
      report(
        below(place, key),
        `Step "${id}" never hands on "${key}".${didYouMean(key, keys)}`,
        `Use one of: ${keys.join(", ") || "none"}.`,
      );
});

const saying: Check = (place, value) => {
  if (Array.isArray(value) && value.length === 0) return void refuse(place, value, "{ at, saw, unseen }");
  for (const [index, one] of valuesIn(value).entries()) {
    const here = Array.isArray(value) ? below(place, index) : place;
    if (!isObject(one)) {
      refuse(here, one, "{ at, saw, unseen }");
      continue;
    }
    const { at, saw, unseen } = one;
    if (at !== undefined) visitNamed(below(here, "at"), at);
    if (saw === undefined && unseen === undefined)
      report(here, `${here.name} says neither saw nor unseen, so nothing is looked for.`, "Add one of them.");
    for (const [key, words] of Object.entries({ saw, unseen }))
      if (words !== undefined) checkWords(place.reading, words, `${here.at}/${key}`, `${here.name}.${key}`);
  }
};

/** `STEP`, or `STEP@VISIT`. */
const visitNamed: Check = (place, value) => {
  const [, id, visit] = /^(.+?)(?:@(.*))?$/.exec(typeof value === "string" ? value : "") ?? [];
  if (id === undefined || (visit !== undefined && !/^[1-9]\d*$/.test(visit)))
    return void refuse(place, value, "STEP or STEP@VISIT, where visits are counted from 1");
  testStep(place.reading, id, place.at);
};

const fileAfter = membersOf((place, path, value) => {
  if (escapesProject(joinPath("", path)))
    report(
      place,
      `${path} is not in the project.`,
      "Name a file relative to the folder that is copied.",
      "TEST-FIXTURE",
    );
  if (!isObject(value)) return text(place, value);
  const { has, lacks, json } = value;
  if (has === undefined && lacks === undefined && json === undefined)
    report(place, `${place.name} expects nothing of the file.`, "Give it has, lacks or json.");
  for (const [key, words] of Object.entries({ has, lacks }))
    if (words !== undefined) checkWords(place.reading, words, `${place.at}/${key}`, `${place.name}.${key}`);
  if (json !== undefined) anyValue(below(place, "json"), json);
});

const gitAfter = membersOf((place, key, value) => {
  if (key === "commits") amount(place, value);
  else if (key === "clean" && typeof value !== "boolean") refuse(place, value, "true or false");
  else if (key === "last" || key === "branch") text(place, value);
});

const OUTCOMES = ["completed", "failed", "waiting", "interrupted"] as const satisfies readonly Outcome[];
const SNAPSHOT_PARTS = ["prompts", "path", "result"];

const snapshot: Check = (place, value) => {
  const parts = valuesIn(value);
  if (parts.length === 0) refuse(place, value, `one or more of: ${SNAPSHOT_PARTS.join(", ")}`);
  for (const part of parts)
    if (!SNAPSHOT_PARTS.some((name) => name === part))
      report(
        place,
        `${showValue(part)} is not a part of a snapshot.`,
        `Use one or more of: ${SNAPSHOT_PARTS.join(", ")}.`,
      );
};

const RULES: { readonly [key in ExpectKey]: Check } = {
  outcome: oneOf(OUTCOMES),
  code: text,
  exit: amount,
  final: orAbsent(step),
  reason: text,
  path: listOf(leg),
  visits: membersOf((place, id, value) => {
    testStep(place.reading, id, place.at);
    orAbsent(amount)(place, value);
  }),
  checks: listOf(checkResult),
  handoff: handedOn,
  asked: listOf(text),
  said: saying,
  calls: listOf(call),
  effects: listOf(text),
  github: orAbsent(membersOf((place, _key, value) => anyValue(place, value))),
  files: fileAfter,
  changed: listOf(text),
  git: orAbsent(gitAfter),
  turns: amount,
  tokens: amount,
  costUsd: orAbsent(amount),
  waited: amount,
  warnings: listOf(text),
  snapshot,
};
