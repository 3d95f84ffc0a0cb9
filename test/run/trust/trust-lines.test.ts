/** Everything that the files of an agent could make this machine do is a line of what is trusted. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { createMemoryJournal, run, type DriveOptions, type ScriptReply } from "../../../src/run/index.ts";
import { importLines } from "../../../src/run/trust/trust-imports.ts";
import { hasBwrap, NO_BWRAP } from "../../boundaries/confined.ts";
import { needs } from "../../needs.ts";
import { agentFiles, homeBeside, projectWith } from "../project.ts";

const steps = {
  "initial.a": { kind: "work", intents: ["handoff"], transitions: { handoff: { target: "closure.a" } } },
  "closure.a": { kind: "closure", intents: ["closing"], transitions: { closing: { target: null } } },
} as const;
const script: readonly ScriptReply[] = ["handoff", "closing"].map((action) => ({
  output: { stepId: "x", next_action: { action } },
}));

/** The lines that a run of the project needs trust for; none: it needs no trust. */
async function asked(cwd: string, more: Partial<DriveOptions> = {}): Promise<readonly string[]> {
  const lines: string[] = [];
  const confirm = ({ commands }: { readonly commands: readonly string[] }) => {
    // Where nothing confines commands, each line says so, although nobody asked for that.
    const isWished = more.sandbox !== undefined || hasBwrap;
    lines.push(...commands.map((line) => (isWished ? line : line.replace(/^with your permissions: /, ""))));
    return Promise.resolve(false);
  };
  const env = { PATH: process.env.PATH, HOME: homeBeside() };
  const result = await run({
    agent: "m",
    cwd,
    journal: createMemoryJournal(),
    script: [...script],
    env,
    trust: { confirm },
    ...more,
  });
  assert.equal(result.code === "NOT_TRUSTED", lines.length > 0, result.reason);
  return lines;
}

type Row = {
  readonly name: string;
  readonly runner?: object;
  readonly agent?: object;
  readonly options?: Partial<DriveOptions>;
  readonly lines: readonly string[];
};

const tools = (allowedTools: readonly string[], permissionMode = "acceptEdits", sandbox?: object) => ({
  boundaries: { allowedTools, permissionMode, ...(sandbox !== undefined && { sandbox }) },
});
const OFF = { sandbox: "off" } as const;
/** Listed all the same: the files say so, and the flag may be gone next time. */
const CLOSED = { network: "none" } as const;
const issue = { agent: { parameters: { issue: { type: "number", cli: "--issue", description: "d" } } } };
const github = (more: object) => ({ integrations: { github: { enabled: true, ...more } } });
const REGISTRIES = "commands may reach registry.npmjs.org, ";

