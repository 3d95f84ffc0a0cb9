/** Reading what others send without a type: a wrong shape reads as nothing. */
import { isObject, own, type Json } from "../flow/json.ts";

export function at(value: Json | undefined, ...path: readonly string[]): Json | undefined {
  return path.reduce<Json | undefined>((here, key) => (isObject(here) ? own(here, key) : undefined), value);
}

export function textIn(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

export function numberIn(value: Json | undefined): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

export function listIn(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}
