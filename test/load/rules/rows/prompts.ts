/** Rows about prompts and their variables. */
import { CLOSURE, FAILURE_PROMPT, S, asked, before, polled, type NotFound, type Row } from "./row.ts";

const LONG = "x".repeat(1_000_001);

export const FOUND: readonly Row[] = [
  ...(
    [
      ["prompts/system.md", "", null],
      ["prompts/system.md", " \n\t\n", null],
      ["prompts/steps/continuation/issue/f_default.md", "---\ntitle: x\n---\n\n", "continuation.issue"],
      [FAILURE_PROMPT, "", "closure.issue"],
    ] as const
  ).map(([file, text, step]): Row => ({
    code: "PROMPT-EMPTY",
    name: `${file} ${JSON.stringify(text)}`,
    changes: { [file]: text },
    at: `${file} `,
    step,
    place: [1, 1],
    says: /holds no prompt: it is empty, or has only front matter/,
  })),
  ...(
    [
      ["prompts/system.md", null],
      ["prompts/steps/initial/issue/f_default.md", "initial.issue"],
      [FAILURE_PROMPT, "closure.issue"],
    ] as const
  ).map(([file, step]): Row => ({
    code: "PROMPT-SIZE",
    name: file,
    changes: { [file]: LONG },
    at: `${file} `,
    step,
    place: [1, 1],
    says: /a prompt of 1000001 characters/,
  })),
  {
    code: "PR-RESOLVE-003",
    name: "a path that reads no parameter",
    changes: { "agent /runner/verdict": polled({ path: "{uv-isue}.md", targetState: "exists" }) },
    at: "agent.json /runner/verdict/config/path",
    says: /Did you mean "issue"/,
  },
  {
    code: "UV-OPTIONAL",
    name: "an address that reads an optional parameter",
    changes: {
      "agent /parameters/item": { type: "string", description: "x", cli: "--item" },
      "agent /runner/verdict": asked("https://x.test/{uv-item}"),
    },
    at: "agent.json /runner/verdict/config/url",
  },
  {
    code: "PR-EDITION",
    name: "before the end by the verdict",
    changes: {
      ...before({ c2: "other" }),
      "prompts/steps/retry/issue/f_failed_git-dirty.md": undefined,
    },
    at: "steps_registry.json /validationSteps/closure.iteration",
    says: /other\/issue\/f_failed_git-dirty\.md.*initial\/issue\/f_failed_git-dirty\.md/,
  },
  {
    code: "PR-SYSTEM",
    name: "no system prompt",
    changes: { "prompts/system.md": undefined },
    at: "agent.json /runner/flow/systemPromptPath",
  },
  {
    code: "PR-RESOLVE-005",
    severity: "warning",
    name: "unknown placeholder in the system prompt",
    changes: { "prompts/system.md": "---\ntitle: x\n---\n\nYou work on\n  {uv-issue}." },
    at: "prompts/system.md ",
    place: [6, 3],
  },
  {
    code: "PR-RESOLVE-005",
    severity: "warning",
    name: "unknown placeholder in the description that stands in for a system prompt",
    changes: {
      "prompts/system.md": undefined,
      "agent /runner/flow/prompts/strict": true,
      "agent /description": "Works on {uv-issue}",
    },
    at: "agent.json /description",
    says: /^The description of the agent reads \{uv-issue\}/,
  },
  // Prompts and variables.
  {
    code: "UV-FRONT-MATTER",
    name: "another list in the front matter",
    changes: {
      "prompts/steps/initial/issue/f_default.md":
        "---\ntitle: x\nuvVariables:\n  - uv-topic\n---\nLook at issue {uv-issue}.",
    },
    at: "prompts/steps/initial/issue/f_default.md ",
    step: "initial.issue",
    says: /"topic" only in the front matter, "issue" only in the registry/,
  },
  {
    code: "PR-INTENT",
    name: "an example answer with a word that is no intent",
    changes: {
      "prompts/steps/initial/issue/f_default.md":
        'Issue {uv-issue}.\n{ "next_action": { "reason": "", "action": "next|proceed" } }',
    },
    at: "prompts/steps/initial/issue/f_default.md ",
    says: /"proceed", which does not exist/,
  },
  {
    code: "PR-INTENT",
    name: "an intent that this step does not allow",
    changes: {
      "prompts/steps/initial/issue/f_default.md": "Issue {uv-issue}: give the action `next` or `closing`.",
    },
    at: "prompts/steps/initial/issue/f_default.md ",
    says: /"closing", which the step "initial\.issue" does not allow/,
  },
  {
    code: "PR-C3L-004",
    name: "no prompt file",
    changes: { "prompts/steps/initial/issue/f_default.md": undefined },
    at: `steps_registry.json ${S}`,
    says: /\.agent\/iterator\/prompts\/steps\/initial\/issue\/f_default\.md.*No fallback prompt found for key: "issue_initial_default" \(step: initial\.issue\)/,
  },
  {
    code: "PR-C3L-004",
    name: "no prompt file, and no built-in prompt is wanted",
    changes: {
      "prompts/steps/initial/issue/f_default.md": undefined,
      [`registry ${S}/fallbackKey`]: "initial_issue",
      "agent /runner/flow/prompts/strict": true,
    },
    at: `steps_registry.json ${S}`,
    says: /"initial_issue" is not used: runner\.flow\.prompts\.strict forbids it/,
  },
  {
    code: "PR-C3L-004",
    name: "a place that leads out of the project, whatever the fallbackKey",
    changes: { [`registry ${S}/c3`]: "../../x", [`registry ${S}/fallbackKey`]: "initial_issue" },
    at: `steps_registry.json ${S}`,
    says: /refused: c3 .* is not a plain name.*the location cannot be read/,
  },
  {
    code: "PR-C3L-004",
    name: "no text for a section that is taken in",
    changes: {
      "registry /steps/section.context": { stepId: "section.context", c2: "section", c3: "context" },
      "prompts/steps/initial/issue/f_default.md": "{uv-issue} {uv-section_context}",
    },
    at: "steps_registry.json /steps/section.context",
    step: "initial.issue",
    says: /section\/context\/f_default\.md/,
  },
  {
    code: "PROMPT-FALLBACK-USED",
    name: "a built-in prompt by fallbackKey",
    changes: {
      "prompts/steps/initial/issue/f_default.md": undefined,
      [`registry ${S}/fallbackKey`]: "initial_issue",
    },
    at: `steps_registry.json ${S}`,
    says: /"initial_issue" is used instead\. Tried: \.agent\/iterator\/prompts\/steps\/initial\/issue\/f_default\.md\./,
  },
  {
    code: "PROMPT-FALLBACK-USED",
    name: "a built-in prompt by verdict type",
    changes: { "prompts/steps/closure/issue/f_default.md": undefined },
    at: `steps_registry.json ${CLOSURE}`,
    says: /"detect:graph" is used instead/,
  },
  {
    code: "PROMPT-FALLBACK-USED",
    name: "a built-in system prompt",
    changes: {
      "prompts/system.md": undefined,
      "registry /steps/system": { stepId: "system", c2: "system", c3: "prompt", fallbackKey: "system" },
    },
    at: "agent.json /runner/flow/systemPromptPath",
    says: /"system" is used instead/,
  },
  {
    code: "SECTION-UNUSED",
    name: "a section that no prompt takes in",
    changes: {
      "registry /steps/section.context": { stepId: "section.context", c2: "section", c3: "context" },
    },
    at: "steps_registry.json /steps/section.context",
    says: /\{uv-section_context\}|"section\.context"/,
  },
  {
    code: "PR-RESOLVE-005",
    name: "a section that reads what its reader has not",
    changes: {
      "registry /steps/section.context": { stepId: "section.context", c2: "section", c3: "context" },
      "prompts/steps/section/context/f_default.md": "So far:\n{uv-isue}",
      "prompts/steps/initial/issue/f_default.md": "{uv-issue} {uv-section_context}",
    },
    at: "section/context/f_default.md ",
    place: [2, 1],
    step: "initial.issue",
    says: /no supplier in the step "initial\.issue".*Did you mean "issue"/,
  },
  {
    code: "PR-RESOLVE-005",
    name: "a section that takes in another",
    changes: {
      "registry /steps/section.a": { stepId: "section.a", c2: "section", c3: "a" },
      "registry /steps/section.b": { stepId: "section.b", c2: "section", c3: "b" },
      "prompts/steps/section/a/f_default.md": "{uv-section_b}",
      "prompts/steps/section/b/f_default.md": "x",
      "prompts/steps/initial/issue/f_default.md": "{uv-issue} {uv-section_a} {uv-section_b}",
    },
    at: "section/a/f_default.md ",
    step: "initial.issue",
    says: /cannot include another section/,
  },
  {
    code: "STDIN-UNDECLARED",
    name: "a prompt that reads what its step does not ask for",
    changes: { "prompts/steps/initial/issue/f_default.md": "{uv-issue} {input_text}" },
    at: "initial/issue/f_default.md ",
    place: [1, 12],
    step: "initial.issue",
  },
  {
    code: "STDIN-UNREAD",
    name: "a step that asks for what its prompt does not read",
    changes: { [`registry ${S}/usesStdin`]: true },
    at: `steps_registry.json ${S}/usesStdin`,
  },
  {
    code: "C3L-PATTERN",
    name: "a c3 that climpt would refuse",
    changes: {
      ".agent/climpt/config/iterator-steps-app.yml":
        'working_dir: ".agent/iterator"\napp_prompt:\n  base_dir: "prompts/steps"\n',
      ".agent/climpt/config/iterator-steps-user.yml":
        'params:\n  two:\n    directiveType:\n      pattern: "^(initial|continuation|closure|retry)$"\n    layerType:\n      pattern: "^(project|polling)$" # c3\n',
    },
    at: `steps_registry.json ${S}/c3`,
    says: /"issue", which the pattern \^\(project\|polling\)\$ in \.agent\/climpt\/config\/iterator-steps-user\.yml/,
  },
  {
    code: "FALLBACK-KEY",
    name: "a key that is in no catalogue, beside a missing prompt",
    changes: { "prompts/steps/initial/issue/f_default.md": undefined },
    at: `steps_registry.json ${S}/fallbackKey`,
    says: /"issue_initial_default"/,
  },
  {
    code: "PR-EDITION",
    name: "no failure prompt",
    changes: { "prompts/steps/retry/issue/f_failed_git-dirty.md": undefined },
    at: `steps_registry.json ${CLOSURE}`,
    says: /retry\/issue\/f_failed_git-dirty\.md.*closure\/issue\/f_failed_git-dirty\.md.*initial\/issue\/f_failed_git-dirty\.md.*retry\/issue\/f_failed\.md/,
  },
  {
    code: "PR-RESOLVE-003",
    name: "a variable nobody supplies",
    changes: { [`registry ${S}/uvVariables`]: ["issue_number"] },
    at: `steps_registry.json ${S}/uvVariables/0`,
    says: /Did you mean "issue"/,
  },
  {
    code: "PR-RESOLVE-003",
    name: "a keyword without verdictKeyword",
    changes: { [`registry ${S}/uvVariables`]: ["issue", "completion_keyword"] },
    at: `steps_registry.json ${S}/uvVariables/1`,
  },
  {
    code: "PR-RESOLVE-003",
    severity: "warning",
    name: "a variable of another runtime",
    changes: { [`registry ${S}/uvVariables`]: ["issue", "mood"], "registry /runtimeUvVariables": ["mood"] },
    at: `steps_registry.json ${S}/uvVariables/1`,
  },
  {
    code: "PR-RESOLVE-005",
    name: "an undeclared placeholder",
    changes: { "prompts/steps/initial/issue/f_default.md": "\r\nLook\r\nat {uv-isue} and {uv-isue}." },
    at: "initial/issue/f_default.md ",
    place: [3, 4],
    step: "initial.issue",
    says: /Did you mean "issue"/,
  },
  {
    code: "UV-EARLY",
    name: "completed_iterations in the first step",
    changes: { [`registry ${S}/uvVariables`]: ["issue", "completed_iterations"] },
    at: `steps_registry.json ${S}/uvVariables/1`,
  },
  {
    code: "UV-EARLY",
    severity: "warning",
    name: "previous_summary in the first step",
    changes: { [`registry ${S}/uvVariables`]: ["issue", "previous_summary"] },
    at: `steps_registry.json ${S}/uvVariables/1`,
  },
  {
    code: "UV-OPTIONAL",
    name: "an optional parameter",
    changes: {
      "agent /parameters/topic": { type: "string", description: "x", cli: "--topic" },
      [`registry ${S}/uvVariables`]: ["issue", "topic"],
    },
    at: `steps_registry.json ${S}/uvVariables/1`,
  },
  {
    code: "UV-UNDECLARED",
    name: "a parameter that is read but not declared",
    changes: { "prompts/steps/initial/issue/f_default.md": "{uv-issue} {uv-iterateMax}" },
    at: "initial/issue/f_default.md ",
    place: [1, 12],
    step: "initial.issue",
  },
  {
    code: "UV-UNDECLARED",
    name: "the words of the prompt in its front matter too",
    changes: {
      "prompts/steps/initial/issue/f_default.md":
        "---\nabout: {uv-issue} {uv-iterateMax}\n---\n\n{uv-issue} {uv-iterateMax}\n",
    },
    at: "initial/issue/f_default.md ",
    place: [5, 12],
    step: "initial.issue",
  },
  {
    code: "UV-PLAIN",
    name: "a placeholder without uv-",
    changes: { "prompts/steps/initial/issue/f_default.md": "{{x}} ${y} {issue} {input_text}" },
    at: "initial/issue/f_default.md ",
    place: [1, 12],
    step: "initial.issue",
    says: /has \{issue\}, which/,
  },
];