const ROWS: readonly Row[] = [
  { name: "control: reading and writing", runner: tools(["Read", "Write"]), options: OFF, lines: [] },
  {
    name: "any command, not confined",
    runner: tools(["Bash"]),
    options: OFF,
    lines: [
      "any command, with your permissions, in step closure.a",
      "any command, with your permissions, in step initial.a",
    ],
  },
  {
    name: "what runs code of the project, not confined",
    runner: { ...tools(["Read"]), mcpServers: { docs: { command: "npx", args: ["docs"] } } },
    options: OFF,
    lines: ["with your permissions: mcp docs: npx docs"],
  },
  {
    name: "commands from a list, not confined",
    runner: tools(["Bash(npm test:*)", "Bash(ls)"]),
    options: OFF,
    lines: ["closure.a", "initial.a"].map(
      (step) => `commands of the form "npm test:*", "ls", with your permissions, in step ${step}`,
    ),
  },
  {
    name: "control: commands that a person is asked about",
    runner: tools(["Bash"], "default"),
    options: OFF,
    lines: [],
  },
  { name: "control: plan", runner: tools(["Bash"], "plan"), options: OFF, lines: [] },
  {
    name: "bypassPermissions without commands",
    runner: { boundaries: { allowedTools: ["Read"], permissionMode: "acceptEdits" } },
    options: OFF,
    lines: [],
  },
  {
    name: "folders outside of the project",
    runner: tools(["Bash"], "default", {
      filesystem: { allowedPaths: ["../data", "inside"] },
      network: { mode: "none" },
    }),
    lines: ["commands may write ../data, outside of the project"],
  },
  {
    name: "control: the same with nothing that could be started",
    runner: tools(["Read"], "default", { filesystem: { allowedPaths: ["../data"] } }),
    lines: [],
  },
  {
    name: "hosts",
    runner: tools(["Bash"], "default", {
      network: { mode: "custom", trustedDomains: ["a.example", "*.b.example"] },
    }),
    options: CLOSED,
    lines: ["commands may reach *.b.example", "commands may reach a.example"],
  },
  {
    name: "the usual hosts, asked for",
    runner: tools(["Bash"], "default", { network: { mode: "trusted" } }),
    options: CLOSED,
    lines: [REGISTRIES],
  },
  {
    name: "control: no network",
    runner: tools(["Bash"], "default", { network: { mode: "none" } }),
    lines: [],
  },
  {
    name: "worktrees",
    runner: {
      ...tools(["Read"]),
      execution: {
        worktree: { enabled: true, root: "../trees", copy: [".env"] },
        finalize: { push: true, remote: "upstream" },
      },
    },
    lines: [
      "git: copies .env into the worktree",
      "git: keeps worktrees in ../trees",
      "git: makes a worktree and a branch for each run",
      "git: merges the work into the branch it began from",
      "git: pushes to upstream",
    ],
  },
  {
    name: "a pull request",
    runner: { ...tools(["Read"]), execution: { finalize: { createPr: true, prTarget: "next" } } },
    lines: ["GitHub: opens a pull request for next", "git: pushes to origin"],
  },
  {
    name: "labels and closing",
    runner: {
      ...tools(["Read"]),
      ...github({
        labels: { inProgress: "doing", blocked: "stuck", completion: { add: ["done"], remove: ["todo"] } },
        defaultClosureAction: "label-and-close",
        answerLabels: ["size/S"],
      }),
    },
    ...issue,
    lines: [
      'GitHub: adds and removes labels that a closing answer names, of "doing", "done", "size/S", "stuck", "todo"',
      'GitHub: adds the label "doing" when a run begins',
      'GitHub: adds the label "done" when a run is complete',
      'GitHub: adds the label "stuck" when a run fails',
      "GitHub: closes or labels the issue of a complete run (label-and-close, unless the closing answer says otherwise)",
      'GitHub: removes the label "doing" when a run ends',
      'GitHub: removes the label "todo" when a run is complete',
    ],
  },
  {
    name: "closing, and no label that an answer could name",
    runner: { ...tools(["Read"]), ...github({ defaultClosureAction: "close" }) },
    ...issue,
    lines: [
      "GitHub: closes or labels the issue of a complete run (close, unless the closing answer says otherwise)",
    ],
  },
  {
    name: "texts that call people, also where a flag asks for the pull request",
    runner: { ...tools(["Read"]), ...github({ mentions: true }) },
    lines: ["GitHub: texts of answers may mention people and give commands to bots"],
  },
  {
    name: "control: texts that call nobody",
    runner: { ...tools(["Read"]), ...github({ mentions: false, answerLabels: ["bug"] }) },
    lines: [],
  },
  { name: "control: GitHub that is only read", runner: { ...tools(["Read"]), ...github({}) }, lines: [] },
  {
    name: "blocks of answers",
    runner: {
      ...tools(["Read"]),
      ...github({ answerLabels: ["bug"], mentions: true }),
      actions: {
        enabled: true,
        types: ["say", "new", "issue-action", "note"],
        handlers: { say: "builtin:github-comment", new: "builtin:github-issue", note: "builtin:log" },
        otherIssues: true,
      },
    },
    ...issue,
    lines: [
      'GitHub: blocks of the type "issue-action" comment on, label and close any issue, with the labels "bug"',
      'GitHub: blocks of the type "new" open issues, with the labels "bug"',
      'GitHub: blocks of the type "say" comment on any issue',
      "GitHub: texts of answers may mention people and give commands to bots",
    ],
  },
  {
    name: "servers",
    runner: {
      ...tools(["Read"]),
      mcpServers: {
        docs: { command: "npx", args: ["some server"], env: { KEY: "${SECRET}" } },
        far: { type: "http", url: "https://far.example/mcp", headers: { Auth: "Bearer ${TOKEN}" } },
      },
    },
    lines: [
      'mcp docs: KEY="${SECRET}" npx "some server"',
      'mcp far: POST https://far.example/mcp Auth="Bearer ${TOKEN}"',
    ],
  },
];

const { skip } = needs(hasBwrap, NO_BWRAP);

for (const { name, runner, agent, options, lines } of ROWS) {
  // Only where commands can be confined is anything opened for them.
  const isOpened = lines.some((line) => line.startsWith("commands may"));
  test(`trusted line by line: ${name}`, { skip: isOpened && skip }, async () => {
    const parts = { ...(runner !== undefined && { runner }), ...(agent !== undefined && { agent }) };
    const found = await asked(projectWith(agentFiles("m", steps, parts)), options);
    assert.deepEqual(
      found.map((line) => (line.startsWith(REGISTRIES) ? REGISTRIES : line)),
      lines,
    );
  });
}

