/** Where the owner of a run is, as part of its name: a process number means a process only on one machine, in one namespace. */
import { readlinkSync } from "node:fs";
import { hostname } from "node:os";

let known: string | null = null;

/** The name of an owner: `id`, the PID namespace of this process and the name of this machine. */
export function ownerNamed(id: string): string {
  known ??= `${namespace()}.${hostname()}`.replaceAll(/[^\w.-]/g, "_").slice(0, MOST);
  // A dot would end the name of the lock file.
  return `${id}_in_${known.replaceAll(".", "_")}`;
}

const MOST = 50;

/** Which of the two differs for these owners; null: none, or an earlier version named one of them. */
export function apart(owner: string, own: string): "namespace" | "machine" | null {
  const [theirs, ours] = [placeIn(owner), placeIn(own)];
  if (theirs === null || ours === null || theirs.whole === ours.whole) return null;
  return theirs.host === ours.host ? "namespace" : "machine";
}

/** As far as a file name can hold it. */
export function hostOf(owner: string): string {
  return placeIn(owner)?.host ?? "";
}

function placeIn(owner: string): { readonly whole: string; readonly host: string } | null {
  const [, whole = "", host = ""] = /_in_(\d+_([\w-]*))$/.exec(owner) ?? [];
  return whole === "" ? null : { whole, host };
}

/** 0 where the system has no such namespaces. */
function namespace(): string {
  try {
    return /\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0] ?? "0";
  } catch {
    return "0";
  }
}
