/** Where the parts of a flow were written, and whether they were written at all. */
import { readPath, type Json, type Path } from "../../flow/json.ts";
import type { Document } from "./document.ts";
import { pointerOf } from "../../flow/json-pointer.ts";
import type { Place } from "../../flow/text/places.ts";

/**
 * The document and the path in it where a part of a flow is written, or would be; null: nothing can be written for it.
 * Every dialect has its own. A part is named by its path in the flow: `["steps", id, "edges", label]`, `["entry"]`,
 * `["parameters", name]`, `["limits", "turns"]`. Below `settings` follow the keys of agent.json.
 */
export type Where = (part: Path) => { readonly document: Document; readonly path: Path } | null;

export type ValueOrigin =
  | ({ readonly kind: "written" } & Spot)
  | { readonly kind: "default" }
  /** Something was written there, but something else holds. */
  | ({ readonly kind: "overruled" } & Spot);

export type Spot = Place & { readonly file: string; readonly pointer: string };

/** What was written for a part of a flow, older forms put into the present one. */
export type Written = { readonly value: Json; readonly origin: ValueOrigin };

/** null: nothing was written, so that a default holds. */
export type OriginOf = (part: Path) => Written | null;

export function originsIn(where: Where): OriginOf {
  return (part) => {
    const place = where(part);
    const value = place === null ? undefined : readPath(place.document.value, place.path);
    if (place === null || value === undefined || value === null) return null;
    return { value, origin: { kind: "written", ...spotOf(place.document, pointerOf(place.path)) } };
  };
}

/** A pointer into a document as its author knows it. */
export function spotOf(document: Document, pointer: string): Spot {
  return {
    file: document.file,
    ...document.place(pointer),
    pointer: document.written?.(pointer) ?? pointer,
  };
}
