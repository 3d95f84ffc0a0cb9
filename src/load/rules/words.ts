/** Rules about what prompts say: the intents they name, the variables their front matter lists, the parameters they read. */
import type { Decider, Flow, Step } from "../../flow/flow.ts";
import { partsOf } from "../../flow/rules.ts";
import { readText } from "../text/document.ts";
import { gateForm } from "../registry/gate-forms.ts";
import type { Registered } from "./loaded.ts";
import { warning, type Codes, type Rules, type Tell } from "./rule.ts";
import { escapeSegment } from "../../flow/json-pointer.ts";
import { placer } from "../../flow/text/places.ts";
import { inPrompt, textDocument } from "../text/prompt-places.ts";
import { didYouMean, onlyNear } from "../../flow/text/suggest.ts";
import { INPUT_TEXT, namesRead, placeholders } from "../../flow/text/template.ts";

export const rules: Rules = { gated: [checkWords] };

export const codes = {
  "PARAM-UNREAD": warning("parameter never read", "A value that no prompt reads changes nothing."),
  "UV-FRONT-MATTER": warning("front matter differs", "One of the two lists of variables is out of date."),
  "PR-INTENT": warning(
    "intent in the prompt",
    "A model follows its prompt; an answer that the gate rejects costs a retry or the run.",
  ),
} satisfies Codes;

function checkWords(loaded: Registered, tell: Tell): void {
  for (const step of loaded.graph.steps.values()) {
    if (step.prompt.file === null || step.prompt.builtIn !== undefined) continue;
    checkFrontMatter(loaded, step, step.prompt.file, tell);
    if (step.decide.by === "field") checkIntentWords(loaded, step, step.decide, step.prompt.file, tell);
  }
  checkParameters(loaded, tell);
}

function checkFrontMatter(loaded: Registered, { id, prompt }: Step, file: string, tell: Tell): void {
  const read = readText(loaded.files, file);
  if (read.kind !== "text" || !read.text.startsWith("---")) return;
  const listed = frontMatterVariables(read.text);
  if (listed === null) return;
  const surplus = listed.names.filter((name) => !prompt.variables.includes(name));
  const lacking = prompt.variables.filter((name) => name !== INPUT_TEXT && !listed.names.includes(name));
  if (surplus.length === 0 && lacking.length === 0) return;
  const parts = [
    ...(surplus.length > 0 ? [`${quoted(surplus)} only in the front matter`] : []),
    ...(lacking.length > 0 ? [`${quoted(lacking)} only in the registry`] : []),
  ];
  tell({
    code: "UV-FRONT-MATTER",
    document: textDocument(file, placer(read.text), listed.at),
    pointer: "",
    steps: [id],
    message: `The uvVariables in the front matter of ${file} and those of the step "${id}" differ: ${parts.join(", ")}.`,
    fix: "Make the two lists the same, or remove the one in the front matter.",
  });
}

