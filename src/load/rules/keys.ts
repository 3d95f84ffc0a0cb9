/** Rules about keys that stand twice in one object of a JSON file, where only the last one is read. */
import type { Document } from "../text/document.ts";
import type { Finding } from "./rule.ts";
import { unescapeSegment } from "../../flow/json-pointer.ts";

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
