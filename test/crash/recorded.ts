/** Whole runs to be crashed: every example, every kind of flow on record, and sketches of the rest. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ScriptReply } from "../../src/backends/scripted/script.ts";
import { prepareSchemas, schemasOf } from "../../src/engine/schema/schema.ts";
import type { Entry } from "../../src/flow/event.ts";
import { parseBundle } from "../../src/run/records/bundle.ts";
import { createMemoryJournal, readRun, run } from "../../src/run/index.ts";
import { fakeClock, play } from "../../src/testing/scenario.ts";
import { scenarios } from "../engine/scenarios.ts";
import { JOURNALS } from "../run/golden.ts";
import type { Recorded } from "./outside.ts";

const EXAMPLES = fileURLToPath(new URL("../../examples/", import.meta.url));

type Example = {
  readonly folder: string;
  readonly agent: string;
  readonly args?: { readonly [name: string]: string };
  readonly input?: string;
  readonly script?: string;
};

const verdict = (agent: string, args = {}): Example => ({
  folder: "04-verdict-types",
  agent,
  args,
  script: `scripts/${agent}.yaml`,
});

/** 03 and 06 are among those on record. */
const LIVE: readonly Example[] = [
  { folder: "01-fix-a-test", agent: "fixer", args: { issue: "7" } },
  {
    folder: "02-prompt-files",
    agent: "digest",
    args: { audience: "children" },
    input: "In {uv-places} like this one",
  },
  ...["counted", "checked", "signalled", "combined", "custom"].map((agent) => verdict(agent)),
  { folder: "05-plan-stage", agent: "planner", args: { task: "rename the module" } },
  { folder: "07-worktree", agent: "scribe", args: { topic: "tides" } },
];

/** A fork begins in the middle, and a run that was stopped by its model goes on with other counts of faults. */
const WITHOUT_BEGINNING = new Set(["fork", "rate-limit"]);

export async function wholeRuns(): Promise<readonly Recorded[]> {
  const all: Recorded[] = [];
  for (const file of globSync(`${JOURNALS}*.json`).toSorted()) {
    const name = basename(file, ".json");
    if (!WITHOUT_BEGINNING.has(name)) all.push(fromBundle(name, readFileSync(file, "utf8")));
  }
  for (const example of LIVE) all.push(await fromExample(example));
  for (const [name, scenario] of Object.entries(scenarios)) {
    const { entries } = await play(scenario);
    const replies = scenario.model as readonly ScriptReply[];
    const { person, toolbox } = scenario.ports ?? {};
    const people = person !== undefined && { people: { person, wish: toolbox?.wish } };
    all.push({ name, flow: scenario.flow, replies, entries: inRun(name, entries), ...people });
  }
  for (const { flow } of all) await prepareSchemas(schemasOf(flow));
  return all;
}

/** Sketches are all played as the run `run`; here each has an id of its own. */
function inRun(id: string, entries: readonly Entry[]): readonly Entry[] {
  return JSON.parse(
    JSON.stringify(entries)
      .replaceAll('"run":"run"', JSON.stringify({ run: id }).slice(1, -1))
      .replaceAll("run/", `${id}/`),
  ) as readonly Entry[];
}

function fromBundle(name: string, text: string): Recorded {
  const { run: about, flows, entries } = parseBundle(text, name);
  return { name, flow: flows[about.flow]!, replies: repliesOf(entries), entries };
}

function repliesOf([first]: readonly Entry[]): readonly ScriptReply[] {
  assert.ok(first?.event.type === "run.started");
  return (first.event.backend.options as unknown as { readonly replies: readonly ScriptReply[] }).replies;
}

async function fromExample({
  folder,
  agent,
  args = {},
  input = "",
  script = "script.yaml",
}: Example): Promise<Recorded> {
  const temp = mkdtempSync(join(tmpdir(), "lockstep-whole-"));
  try {
    const example = join(EXAMPLES, folder);
    const cwd = join(temp, "project");
    mkdirSync(cwd);
    cpSync(existsSync(join(example, "project")) ? join(example, "project") : example, cwd, {
      recursive: true,
    });
    cpSync(join(example, ".agent"), join(cwd, ".agent"), { recursive: true });
    const git = (...words: readonly string[]) => execFileSync("git", words, { cwd });
    git("init", "-q", "-b", "main");
    git("config", "user.name", "t");
    git("config", "user.email", "t@example.invalid");
    git("add", "-A");
    git("commit", "-qm", "start");
    git("init", "-q", "--bare", "../remote.git");
    git("remote", "add", "origin", "../remote.git");
    if (agent === "scribe") writeFileSync(join(cwd, "sources.local.md"), "the moon pulls, the earth turns\n");
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const journal = createMemoryJournal();
    const file = join(example, script);
    const result = await run({
      agent,
      args,
      input,
      cwd,
      journal,
      clock: fakeClock(),
      script: { text: readFileSync(file, "utf8"), file },
      env: { ...env, LOCKSTEP_TRUST: "all" },
    });
    assert.equal(result.outcome, "completed", `${folder} ${agent}: ${result.reason}`);
    const { flow, entries } = await readRun(journal, result.run!);
    return { name: `${folder}: ${agent}`, flow, replies: repliesOf(entries), entries };
  } finally {
    rmSync(temp, { recursive: true, force: true });
  }
}
