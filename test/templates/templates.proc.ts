/**
 * Every ready-made flow in a real repository, by the commands that a user types: with its script, and with the same answers
 * given to the real Claude Code by a model on loopback.
 *
 * Needs the Claude Agent SDK in the folder that LOCKSTEP_PACKAGES names.
 */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { parse } from "yaml";
import type { AgentTemplate } from "../../src/cli/commands.ts";
import { suiteOffline } from "../backends/loopback.ts";
import { modelServer, type Deed, type Seen } from "../backends/model-server.ts";
import { onlyDocument, type Ran } from "../cli/world.ts";
import { openStandIn, type StandIn } from "../github/stand-in.ts";
import { needs } from "../needs.ts";
import { repository, type Repository } from "./repository.ts";

type Template = Exclude<AgentTemplate, "steps" | "stages">;

/** What the script of a template does in a repository. */
type Expected = {
  readonly args: readonly string[];
  readonly path: readonly string[];
  /** Checks that refused once. */
  readonly refused: readonly string[];
  /** A file that it leaves, and what is in it; on the branch of the run where it works on one. */
  readonly file: string;
  readonly holds: RegExp;
  /** Commits, the newest first, before the one that was there. */
  readonly commits: readonly string[];
  /** Labels of the issue afterwards; absent: no issue is touched. */
  readonly labels?: readonly string[];
  readonly branch?: true;
};

const EXPECTED: { readonly [T in Template]: Expected } = {
  "fix-issue": {
    args: ["--issue", "12"],
    path: "understand fix review fix review close fix review close".split(" "),
    refused: ["everything-committed"],
    file: "lockstep-demo/greeting.txt",
    holds: /^Hello\n$/,
    commits: ["Add a greeting"],
    labels: ["needs-triage", "ready-for-review"],
    branch: true,
  },
  "review-loop": {
    args: ["--task", "announce the first release"],
    path: ["write", "review", "revise", "review"],
    refused: ["nothing-left-open"],
    file: "draft.md",
    holds: /It runs a flow without a key\. Install it with npm\./,
    commits: [],
  },
  "implement-plan": {
    args: ["--plan", "plan.md"],
    path: "plan build-first build-second integrate review repair review commit".split(" "),
    refused: ["everything-committed"],
    file: "lockstep-demo/greeting.txt",
    holds: /^Hello\n$/,
    commits: ["Describe the greeting", "Add a greeting"],
  },
  triage: {
    args: ["--issue", "12"],
    path: ["read", "locate", "report", "close", "report", "close"],
    refused: ["files-exist"],
    file: "triage.md",
    holds: /^- file: \.agent\/mine\/agent\.json$/m,
    commits: [],
    labels: ["bug", "needs-info", "triaged"],
  },
  "upgrade-dependencies": {
    args: ["--scope", "minor versions"],
    path: ["survey", "upgrade", "review", "commit"],
    refused: ["everything-committed"],
    file: "lockstep-demo/versions.txt",
    holds: /^example 1\.5\.0\n$/,
    commits: ["Upgrade example to 1.5.0"],
  },
  "write-docs": {
    args: ["--subject", "getting started"],
    path: ["survey", "write", "review", "revise", "review"],
    refused: ["page-holds-together"],
    file: "doc/lockstep-demo.md",
    holds: /reads and writes files, and runs no commands\. Its stages are in `\.agent\/mine\/stages\/`/,
    commits: [],
  },
};
const NAMES = Object.keys(EXPECTED) as readonly Template[];

/** Its tests need a package that git does not have, as those of most projects do. */
const PROJECT = {
  "package.json": JSON.stringify({ private: true, scripts: { test: "node --test" } }),
  "sum.test.js": 'require("node:test").test("sums", () => require("sum")(1));\n',
  "node_modules/sum/index.js": "module.exports = () => 0;\n",
  ".gitignore": "node_modules\n",
  "plan.md": "# A greeting\n",
  "doc/index.md": "# Pages\n",
};

const SCRIPTED = ["--script", ".agent/mine/script.yaml", "--json"];

async function made({ lockstep }: Repository, template: Template): Promise<{ readonly tests: unknown }> {
  const ran = await lockstep("init", "mine", "--template", template, "--json");
  assert.equal(ran.code, 0, ran.stderr);
  return onlyDocument(ran) as { readonly tests: unknown };
}

/** The run has done what its script says, and nothing else. */
function assertDone(
  template: Template,
  { cwd, git }: Repository,
  ran: Ran,
  before: readonly string[] = [],
): void {
  const { path, refused, file, holds, commits, branch } = EXPECTED[template];
  assert.equal(ran.code, 0, `${ran.stdout}\n${ran.stderr}`);
  const result = onlyDocument(ran) as {
    readonly path: readonly { readonly step: string }[];
    readonly checks: readonly { readonly name: string; readonly ok: boolean }[];
    readonly worktree?: { readonly branch: string };
  };
  const isSibling = (step: string) => step.startsWith("build-");
  const steps = result.path.map(({ step }) => step);
  assert.deepEqual(
    steps.toSorted((one, other) => (isSibling(one) && isSibling(other) ? (one < other ? -1 : 1) : 0)),
    path,
  );
  assert.deepEqual(
    result.checks.filter(({ ok }) => !ok).map(({ name }) => name),
    refused,
  );
  const at = branch ? result.worktree!.branch : "main";
  const text = branch ? git("show", `${at}:${file}`) : readFileSync(join(cwd, file), "utf8");
  assert.match(text, holds);
  assert.deepEqual(git("log", "--format=%s", at).trim().split("\n"), [...commits, "Begin"]);
  if (branch) assert.equal(git("log", "--format=%s", "main"), "Begin\n", "nothing is merged");
  const left = git("status", "--porcelain").trim().split("\n").toSorted();
  const isLeft = commits.length === 0 ? [`?? ${file}`] : [];
  assert.deepEqual(left, ["?? .agent/", ...isLeft, ...before].toSorted());
}

