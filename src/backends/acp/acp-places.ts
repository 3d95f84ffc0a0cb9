/** The places that an agent names when it asks permission to read, search or change files. Pure. */
import { fileURLToPath } from "node:url";
import { isObject, own, type Json, type JsonObject } from "../../flow/json.ts";
import { memberAt, listIn } from "../untyped.ts";

export type AcpPlaces = {
  /** In a field for places. */
  readonly named: readonly string[];
  /** Elsewhere in the input, by their look. */
  readonly others: readonly string[];
};

/** In everything the agent said of the call. */
export function placesIn(said: readonly JsonObject[]): AcpPlaces {
  const found = said.flatMap(({ rawInput, locations, content }) => [
    ...inValue("", rawInput ?? null, 0),
    ...listIn(locations).map((place) => ({ isNamed: true, text: memberAt(place, "path") })),
    ...listIn(content).map((part) => ({
      isNamed: true,
      text: memberAt(part, "type") === "diff" ? memberAt(part, "path") : undefined,
    })),
  ]);
  const texts = (isNamed: boolean) =>
    found.flatMap((one) =>
      one.isNamed === isNamed && typeof one.text === "string" ? [toPath(one.text)] : [],
    );
  return { named: texts(true), others: texts(false) };
}

type Found = { readonly isNamed: boolean; readonly text: Json | undefined };

/** What is nested deeper than any input of an agent is refused. */
function inValue(field: string, value: Json, depth: number): readonly Found[] {
  if (depth > DEEPEST) return [{ isNamed: false, text: "" }];
  if (Array.isArray(value)) return listIn(value).flatMap((one) => inValue(field, one, depth + 1));
  if (isObject(value)) {
    const names = field === "changes" ? Object.keys(value) : [];
    const nested = Object.entries(value).flatMap(([name, one]) => inValue(name, one, depth + 1));
    return [...names.map((text) => ({ isNamed: true, text })), ...nested];
  }
  if (typeof value !== "string" || TEXTS.has(field)) return [];
  const isNamed = PLACE.test(field);
  return isNamed || looksLikeAPath(value) ? [{ isNamed, text: value }] : [];
}

const DEEPEST = 20;

/** `file_path`, `dir`, `target_file`, `new_path`, `destination`, `uri` and the like. */
const PLACE =
  /(?:^|_)(?:path|file|dir|directory|folder|ur[il])s?$|(?:Path|File|Dir|Directory|Folder|Ur[il])s?$|^(?:filepath|filename|file_name|fileName|destination|dest|target|source|src|from|to|cwd|root|location)s?$/;

/** Fields for the words that are written, replaced or looked for. */
const TEXTS: ReadonlySet<string> = new Set(
  (
    "content contents file_text file_content text new_text old_text newText oldText insert_text old_string new_string " +
    "oldString newString old_str new_str new_source cell_source diff unified_diff patch code command cmd parsed_cmd " +
    "description instruction instructions explanation reason thought prompt pattern query regex glob include exclude"
  ).split(" "),
);

function looksLikeAPath(text: string): boolean {
  return BEGINS_LIKE_A_PATH.test(text) || (text.includes("/") && !/\s/.test(text));
}

const BEGINS_LIKE_A_PATH = /^(?:[~/\\]|\.{1,2}(?:[\\/]|$)|file:|[a-z]:[\\/])/i;

/** A URL of a file as its path; of anything else, a path that is refused. */
function toPath(text: string): string {
  if (!/^(?:file:|[a-z][a-z0-9+.-]*:\/\/)/i.test(text)) return text;
  try {
    return fileURLToPath(text);
  } catch {
    return "";
  }
}

/** Whether nothing in the input of a search could say where: it is then the working folder. */
export function hasOnlyTerms(input: JsonObject): boolean {
  const fields = Object.keys(input);
  return (
    fields.some((field) => field === "pattern" || field === "query") &&
    fields.every((field) => TERMS.has(field))
  );
}

const TERMS: ReadonlySet<string> = new Set(
  "pattern query glob include exclude type output_mode -i -n -A -B -C multiline head_limit offset limit".split(
    " ",
  ),
);

/** Patterns for names of files, which must not lead out of the folder that is searched. `isRegex`: `pattern` is not one. */
export function globsIn(input: JsonObject, isRegex: boolean): readonly string[] {
  const fields = ["glob", "include", ...(isRegex ? [] : ["pattern"])];
  return fields.map((field) => own(input, field)).filter((one) => typeof one === "string");
}
