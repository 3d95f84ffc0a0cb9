/**
 * Everything that is read out of the recorded runs under test/fixtures/journals and the agents of the examples, as the
 * documents under test/fixtures/readings. `npm run kept` writes them anew; that is right only when a document was meant
 * to change.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { createMemoryJournal, importRun, readRun, replayRun } from "../../src/run/index.ts";
import { fileTools } from "../../src/boundaries/tools/files.ts";
import { searchTools } from "../../src/boundaries/tools/search.ts";
import { bashTool } from "../../src/boundaries/tools/bash.ts";
import { talkTools } from "../../src/boundaries/tools/talk.ts";
import { githubTool } from "../../src/boundaries/tools/github.ts";
import { loadMachine } from "../../src/load/stages/machine.ts";
import { parseBundle } from "../../src/run/records/bundle.ts";
import { explainAgent, explainStep } from "../../src/run/explain.ts";
import { whyAll } from "../../src/tell/why.ts";
import { tree001, tree002 } from "../load/documents.ts";
import { stageTree } from "../load/stage-world.ts";
import { filesOf, load, sha256, TOOLS, tree, type Tree } from "../load/world.ts";
import { JOURNALS } from "./golden.ts";
import { reportsOf } from "./reports.ts";

const READINGS = fileURLToPath(new URL("../fixtures/readings/", import.meta.url));
const EXAMPLES = fileURLToPath(new URL("../../examples/", import.meta.url));

/** Texts for people may be worded in another way; that there is one stays. */
const WORDS = new Set([
  "description",
  "detail",
  "fix",
  "hint",
  "message",
  "note",
  "reason",
  "title",
  "what",
  "why",
]);

/** Where this machine keeps the project. */
const ELSEWHERE = new Set(["cwd"]);

const journalNames = readdirSync(JOURNALS).map((file) => file.replace(".json", ""));

export const NAMES: readonly string[] = [
  ...journalNames.map((name) => `run-${name}`),
  ...Object.keys(agentTrees()).map((name) => `agent-${name}`),
  "tools",
];

export async function readingOf(name: string): Promise<unknown> {
  const [, kind, which = ""] = /^(\w+?)(?:-(.*))?$/.exec(name)!;
  const read =
    kind === "tools"
      ? offered()
      : kind === "run"
        ? await runReading(which)
        : agentReading(agentTrees()[which]!);
  return JSON.parse(JSON.stringify(shortened(read)));
}

export function writtenReading(name: string): unknown {
  return JSON.parse(readFileSync(`${READINGS}${name}.json`, "utf8"));
}

async function runReading(name: string): Promise<unknown> {
  const journal = createMemoryJournal();
  const bundle = parseBundle(readFileSync(`${JOURNALS}${name}.json`, "utf8"), name);
  await importRun(journal, bundle, { as: name, cwd: "/project", now: 1_700_000_000_000 });
  const { flow, adopted, entries } = await readRun(journal, name);
  return {
    ...(await reportsOf(flow, entries, adopted)),
    // What the run was about to do, had it been left there.
    cuts: entries.map((_, at) => {
      const last = whyAll(flow, entries.slice(0, at + 1), adopted).at(-1);
      return last === undefined ? null : [last.step, last.visit, last.state, last.pending?.command ?? null];
    }),
    replay: { ...(await replayRun(journal, name)), ms: 0 },
  };
}

function agentReading({ agent, files }: Agent): unknown {
  const read = filesOf(files);
  const isMachine = read.list(`.agent/${agent}/stages`) !== null;
  const loaded = {
    agent,
    ...(isMachine ? loadMachine(agent, read, { tools: TOOLS, digest: sha256 }) : load(files, agent)),
  };
  const { flow, problems } = loaded;
  return {
    flow,
    problems,
    agent: explainAgent(loaded),
    steps: Object.keys(flow?.steps ?? {}).map((id) => explainStep(loaded, id)),
  };
}

/** What a model is told of each tool. */
function offered(): unknown {
  return [...fileTools(), ...searchTools(), bashTool(), ...talkTools(), githubTool()].map(({ spec }) => spec);
}

type Agent = { readonly agent: string; readonly files: Tree };

function agentTrees(): { readonly [name: string]: Agent } {
  return {
    good: { agent: "iterator", files: tree() },
    "document-001": { agent: "code-improver", files: tree001() },
    "document-002": { agent: "issues", files: tree002() },
    stages: { agent: "release", files: stageTree() },
    ...Object.fromEntries(
      readdirSync(EXAMPLES, { recursive: true, encoding: "utf8" })
        .map((path) => /^([^/]+)\/\.agent\/([^/]+)\/(?:agent\.json|machine\.yaml)$/.exec(path))
        .filter((found) => found !== null)
        .map(([, example = "", agent = ""]) => [agent, { agent, files: exampleFiles(example) }]),
    ),
  };
}

function exampleFiles(example: string): Tree {
  const root = `${EXAMPLES}${example}/`;
  const found = readdirSync(`${root}.agent`, { recursive: true, withFileTypes: true }).filter((each) =>
    each.isFile(),
  );
  return Object.fromEntries(
    found.map(({ parentPath, name }) => {
      const path = `${parentPath}/${name}`;
      return [path.slice(root.length), readFileSync(path, "utf8")];
    }),
  );
}

function shortened(value: unknown): unknown {
  if (typeof value === "string") return value.length > 60 ? `${value.length}:${digest(value)}` : value;
  if (Array.isArray(value)) return value.map(shortened);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, inner]) => inner !== undefined && !ELSEWHERE.has(key))
      .map(([key, inner]) => [key, WORDS.has(key) && typeof inner === "string" ? "…" : shortened(inner)]),
  );
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}

if (import.meta.main) {
  for (const name of NAMES)
    writeFileSync(`${READINGS}${name}.json`, `${JSON.stringify(await readingOf(name), null, 1)}\n`);
}
