/** What GitHub sends, read without a type: a wrong shape reads as nothing, as does a user who is gone. */
import { isObject, own, type Json } from "../../flow/json.ts";
import type { Outcome } from "./github-faults.ts";

export function at(json: Json, ...path: readonly string[]): Json {
  return path.reduce<Json>((here, key) => (isObject(here) ? (own(here, key) ?? null) : null), json);
}

export function textIn(json: Json, ...path: readonly string[]): string {
  const value = at(json, ...path);
  return typeof value === "string" ? value : "";
}

export function numberIn(json: Json, ...path: readonly string[]): number {
  const value = at(json, ...path);
  return typeof value === "number" ? value : 0;
}

export function listIn(json: Json, ...path: readonly string[]): readonly Json[] {
  const value = at(json, ...path);
  return Array.isArray(value) ? value : [];
}

export function map<A, B>(outcome: Outcome<A>, change: (value: A) => B): Outcome<B> {
  return outcome.ok ? { ok: true, value: change(outcome.value) } : outcome;
}