/** One member of a declared server is different: a yes to the one is not a yes to the other. No server is started. */
const LOCAL = { command: "npx", args: ["docs"], env: { KEY: "${SECRET}", MODE: "plain" } };
const REMOTE = { type: "http", url: "https://far.example/mcp", headers: { Auth: "${TOKEN}", Kind: "x" } };
const SERVERS: readonly (readonly [
  name: string,
  trusted: object,
  now: object,
  servers: "same" | "different",
])[] = [
  ["nothing", LOCAL, { ...LOCAL }, "same"],
  ["nothing of a remote one", REMOTE, { ...REMOTE }, "same"],
  ["a value of env", LOCAL, { ...LOCAL, env: { ...LOCAL.env, MODE: "--import ./evil.mjs" } }, "different"],
  ["a variable of the user in env", LOCAL, { ...LOCAL, env: { ...LOCAL.env, KEY: "${OTHER}" } }, "different"],
  ["a name in env", LOCAL, { ...LOCAL, env: { KEY: "${SECRET}", NODE_OPTIONS: "plain" } }, "different"],
  ["one more in env", LOCAL, { ...LOCAL, env: { ...LOCAL.env, NODE_OPTIONS: "" } }, "different"],
  ["one less in env", LOCAL, { ...LOCAL, env: { KEY: "${SECRET}" } }, "different"],
  ["the command", LOCAL, { ...LOCAL, command: "npm" }, "different"],
  ["an argument", LOCAL, { ...LOCAL, args: ["other"] }, "different"],
  ["one more argument", LOCAL, { ...LOCAL, args: ["docs", ""] }, "different"],
  ["two arguments in one", { ...LOCAL, args: ["a", "b"] }, { ...LOCAL, args: ["a b"] }, "different"],
  [
    "an argument that was a value",
    { ...LOCAL, env: { A: "x" } },
    { ...LOCAL, env: {}, command: "A=x", args: ["npx", "docs"] },
    "different",
  ],
  ["a value of a header", REMOTE, { ...REMOTE, headers: { ...REMOTE.headers, Kind: "y" } }, "different"],
  [
    "a variable in a header",
    REMOTE,
    { ...REMOTE, headers: { ...REMOTE.headers, Auth: "${OTHER}" } },
    "different",
  ],
  ["one more header", REMOTE, { ...REMOTE, headers: { ...REMOTE.headers, More: "" } }, "different"],
  ["one header less", REMOTE, { ...REMOTE, headers: { Auth: "${TOKEN}" } }, "different"],
  ["the address", REMOTE, { ...REMOTE, url: "https://far.example/mcp2" }, "different"],
];
for (const [name, trusted, now, servers] of SERVERS) {
  test(`of a server changes ${name}: ${servers}`, async () => {
    const env = { PATH: process.env.PATH, HOME: homeBeside() };
    const digestFor = async (server: object) => {
      const runner = { ...tools(["Read"]), mcpServers: { docs: server } };
      const cwd = projectWith(agentFiles("m", steps, { runner }));
      const { reason } = await run({
        agent: "m",
        cwd,
        journal: createMemoryJournal(),
        script: [...script],
        env,
      });
      return /--trust ([0-9a-f]{64})/.exec(reason)?.[1] ?? assert.fail(reason);
    };
    const [before, after] = [await digestFor(trusted), await digestFor(now)];
    assert.equal(before === after ? "same" : "different", servers);
  });
}

/** What a module loads. */
const MODULE = ".agent/m/handlers/act.mjs";
const FILES = {
  [MODULE]: `import { a } from "../lib/a.mjs";\nimport pack from "pack";\nexport default () => a(pack);\n`,
  ".agent/m/lib/a.mjs": `export * from "./b.mjs";\n`,
  ".agent/m/lib/b.mjs": `import data from "./data.json" with { type: "json" };\nexport const a = () => data;\n`,
  ".agent/m/lib/data.json": "{}",
  ".agent/m/lib/alone.mjs": "",
  "node_modules/pack/package.json":
    '{"name":"pack","version":"1.0.0","main":"index.js","dependencies":{"deep":"*"}}',
  "node_modules/pack/index.js": "module.exports = 1;\n",
  "node_modules/deep/package.json": '{"name":"deep","version":"2.0.0"}',
  "node_modules/deep/lib/x.js": "",
  "node_modules/stray/package.json": "{}",
};

