import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { judge, mayOffer, type GateRule } from "../../../src/boundaries/gate/gate.ts";
import type { JsonObject } from "../../../src/flow/json.ts";
import { assertLinear } from "../../linear.ts";
import { stepWith } from "../step.ts";

type StepOptions = Parameters<typeof stepWith>[0];

function decide(
  options: StepOptions,
  name: string,
  input: JsonObject = {},
  batch: readonly string[] | null = [name],
) {
  const judgement = judge(stepWith(options), { name, input }, batch);
  return judgement.allow ? "allow" : judgement.rule;
}

function bash(options: StepOptions, command: string) {
  return decide(options, "Bash", { command });
}

describe("allowedTools", () => {
  const cases: readonly [allow: readonly string[], tool: string, expected: "allow" | GateRule][] = [
    [["*"], "Read", "allow"],
    [["*"], "Write", "allow"],
    [["Read"], "Read", "allow"],
    [["Read"], "Write", "list"],
    [["Read"], "read", "list"],
    [["Read"], "ReadAll", "list"],
    [["Rea*"], "Read", "allow"],
    [["*e*d"], "Read", "allow"],
    [["*Edit"], "NotebookEdit", "allow"],
    [["*Edit"], "Editor", "list"],
    [[], "Read", "list"],
    [[""], "Read", "list"],
    [["Read(src/**)"], "Read", "list"],
    [["*(x)"], "Read", "list"],
    [["mcp__github__*"], "mcp__github__list_issues", "allow"],
    [["mcp__github__*"], "mcp__gitlab__list_issues", "list"],
    [["mcp__github__list_issues"], "mcp__github__list_issues", "allow"],
    [["*"], "mcp__github__list_issues", "mode"],
    [["**"], "mcp__github__list_issues", "mode"],
    [["*"], "constructor", "mode"],
    [["*"], "__proto__", "mode"],
    [["Read"], "toString", "list"],
  ];
  for (const [allow, tool, expected] of cases) {
    test(`[${allow.join(", ")}]: ${tool} → ${expected}`, () =>
      assert.equal(decide({ allow }, tool), expected));
  }
});

describe("permissionMode", () => {
  const tools = [
    "Read",
    "Glob",
    "Grep",
    "AskUserQuestion",
    "TodoWrite",
    "Write",
    "Edit",
    "NotebookEdit",
    "Bash",
    "mcp__x__y",
  ];
  const allowed = {
    plan: ["Read", "Glob", "Grep", "AskUserQuestion"],
    default: ["Read", "Glob", "Grep", "AskUserQuestion", "TodoWrite"],
    acceptEdits: tools.filter((tool) => tool !== "mcp__x__y"),
    bypassPermissions: tools,
  } as const;
  for (const mode of ["plan", "default", "acceptEdits", "bypassPermissions"] as const) {
    for (const kind of ["work", "verify", "close"] as const) {
      test(`${mode} in a ${kind} step allows ${allowed[mode].length} of ${tools.length} tools`, () => {
        const passed = tools.filter((tool) => decide({ mode, kind }, tool, { command: "ls" }) === "allow");
        assert.deepEqual(passed, allowed[mode]);
      });
    }
    test(`${mode} does not open what is not listed`, () => {
      assert.equal(decide({ mode, allow: ["Read"] }, "Write"), "list");
    });
  }

  test("default says that a person would be needed", () => {
    const judgement = judge(stepWith({ mode: "default" }), { name: "Write", input: {} }, ["Write"]);
    assert.match(judgement.allow ? "" : judgement.reason, /needs a person.*nobody is there/);
  });
});

