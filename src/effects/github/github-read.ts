/** What GitHub sends, read without a type: a wrong shape reads as nothing, as does a user who is gone. */
import { isObject, own, type Json } from "../../flow/json.ts";
import type { GithubOutcome } from "./github-faults.ts";

export function valueAt(json: Json, ...path: readonly string[]): Json {
  return path.reduce<Json>((here, key) => (isObject(here) ? (own(here, key) ?? null) : null), json);
}

export function textField(json: Json, ...path: readonly string[]): string {
  const value = valueAt(json, ...path);
  return typeof value === "string" ? value : "";
}

export function numberAt(json: Json, ...path: readonly string[]): number {
  const value = valueAt(json, ...path);
  return typeof value === "number" ? value : 0;
}

export function listAt(json: Json, ...path: readonly string[]): readonly Json[] {
  const value = valueAt(json, ...path);
  return Array.isArray(value) ? value : [];
}

export function mapList<A, B>(outcome: GithubOutcome<A>, change: (value: A) => B): GithubOutcome<B> {
  return outcome.ok ? { ok: true, value: change(outcome.value) } : outcome;
}
