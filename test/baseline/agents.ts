/** Agents that `check` is held to: those stored with the baseline, and mutations of the good ones among them, the same for ever. */
import { parse, stringify } from "yaml";
import { random } from "../load/random.ts";
import type { Files } from "./doors.ts";
import { readPacked } from "./stored.ts";

/** Paths below the project's root → text. */
export type Tree = { readonly [path: string]: string };
export type Agent = { readonly key: string; readonly name: string; readonly tree: Tree };

type Stored = {
  readonly texts: readonly string[];
  readonly agents: readonly {
    readonly key: string;
    readonly name: string;
    readonly files: { readonly [path: string]: number };
  }[];
};

export function storedAgents(): readonly Agent[] {
  const { texts, agents } = JSON.parse(readPacked("agents.json.gz")) as Stored;
  return agents.map(({ key, name, files }) => ({
    key,
    name,
    tree: Object.fromEntries(Object.entries(files).map(([path, text]) => [path, texts[text]!])),
  }));
}

export function filesOf(tree: Tree): Files {
  const paths = Object.keys(tree);
  return {
    list: (folder) => {
      const below = paths.filter((path) => path.startsWith(`${folder}/`));
      const names = new Set(below.map((path) => path.slice(folder.length + 1).split("/")[0]!));
      return names.size === 0 ? null : [...names].toSorted();
    },
    read: (path) => (Object.hasOwn(tree, path) ? { kind: "text", text: tree[path]! } : { kind: "missing" }),
  };
}

/** `count` mutations of an agent, each of one to three changes. */
export function mutationsOf({ key, name, tree }: Agent, seed: number, count: number): readonly Agent[] {
  const next = random(seed);
  return Array.from({ length: count }, (_, place) => {
    const changed: { [path: string]: string } = { ...tree };
    for (let times = 1 + Math.floor(next() * next() * 3); times > 0; times--) mutate(changed, next);
    return { key: `${key.replace("base-", "")}~${String(place).padStart(3, "0")}`, name, tree: changed };
  });
}

type Next = () => number;

function pick<T>(list: readonly T[], next: Next): T {
  return list[Math.floor(next() * list.length)]!;
}

/** What an author, a merge or a bad tool may do to one file. */
function mutate(tree: { [path: string]: string }, next: Next): void {
  const paths = Object.keys(tree);
  if (paths.length === 0) return;
  const declaring = paths.filter((path) => /\.(json|yaml)$|\/stages\//.test(path));
  const path = pick(next() < 0.75 && declaring.length > 0 ? declaring : paths, next);
  const text = tree[path]!;
  const way = next();
  if (way < 0.06) delete tree[path];
  else if (way < 0.1) {
    delete tree[path];
    tree[path.replace(/(\.\w+)$/, "-x$1")] = text;
  } else if (path.endsWith(".json")) {
    tree[path] = way < 0.2 ? withLineTwice(text, next) : mutatedJson(text, Object.keys(tree), next);
  } else if (path.endsWith(".yaml")) tree[path] = mutatedYaml(text, next);
  else if (path.includes("/stages/") && way < 0.85) tree[path] = mutatedFront(text, next);
  else tree[path] = mutatedWords(text, next);
}

/** A line that stands twice: most often a key that does. */
function withLineTwice(text: string, next: Next): string {
  const lines = text.split("\n");
  const pairs = lines.flatMap((line, place) => (/^\s*"[^"]+": [^{[]+,$/.test(line) ? [place] : []));
  const place = pairs.length === 0 ? Math.floor(next() * lines.length) : pick(pairs, next);
  return lines.toSpliced(place, 0, lines[place]!).join("\n");
}

function mutatedJson(text: string, paths: readonly string[], next: Next): string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return text.slice(0, Math.floor(next() * text.length));
  }
  mutateValue(value, paths, next);
  return `${JSON.stringify(value, null, 2)}\n`;
}

function mutatedYaml(text: string, next: Next): string {
  let value: unknown;
  try {
    value = parse(text, { logLevel: "silent" });
  } catch {
    return text;
  }
  if (next() < 0.15) return mutatedWords(text, next);
  mutateValue(value, [], next);
  return stringify(value, { aliasDuplicateObjects: false });
}

function mutatedFront(text: string, next: Next): string {
  const [, front = "", body = ""] = /^---\n([^]*?\n)---\n([^]*)$/.exec(text) ?? [];
  return front === "" ? mutatedWords(text, next) : `---\n${mutatedYaml(front, next)}---\n${body}`;
}

const WORDS = [
  "{uv-nothing}",
  "{uv-issue}",
  "{{ctx.nothing}}",
  "{{ctx.upstream[0].parsed.x}}",
  "${ctx.a",
  "{{#each x}}",
  "---\n",
  "",
];

function mutatedWords(text: string, next: Next): string {
  const lines = text.split("\n");
  const place = Math.floor(next() * lines.length);
  if (next() < 0.3) return lines.toSpliced(place, 1).join("\n");
  return lines.toSpliced(place, 0, pick(WORDS, next)).join("\n");
}

type Owner = { [key: string]: unknown };

/** Removes, renames, duplicates, retargets or replaces one member somewhere in the value. */
function mutateValue(value: unknown, paths: readonly string[], next: Next): void {
  const owners: Owner[] = [];
  collect(value, owners);
  const named = owners.filter((owner) => Object.keys(owner).length > 0);
  if (named.length === 0) return;
  const owner = pick(named, next);
  const key = pick(Object.keys(owner), next);
  const member = owner[key];
  const way = next();
  if (way < 0.2) {
    if (Array.isArray(owner)) owner.splice(Number(key), 1);
    else delete owner[key];
  } else if (way < 0.35) {
    if (!Array.isArray(owner)) delete owner[key];
    owner[pick([`${key}x`, key.toUpperCase(), key.slice(1) || "y", "default"], next)] = member;
  } else if (way < 0.45) owner[`${key}2`] = structuredClone(member);
  else if (way < 0.7) {
    // A name of something else in the file: a step, an intent, a schema.
    const other = pick(named, next);
    owner[key] =
      typeof member === "string"
        ? pick(Object.keys(other), next)
        : structuredClone(pick(Object.values(other), next));
  } else if (way < 0.75 && paths.length > 0) owner[key] = pick(paths, next);
  else
    owner[key] = pick(
      [null, true, 0, -1, 1.5, "", "x", "closing", "next", "end", [], {}, ["x"], "{uv-x}", "../x"],
      next,
    );
}

function collect(value: unknown, owners: Owner[]): void {
  if (typeof value !== "object" || value === null) return;
  owners.push(value as Owner);
  for (const member of Object.values(value)) collect(member, owners);
}
