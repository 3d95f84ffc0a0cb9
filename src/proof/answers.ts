/** Answers that a step accepts: for each label, and for each branch of its edge, the smallest one that says it. */
import { readAnswer } from "../engine/decide/gate.ts";
import { route } from "../engine/decide/route.ts";
import type { Decider, Label, Move, Step } from "../flow/flow.ts";
import { isObject, readPath, type Json, type JsonObject, type JsonSchema, type Path } from "../flow/json.ts";
import { synthesise, type WantedValue } from "./synthesise.ts";

/** `with`: what it says beside its label, so that another branch is taken. */
export type Draft = {
  readonly kind: "answers";
  readonly label: Label;
  readonly with: readonly GivenValue[];
  readonly payload: JsonObject;
};

export type GivenValue = { readonly path: Path; readonly value: Json };

export type Drafted =
  | { readonly kind: "answer"; readonly payload: JsonObject }
  /** No answer that fits the schema and says this was found. */
  | { readonly kind: "none"; readonly why: string };

/** The smallest answer with this label and these values. */
export function draftAnswer(step: Step, label: Label, given: readonly GivenValue[] = []): Drafted {
  if (given.length > 0) return draftWith(step, label, given);
  const known = plainDrafts.get(step) ?? new Map<Label, Drafted>();
  plainDrafts.set(step, known);
  const made = known.get(label) ?? draftWith(step, label, given);
  known.set(label, made);
  return made;
}

/** Tests ask for the same few answers again and again. */
const plainDrafts = new WeakMap<Step, Map<Label, Drafted>>();

function draftWith(step: Step, label: Label, given: readonly GivenValue[]): Drafted {
  const { decide } = step;
  // A label that is always accepted is held against no schema.
  if (decide.by === "field" && decide.always.includes(label)) {
    const made = payloadWith(step, { with: given });
    if (made.kind === "answer")
      return { kind: "answer", payload: withValue(made.payload, decide.path, label) };
  }
  const words = decide.by === "const" ? [null] : wordsFor(decide, label);
  let why = `"${label}" is not a label that the step can give`;
  for (const word of words) {
    const said = word === null || decide.by === "const" ? [] : [{ path: decide.path, value: word }];
    const made = payloadWith(step, { with: [...said, ...given] });
    if (made.kind === "none") {
      ({ why } = made);
      continue;
    }
    if (givesLabel(step, label, made.payload)) return made;
    why = `an answer with the word ${JSON.stringify(word)} is not read as "${label}"`;
  }
  return { kind: "none", why };
}

/** The label by its name, then the words that stand for it. */
function wordsFor({ alias, allow, always }: Decider & { by: "field" }, label: Label): readonly string[] {
  if (!allow.includes(label) && !always.includes(label)) return [];
  return [label, ...Object.keys(alias).filter((word) => alias[word] === label)];
}

/** An object that fits the schema of the step; where there is none, anything goes. */
export function payloadWith(step: Step, wanted: WantedValue): Drafted {
  const { answer } = step;
  const schema =
    answer.kind === "object" && answer.schema.kind === "schema" ? answer.schema.schema : ANYTHING;
  const made = synthesise(asObject(schema), wanted);
  if (made.kind === "none") {
    if (!made.isProved) giveUp(step, made.why);
    return { kind: "none", why: made.why };
  }
  return isObject(made.value)
    ? { kind: "answer", payload: made.value }
    : { kind: "none", why: "the schema asks for something else than an object" };
}

/** Answers of the step that may exist, and were not found: what the validator said of the best try. */
export function givenUp(step: Step): ReadonlySet<string> {
  return untried.get(step) ?? NO_REASONS;
}

function giveUp(step: Step, why: string): void {
  untried.set(step, new Set([...givenUp(step), why]));
}

const untried = new WeakMap<Step, ReadonlySet<string>>();
const NO_REASONS: ReadonlySet<string> = new Set();

/** The same object each time: what the validator compiles is kept by identity. */
function asObject(schema: JsonSchema): JsonSchema {
  if (schema.type !== undefined) return schema;
  const known = asObjects.get(schema) ?? { type: "object", ...schema };
  asObjects.set(schema, known);
  return known;
}

const ANYTHING: JsonSchema = {};
const asObjects = new WeakMap<JsonSchema, JsonSchema>();

function givesLabel(step: Step, label: Label, payload: JsonObject): boolean {
  if (step.answer.kind !== "object") return true;
  const reading = readAnswer(step, step.answer, payload);
  return reading.kind === "label" && (step.stage !== undefined || reading.label === label);
}