const acting = (files: { readonly [path: string]: string } = FILES) =>
  projectWith({
    ...agentFiles("m", steps, {
      runner: {
        ...tools(["Read"]),
        actions: { enabled: true, types: ["act"], handlers: { act: "./handlers/act.mjs" } },
      },
    }),
    ...files,
  });

test("a module is trusted with the files and packages that it loads", async () => {
  const lines = (await asked(acting())).map((line) => line.replaceAll(/sha256 [0-9a-f]{64}/g, "sha256 …"));
  assert.deepEqual(lines, [
    `node ${MODULE} (sha256 …)`,
    `node ${MODULE} loads .agent/m/lib/a.mjs (sha256 …)`,
    `node ${MODULE} loads .agent/m/lib/b.mjs (sha256 …)`,
    `node ${MODULE} loads .agent/m/lib/data.json (sha256 …)`,
    `node ${MODULE} loads package deep@2.0.0 (2 files, sha256 …)`,
    `node ${MODULE} loads package pack@1.0.0 (2 files, sha256 …)`,
  ]);
});

for (const [file, isAsked] of [
  [MODULE, true],
  [".agent/m/lib/a.mjs", true],
  [".agent/m/lib/b.mjs", true],
  [".agent/m/lib/data.json", true],
  ["node_modules/pack/index.js", true],
  ["node_modules/pack/added.js", true],
  ["node_modules/deep/lib/x.js", true],
  [".agent/m/lib/alone.mjs", false],
  ["node_modules/stray/package.json", false],
  ["README.md", false],
] as const) {
  test(`${file} changes: ${isAsked ? "asked again" : "control, still trusted"}`, async () => {
    const cwd = acting();
    const env = { PATH: process.env.PATH, HOME: homeBeside() };
    const trust = { confirm: () => Promise.resolve(true) };
    const go = async (more: Partial<DriveOptions>) =>
      await run({ agent: "m", cwd, journal: createMemoryJournal(), script: [...script], env, ...more });
    assert.equal((await go({ trust })).outcome, "completed");
    assert.equal((await go({})).outcome, "completed");
    mkdirSync(dirname(join(cwd, file)), { recursive: true });
    writeFileSync(join(cwd, file), `${isAsked ? old(cwd, file) : ""}\n`);
    assert.equal((await go({})).code, isAsked ? "NOT_TRUSTED" : null);
  });
}

function old(cwd: string, file: string): string {
  try {
    return readFileSync(join(cwd, file), "utf8");
  } catch {
    return "";
  }
}