async function withIssue(template: Template, use: (env: NodeJS.ProcessEnv) => Promise<void>): Promise<void> {
  const { labels } = EXPECTED[template];
  if (labels === undefined) return await use({});
  const stand: StandIn = await openStandIn();
  try {
    const issue = stand.world.addIssue({ number: 12, title: "Broken", labels: ["needs-triage"] });
    await use(stand.env);
    assert.deepEqual(issue.labels.toSorted(), labels);
    assert.equal(issue.state, "open");
    assert.deepEqual([stand.world.pulls.size, issue.comments.length], [0, 0]);
  } finally {
    await stand.close();
  }
}

const packages = process.env.LOCKSTEP_PACKAGES ?? "";
const claude = needs(
  existsSync(join(packages, "node_modules/@anthropic-ai/claude-agent-sdk/package.json")),
  "the Claude Agent SDK not installed",
);

suiteOffline("ready-made flows", import.meta.url, { skip: false, curious: true }, () => {
  describe("with its script, in a project with tests", { concurrency: 2 }, () => {
    for (const template of NAMES)
      test(template, async () => {
        await withIssue(template, async (env) => {
          const world = repository(PROJECT, env);
          const { tests } = await made(world, template);
          if (tests !== null) assert.deepEqual(tests, { command: "npm test", isFound: true });
          const { args } = EXPECTED[template];
          assertDone(template, world, await world.lockstep("run", "mine", ...args, ...SCRIPTED));
        });
      });

    test("in a new repository, without a test command and without GitHub", async () => {
      for (const template of ["fix-issue", "upgrade-dependencies", "triage"] as const) {
        const world = repository({});
        const { tests } = await made(world, template);
        if (tests !== null) assert.deepEqual(tests, { command: "git diff --check", isFound: false });
        const { args } = EXPECTED[template];
        // Packages that were installed, and that git does not ignore, are not work.
        for (const folder of ["node_modules/x", "packages/a/node_modules/y"]) {
          mkdirSync(join(world.cwd, folder), { recursive: true });
          writeFileSync(join(world.cwd, folder, "index.js"), "");
        }
        const ran = await world.lockstep("run", "mine", ...args, ...SCRIPTED);
        assertDone(template, world, ran, ["?? node_modules/", "?? packages/"]);
      }
    });

    test("fix-issue closes nothing while the tests of the project fail", async () => {
      const world = repository({ ...PROJECT, "sum.test.js": 'throw new Error("broken");\n' });
      await made(world, "fix-issue");
      const ran = await world.lockstep("run", "mine", "--issue", "12", ...SCRIPTED);
      const { code, checks, reason } = onlyDocument(ran);
      assert.deepEqual([ran.code, code], [1, "SCRIPT_MISMATCH"], String(reason));
      assert.partialDeepStrictEqual(checks, [{ name: "tests", ok: false, pattern: "tests-failed" }]);
    });
  });

  describe("through Claude Code", { concurrency: 2, ...claude }, () => {
    for (const template of NAMES)
      test(template, async () => {
        await withIssue(template, async (env) => {
          const replies: Deed[] = [];
          await using server = await modelServer("anthropic", (seen) => nextFor(replies, seen));
          const world = repository(PROJECT, {
            ...env,
            LOCKSTEP_PACKAGES: packages,
            ANTHROPIC_BASE_URL: server.url,
            ANTHROPIC_API_KEY: "k",
          });
          await made(world, template);
          const script = readFileSync(join(world.cwd, ".agent/mine/script.yaml"), "utf8");
          replies.push(...(parse(script) as { readonly replies: readonly Deed[] }).replies);
          const { args } = EXPECTED[template];
          const ran = await world.lockstep("run", "mine", ...args, "--backend", "claude-agent", "--json");
          assertDone(template, world, ran);
          assert.deepEqual(replies, [], "all was asked");
        });
      });
  });
});

/** Two stages of implement-plan are asked at the same time; what is said to each names its part. */
const SIBLINGS: { readonly [step: string]: string } = {
  "build-first": 'Your part is \\"greeting',
  "build-second": 'Your part is \\"page',
};

/** The next reply of the script that is meant for the request. Claude Code asks for titles and the like, too. */
function nextFor(replies: Deed[], { body }: Seen): Deed | undefined {
  if (!JSON.stringify(body.tools ?? []).includes('"StructuredOutput"')) return { text: "ok" };
  const text = JSON.stringify(body);
  const at = replies.findIndex(({ step = "" }) => text.includes(SIBLINGS[step] ?? ""));
  return replies.splice(at, 1)[0];
}
