/** A stage file as it was read: front matter that is the contract, a body that is the system prompt. */
import type { Files } from "../../flow/files.ts";
import { FORBIDDEN_NAMES, isObject, own, type Json, type JsonSchema } from "../../flow/json.ts";
import { placeholdersIn, strangersIn } from "../../flow/text/placeholder.ts";
import type { Code } from "../codes.ts";
import { DEFAULTS } from "../agent/defaults.ts";
import { emptyDocument, readText, unreadable, type Document } from "../text/document.ts";
import type { Finding } from "../rules/rule.ts";
import { bodyPointer } from "./machine-parts.ts";
import { readShape, showValue } from "../text/shape.ts";
import { END, STAGE, type StageSource } from "./stage-shape.ts";
import type { Stretch } from "../../flow/text/places.ts";
import { readYaml } from "../text/yaml.ts";

export type StageFile = {
  readonly document: Document;
  readonly source: StageSource;
  readonly body: string;
  /** "" where it is not written, or cannot be one. */
  readonly id: string;
};

/** How much front matter may still be read: parsing YAML takes its time. */
export type YamlRoom = { left: number };

/** null with the reason among the findings: there is nothing that could be looked at. */
export function readStageFile(
  files: Files,
  file: string,
  findings: Finding[],
  room: YamlRoom,
): StageFile | null {
  const refuse = (message: string, fix: string, document = emptyDocument(file)) => {
    findings.push({ code: "StageDefinitionInvalid", document, pointer: "", message, fix });
    return null;
  };
  const read = readText(files, file);
  if (read.kind !== "text") {
    findings.push(unreadable(file, read.kind === "missing" ? "it does not exist" : read.why));
    return null;
  }
  const { text } = read;
  const parts = splitFile(text);
  if (parts === null)
    return refuse(
      `${file} does not begin with front matter: a line ---, the fields of the stage, and a line ---.`,
      "Put the fields of the stage between two lines of --- at the top of the file.",
    );
  room.left -= parts.front.to - parts.front.from;
  if (room.left < 0)
    return refuse(
      `${file} is not read: the front matter of all stages together is longer than ${DEFAULTS.yamlLength} characters.`,
      "Shorten the front matter, or split the machine.",
    );
  const body = text.slice(parts.body.from, parts.body.to);
  const yaml = readYaml(file, text, parts.front, bodyMarks(body, parts.body.from));
  if (yaml.kind === "broken") {
    for (const { document, what } of yaml.faults)
      refuse(`The front matter of ${file} is not valid YAML: ${what}.`, MEND_YAML, document);
    return null;
  }
  const { document } = yaml;
  const value = document.value ?? {};
  if (!isObject(value))
    return refuse(
      `The front matter of ${file} must contain keys with values.`,
      "Write the fields of the stage, such as id: plan.",
      document,
    );
  const source = readShape(STAGE, value, "", { document, code: "StageFieldType", findings });
  findings.push(...checkFields(document, source));
  const id = source.id ?? "";
  return { document, source, body, id: FORBIDDEN_NAMES.has(id) ? "" : id };
}

export const MEND_YAML = "Fix the YAML at this position.";

/** Schemas without a word about their draft are of this one. */
const DRAFT = "https://json-schema.org/draft/2020-12/schema";

/** The schema as it is sent and checked. */
export function withDraft(schema: JsonSchema): JsonSchema {
  return Object.hasOwn(schema, "$schema") ? schema : { $schema: DRAFT, ...schema };
}

/** Why a value is not a schema that we can read, as far as that is known without compiling it. */
export function draftFault(schema: Json): string | null {
  const draft = isObject(schema) ? own(schema, "$schema") : undefined;
  if (draft === undefined || (typeof draft === "string" && /2020-12|draft-07/.test(draft))) return null;
  return `its $schema is ${showValue(draft)}, but must be that of draft 2020-12 or of draft-07`;
}

/** Blank lines around the body are not part of it. */
function splitFile(text: string): { readonly front: Stretch; readonly body: Stretch } | null {
  const opening = /^---[ \t]*\r?\n/.exec(text);
  if (opening === null) return null;
  const closing = /^---[ \t]*(?:\r?\n|$)/gm;
  closing.lastIndex = opening[0].length;
  const found = closing.exec(text);
  if (found === null) return null;
  const after = text.slice(closing.lastIndex);
  const from = closing.lastIndex + /^(?:[ \t]*\r?\n)*/.exec(after)![0].length;
  return {
    front: { from: opening[0].length, to: found.index },
    body: { from, to: withoutBlankLines(text, from) },
  };
}

/** Where the text ends when blank lines at its end are left out. */
function withoutBlankLines(text: string, from: number): number {
  let to = text.length;
  for (;;) {
    const line = text.lastIndexOf("\n", to - 1);
    if (to <= from || line < from || text.slice(line, to).trim() !== "") return to;
    to = Math.max(from, text[line - 1] === "\r" ? line - 1 : line);
  }
}

function bodyMarks(body: string, from: number): ReadonlyMap<string, number> {
  const marks = new Map([["/body", from]]);
  for (const part of [...placeholdersIn(body), ...strangersIn(body)]) {
    const pointer = bodyPointer(part);
    if (!marks.has(pointer)) marks.set(pointer, from + part.at);
  }
  return marks;
}

/** What the table of fields cannot say. */
function* checkFields(document: Document, source: StageSource): Generator<Finding> {
  const report = (code: Code, pointer: string, message: string, fix: string): Finding => {
    return { code, document, pointer, message, fix };
  };
  const { id = "", name, completionSchema, inputsSchema } = source;
  if (FORBIDDEN_NAMES.has(id))
    yield report("StageIdInvalid", "/id", `"${id}" is not a valid stage id.`, "Rename the stage.");
  if (id === END) {
    const message = `"${END}" is not a valid stage id: next: ${END} ends the run.`;
    yield report("StageIdInvalid", "/id", message, "Rename the stage.");
  }
  if (name?.trim() === "")
    yield report("StageFieldMissing", "/name", "name is empty.", "Write the display name.");
  if (isObject(completionSchema)) {
    const fault =
      own(completionSchema, "type") === "object"
        ? draftFault(completionSchema)
        : `its type is ${showValue(own(completionSchema, "type"))}, but must be "object"`;
    if (fault !== null) {
      const message = `completionSchema of the stage "${id}" cannot be used: ${fault}.`;
      const fix = "Tool arguments are an object, so write type: object at the top of the schema.";
      yield report("StageCompletionSchemaInvalid", "/completionSchema", message, fix);
    }
  }
  const fault = inputsSchema === undefined ? null : draftFault(inputsSchema);
  if (fault !== null) {
    const message = `inputsSchema of the stage "${id}" cannot be used: ${fault}.`;
    yield report("StageInputsInvalid", "/inputsSchema", message, "Write a schema of one of these drafts.");
  }
}