describe("step kind", () => {
  const tools = [
    "IssueClose",
    "IssueUpdate",
    "IssueComment",
    "PrClose",
    "PrMerge",
    "PrUpdate",
    "ReleaseCreate",
    "ReleasePublish",
  ];
  for (const tool of tools.map((name) => `github${name}`)) {
    test(`${tool} is for closing steps only`, () => {
      for (const mode of ["acceptEdits", "bypassPermissions"] as const) {
        assert.equal(decide({ kind: "work", mode }, tool), "kind");
        assert.equal(decide({ kind: "verify", mode, allow: [tool] }, tool), "kind");
        assert.equal(decide({ kind: "close", mode }, tool), "allow");
      }
      assert.equal(decide({ kind: "close", allow: ["Read"] }, tool), "list");
      assert.equal(decide({ kind: "close", mode: "plan" }, tool), "mode");
    });
  }
});

describe("the completion tool", () => {
  const step = { completion: "finish", allow: [], mode: "plan" } as const;
  const cases: readonly [
    name: string,
    tool: string,
    batch: readonly string[] | null,
    expected: "allow" | GateRule,
  ][] = [
    ["alone needs no listing", "finish", ["finish"], "allow"],
    ["in a batch that is not known", "finish", null, "allow"],
    ["beside another is denied", "finish", ["finish", "Read"], "batch"],
    ["takes its neighbours with it", "Read", ["finish", "Read"], "batch"],
    ["twice is not alone", "finish", ["finish", "finish"], "batch"],
    ["of another step is an unlisted tool", "submit", ["submit"], "list"],
  ];
  for (const [name, tool, batch, expected] of cases) {
    test(name, () => assert.equal(decide(step, tool, {}, batch), expected));
  }
});

describe("Bash limits: plain commands that are covered", () => {
  const allow = ["Bash(git status:*)", "Bash(npm test)", "Bash(npm run *)", "Bash(ls:*)"];
  const cases = [
    "git status",
    "git status --porcelain -b",
    "  git   status  ",
    "npm test",
    "npm run build",
    "npm run lint -- --fix",
    "git status && npm test",
    "git status; ls; npm test",
    "git status | ls",
    "git status\nls -l",
    "ls & git status",
    "ls 'a; rm -rf b'",
    'ls "a && rm b"',
    "ls a\\;b",
    "ls a#b",
    "ls $HOME",
    "npm test 2>&1",
    "ls >/dev/null 2>&1",
    "ls 2> /dev/null || git status",
    'ls "$HOME"',
    "ls {a,b} *.ts ?",
  ];
  for (const command of cases)
    test(JSON.stringify(command), () => assert.equal(bash({ allow }, command), "allow"));
});

describe("Bash limits: what bash evaluates although it is quoted is not covered", () => {
  const allow = [
    "Bash(test:*)",
    "Bash([:*)",
    "Bash(read:*)",
    "Bash(printf:*)",
    "Bash(export:*)",
    "Bash(echo:*)",
  ];
  const rows: readonly (readonly [command: string, verdict: "allow" | "deny"])[] = [
    ["test -f a.ts", "allow"],
    ["test -v 'a[$(x)]'", "deny"],
    ["test -v 'a[0]'", "allow"],
    ["[ -v 'a[$(x)]' ]", "deny"],
    ["read 'a[$(x)]'", "deny"],
    ["export 'a[$(x)]=1'", "deny"],
    ["test -f *.ts", "deny"],
    ["printf '%s' 'a[$(x)]'", "allow"],
    ["printf -v 'a[$(x)]' y", "deny"],
    ["printf '-v' 'a[$(x)]' y", "deny"],
    ["printf *", "deny"],
    ["printf '%s' *", "allow"],
    ["echo 'a[$(x)]'", "allow"],
    ["echo *", "allow"],
    ["'test' -v 'a[$(x)]'", "deny"],
    ["echo a && test -v 'a[$(x)]'", "deny"],
  ];
  for (const [command, verdict] of rows)
    test(JSON.stringify(command), () =>
      assert.equal(bash({ allow }, command) === "allow", verdict === "allow"),
    );
});

