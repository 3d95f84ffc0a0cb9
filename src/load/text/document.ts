/** A JSON file as it was read: its value, and the place of anything in it. */
import type { Files } from "../../flow/files.ts";
import { isObject, own, type Json, type Path } from "../../flow/json.ts";
import type { Finding } from "../rules/rule.ts";
import { unescapeSegment } from "../../flow/json-pointer.ts";
import { escapesProject } from "./paths.ts";
import {
  membersKept,
  membersWritten,
  repeatedMembers,
  scanJson,
  type Place,
  type Repeated,
  type Scan,
} from "../../flow/text/places.ts";
import { errorText } from "../../flow/text/harmless.ts";

export type Document = {
  readonly file: string;
  readonly value: Json;
  readonly place: (pointer: string) => Place;
  /** Where the author wrote what stands at the pointer, in a file that had the form of an earlier version. */
  readonly written?: (pointer: string) => string;
  /** Members of which the same object has an earlier one of that name, each at its own place. */
  readonly repeated?: readonly Repeated[];
  /** It is not edited in place: only JSON is. */
  readonly isYaml?: true;
};

export type DocumentRead =
  | { readonly kind: "read"; readonly document: Document }
  | { readonly kind: "missing"; readonly document: Document }
  /** The file is there but may not or cannot be read. */
  | { readonly kind: "unreadable"; readonly document: Document; readonly why: string }
  | { readonly kind: "broken"; readonly document: Document; readonly place: Place; readonly what: string };

/** A document is there even when the file is not, so that a problem can name it. */
export function readDocument(files: Files, file: string): DocumentRead {
  const read = readText(files, file);
  if (read.kind === "missing") return { kind: "missing", document: emptyDocument(file) };
  if (read.kind === "unreadable") return { kind: "unreadable", document: emptyDocument(file), why: read.why };

  const { text } = read;
  let scan: Scan | null = null;
  const scanned = () => (scan ??= scanJson(text));
  try {
    const written = membersWritten(text);
    if (written === null) throw new Error("it is nested too deeply");
    const value = JSON.parse(text) as Json;
    const repeated = written === membersKept(value) ? [] : repeatedMembers(text);
    return {
      kind: "read",
      document: { file, value, repeated, place: (pointer) => scanned().place(pointer) },
    };
  } catch (error) {
    const { fault } = scanned();
    const place = fault?.place ?? START;
    const what = fault?.what ?? errorText(error);
    return { kind: "broken", document: { file, value: null, place: () => place }, place, what };
  }
}

export type TextRead =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "missing" }
  | { readonly kind: "unreadable"; readonly why: string };

/** The text without a byte order mark. A path out of the project is not even asked for. */
export function readText(files: Files, file: string): TextRead {
  if (escapesProject(file)) return { kind: "unreadable", why: "the path leaves the project" };
  const read = files.read(file);
  switch (read.kind) {
    case "text":
      return { kind: "text", text: read.text.startsWith("\uFEFF") ? read.text.slice(1) : read.text };
    case "missing":
      return { kind: "missing" };
    case "refused":
    case "unreadable":
      return { kind: "unreadable", why: read.why };
  }
}

/** Whether the author wrote something there, right or wrong. */
export function isWritten(document: Document, path: Path): boolean {
  let here: Json | undefined = document.value;
  for (const segment of path) here = isObject(here) ? own(here, segment) : undefined;
  return here !== undefined && here !== null;
}

export function unreadable(file: string, why: string, otherwise = ""): Finding {
  const fix = `Make it a readable file in the project${otherwise}.`;
  const message = `${file} cannot be read: ${why}.`;
  return { code: "AC-SERVICE-003", document: emptyDocument(file), pointer: "", message, fix };
}

export function brokenJson(document: Document, what: string): Finding {
  const message = `${document.file} is not valid JSON: ${what}.`;
  return { code: "AC-SERVICE-002", document, pointer: "", message, fix: "Fix the JSON at this position." };
}

/** Keys that stand twice in one object of a JSON file, where only the last one is read. */
export function* repeatedKeys(document: Document): Generator<Finding> {
  for (const { pointer, place } of document.repeated ?? []) {
    const key = unescapeSegment(pointer.slice(pointer.lastIndexOf("/") + 1));
    const owner = pointer.slice(0, pointer.lastIndexOf("/"));
    // The earlier step is not part of the flow at all.
    const isStep = owner === "/steps";
    yield {
      code: "DUPLICATE-KEY",
      ...(isStep && { severity: "error" as const }),
      document: { file: document.file, value: null, place: () => place },
      pointer,
      message: isStep
        ? `There are two steps "${key}" in ${document.file}; only this one is read.`
        : `The key "${key}" occurs twice in ${owner === "" ? document.file : owner}; only this one is read.`,
      fix: isStep ? "Rename one of the steps, or remove it." : "Remove one of the two.",
    };
  }
}

export function emptyDocument(file: string): Document {
  return { file, value: null, place: () => START };
}

const START: Place = { line: 1, column: 1 };
