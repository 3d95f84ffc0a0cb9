/**
 * Files of earlier versions, put into the present form before they are read: a table of what moved and what is gone,
 * and one warning for each row that was used. The document that comes out still knows where its author wrote things.
 */
import { isObject, own, readPath, type Json, type Path } from "../../flow/json.ts";
import type { Document } from "../text/document.ts";
import type { Finding } from "../rules/rule.ts";
import { escapeSegment, pointerOf } from "../../flow/json-pointer.ts";
import { didYouMean } from "../../flow/text/suggest.ts";

/** agent.json: the flat form of version 1.11, and the `completion` of version 1.12. */
export function modernAgent(document: Document, findings: Finding[]): Document {
  return modernise(document, AGENT_ROWS, findings);
}

/** steps_registry.json: what was called completion before version 1.13. */
export function modernRegistry(document: Document, findings: Finding[]): Document {
  return modernise(document, REGISTRY_ROWS, findings);
}

/** Places with dots; `*` stands for every key, or every place in a list, in `at` and `to` alike. */
export type LegacyRow = { readonly at: string } & (
  | {
      readonly kind: "moved";
      readonly to: string;
      readonly turn?: (value: Json) => Json;
      readonly note?: string;
    }
  /** Nothing takes its place. */
  | { readonly kind: "gone"; readonly note: string }
  /** A word that nothing takes the place of; the run must not go on as if it had been the default. */
  | { readonly kind: "word"; readonly words: readonly string[]; readonly by: string; readonly note: string }
  /** A group whose keys have all moved: what is left in it was never a key. */
  | { readonly kind: "emptied" }
);

/** In this order: a later row sees what the earlier ones have moved. */
export const AGENT_ROWS: readonly LegacyRow[] = [
  { at: "behavior.systemPromptPath", kind: "moved", to: "runner.flow.systemPromptPath" },
  { at: "behavior.askUserAutoResponse", kind: "moved", to: "runner.flow.askUserAutoResponse" },
  { at: "behavior.defaultModel", kind: "moved", to: "runner.flow.defaultModel" },
  { at: "behavior.completionType", kind: "moved", to: "runner.verdict.type" },
  { at: "behavior.completionConfig", kind: "moved", to: "runner.verdict.config" },
  { at: "behavior.allowedTools", kind: "moved", to: "runner.boundaries.allowedTools" },
  { at: "behavior.permissionMode", kind: "moved", to: "runner.boundaries.permissionMode" },
  { at: "behavior.sandboxConfig", kind: "moved", to: "runner.boundaries.sandbox" },
  {
    at: "behavior.disableSandbox",
    kind: "moved",
    to: "runner.boundaries.sandbox.enabled",
    turn: (value) => (typeof value === "boolean" ? !value : value),
    note: "Its meaning is reversed there: true becomes false.",
  },
  {
    at: "behavior.preCloseValidation",
    kind: "gone",
    note: "Checks before the end are now validators in the registry, listed in validationSteps.",
  },
  { at: "behavior", kind: "emptied" },
  { at: "prompts", kind: "moved", to: "runner.flow.prompts" },
  { at: "github", kind: "moved", to: "runner.integrations.github" },
  { at: "actions", kind: "moved", to: "runner.actions" },
  { at: "worktree", kind: "moved", to: "runner.execution.worktree" },
  { at: "finalize", kind: "moved", to: "runner.execution.finalize" },
  { at: "logging", kind: "moved", to: "runner.logging" },
  { at: "runner.completion", kind: "moved", to: "runner.verdict" },
  { at: "runner.actions.allowedTypes", kind: "moved", to: "runner.actions.types" },
  {
    at: "runner.verdict.config.completionKeyword",
    kind: "moved",
    to: "runner.verdict.config.verdictKeyword",
  },
  {
    at: "runner.verdict.config.conditions.*.config.completionKeyword",
    kind: "moved",
    to: "runner.verdict.config.conditions.*.config.verdictKeyword",
  },
  { at: "runner.verdict.config.terminalPhases", kind: "gone", note: "Phases are no longer counted." },
  {
    at: "runner.verdict.type",
    kind: "word",
    words: ["project", "phaseCompletion"],
    by: "detect:graph",
    note: "Phases are no longer counted: the run ends when its steps reach an end.",
  },
];

export const REGISTRY_ROWS: readonly LegacyRow[] = [
  { at: "completionPatterns", kind: "moved", to: "failurePatterns" },
  { at: "completionSteps", kind: "moved", to: "validationSteps" },
  {
    at: "validationSteps.*.completionConditions",
    kind: "moved",
    to: "validationSteps.*.validationConditions",
  },
];

/** A document on its way into the present form. */
type Draft = {
  readonly original: Document;
  value: Json;
  readonly moved: { readonly from: string; readonly to: string }[];
  readonly findings: Finding[];
};