export const NOT_FOUND: readonly NotFound[] = [
  {
    code: "UV-FRONT-MATTER",
    name: "the same list, in brackets",
    changes: {
      "prompts/steps/initial/issue/f_default.md": '---\nuvVariables: ["uv-issue"]\n---\n{uv-issue}',
    },
  },
  {
    code: "UV-FRONT-MATTER",
    name: "front matter without a list",
    changes: { "prompts/steps/initial/issue/f_default.md": "---\ntitle: x\n---\n{uv-issue}" },
  },
  ...[
    "Take action: call `closing` time on it.",
    'The action "commit" of the workflow; the button "next".',
    "Never give the intent `closing` here.",
    "Decide the action: `next`, `repeat`, or `abort`.",
    'Write {"action": "progress", "issue": 1} when you start.',
    'Answer {"next_action": {"action": "continue"}}, where `intent` is <your intent>.',
  ].map((text) => ({
    code: "PR-INTENT" as const,
    name: text,
    changes: { "prompts/steps/initial/issue/f_default.md": `{uv-issue} ${text}` },
  })),
  { code: "PROMPT-FALLBACK-USED", name: "every file is there", changes: {} },
  {
    code: "PROMPT-FALLBACK-USED",
    name: "built-in prompts are forbidden",
    changes: {
      "prompts/steps/closure/issue/f_default.md": undefined,
      "agent /runner/flow/prompts/strict": true,
    },
  },
  {
    code: "SECTION-UNUSED",
    name: "a section that a prompt takes in",
    changes: {
      "registry /steps/section.context": { stepId: "section.context", c2: "section", c3: "context" },
      "prompts/steps/section/context/f_default.md": "x",
      "prompts/steps/initial/issue/f_default.md": "{uv-issue} {uv-section_context}",
    },
  },
  ...(["STDIN-UNDECLARED", "STDIN-UNREAD"] as const).flatMap((code) => [
    { code, name: "nothing is piped in", changes: {} },
    {
      code,
      name: "declared and read",
      changes: {
        [`registry ${S}/usesStdin`]: true,
        "prompts/steps/initial/issue/f_default.md": "{uv-issue} {input_text}",
      },
    },
    {
      code,
      name: "declared, and read through a section",
      changes: {
        [`registry ${S}/usesStdin`]: true,
        "registry /steps/section.given": { stepId: "section.given", c2: "section", c3: "given" },
        "prompts/steps/section/given/f_default.md": "{input_text}",
        "prompts/steps/initial/issue/f_default.md": "{uv-issue} {uv-section_given}",
      },
    },
  ]),
  ...[
    ["no pair", {}],
    ["only one of the pair", { user: "^nothing$" }],
    ["both fit", { app: "x", user: "^(issue)$" }],
    ["an open pattern", { app: "x", user: "^[a-z-]+$" }],
    ["a pattern that could take for ever", { app: "x", user: "^(a+)+$" }],
    ["no pattern at all", { app: "x", user: "([" }],
  ].map(([name, pair]) => {
    const { app, user } = pair as { readonly app?: string; readonly user?: string };
    const folder = ".agent/climpt/config/iterator-steps";
    return {
      code: "C3L-PATTERN" as const,
      name: name as string,
      changes: {
        ...(app !== undefined && { [`${folder}-app.yml`]: "working_dir: .agent/iterator\n" }),
        ...(user !== undefined && {
          [`${folder}-user.yml`]: `params:\n  two:\n    layerType:\n      pattern: '${user}'\n`,
        }),
      },
    };
  }),
  {
    code: "PROMPT-SIZE",
    name: "a long prompt",
    changes: { "prompts/system.md": LONG.slice(1) },
  },
  { code: "PROMPT-EMPTY", name: "a prompt of one character", changes: { "prompts/system.md": "." } },
];