const WAYS: readonly (readonly [what: string, source: string, line: RegExp | null])[] = [
  ["a plain import", 'import "./x.mjs"', /^x\.mjs \(sha256/],
  ["without spaces", 'import{x}from"./x.mjs"', /^x\.mjs \(/],
  ["a comment between", 'import /* "./y.mjs" */ "./x.mjs"', /^x\.mjs \(/],
  ["over several lines", 'import {\n  x,\n} from\n  "./x.mjs"', /^x\.mjs \(/],
  ["letters written as escapes", String.raw`import "./\u0078.mjs"`, /^x\.mjs \(/],
  ["percent", 'import "./%78.mjs"', /^x\.mjs \(/],
  ["a query", 'import "./x.mjs?v=2"', /^x\.mjs \(/],
  ["a template", "await import(`./x.mjs`)", /^x\.mjs \(/],
  ["require without an ending", 'require("./c")', /^c\.js \(/],
  ["an import of what is not there", 'import "./gone.mjs"', /imports "\.\/gone\.mjs", which is not there/],
  [
    "a package that is not there",
    'import "nobody"',
    /imports "nobody", a package that is not in the project/,
  ],
  ["what is worked out", "import(name)", /imports what it works out at run time, which cannot be followed/],
  ["part of it worked out", 'import("./x" + y)', /works out at run time/],
  ["createRequire", "createRequire(import.meta.url)", /uses createRequire, which cannot be followed/],
  ["child_process", 'import "node:child_process"', /can start other code/],
  ["outside of the project", 'import "../outside.mjs"', /outside\.mjs, outside of the project/],
  ["a link that leads outside", 'import "./link.mjs"', /link\.mjs, outside of the project/],
  ["the package's own names", 'import "#x"', /^x\.mjs \(/],
  ["control: built in", 'import "node:fs"; import "fs"', null],
  ["control: only a comment", '// import "./gone.mjs"', null],
];

for (const [what, source, line] of WAYS) {
  test(`imports are found: ${what}`, () => {
    const top = projectWith({
      "outside.mjs": "",
      "p/m.mjs": source,
      "p/x.mjs": "",
      "p/c.js": "",
      "p/package.json": '{"imports":{"#x":"./x.mjs"}}',
    });
    symlinkSync(join(top, "outside.mjs"), join(top, "p/link.mjs"));
    const lines = importLines(join(top, "p"), "m.mjs");
    if (line === null) assert.deepEqual(lines, []);
    else
      assert.ok(
        lines.some((one) => line.test(one)),
        lines.join("\n"),
      );
  });
}

test("imports in a circle end, and too many are told", () => {
  const files = Object.fromEntries(
    Array.from({ length: 50 }, (_, place) => [`f${place}.mjs`, `import "./f${(place + 1) % 50}.mjs"`]),
  );
  const cwd = projectWith(files);
  assert.equal(importLines(cwd, "f0.mjs").length, 49);
  const bounded = importLines(cwd, "f0.mjs", { files: 10, bytes: 1e6 });
  assert.ok(bounded.includes("more than 10 files or 1000000 bytes, which are not looked at"));
  assert.ok(
    importLines(cwd, "f0.mjs", { files: 99, bytes: 40 }).some((line) => line.startsWith("more than 99")),
  );
});

test("a command cannot pose as several lines, nor hide behind spaces", async () => {
  const command = `true${" ".repeat(300)}; id\n  $ harmless\u202e`;
  const checks = {
    validators: { ok: { type: "command", command, successWhen: "exitCode:0", failurePattern: "bad" } },
    failurePatterns: { bad: { description: "bad", edition: "failed" } },
    validationSteps: {
      "closure.a": {
        stepId: "closure.a",
        name: "n",
        c2: "retry",
        c3: "a",
        validationConditions: [{ validator: "ok" }],
      },
    },
  };
  const cwd = projectWith(agentFiles("m", steps, { registry: checks }));
  const env = { PATH: process.env.PATH, HOME: homeBeside() };
  const result = await run({ agent: "m", cwd, journal: createMemoryJournal(), script: [...script], env });
  assert.match(
    result.reason,
    /\n {2}(?:with your permissions: )?\$ true··· 300 spaces ···; id\n {4}\| {3}\$ harmless\\u\{202e\}\n/,
  );
});

/** A check, which a shell runs, and a step, which is started without one: what differs is written in two ways. */
const shellLine = (command: string, params?: object) => ({
  validators: { ok: { type: "command", command, successWhen: "exitCode:0", failurePattern: "bad" } },
  failurePatterns: { bad: { description: "bad", edition: "failed" } },
  validationSteps: {
    "closure.a": {
      stepId: "closure.a",
      name: "n",
      c2: "retry",
      c3: "a",
      validationConditions: [{ validator: "ok", params }],
    },
  },
});

for (const [params, command, line] of [
  [{ A: "$(id)" }, "true", "export 'A=$(id)'; true"],
  [{ A: "1", B: "it's" }, "a; b", String.raw`export A=1 'B=it'\''s'; a; b`],
  [undefined, 'A="$(id)" true', 'A="$(id)" true'],
] as const) {
  test(`the values of a command are written as a shell reads them: ${line}`, async () => {
    const registry = shellLine(command, params);
    assert.deepEqual(await asked(projectWith(agentFiles("m", steps, { registry }))), [`$ ${line}`]);
  });
}

for (const [command, args, line, check] of [
  ["printf", ["%s", "$(touch pwned)"], "printf %s '$(touch pwned)'", 'printf %s "$(touch pwned)"'],
  ["printf", ["$HOME"], "printf '$HOME'", "printf $HOME"],
  ["cat", ["~/x"], "cat '~/x'", "cat ~/x"],
  ["cat", ["{a,b}"], "cat '{a,b}'", "cat {a,b}"],
  ["echo", ["it's", ""], String.raw`echo 'it'\''s' ''`, `echo "it's" ""`],
  ["A=1", ["npm"], "'A=1' npm", "A=1 npm"],
  ["a b", [], "'a b'", "a b"],
  ["npm", ["test", "--x=1"], "npm test --x=1", null],
] as const) {
  test(`a line means one thing: ${line}`, async () => {
    const none = { outputSchemaRef: undefined, structuredGate: undefined, transitions: undefined };
    const closing = { ...steps["closure.a"], more: { ...none, runner: { command, args } } };
    const step = await asked(projectWith(agentFiles("m", { ...steps, "closure.a": closing })));
    assert.deepEqual(step, [`$ ${line}`]);
    if (check === null) return;
    const checked = await asked(projectWith(agentFiles("m", steps, { registry: shellLine(check) })));
    assert.deepEqual(checked, [`$ ${check}`]);
  });
}