function modernise(original: Document, rows: readonly LegacyRow[], findings: Finding[]): Document {
  if (!isObject(original.value)) return original;
  const draft: Draft = { original, value: original.value, moved: [], findings: [] };
  for (const row of rows) {
    for (const path of matches(draft.value, row.at.split("."), [])) applyRow(draft, row, path, rows);
  }
  if (draft.value === original.value) return original;
  findings.push(...draft.findings);
  const written = (pointer: string) => backwards(pointer, draft);
  return {
    file: original.file,
    value: draft.value,
    written,
    place: (pointer) => original.place(written(pointer)),
  };
}

function applyRow(draft: Draft, row: LegacyRow, path: Path, rows: readonly LegacyRow[]): void {
  const value = readPath(draft.value, path)!;
  const pointer = backwards(pointerOf(path), draft);
  const was = pointer.slice(1).replaceAll("/", ".");
  const report = (code: Finding["code"], at: string, message: string, fix: string) =>
    draft.findings.push({ code, document: draft.original, pointer: at, message: message.trim(), fix });

  switch (row.kind) {
    case "moved": {
      const to = filled(row.to, row.at, path);
      const now = to.join(".");
      const isTaken = readPath(draft.value, to) !== undefined;
      draft.value = without(draft.value, path);
      if (isTaken) {
        const message = `"${was}" is the old place of "${now}", which is also set and takes precedence.`;
        report("OLD-NAME", pointer, message, `Remove "${was}".`);
        return;
      }
      draft.value = put(draft.value, to, row.turn === undefined ? value : row.turn(value));
      draft.moved.push({ from: pointerOf(path), to: pointerOf(to) });
      const message = `"${was}" is the old place of "${now}". ${row.note ?? ""}`;
      report("OLD-NAME", pointer, message, `Move it to "${now}".${migrating(draft.original.file)}`);
      return;
    }
    case "gone": {
      draft.value = without(draft.value, path);
      const message = `"${was}" no longer has an equivalent and is ignored. ${row.note}`;
      report("LEGACY-GONE", pointer, message, `Remove "${was}".`);
      return;
    }
    case "word": {
      if (typeof value !== "string" || !row.words.includes(value)) return;
      draft.value = put(draft.value, path, row.by);
      const message = `"${was}" is "${value}", which no longer has an equivalent; "${row.by}" is used instead. ${row.note}`;
      report("LEGACY-GONE", pointer, message, `Choose another "${path.join(".")}".`);
      return;
    }
    case "emptied": {
      if (!isObject(value)) return;
      draft.value = without(draft.value, path);
      const known = rows.flatMap(({ at }) => (at.startsWith(`${row.at}.`) ? [at.split(".").at(-1)!] : []));
      for (const key of Object.keys(value)) {
        const message = `"${key}" is not a key of ${was}.${didYouMean(key, known)}`;
        const fix = `Remove "${key}", or write one of: ${known.join(", ")}.`;
        report("UNKNOWN-KEY", `${pointer}/${escapeSegment(key)}`, message, fix);
      }
    }
  }
}

function migrating(file: string): string {
  const agent = /^\.agent\/([\w.-]+)\//.exec(file)?.[1];
  return agent === undefined ? "" : ` \`lockstep migrate ${agent} --write\` does it.`;
}

/** Every path in the value that a pattern with `*` names. */
function* matches(value: Json | undefined, pattern: Path, path: Path): Generator<Path> {
  const [head, ...rest] = pattern;
  if (value === undefined || value === null) return;
  if (head === undefined) yield path;
  if (head === undefined || typeof value !== "object") return;
  const keys = head === "*" ? Object.keys(value) : Object.hasOwn(value, head) ? [head] : [];
  for (const key of keys) yield* matches(readPath(value, [key]), rest, [...path, key]);
}

/** `to` with each `*` as it was met in `at`. */
function filled(to: string, at: string, path: Path): Path {
  const stars = at.split(".").flatMap((part, place) => (part === "*" ? [path[place]!] : []));
  return to.split(".").map((part) => (part === "*" ? stars.shift()! : part));
}

/** A copy with `leaf` at the path, through lists too. Unchanged where the path runs into something else. */
function put(value: Json, path: Path, leaf: Json): Json {
  const [head, ...rest] = path;
  if (head === undefined) return leaf;
  if (Array.isArray(value)) return changeMember(value, head, (member) => put(member, rest, leaf));
  return isObject(value) ? { ...value, [head]: put(own(value, head) ?? {}, rest, leaf) } : value;
}

/** A copy without the member at the path. */
function without(value: Json, path: Path): Json {
  const [head = "", ...rest] = path;
  if (Array.isArray(value)) return changeMember(value, head, (member) => without(member, rest));
  if (!isObject(value)) return value;
  const { [head]: member, ...others } = value;
  return member === undefined || rest.length === 0 ? others : { ...value, [head]: without(member, rest) };
}

function changeMember(list: readonly Json[], place: string, change: (member: Json) => Json): Json {
  return list.map((member, index) => (String(index) === place ? change(member) : member));
}

/** Where something stood before it was moved: the last move is undone first. */
function backwards(pointer: string, { moved }: Draft): string {
  let here = pointer;
  for (let last = moved.length - 1; last >= 0; last--) {
    const { from, to } = moved[last]!;
    if (here === to || here.startsWith(`${to}/`)) here = from + here.slice(to.length);
  }
  return here;
}