/** For every label of the step and every branch of its edge, one answer where there is one. */
export function draftsOf(step: Step): readonly Draft[] {
  const known = drafts.get(step);
  if (known !== undefined) return known;
  const made = answerLabels(step).flatMap((label) => {
    const edge = step.edges[label];
    const ways = edge === undefined ? [NOTHING] : branchValues(step, edge);
    return ways.flatMap((given): Draft[] => {
      const draft = draftAnswer(step, label, given);
      return draft.kind === "answer" ? [{ kind: "answers", label, with: given, payload: draft.payload }] : [];
    });
  });
  drafts.set(step, made);
  return made;
}

const drafts = new WeakMap<Step, readonly Draft[]>();
const NOTHING: readonly GivenValue[] = [];

export function answerLabels({ decide }: Step): readonly Label[] {
  return decide.by === "const" ? [decide.label] : [...new Set([...decide.allow, ...decide.always])];
}

/** What an answer has to hold for each branch of a move. */
function branchValues(step: Step, move: Move): readonly (readonly GivenValue[])[] {
  switch (move.kind) {
    case "goto":
    case "fork":
    case "end":
      return [NOTHING];
    case "times": {
      const both = [...branchValues(step, move.move), ...branchValues(step, move.after)];
      return both.filter(
        (one, at) => both.findIndex((other) => JSON.stringify(other) === JSON.stringify(one)) === at,
      );
    }
    case "switch": {
      const path = carriedFrom(step, move.on);
      if (path === null) {
        giveUp(step, `what ${move.on.join(".")} is does not depend on the answer of the step`);
        return [NOTHING];
      }
      const cases = Object.entries(move.cases).flatMap(([value, one]) =>
        branchValues(step, one).map((more) =>
          more.toSpliced(0, 0, { path, value: valueFor(step, path, value) }),
        ),
      );
      return move.otherwise === undefined
        ? cases
        : [...cases, ...otherwise(step, path, Object.keys(move.cases), branchValues(step, move.otherwise))];
    }
    case "jump": {
      const named = move.among.map((to) => [{ path: move.field, value: to }]);
      return move.otherwise === undefined ? named : [...named, ...branchValues(step, move.otherwise)];
    }
  }
}

/** Where in the payload the carried value is taken from. */
function carriedFrom({ carry, stage }: Step, [key, ...rest]: Path): Path | null {
  if (stage !== undefined) return key === "parsed" ? rest : null;
  const found = carry.find((one) => one.key === key);
  return found === undefined ? null : [...found.path, ...rest];
}

/** Cases are written as text; what is compared may be a number or a yes. */
function valueFor(step: Step, path: Path, text: string): Json {
  const forms: readonly Json[] = [
    text,
    ...(/^(?:true|false|-?\d+(?:\.\d+)?)$/.test(text) ? [JSON.parse(text) as Json] : []),
  ];
  return forms.find((value) => payloadWith(step, { with: [{ path, value }] }).kind === "answer") ?? text;
}

/** A value that no case is about: one that the schema lists, else another word. */
function otherwise(
  step: Step,
  path: Path,
  taken: readonly string[],
  ways: readonly (readonly GivenValue[])[],
): readonly (readonly GivenValue[])[] {
  const plain = payloadWith(step, {});
  const usual = plain.kind === "answer" ? readPath(plain.payload, path) : undefined;
  const isFree = (value: Json | undefined) =>
    value === undefined || !taken.includes(typeof value === "string" ? value : JSON.stringify(value));
  if (plain.kind === "answer" && isFree(usual)) return ways;
  const listed = listedAt(step, path).find(isFree);
  const candidates: readonly Json[] = [
    ...(listed === undefined ? [] : [listed]),
    "something else",
    false,
    true,
    -1,
    null,
  ];
  const isOther = (one: Json) =>
    isFree(one) && payloadWith(step, { with: [{ path, value: one }] }).kind === "answer";
  const value = candidates.find(isOther);
  return value === undefined ? [] : ways.map((more) => more.toSpliced(0, 0, { path, value }));
}

function listedAt({ answer }: Step, path: Path): readonly Json[] {
  let at: Json | undefined =
    answer.kind === "object" && answer.schema.kind === "schema" ? answer.schema.schema : undefined;
  for (const name of path) at = at === undefined ? undefined : readPath(at, ["properties", name]);
  const words = isObject(at) ? at.enum : undefined;
  return Array.isArray(words) ? (words as readonly Json[]) : [];
}