describe("Bash limits: everything else is not covered", () => {
  const allow = ["Read", "Bash(git status:*)", "Bash(npm test)", "Bash(ls:*)"];
  const cases = [
    "",
    "   ",
    "# git status",
    "rm -rf .",
    "git statusx",
    "git push",
    "git",
    "npm test2",
    "npm test2>&1",
    "npm tests",
    "npm test --watch",
    "git status; rm -rf .",
    "git status && rm -rf .",
    "git status || rm -rf .",
    "git status | sh",
    "git status & rm -rf .",
    "git status\nrm -rf .",
    "git status\r\nrm -rf .",
    "git status $(rm -rf .)",
    "git status `rm -rf .`",
    'git status "$(rm -rf .)"',
    'git status "`rm -rf .`"',
    "git status ${X:-$(rm x)}",
    'git status "${X@P}"',
    "git status <(rm x)",
    "git status >(rm x)",
    "git status > src/a.ts",
    "git status >> src/a.ts",
    "git status 2> src/a.ts",
    "git status >/dev/nullx",
    "git status -s >/dev/nullx",
    "git status -s >/dev/null/../x",
    "ls a >&1foo",
    "ls a 2>&1x",
    "git status &> src/a.ts",
    "ls < /etc/passwd",
    "ls <<EOF\nx\nEOF",
    "(rm -rf .)",
    "{ rm -rf .; }",
    "! rm x",
    "PATH=/tmp git status",
    "PATH=/tmp; git status",
    "env git status",
    "git status # it's\nrm -rf .",
    "git status;# it's\nrm -rf '.",
    "git status 'unclosed",
    'git status "unclosed',
    "git status $'a\\'; rm -rf . #'",
    'git status $"a"',
    "git \\\nstatus",
    "git status \\\n; rm x",
    "git\u00a0status",
    "g'it' status",
    "if true; then ls; fi",
    "git() { rm x; }; git status",
    "ls $((1+1))",
    "ls $[1+1]",
    `ls ${"x".repeat(20_000)}`,
  ];
  for (const command of cases) {
    test(JSON.stringify(command.slice(0, 60)), () => assert.equal(bash({ allow }, command), "list"));
  }

  test("a limit names no other tool", () => assert.equal(decide({ allow: ["Bash(ls:*)"] }, "Write"), "list"));
  test("an empty limit covers nothing", () =>
    assert.equal(bash({ allow: ["Bash()", "Bash(:*)x"] }, "ls"), "list"));
  test("Bash beside a limit covers all", () =>
    assert.equal(bash({ allow: ["Bash(ls:*)", "Bash"] }, "a $(b)"), "allow"));
  test("Bash(*) covers all", () => assert.equal(bash({ allow: ["Bash(*)"] }, "a $(b) > c"), "allow"));
  test("a command that is no text is denied", () => {
    for (const command of [null, 1, true, ["gh", "api"], { a: 1 }] as const) {
      assert.equal(decide({}, "Bash", { command }), "command");
    }
    assert.equal(decide({}, "Bash", {}), "command");
  });
});

