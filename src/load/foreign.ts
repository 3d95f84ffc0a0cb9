/** Recognising files of another time or dialect, which would be misread if they were read at all. */
import { isObject, type Json, type JsonObject } from "../flow/json.ts";
import type { Document } from "./document.ts";
import type { Finding } from "./finding.ts";
import { escapeSegment } from "./places.ts";

/** Up to version 1.11 the settings stood at the top of agent.json. */
export function isFlatForm(document: Document, findings: Finding[]): boolean {
  const value = document.value as JsonObject;
  if (Object.hasOwn(value, "runner")) return false;
  const flat = ["behavior", "prompts", "logging"].find((key) => Object.hasOwn(value, key));
  if (flat === undefined) return false;
  findings.push({
    code: "AC-LEGACY",
    document,
    pointer: `/${flat}`,
    message: `${document.file} has the flat form of version 1.11: "${flat}" stands at the top and there is no "runner".`,
    fix: "Move behavior to runner.flow, runner.verdict and runner.boundaries, prompts to runner.flow.prompts, logging to runner.logging.",
  });
  return true;
}

/** Step flows with check prompts (document 001) and with the `complete` intent (document 002) mean other things. */
export function foreignDialect(document: Document, findings: Finding[]): boolean {
  const value = document.value as JsonObject;
  const steps = isObject(value.steps) ? Object.entries(value.steps) : [];
  const report = (pointer: string, message: string, fix: string) => {
    findings.push({ code: "DIALECT", document, pointer, message, fix });
    return true;
  };
  const checked = steps.find(([, step]) => isObject(step) && (isObject(step.prompt) || isObject(step.check)));
  if (Object.hasOwn(value, "basePath") || checked !== undefined) {
    const pointer = checked === undefined ? "/basePath" : `/steps/${escapeSegment(checked[0])}`;
    const message = `${document.file} is a registry of steps with check prompts (document 001), which this version does not run.`;
    return report(pointer, message, "Give each step c2, c3, a structuredGate and transitions.");
  }
  const complete = steps.find(([id, step]) => id.startsWith("complete.") || allowsComplete(step));
  if (complete === undefined) return false;
  const message = `${document.file} uses the intent "complete" (document 002), which this version does not run.`;
  return report(
    `/steps/${escapeSegment(complete[0])}`,
    message,
    'Rename "complete" to "closing" and complete.* to closure.*.',
  );
}

function allowsComplete(step: Json): boolean {
  const gate = isObject(step) ? step.structuredGate : undefined;
  const intents = isObject(gate) ? gate.allowedIntents : undefined;
  return Array.isArray(intents) && intents.includes("complete");
}
