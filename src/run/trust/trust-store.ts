/**
 * What this user trusts: one file for each yes, below `trust/` in the user's own settings. A file is written whole and
 * renamed into place, and never changed, so that any number of processes can write at the same time.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { RunnerError } from "../../engine/ports.ts";
import { canonicalJson, isObject, own, type Json } from "../../flow/json.ts";
import { configFolder } from "../world/project.ts";
import { writeOwn } from "../world/write-whole.ts";

/** A yes: to exactly these lines, of this agent, in this project. */
export type Trusted = {
  /** The real path of the project. */
  readonly root: string;
  readonly agent: string;
  /** SHA-256 over agent and lines, 64 digits. One of another length comes from an older version, and counts for nothing. */
  readonly digest: string;
  readonly lines: readonly string[];
  /** When, as an ISO time; null in entries of older versions. */
  readonly at: string | null;
};

export type TrustStore = {
  /** The yes that covers this: to the same lines, or to these and more. The lines themselves are compared. */
  readonly covering: (wanted: Wanted) => Trusted | null;
  readonly list: () => readonly Trusted[];
  /** Throws what the disk says. */
  readonly add: (entry: Trusted) => void;
  readonly remove: (entry: Trusted) => void;
  /** Also what cannot be read. */
  readonly clear: () => void;
};

/** Work apart from the user's own folder: of all lines the one that takes something away from the others. */
export const IN_WORKTREE = "git: makes a worktree and a branch for each run";

export type Wanted = Pick<Trusted, "root" | "agent" | "digest" | "lines">;

export function trustDigest(agent: string, lines: readonly string[]): string {
  return sha256({ agent, lines });
}

function sha256(value: Json): string {
  return createHash("sha256").update(canonicalJson(value)).digest("hex");
}

/** null: no settings folder is known here, so nothing is remembered. */
export function openTrust(env: NodeJS.ProcessEnv): TrustStore | null {
  const settings = configFolder(env);
  if (settings === null) return null;
  const folder = join(settings, "trust");
  const old = join(settings, "trust.json");
  const fileOf = ({ root, agent, digest }: Pick<Trusted, "root" | "agent" | "digest">) =>
    join(folder, `${sha256([root, agent, digest])}.json`);
  const list = () => [
    ...namesIn(folder)
      .map((name) => readEntry(join(folder, name)))
      .filter((entry) => entry !== null),
    ...readOld(old),
  ];
  return {
    covering: (wanted) => {
      const entry = readEntry(fileOf(wanted));
      const isSame = entry !== null && canonicalJson(onlyWanted(entry)) === canonicalJson(onlyWanted(wanted));
      return isSame ? entry : (list().find((other) => covers(other, wanted)) ?? null);
    },
    list,
    add: (entry) => writeOwn(fileOf(entry), `${JSON.stringify({ v: 1, ...entry }, null, 2)}\n`),
    remove: (entry) => {
      if (entry.at !== null) return rmSync(fileOf(entry), { force: true });
      const left = readOld(old).filter((other) => canonicalJson(other) !== canonicalJson(entry));
      if (left.length === 0) return rmSync(old, { force: true });
      const byRoot = Map.groupBy(left, ({ root }) => root);
      const kept = [...byRoot].map(([root, entries]) => [
        root,
        entries.map(({ digest, agent, lines }) => ({ digest, agent, commands: lines })),
      ]);
      writeOwn(old, JSON.stringify(Object.fromEntries(kept), null, 2));
    },
    clear: () => {
      for (const name of namesIn(folder)) rmSync(join(folder, name), { force: true });
      rmSync(old, { force: true });
    },
  };
}

/** Less than what was trusted needs no new yes, unless what is gone kept the rest away from the user's own folder. */
function covers({ root, agent, digest, lines, at }: Trusted, wanted: Wanted): boolean {
  if (at === null || root !== wanted.root || agent !== wanted.agent) return false;
  if (trustDigest(agent, lines) !== digest) return false;
  const known = new Set(lines);
  return (
    wanted.lines.every((line) => known.has(line)) &&
    (!known.has(IN_WORKTREE) || wanted.lines.includes(IN_WORKTREE))
  );
}

function onlyWanted({ root, agent, digest, lines }: Wanted): Json {
  return { root, agent, digest, lines: [...lines] };
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
      .filter((name) => /^[0-9a-f]{64}\.json$/.test(name))
      .toSorted();
  } catch (error) {
    if (isMissing(error)) return [];
    throw damaged(folder, error);
  }
}

/** null: it is not there. */
function readEntry(file: string): Trusted | null {
  const value = readJson(file);
  if (value === undefined) return null;
  const { root, agent, digest, lines, at } = isObject(value) ? value : {};
  const texts = toTexts(lines);
  if (
    typeof root !== "string" ||
    typeof agent !== "string" ||
    typeof digest !== "string" ||
    typeof at !== "string" ||
    texts === null
  )
    throw damaged(file, new Error("it does not have root, agent, digest, lines and at"));
  return { root, agent, digest, lines: texts, at };
}

/** One file of older versions: short digests, some with their commands, by project. They show what changed, and count for nothing. */
function readOld(file: string): readonly Trusted[] {
  const value = readJson(file);
  if (value === undefined) return [];
  if (!isObject(value)) throw damaged(file, new Error("it is not an object"));
  return Object.entries(value).flatMap(([root, entries]) =>
    (Array.isArray(entries) ? (entries as readonly Json[]) : []).map((entry): Trusted => {
      const field = (key: string) => (isObject(entry) ? own(entry, key) : undefined);
      const [digest, agent] = [isObject(entry) ? field("digest") : entry, field("agent")];
      return {
        root,
        agent: typeof agent === "string" ? agent : "",
        digest: typeof digest === "string" ? digest : "",
        lines: toTexts(field("commands")) ?? [],
        at: null,
      };
    }),
  );
}

function toTexts(value: Json | undefined): readonly string[] | null {
  if (!Array.isArray(value)) return null;
  const texts = (value as readonly Json[]).filter((text) => typeof text === "string");
  return texts.length === value.length ? texts : null;
}

/** undefined: there is no such file. */
function readJson(file: string): Json | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Json;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw damaged(file, error);
  }
}

function isMissing(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "");
}

function damaged(file: string, cause: unknown): RunnerError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new RunnerError(
    "NOT_TRUSTED",
    `The record of what you trust cannot be read: ${file}: ${why}. Remove that file, and you are asked again; ` +
      "`lockstep trust revoke --all` removes all of it.",
    { cause },
  );
}