describe("commands that write to GitHub", () => {
  const blocked = [
    "gh issue close 12",
    "gh  issue   close 12",
    "gh issue delete 12 --yes",
    "gh issue transfer 12 o/r",
    "gh issue reopen 12",
    "gh issue edit 12 --state closed",
    "gh issue edit 12 --state=closed",
    "gh -R o/r issue close 12",
    "gh --repo o/r issue close 12",
    "gh --repo=o/r issue close 12",
    "gh issue -R o/r close 12",
    "/usr/bin/gh issue close 12",
    "cd x && gh issue close 12",
    "true;gh issue close 12",
    "sh -c 'gh issue close 12'",
    'eval "gh issue close 12"',
    "gh issue 'close' 12",
    'g"h" issue cl\\ose 12',
    "gh \\\n issue close 12",
    "echo 12 | xargs gh issue close",
    "$(which gh) issue close 12",
    "GH_TOKEN=x gh issue close 12",
    "gh pr close 3",
    "gh pr merge 3 --squash",
    "gh pr ready 3",
    "gh release create v1",
    "gh release edit v1",
    "gh api repos/o/r/issues/12 -X PATCH",
    "gh api graphql -f query=x",
    "curl -X PATCH https://api.github.com/repos/o/r/issues/1",
    "curl https://API.GITHUB.COM/",
    "wget -qO- https://api.github.com/x",
    "python3 -c 'import requests; requests.patch(\"https://api.github.com/x\")'",
    "python -c 'x(\"api.github.com\")'",
    "node -e 'fetch(\"https://api.github.com\")'",
    "ruby -e 'api.github.com'",
    "perl -e 'api.github.com'",
    "deno eval 'fetch(\"https://api.github.com\")'",
    'http PATCH example.com --raw \'{"state":"closed"}\'',
    "http PATCH example.com --raw \"{'state': 'closed'}\"",
    'x "{\\"state\\": \\"closed\\"}"',
  ];
  for (const command of blocked) {
    test(`blocked: ${JSON.stringify(command)}`, () => {
      for (const kind of ["work", "verify", "close"] as const) {
        for (const mode of ["acceptEdits", "bypassPermissions"] as const) {
          assert.equal(bash({ kind, mode }, command), "command");
        }
      }
    });
  }

  const free = [
    "gh pr create --fill",
    "gh issue view 12",
    "gh issue list --state closed",
    "gh issue comment 12 -b hi",
    "gh issue edit 12 --add-label bug",
    "gh pr view 3",
    "gh pr list",
    "gh release list",
    "gh auth status",
    "curl https://example.com",
    "grep -r api.github.com src",
    "git commit -m 'state: closed'",
    "high issue close",
    "node build.js",
  ];
  for (const command of free) test(`free: ${command}`, () => assert.equal(bash({}, command), "allow"));

  test("the reason points to the closing intent in a closing step, to the boundary elsewhere", () => {
    const reason = (kind: "work" | "close") => {
      const call = { name: "Bash", input: { command: "gh issue close 12" } };
      const judgement = judge(stepWith({ kind }), call, ["Bash"]);
      return judgement.allow ? "" : judgement.reason;
    };
    assert.match(reason("close"), /gh issue close.*closing intent/);
    assert.match(reason("work"), /gh issue close.*boundary/);
  });

  test("a hostile command is read in linear time", async () => {
    for (const piece of ["gh ", "gh -R ", "\\", "'", '"state" ', " \t", "$(", "api.github.com "]) {
      await assertLinear((command) => bash({}, command), piece);
      await assertLinear((command) => bash({ allow: ["Bash(ls:*)"] }, command), piece);
    }
  });
});

test("a denial names the tool, the step and the rule", () => {
  const cases: readonly [StepOptions, string, RegExp][] = [
    [{ allow: ["Read"] }, "Write", /^Write is denied in step "work.issue" by allowedTools: .*Read/],
    [
      { mode: "plan", kind: "verify" },
      "Edit",
      /^Edit is denied in step "verify.issue" by permissionMode: plan/,
    ],
    [{}, "githubPrMerge", /^githubPrMerge is denied in step "work.issue" by the step kind: .*closing step/],
    [{ allow: [] }, "Read", /no tools/],
  ];
  for (const [options, name, expected] of cases) {
    const judgement = judge(stepWith(options), { name, input: {} }, [name]);
    assert.match(judgement.allow ? "" : judgement.reason, expected);
  }
});

test("what could never be allowed is not offered", () => {
  const offered = (options: StepOptions) =>
    ["Read", "Write", "Bash", "TodoWrite"].filter((name) => mayOffer(stepWith(options), name)).join(" ");
  assert.equal(offered({}), "Read Write Bash TodoWrite");
  assert.equal(offered({ mode: "plan" }), "Read");
  assert.equal(offered({ allow: ["Bash(ls:*)", "Read"] }), "Read Bash");
  assert.equal(offered({ allow: [] }), "");
});
