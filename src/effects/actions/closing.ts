/** What becomes of the issue of a run: what the agent file says, and what the closing answer adds to it. Pure. */
import { own, readPath, type Json, type JsonObject } from "../../flow/json.ts";
import type { ClosureAction, GitHub } from "../../flow/settings.ts";

export type Labels = { readonly add: readonly string[]; readonly remove: readonly string[] };

export type Closing = {
  readonly action: ClosureAction;
  readonly labels: Labels;
  /** How many answered labels are not taken: they cannot be labels, or there are too many. */
  readonly refused: number;
  /** Answered labels that the agent file does not open. */
  readonly strange: readonly string[];
};

/** Labels start things elsewhere, such as a deployment: an answer may use those that the agent file names. */
export function mayLabel(label: string, github: GitHub): boolean {
  return openedLabels(github).some((other) => isSameLabel(other, label));
}

/** Of `labels` and `answerLabels`, as they are written. */
export function openedLabels({ labels, completion, answerLabels = [] }: GitHub): readonly string[] {
  const all = [...Object.values(labels), ...completion.add, ...completion.remove, ...answerLabels];
  return all.filter((label) => label !== "");
}

/** As the run begins. */
export function beginningLabels({ labels }: GitHub): Labels {
  return { add: named(own(labels, "inProgress")), remove: [] };
}

/** When the run has failed for good. */
export function blockedLabels({ labels }: GitHub): Labels {
  const add = named(own(labels, "blocked"));
  return { add, remove: without(named(own(labels, "inProgress")), add) };
}

/**
 * When the run is complete. The agent file has the last word: an answer neither takes away what the file adds, nor the
 * other way round.
 */
export function closingOf(github: GitHub, answer: JsonObject | null): Closing {
  const action = answeredAction(answer) ?? github.defaultClosureAction;
  const progress = named(own(github.labels, "inProgress"));
  if (action === "close") return { action, labels: { add: [], remove: progress }, refused: 0, strange: [] };
  const { completion } = github;
  const said = answeredLabels(answer);
  const strange = distinct([...said.add, ...said.remove]).filter((label) => !mayLabel(label, github));
  const answered = { add: without(said.add, strange), remove: without(said.remove, strange) };
  const add = distinct([...completion.add, ...without(answered.add, [...completion.remove, ...progress])]);
  const remove = without(distinct([...completion.remove, ...progress, ...answered.remove]), add);
  return { action, labels: { add, remove }, refused: said.refused, strange };
}

const ACTIONS: ReadonlySet<Json | undefined> = new Set(["close", "label-only", "label-and-close"]);

function answeredAction(answer: JsonObject | null): ClosureAction | null {
  const said = [["closure_action"], ["closure", "action"]].map((path) => readPath(answer ?? {}, path));
  return (said.find((word) => ACTIONS.has(word)) as ClosureAction | undefined) ?? null;
}

function answeredLabels(answer: JsonObject | null): Labels & { readonly refused: number } {
  const labelsAt = (key: string) => labelsIn(readPath(answer ?? {}, ["issue", "labels", key]));
  const [add, remove] = [labelsAt("add"), labelsAt("remove")];
  return { add: add.taken, remove: remove.taken, refused: add.refused + remove.refused };
}

/** What a model says is bounded: a few labels, each such as GitHub takes. */
function labelsIn(value: Json | undefined): { readonly taken: readonly string[]; readonly refused: number } {
  if (value === undefined) return { taken: [], refused: 0 };
  const said: readonly Json[] = Array.isArray(value) ? value : [value];
  const labels = said.filter((label) => typeof label === "string").map((label) => label.trim());
  const taken = distinct(labels.filter(isLabel)).slice(0, MOST_LABELS);
  return { taken, refused: said.length - taken.length };
}

const MOST_LABELS = 10;
const LONGEST_LABEL = 50;

function isLabel(text: string): boolean {
  return text !== "" && text.length <= LONGEST_LABEL && !/[\p{Cc}\p{Cf},]/u.test(text);
}

function named(label: string | undefined): readonly string[] {
  return label === undefined || label === "" ? [] : [label];
}

/** To GitHub, letters are the same in both cases. */
export function isSameLabel(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}

function without(labels: readonly string[], others: readonly string[]): readonly string[] {
  return labels.filter((label) => !others.some((other) => isSameLabel(label, other)));
}

function distinct(labels: readonly string[]): readonly string[] {
  return labels.filter((label, place) => labels.findIndex((other) => isSameLabel(label, other)) === place);
}
