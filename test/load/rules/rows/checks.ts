/** Rows about checks and the prompts about their failures. */
import type { Changes } from "../../world.ts";
import {
  CLOSURE,
  CONDITION,
  FAILURE_PROMPT,
  GATELESS,
  V,
  before,
  judgedBy,
  type NotFound,
  type Row,
} from "./row.ts";

const running = (command: string, params: object = {}): Changes =>
  judgedBy({ type: "command", command, successWhen: "exitCode:0" }, params);

/** Failure prompts, and what is wrong with them: where, and in which words. */
const FAILURES: readonly (readonly [
  code: "FAILURE-NAME" | "FAILURE-BLOCK",
  text: string,
  place: readonly [number, number],
  says: RegExp,
])[] = [
  ["FAILURE-NAME", "{{summary}}\n{{sumary}}", [2, 1], /reads "sumary".*Did you mean "summary"/],
  ["FAILURE-NAME", "{{#each untracked}}{{this}}{{/each}}", [1, 1], /reads "untracked"/],
  ["FAILURE-NAME", "{{#if x.y}}a{{/if}}", [1, 1], /reads "x"/],
  ["FAILURE-NAME", "{{this}}", [1, 1], /\{\{this\}\} outside \{\{#each\}\}/],
  ["FAILURE-BLOCK", "---\na: b\n---\n{{#each changedFiles}}x{{/eech}}", [4, 24], /\{\{\/eech\}\} in/],
  ["FAILURE-BLOCK", "{{#each changedFiles}}x", [1, 1], /never closed by \{\{\/each\}\}/],
  [
    "FAILURE-BLOCK",
    "{{#if stdout}}{{#each changedFiles}}x{{/if}}",
    [1, 15],
    /never closed by \{\{\/each\}\}/,
  ],
  ["FAILURE-BLOCK", "x {{/if}}", [1, 3], /no open \{\{#if\}\}/],
  ["FAILURE-BLOCK", "x {{else}}", [1, 3], /no \{\{#if\}\} around/],
  ["FAILURE-BLOCK", "{{#unless stdout}}", [1, 1], /not a tag/],
  ["FAILURE-BLOCK", "{{ }}", [1, 1], /names nothing/],
  ["FAILURE-BLOCK", "Issue {uv-issue}", [1, 7], /\{uv-issue\} in .* a failure prompt reads only/],
];

export const FOUND: readonly Row[] = [
  {
    code: "FAILURE-NAME",
    name: "an explanation that no extractor gives",
    changes: {
      ...running("npm test"),
      [FAILURE_PROMPT]: "{{stdout}} {{rootCause}}",
    },
    at: "retry/issue/f_failed_git-dirty.md ",
    place: [1, 12],
    says: /reads "rootCause"/,
  },
  ...FAILURES.map(([code, text, place, says]): Row => ({
    code,
    name: JSON.stringify(text),
    changes: { [FAILURE_PROMPT]: text },
    at: "retry/issue/f_failed_git-dirty.md ",
    step: "closure.issue",
    place,
    says,
  })),
  {
    code: "CHECK-UNKNOWN",
    name: "before the end by the verdict",
    changes: before({ validationConditions: [{ validator: "git-claen" }] }),
    at: "steps_registry.json /validationSteps/closure.iteration/validationConditions/0/validator",
  },
  {
    code: "CHECK-BORROWED",
    name: "before the end by the verdict",
    changes: { ...GATELESS, ...before({}, "other") },
    at: "steps_registry.json /validationSteps/other",
    says: /The end by the verdict count:iteration has no validation of its own/,
  },
  // Checks before the end.
  {
    code: "CHECK-UNKNOWN",
    name: "unknown validator",
    changes: { "registry /validationSteps/closure.issue/validationConditions": [{ validator: "git-cleen" }] },
    at: "steps_registry.json /validationSteps/closure.issue/validationConditions/0/validator",
    step: "closure.issue",
    says: /Did you mean "git-clean"/,
  },
  {
    code: "CHECK-PATTERN",
    name: "unknown failure pattern",
    changes: { "registry /failurePatterns": {} },
    at: "steps_registry.json /validators/git-clean/failurePattern",
  },
  ...(
    [
      ["a misspelled type", { type: "comand" }, "type", /Did you mean "command"/],
      ["a type that nobody can judge", { type: "custom" }, "type", /one of "command", "file", "semantic"/],
      ["no type", { type: undefined }, "type", /missing/],
      [
        "a misspelled checkType",
        { type: "semantic", semanticConfig: { checkType: "commit-mesage" } },
        "semanticConfig/checkType",
        /Did you mean "commit-message"/,
      ],
      [
        "a checkType that nobody can judge",
        { type: "semantic", semanticConfig: { checkType: "tone" } },
        "semanticConfig/checkType",
        /must be one of "commit-message"/,
      ],
    ] as const
  ).map(([name, validator, key, says]): Row => ({
    code: "CHECK-TYPE",
    name,
    changes: judgedBy(validator),
    at: `steps_registry.json ${V}/${key}`,
    says,
  })),
  ...(
    [
      ["PATH", "/tmp", /changes which programs run/],
      ["HOME", "/tmp", /changes which programs run/],
      ["IFS", "x", /changes which programs run/],
      ["ENV", "x", /changes which programs run/],
      ["BASH_ENV", "x", /changes which programs run/],
      ["LD_PRELOAD", "x", /changes which programs run/],
      ["DYLD_INSERT_LIBRARIES", "x", /changes which programs run/],
      ["GLIBC_TUNABLES", "x", /changes which programs run/],
      ["GCONV_PATH", "x", /changes which programs run/],
      ["NODE_OPTIONS", "x", /changes which programs run/],
      ["GIT_DIR", "x", /changes which programs run/],
      ["LOCKSTEP_TREE", "x", /changes which programs run/],
      ["a-b", "x", /only contain letters, digits and _/],
      ["1", "x", /only contain letters, digits and _/],
      ["é", "x", /only contain letters, digits and _/],
      ["", "x", /only contain letters, digits and _/],
      ["key", "a\0b", /NUL/],
      ["key", "x".repeat(200_000), /longer than/],
    ] as const
  ).map(([key, value, says]): Row => ({
    code: "CHECK-PARAM",
    name: `${JSON.stringify(key)} with ${JSON.stringify(value.slice(0, 10))}`,
    changes: running("npm test", { [key]: value }),
    at: `steps_registry.json ${CONDITION}/params/${key}`,
    step: "closure.issue",
    says,
  })),
  {
    code: "CHECK-VALUE",
    name: "a value that nobody gives",
    changes: running('npm test -- "${suit}"', { suite: "unit" }),
    at: `steps_registry.json ${CONDITION}`,
    step: "closure.issue",
    says: /\$\{suit\}.*Did you mean "suite"/,
  },
  {
    code: "CHECK-VALUE",
    name: "a value in single quotes",
    changes: running("echo \"it's\" # isn't\ngrep -q '${word}' a.md", { word: "x" }),
    at: `steps_registry.json ${V}/command`,
    says: /\$\{word\}.*single quotes/,
  },
  {
    code: "CHECK-VALUE",
    severity: "error",
    name: "a value for a path that nobody gives",
    changes: judgedBy({ type: "file", path: "out/${HOME}.md" }),
    at: `steps_registry.json ${CONDITION}`,
    says: /\$\{HOME\}/,
  },
  {
    code: "CHECK-SUCCESS",
    name: "unknown successWhen",
    changes: { "registry /validators/git-clean/successWhen": "exitCode:zero" },
    at: "steps_registry.json /validators/git-clean/successWhen",
    step: "closure.issue",
  },
  {
    code: "CHECK-SUCCESS",
    name: "broken regex",
    changes: { "registry /validators/git-clean/successWhen": "matches:a/([" },
    at: "steps_registry.json /validators/git-clean/successWhen",
    says: /^The regular expression a\/\(\[ in successWhen of the validator "git-clean" is not valid: Unterminated character class\.$/,
  },
  {
    code: "CHECK-SUCCESS",
    name: "a rule for regexes without one",
    changes: { "registry /validators/git-clean/successWhen": "matches:" },
    at: "steps_registry.json /validators/git-clean/successWhen",
    says: /is not a valid success rule/,
  },
  {
    code: "CHECK-EXTRACTOR",
    name: "unknown extractor",
    changes: { "registry /validators/git-clean/extractParams/changedFiles": "parseChangedFile" },
    at: "steps_registry.json /validators/git-clean/extractParams/changedFiles",
    says: /Did you mean "parseChangedFiles"/,
  },
  {
    code: "CHECK-EXTRACTOR",
    severity: "warning",
    name: "unknown extractor of an unused validator",
    changes: {
      "registry /validators/other": {
        type: "command",
        command: "ls",
        successWhen: "empty",
        failurePattern: "git-dirty",
        extractParams: { x: "y" },
      },
    },
    at: "steps_registry.json /validators/other/extractParams/x",
  },
  {
    code: "CHECK-CANNOT-FAIL",
    name: "|| true",
    changes: {
      "registry /validators/git-clean/successWhen": "exitCode:0",
      "registry /validators/git-clean/command": "npm test || true",
    },
    at: "steps_registry.json /validators/git-clean/command",
  },
  {
    code: "CHECK-CANNOT-FAIL",
    name: "| tee",
    changes: {
      "registry /validators/git-clean/successWhen": "exitCode:0",
      "registry /validators/git-clean/command": "npm test 2>&1 | tee log.txt",
    },
    at: "steps_registry.json /validators/git-clean/command",
  },
  ...(
    [
      ["; true", "command", "npm test; true", "exitCode:0"],
      ["|| :", "command", "npm test || :", "exitCode:0"],
      ["|| exit 0", "command", "npm test || exit 0", "exitCode:0"],
      ["exit 0 at the end", "command", "npm test\nexit 0", "exitCode:0"],
      ["|| echo", "command", "npm test || echo failed # known", "exitCode:0"],
      ["a pattern for anything", "successWhen", "npm test", "matches:.*"],
    ] as const
  ).map(([name, key, command, successWhen]): Row => ({
    code: "CHECK-CANNOT-FAIL",
    name,
    changes: {
      "registry /validators/git-clean/successWhen": successWhen,
      "registry /validators/git-clean/command": command,
    },
    at: `steps_registry.json /validators/git-clean/${key}`,
  })),
  {
    code: "CHECK-NONE",
    name: "nothing looks at the work",
    changes: {
      "registry /validationSteps": {},
      "registry /validators": {},
      "registry /failurePatterns": {},
    },
    at: `steps_registry.json ${CLOSURE}`,
    witness: ["initial.issue", "continuation.issue", "closure.issue"],
  },
  {
    code: "CHECK-VALIDATOR-UNUSED",
    name: "a validator nobody asks for",
    changes: {
      "registry /validators/tests": {
        type: "command",
        command: "npm test",
        successWhen: "exitCode:0",
        failurePattern: "git-dirty",
      },
    },
    at: "steps_registry.json /validators/tests",
  },
  {
    code: "CHECK-PATTERN-UNUSED",
    name: "a failure pattern nobody names",
    changes: { "registry /failurePatterns/tests-failed": { edition: "failed" } },
    at: "steps_registry.json /failurePatterns/tests-failed",
  },
  {
    code: "CHECK-BORROWED",
    name: "the only validation under another name",
    changes: {
      "registry /validationSteps": {
        "closure.isue": { c2: "retry", c3: "issue", validationConditions: [{ validator: "git-clean" }] },
      },
    },
    at: "steps_registry.json /validationSteps/closure.isue",
    step: "closure.issue",
  },
  {
    code: "CHECK-UNUSED",
    name: "a validation of no closure",
    changes: {
      "registry /validationSteps/closure.isue": {
        c2: "retry",
        c3: "issue",
        validationConditions: [{ validator: "git-clean" }],
      },
    },
    at: "steps_registry.json /validationSteps/closure.isue",
    says: /Did you mean "closure\.issue"/,
  },
];

export const NOT_FOUND: readonly NotFound[] = [
  ...[
    "npm test && true",
    "npm test | grep ok",
    "set -o pipefail; npm test | tee log",
    "true && npm test",
  ].map((command) => ({
    code: "CHECK-CANNOT-FAIL" as const,
    name: command,
    changes: {
      "registry /validators/git-clean/successWhen": "exitCode:0",
      "registry /validators/git-clean/command": command,
    },
  })),
  {
    code: "CHECK-CANNOT-FAIL",
    name: "an anchored pattern",
    changes: { "registry /validators/git-clean/successWhen": "matches:^$" },
  },
  {
    code: "CHECK-NONE",
    name: "an agent that can change nothing",
    changes: {
      "registry /validationSteps": {},
      "registry /validators": {},
      "registry /failurePatterns": {},
      "agent /runner/boundaries": { allowedTools: ["Read"], permissionMode: "plan" },
    },
  },
  ...(
    [
      ["a value that is given", 'npm test -- "${suite}"', { suite: "a" }],
      ["a variable of the environment", 'ls "${HOME}/x" ${CI}', {}],
      ["a default", "ls ${dir:-.}", {}],
      ["a variable of the command", 'for file in *; do test -s "${file}"; done; n=1; echo ${n}', {}],
      ["a variable that is read", 'git diff --name-only | while read -r name; do ls "${name}"; done', {}],
      ["an escaped one", 'echo \\${x} "\\${y}"', {}],
      ["a comment", "ls # ${x}", {}],
      ["an argument", 'sh -c "echo ${1}"', {}],
    ] as const
  ).map(([name, command, params]) => ({
    code: "CHECK-VALUE" as const,
    name,
    changes: running(command, params),
  })),
  {
    code: "CHECK-PARAM",
    name: "a name like a reserved one",
    changes: running('ls "${path}" "${env}" "${Path}"', { path: "a", env: "b", Path: "c", git_dir: "d" }),
  },
  {
    code: "CHECK-TYPE",
    name: "a file, and a commit message",
    changes: {
      ...judgedBy({ type: "file", path: "out/${name}" }, { name: "..a/b" }),
      "registry /validators/said": {
        type: "semantic",
        semanticConfig: { checkType: "commit-message" },
        failurePattern: "git-dirty",
      },
      "registry /validationSteps/closure.issue/validationConditions/1": { validator: "said" },
    },
  },
  {
    code: "CHECK-CANNOT-FAIL",
    name: "a pattern too odd to be tried",
    changes: judgedBy({
      type: "command",
      command: "ls",
      successWhen: "matches:(?:|){60}x|",
    }),
  },
  { code: "CHECK-VALIDATOR-UNUSED", name: "a validator in use", changes: {} },
  { code: "CHECK-UNUSED", name: "checks before the end by the verdict", changes: before({}) },
  { code: "CHECK-PATTERN-UNUSED", name: "a pattern in use", changes: {} },
  {
    code: "FAILURE-NAME",
    name: "a failure prompt of two kinds of checks",
    changes: {
      "registry /validators/there": { type: "file", path: "notes.md", failurePattern: "git-dirty" },
      "registry /validationSteps/closure.issue/validationConditions": [
        { validator: "git-clean" },
        { validator: "there" },
      ],
      [FAILURE_PROMPT]: "{{exitCode}} {{expectedPath}}",
    },
  },
  ...(["FAILURE-NAME", "FAILURE-BLOCK"] as const).flatMap((code) =>
    [
      "{{summary}} {{stdout}} {{stderr}} {{exitCode}} {{command}} {{rootCause}} { x } ${{y",
      "{{#each changedFiles}}{{this.path}}{{#if exitCode}}{{this}}{{else}}{{severity}}{{/if}}{{/each}}",
    ].map((text) => ({ code, name: text, changes: { [FAILURE_PROMPT]: text } })),
  ),
];
