/** Reading what others send without a type: a wrong shape reads as nothing. */
import { figure } from "../flow/figure.ts";
import { isObject, own, type Json } from "../flow/json.ts";

export function memberAt(value: Json | undefined, ...path: readonly string[]): Json | undefined {
  return path.reduce<Json | undefined>((here, key) => (isObject(here) ? own(here, key) : undefined), value);
}

export function textIn(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

export function numberIn(value: Json | undefined): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

/** A count that is left out is 0. One that cannot be a count is not a number, and so is every sum with it. */
export function countIn(value: Json | undefined): number {
  return value === undefined || value === null ? 0 : (figure(value) ?? Number.NaN);
}

export function listIn(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}