/** Whether an answer that fits may leave out what the step hands on under this key. */
export function canLack(step: Step, key: string): boolean {
  return lacking(step, key) !== null;
}

/** An answer of the step without what it hands on under this key; null: its schema does not allow that. */
export function lacking(step: Step, key: string): Draft | null {
  return varied(step, key, false);
}

/** An answer with something to hand on under this key; null: its schema does not allow that. */
export function having(step: Step, key: string): Draft | null {
  return varied(step, key, true);
}

function varied(step: Step, key: string, isThere: boolean): Draft | null {
  const path = step.carry.find((one) => one.key === key)?.path;
  const { decide } = step;
  if (path === undefined) return null;
  const fits = (payload: JsonObject) => (readPath(payload, path) !== undefined) === isThere;
  const usable = draftsOf(step).filter(({ label }) => decide.by === "const" || decide.allow.includes(label));
  const usual = usable.find(({ payload }) => fits(payload));
  if (usual !== undefined) return usual;
  for (const draft of usable) {
    const said =
      decide.by === "const" ? [] : [{ path: decide.path, value: readPath(draft.payload, decide.path)! }];
    const made = payloadWith(step, {
      with: [...said, ...draft.with],
      ...(isThere ? { having: [path] } : { without: [path] }),
    });
    if (made.kind === "answer" && fits(made.payload) && givesLabel(step, draft.label, made.payload))
      return { ...draft, payload: made.payload };
  }
  return null;
}

/** The same answer with something to hand on under these keys; null: it has that already, or its schema does not allow it. */
export function completed(step: Step, draft: Draft, keys: readonly string[]): Draft | null {
  const { decide } = step;
  const having = step.carry.flatMap(({ key, path }) => (keys.includes(key) ? [path] : []));
  const isThere = (payload: JsonObject) => having.every((path) => readPath(payload, path) !== undefined);
  if (isThere(draft.payload)) return null;
  const said =
    decide.by === "const" ? [] : [{ path: decide.path, value: readPath(draft.payload, decide.path)! }];
  const made = payloadWith(step, { with: [...said, ...draft.with], having });
  if (made.kind === "none" || !isThere(made.payload) || !givesLabel(step, draft.label, made.payload))
    return null;
  return { ...draft, payload: made.payload };
}

/** A word for the label that the schema takes, and that is not its name; null: there is none. */
export function otherWord(step: Step): { readonly word: string; readonly payload: JsonObject } | null {
  const { decide } = step;
  if (decide.by === "const") return null;
  for (const [word, label] of Object.entries(decide.alias)) {
    if (word === label) continue;
    const made = payloadWith(step, { with: [{ path: decide.path, value: word }] });
    const payload = made.kind === "answer" ? made.payload : inserted(step, decide, label, word);
    if (payload !== null && givesLabel(step, label, payload)) return { word, payload };
  }
  return null;
}

/** The schema lists the labels: the word is put in the place of its label. */
function inserted(
  step: Step,
  { path }: Decider & { by: "field" },
  label: Label,
  word: string,
): JsonObject | null {
  const made = payloadWith(step, { with: [{ path, value: label }] });
  return made.kind === "answer" ? withValue(made.payload, path, word) : null;
}

/** An answer that fits and names no label of the step: with another word, or with none. null: the schema allows neither. */
export function withoutLabel(step: Step): JsonObject | null {
  const { decide } = step;
  if (decide.by === "const") return null;
  const tries: readonly WantedValue[] = [
    { without: [decide.path] },
    { with: [{ path: decide.path, value: "something else" }] },
    { with: [{ path: decide.path, value: null }] },
    ...listedAt(step, decide.path).map((value) => ({ with: [{ path: decide.path, value }] })),
  ];
  for (const wanted of tries) {
    const made = payloadWith(step, wanted);
    if (made.kind !== "answer" || step.answer.kind !== "object") continue;
    const reading = readAnswer(step, step.answer, made.payload);
    if (reading.kind === "no-label" || (reading.kind === "label" && reading.by === "fallback"))
      return made.payload;
  }
  return null;
}

export function withValue(payload: JsonObject, [name, ...rest]: Path, value: Json): JsonObject {
  if (name === undefined) return payload;
  const inner = payload[name];
  return {
    ...payload,
    [name]: rest.length === 0 ? value : withValue(isObject(inner) ? inner : {}, rest, value),
  };
}

/** Whether the label of the answer leads somewhere at all. */
export function leadsOn(step: Step, label: Label, payload: JsonObject): boolean {
  return route(step, label, payload, {}, 1, 0).kind === "move";
}
