/** Whether a value was written or is a default, and where: asked of an agent's files without loading them. */
import type { Files } from "../../flow/files.ts";
import { own, readPath, type Json, type JsonObject, type Path } from "../../flow/json.ts";
import { DEFAULTS } from "./defaults.ts";
import { readDocument, type Document } from "../text/document.ts";
import { modernAgent, modernRegistry } from "./legacy.ts";
import { joinPath } from "../text/paths.ts";
import { pointerOf, type Place } from "../text/places.ts";

export type Origin =
  | ({ readonly kind: "written" } & Spot)
  | { readonly kind: "default" }
  /** Something was written there, but something else holds. */
  | ({ readonly kind: "overruled" } & Spot);

export type Spot = Place & { readonly file: string; readonly pointer: string };

/** What stands at a place of a file as its author wrote it, older forms put into the present one. null: nothing. */
export type Written = { readonly value: Json; readonly origin: Origin };

export type Origins = {
  readonly agent: (path: Path) => Written | null;
  readonly registry: (path: Path) => Written | null;
  readonly registryFile: string;
};

/**
 * @example
 * readOrigins("fixer", files).agent(["runner", "verdict", "type"])?.origin  // { kind: "written", line: 21, … }
 */
export function readOrigins(name: string, files: Files): Origins {
  const folder = joinPath(".agent", name);
  const agent = modernAgent(readDocument(files, `${folder}/agent.json`).document, []);
  const named = readPath(agent.value, ["runner", "flow", "prompts", "registry"]);
  const registryFile = joinPath(folder, typeof named === "string" ? named : DEFAULTS.registry);
  const registry = modernRegistry(readDocument(files, registryFile).document, []);
  return {
    agent: (path) => lookUp(agent, path),
    registry: (path) => lookUp(registry, path),
    registryFile,
  };
}

/** The origin of a value that holds, given what was written where it can be written. */
export function originOf(written: Written | null, value: Json): Origin {
  if (written === null || written.origin.kind !== "written") return { kind: "default" };
  return isSame(written.value, value) ? written.origin : { ...written.origin, kind: "overruled" };
}

/** What stands at a path of a document. */
export function lookUp(document: Document, path: Path): Written | null {
  const value = readPath(document.value, path);
  if (value === undefined || value === null) return null;
  const pointer = pointerOf(path);
  const origin = {
    kind: "written",
    file: document.file,
    ...document.place(pointer),
    pointer: document.written?.(pointer) ?? pointer,
  } as const;
  return { value, origin };
}

/** Whether two values are the same, whatever the order of their keys. */
function isSame(a: Json, b: Json): boolean {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [left, right] = [a as JsonObject, b as JsonObject];
  const keys = Object.keys(left);
  return (
    keys.length === Object.keys(right).length &&
    keys.every((key) => {
      const other = own(right, key);
      return other !== undefined && isSame(left[key]!, other);
    })
  );
}