/** `uvVariables` of a front matter, as a list in brackets or with dashes. null: there is none. */
function frontMatterVariables(
  text: string,
): { readonly names: readonly string[]; readonly at: number } | null {
  const head = /^---\r?\n([\s\S]*?)\r?\n---/.exec(text)?.[1];
  const key = head === undefined ? null : /^uvVariables:[ \t]*(.*)$/m.exec(head);
  if (head === undefined || key === null) return null;
  const inline = /^\[(.*)\]/.exec(key[1]!.trim())?.[1];
  const below = /^(?:\s*-\s*.*\r?\n?)*/.exec(head.slice(key.index + key[0].length).replace(/^\r?\n/, ""))![0];
  const words =
    inline === undefined ? below.split("\n").map((line) => line.replace(/^\s*-/, "")) : inline.split(",");
  const names = words
    .map((word) =>
      word
        .trim()
        .replace(/^["']|["']$/g, "")
        .replace(/^uv-/, ""),
    )
    .filter(Boolean);
  return { names: [...new Set(names)], at: text.indexOf(head) + key.index };
}

type ByField = Extract<Decider, { by: "field" }>;

/** One finding for each word that the step's gate would not take. */
function checkIntentWords(loaded: Registered, step: Step, decide: ByField, file: string, tell: Tell): void {
  const { text } = step.prompt;
  if (!/action|intent/i.test(text)) return;
  const told = new Set<string>();
  const { intents } = gateForm(loaded.sources.dialect);
  for (const { word, at } of intentWords(text, decide, intents)) {
    if (told.has(word) || isTaken(word, decide)) continue;
    told.add(word);
    const isIntent = (intents as readonly string[]).includes(word);
    tell({
      code: "PR-INTENT",
      ...inPrompt(loaded.files, step.prompt, at),
      steps: [step.id],
      message: isIntent
        ? `${file} names the intent "${word}", which the step "${step.id}" does not allow.`
        : `${file} names the intent "${word}", which does not exist.${didYouMean(word, decide.allow)}`,
      fix: isIntent
        ? `Use one of: ${decide.allow.join(", ")}; or add "${word}" to allowedIntents, the schema and the transitions.`
        : `Use one of: ${decide.allow.join(", ")}.`,
    });
  }
}

type Word = { readonly word: string; readonly at: number };

/**
 * Words that can only be meant as intents: what an example answer has in the field of the intent, whatever it is; and
 * quoted words beside "action" or "intent" that are intents, or a letter away from one. A sentence that forbids
 * something is left alone.
 */
function* intentWords(text: string, { path }: ByField, intents: readonly string[]): Generator<Word> {
  const [field = "", owner] = [path.at(-1), path.at(-2)];
  if (owner !== undefined) {
    const example = new RegExp(
      `"${escape(owner)}"\\s*:\\s*\\{[^{}]*?"${escape(field)}"\\s*:\\s*"([^"\\n]*)"`,
      "g",
    );
    for (const match of text.matchAll(example)) {
      const at = match.index + match[0].length - match[1]!.length - 1;
      for (const word of match[1]!.split(/\s*[|/,]\s*/)) {
        if (/^[a-z][a-z_-]*$/i.test(word)) yield { word, at };
      }
    }
  }
  for (const match of text.matchAll(/([`"'])([a-z]{4,12})\1/g)) {
    const word = match[2]!;
    if (!intents.includes(word) && onlyNear(word, intents) === null) continue;
    const before = sentenceBefore(text, match.index);
    const after = text.slice(match.index + match[0].length, match.index + match[0].length + 12);
    const isNamed = NAMED_BEFORE.test(before) || /^\s*(?:intent|action)\b/i.test(after);
    if (isNamed && !FORBIDDING.test(before)) yield { word, at: match.index };
  }
}

/** `the action "x"`, `intents: "x", "y" or "z"`: nothing but short words, marks and other quoted words between. */
const NAMED_BEFORE =
  /\b(?:action|intent)s?\b(?:[\s:=,*|()-]|\b(?:is|are|as|to|or|and|of|one)\b|[`"'][a-z]+[`"'])*$/i;
const FORBIDDING = /\b(?:not|never|no|cannot|can't|don't|without|instead|avoid)\b/i;

function sentenceBefore(text: string, at: number): string {
  const before = text.slice(Math.max(0, at - 120), at);
  return before.slice(Math.max(before.lastIndexOf("\n"), before.lastIndexOf(". ")) + 1);
}

function isTaken(word: string, { allow, always, alias }: ByField): boolean {
  return [...allow, ...always].includes(word) || Object.hasOwn(alias, word.toLowerCase());
}

/** A parameter that no prompt and no command reads. Where the author's prompt is missing, nobody knows what it would read. */
function checkParameters(loaded: Registered, tell: Tell): void {
  const { flow, graph, sources } = loaded;
  const all = [...graph.steps.values()];
  if (all.length === 0 || flow.parameters.length === 0) return;
  const isUnwritten = ({ prompt, by }: Step) =>
    by.kind === "model" && (prompt.file === null || prompt.builtIn !== undefined);
  if (all.some(isUnwritten)) return;
  const read = new Set(placeholders(flow.system.text));
  for (const name of readByVerdict(flow)) read.add(name);
  for (const { prompt, by } of all) {
    for (const name of [...prompt.variables, ...namesRead(flow, prompt.text)]) read.add(name);
    if (by.kind !== "command") continue;
    for (const [, key] of by.args.join(" ").matchAll(/\$\{context\.([^{}]+)\}/g)) {
      read.add(key!).add(key!.split(".")[0]!);
    }
  }
  for (const { name, flag } of flow.parameters) {
    if (read.has(name)) continue;
    tell({
      code: "PARAM-UNREAD",
      document: sources.agentDocument,
      pointer: `/parameters/${escapeSegment(name)}`,
      message: `No prompt reads the parameter "${name}" (${flag}).${didYouMean(name, unsupplied(loaded))}`,
      fix: `Read it as {uv-${name}} in a prompt and add it to the step's uvVariables, or remove it.`,
    });
  }
}

/** What the verdict looks at is told by parameters; a module of the project is given all of them. */
function readByVerdict({ stop, parameters }: Flow): readonly string[] {
  return partsOf(stop).flatMap((part) => {
    if (part.kind === "module") return parameters.map(({ name }) => name);
    if (part.kind !== "state") return [];
    if (!("url" in part.resource || "path" in part.resource)) return ["issue", "project"];
    return placeholders(JSON.stringify(part.resource));
  });
}

/** Names that prompts read and nothing supplies: one of them may be the parameter misspelled. */
function unsupplied({ flow, graph }: Registered): readonly string[] {
  const known = new Set(flow.parameters.map(({ name }) => name));
  return [...graph.steps.values()]
    .flatMap(({ prompt }) => prompt.variables)
    .filter((name) => !known.has(name));
}

function escape(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

function quoted(words: readonly string[]): string {
  return words.map((word) => `"${word}"`).join(", ");
}
