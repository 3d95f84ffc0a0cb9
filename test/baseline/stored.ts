/** The fixtures of the baseline: read, compared without sentences, and written anew by `BASELINE_UPDATE=1`. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync, gzipSync } from "node:zlib";

export const BASELINE = fileURLToPath(new URL("../fixtures/baseline/", import.meta.url));
export const isUpdating = process.env.BASELINE_UPDATE === "1";

/** Keys whose texts are sentences of Lockstep: they may be reworded. */
const PROSE = new Set([
  "message",
  "why",
  "fix",
  "reason",
  "completionReason",
  "detail",
  "details",
  "warnings",
  "notes",
  "missing",
  "denied",
  "errors",
  "err",
]);

/** The same value with a mark in the place of every sentence. */
export function meant(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(meant);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).map(
    ([key, member]) => [key, PROSE.has(key) ? unworded(member) : meant(member)] as const,
  );
  return Object.fromEntries(members);
}

function unworded(value: unknown): unknown {
  if (typeof value === "string") return value === "" ? "" : "…";
  return Array.isArray(value) ? value.map(unworded) : meant(value);
}

export function readPacked(file: string): string {
  return gunzipSync(readFileSync(join(BASELINE, file))).toString("utf8");
}

export function readStored(file: string): string | null {
  return existsSync(join(BASELINE, file)) ? readFileSync(join(BASELINE, file), "utf8") : null;
}

export function writeStored(file: string, text: string | Buffer): void {
  mkdirSync(dirname(join(BASELINE, file)), { recursive: true });
  writeFileSync(join(BASELINE, file), text);
}

/** A text as it was printed, line by line. */
export function holdText(file: string, text: string): void {
  if (isUpdating) return writeStored(file, text);
  assert.deepEqual(text.split("\n"), (readStored(file) ?? "").split("\n"), `${file}: ${HINT}`);
}

/** A document that is stored with its sentences, so that it can be read, and compared without. */
export function holdDocument(file: string, value: unknown): void {
  const text = `${JSON.stringify(value, null, 1)}\n`;
  const stored = readStored(file);
  const before = stored === null ? null : JSON.stringify(JSON.parse(stored));
  if (!isUpdating) holdMeaning(file, value, before === null ? null : (JSON.parse(before) as unknown));
  else if (before !== JSON.stringify(value)) writeStored(file, text);
}

/** Documents in one packed file, without their sentences. */
export function holdPacked(file: string, values: { readonly [name: string]: unknown }): void {
  const text = `${JSON.stringify(meant(values))}\n`;
  const stored = existsSync(join(BASELINE, file)) ? readPacked(file) : null;
  if (!isUpdating) holdMeaning(file, values, stored === null ? null : (JSON.parse(stored) as unknown));
  else if (stored !== text) writeStored(file, gzipSync(text, { level: 9 }));
}

function holdMeaning(file: string, value: unknown, stored: unknown): void {
  // As it would be read back: members that are undefined are not there.
  const now = JSON.parse(JSON.stringify(meant(value))) as unknown;
  assert.deepEqual(differences(meant(stored), now), [], `${file}: ${HINT}`);
}

const HINT = "if this was meant to change, BASELINE_UPDATE=1 writes it anew, and the commit explains it";
const MOST = 20;

/** The places where two JSON values differ, each as `/path: was → is`. Members that were added do not count. */
export function differences(was: unknown, is: unknown, path = ""): readonly string[] {
  if (isRecord(was) && isRecord(is)) {
    const found = Object.entries(was).flatMap(([key, member]) =>
      Object.hasOwn(is, key)
        ? differences(member, is[key], `${path}/${key}`)
        : [`${path}/${key}: ${shortly(member)} → not there`],
    );
    return found.slice(0, MOST);
  }
  if (Array.isArray(was) && Array.isArray(is)) {
    const length = was.length === is.length ? [] : [`${path}: ${was.length} → ${is.length} items`];
    const items = was
      .slice(0, is.length)
      .flatMap((item, place) => differences(item, is[place], `${path}/${place}`));
    return [...length, ...items].slice(0, MOST);
  }
  return Object.is(was, is) ? [] : [`${path}: ${shortly(was)} → ${shortly(is)}`];
}

function isRecord(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function shortly(value: unknown): string {
  return (JSON.stringify(value) ?? "undefined").slice(0, 300);
}

/** Lines of which none may be missing or new; their order does not matter. */
export function holdLines(file: string, lines: readonly string[]): void {
  if (isUpdating) return writeStored(file, `${lines.join("\n")}\n`);
  const stored = new Set((readStored(file) ?? "").split("\n").filter((line) => line !== ""));
  const found = new Set(lines);
  const changed = [
    ...[...stored].filter((line) => !found.has(line)).map((line) => `- ${line}`),
    ...[...found].filter((line) => !stored.has(line)).map((line) => `+ ${line}`),
  ];
  // Both sides of an agent beside each other.
  changed.sort((a, b) => (a.slice(2) < b.slice(2) ? -1 : 1));
  assert.deepEqual(changed.slice(0, MOST_LINES), [], `${file}: ${changed.length} lines differ; ${HINT}`);
}

const MOST_LINES = 60;
