/** What a test keeps of a run as text, so that a change shows what it does to the words: markdown, one file a test. */
import type { FlowTest } from "../flow/flow-test.ts";
import type { Json } from "../flow/json.ts";
import type { Heard, Outcomes } from "./observe.ts";

export const SNAPSHOT_PARTS = ["prompts", "path", "result"] as const;
export type SnapshotPart = (typeof SNAPSHOT_PARTS)[number];

/** The parts that `expect.snapshot` names; null: it names something else. */
export function snapshotParts(value: Json | undefined): readonly SnapshotPart[] | null {
  const names: readonly Json[] = value === undefined ? [] : Array.isArray(value) ? value : [value];
  const parts = SNAPSHOT_PARTS.filter((part) => names.includes(part));
  return parts.length === names.length ? parts : null;
}

/** The file of each test that has a snapshot, relative to the project's root. */
export function snapshotPaths(tests: readonly FlowTest[]): ReadonlyMap<FlowTest, string> {
  const paths = new Map<FlowTest, string>();
  const taken = new Set<string>();
  for (const test of tests) {
    if (test.expect.values.snapshot === undefined) continue;
    const [, folder = "", file = ""] = /^(.*\/)?([^/]+)$/.exec(test.file) ?? [];
    const stem = `${folder}snapshots/${slug(file.replace(/\.\w+$/, ""))}.${slug(test.name)}`;
    let path = `${stem}.md`;
    for (let count = 2; taken.has(path); count += 1) path = `${stem}-${count}.md`;
    taken.add(path);
    paths.set(test, path);
  }
  return paths;
}

function slug(name: string): string {
  const plain = name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  return plain.replaceAll(/^-|-$/g, "").slice(0, 80) || "test";
}

/** Texts that differ from run to run, each with what is written in its place. */
export type Volatile = readonly (readonly [text: string, name: string])[];

export function snapshotText(
  { name }: FlowTest,
  parts: readonly SnapshotPart[],
  heard: readonly Heard[],
  { observed }: Outcomes,
  volatile: Volatile = [],
): string {
  const sections: { readonly [part in SnapshotPart]: () => readonly string[] } = {
    prompts: () => heard.flatMap(requestLines),
    path: () => ["## Path", "", ...linesOf(observed.path).map((leg) => `- ${leg}`), ""],
    result: () => ["## Result", "", fenced(JSON.stringify(resultOf(observed), null, 2), "json"), ""],
  };
  const text = [`# ${name.replaceAll(/\s+/g, " ")}`, "", ...parts.flatMap((part) => sections[part]())];
  return withoutVolatile(`${text.join("\n").trimEnd()}\n`, volatile);
}

function requestLines({ step, visit, system, said }: Heard, at: number): readonly string[] {
  const head = [`## Request ${at + 1}: ${step} #${visit}`, ""];
  const instructions = system === "" ? [] : ["System:", "", fenced(system), ""];
  return [...head, ...instructions, fenced(said), ""];
}

/** The fence is longer than any in the text. */
export function fenced(text: string, language = "text"): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text.replace(/\n$/, "")}\n${fence}`;
}

function linesOf(value: Json | undefined): readonly string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

function resultOf({ outcome, code, reason, final, checks, handoff }: Outcomes["observed"]): Json {
  return JSON.parse(JSON.stringify({ outcome, code, reason, final, checks, handoff })) as Json;
}

export function withoutVolatile(text: string, volatile: Volatile = []): string {
  return volatile
    .toSorted(([a], [b]) => b.length - a.length)
    .reduce((whole, [found, name]) => (found === "" ? whole : whole.replaceAll(found, `<${name}>`)), text)
    .replaceAll(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)/g, "<time>")
    .replaceAll(/\b[0-9a-f]{64}\b/g, "<digest>");
}

/** The lines that changed, with two lines around each; `-` was there, `+` is there now. */
export function changedLines(before: string, after: string): readonly string[] {
  const [old, now] = [before.split("\n"), after.split("\n")];
  const marked = old.length * now.length > MOST_COMPARED ? blockOf(old, now) : alignmentOf(old, now);
  const near = marked.map((_, at) => marked.slice(Math.max(0, at - 2), at + 3).some(isChange));
  return marked.flatMap((line, at) =>
    near[at] ? [line] : at > 0 && near[at - 1] && near.includes(true, at) ? ["  ..."] : [],
  );
}

const MOST_COMPARED = 4_000_000;
const isChange = (line: string) => !line.startsWith("  ");

/** Everything between the first and the last difference. */
function blockOf(old: readonly string[], now: readonly string[]): readonly string[] {
  const most = Math.min(old.length, now.length);
  let head = 0;
  while (head < most && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < most - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
  return [
    ...old.slice(0, head).map((line) => `  ${line}`),
    ...old.slice(head, old.length - tail).map((line) => `- ${line}`),
    ...now.slice(head, now.length - tail).map((line) => `+ ${line}`),
    ...old.slice(old.length - tail).map((line) => `  ${line}`),
  ];
}

/** By the longest common subsequence. */
function alignmentOf(old: readonly string[], now: readonly string[]): readonly string[] {
  const width = now.length + 1;
  const common = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i -= 1)
    for (let j = now.length - 1; j >= 0; j -= 1)
      common[i * width + j] =
        old[i] === now[j]
          ? common[(i + 1) * width + j + 1]! + 1
          : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
  const lines: string[] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      lines.push(`  ${old[i]}`);
      i += 1;
      j += 1;
    } else if (
      j === now.length ||
      (i < old.length && common[(i + 1) * width + j]! >= common[i * width + j + 1]!)
    ) {
      lines.push(`- ${old[i]}`);
      i += 1;
    } else {
      lines.push(`+ ${now[j]}`);
      j += 1;
    }
  }
  return lines;
}
