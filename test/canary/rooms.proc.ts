/**
 * Every room that starts a process, in a project that plants programs wherever one could be found. The kernel's list of
 * started programs is what counts: outside of the sandbox there are only the system's own and Node.
 */
import assert from "node:assert/strict";
import { realpathSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { hasBwrap, NO_BWRAP } from "../boundaries/confined.ts";
import { MAIN } from "../cli/world.ts";
import { needs } from "../needs.ts";
import { plantedProject, type Planted } from "./planted.ts";
import { canTrace, traced, type Program } from "./started.ts";

const { skip } = needs(...canTrace());
const { skip: noSandbox } = needs(hasBwrap, NO_BWRAP);

const bash = (command: string) => ({ name: "Bash", input: { command } });
const answer = (step: string, action: string, text = "") => ({
  step,
  ...(text !== "" && { text }),
  output: { stepId: step, next_action: { action } },
});
const block = '```json\n{"type":"plan","content":"x"}\n```';

/** What each agent is made to do. */
const SCRIPTS = {
  worker: [
    {
      step: "initial.work",
      calls: [
        bash("git status --porcelain | head -3; node --version; sh -c true; echo more >> notes.txt"),
        { name: "Grep", input: { pattern: "line 599" } },
        { name: "Glob", input: { pattern: "src/*9.txt" } },
      ],
    },
    answer("initial.work", "next", block),
    {
      step: "continuation.work",
      calls: [bash("git add notes.txt && git commit -qm more; git log -1 --format=%s")],
    },
    answer("continuation.work", "handoff"),
    answer("closure.work", "closing"),
  ],
  commander: [answer("initial.work", "handoff")],
  judge: [answer("initial.work", "next")],
  asker: [
    {
      step: "closure.work",
      calls: [{ name: "mcp__github__github_read", input: { kind: "issue", number: 5 } }],
    },
    answer("closure.work", "closing"),
  ],
  m: [{ step: "a", output: {} }],
};

type Agent = keyof typeof SCRIPTS;

/** Command lines, in this order: the later ones look at what the earlier ones left. */
const LINES: readonly (readonly string[])[] = [
  ["list"],
  ["check"],
  ["check", "worker"],
  ["graph", "worker"],
  ["explain", "worker", "--boundary"],
  ["doctor"],
  ["models"],
  ["probe", "worker"],
  ...(Object.keys(SCRIPTS) as Agent[]).map((agent) => ["run", agent, "--script", `${agent}.json`]),
  ["run", "worker", "--script", "worker.json", "--push"],
  ["run", "worker", "--script", "short.json"],
  ["resume", "@last", "--script", "rest.json"],
  ["runs"],
  ["show", "@last"],
  ["why", "@last"],
  ["logs", "@last"],
  ["effects", "@last"],
  ["replay", "@last"],
  ["export", "@last"],
  ["worktree", "list"],
  ["worktree", "prune", "--dry-run"],
  ["worktree", "prune"],
  ["runs", "--prune", "--dry-run"],
];

/** Where a folder holds the files of a bare repository, only git is tempted. */
function startsGit(line: readonly string[]): boolean {
  return ["doctor", "run", "resume", "worktree"].includes(line[0] ?? "") && !line.includes("--push");
}

describe("outside of the sandbox, nothing runs that a project planted", { skip: skip || noSandbox }, () => {
  let planted: Planted;
  const cwds: readonly (readonly [name: string, folder: string])[] = [
    ["in the project", "."],
    ["in a folder with the files of a bare repository", "tools"],
  ];
  before(() => {
    planted = plantedProject();
    for (const [agent, replies] of Object.entries(SCRIPTS))
      planted.write(`${agent}.json`, JSON.stringify({ replies }));
    planted.write("short.json", JSON.stringify({ replies: SCRIPTS.worker.slice(0, 2) }));
    planted.write("rest.json", JSON.stringify({ replies: SCRIPTS.worker.slice(2) }));
  });
  after(() => planted[Symbol.dispose]());

  for (const [where, folder] of cwds) {
    for (const line of folder === "." ? LINES : LINES.filter(startsGit)) {
      test(`lockstep ${line.join(" ")}, ${where}`, async () => {
        const { project, env } = planted;
        const before = planted.ran().length;
        const args = line.map((word) => (word.endsWith(".json") ? join(project, word) : word));
        const { ran, programs } = await traced(process.execPath, [MAIN, ...args], join(project, folder), {
          env,
        });
        assert.doesNotMatch(ran.stderr, /bug in Lockstep/, ran.stderr);
        const outside = programs.filter(({ inside }) => !inside).slice(1);
        const strangers = outside.filter(({ path }) => !isOfTheSystem(path));
        assert.deepEqual(strangers, [], ran.stderr);
        const canaries = planted.ran().slice(before);
        assert.deepEqual(
          canaries.filter((canary) => canary.outside),
          [],
        );
      });
    }
  }

  test("the flows really started processes, and what was planted ran inside of the sandbox only", () => {
    const ran = new Set(planted.ran().map(({ program }) => program.split("/").at(-1)));
    for (const program of ["git", "node", "sh"])
      assert.ok(ran.has(program), `${program} was never started inside`);
  });

  test("the kernel's list shows a planted program that is started", async () => {
    const { project, env } = planted;
    const { programs } = await traced("/bin/sh", ["-c", "git --version; bwrap --version"], project, { env });
    assert.ok(strangersAmong(programs).length >= 2, JSON.stringify(programs));
  });
});

function strangersAmong(programs: readonly Program[]): readonly Program[] {
  return programs.filter(({ inside, path }) => !inside && !isOfTheSystem(path));
}

/** Absolute, as found, and really there: a planted link to it would not be. */
function isOfTheSystem(path: string): boolean {
  if (path === process.execPath) return true;
  return SYSTEM.some((folder) => path.startsWith(folder) && realpathSync(path).startsWith("/usr/"));
}

const SYSTEM = ["/usr/bin/", "/usr/lib/git-core/", "/bin/", "/usr/local/bin/"];
