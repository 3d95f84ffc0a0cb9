import assert from "node:assert/strict";
import { test } from "node:test";
import { applyFixes, type FixedFiles } from "../../src/load/fix.ts";
import { tree001, tree002 } from "./documents.ts";
import { mutateText, mutateValue } from "./mutate.ts";
import { filesOf, load, tree, type Tree } from "./world.ts";
import { roundsOf } from "../rounds.ts";
import { random } from "./random.ts";

/** What a mutation can show, it shows in the first few hundred rounds; more forms in the files show more than more rounds. */
const ROUNDS = roundsOf(24_000);
/** Of so many one is mended too. */
const SAMPLE = 60;
const SEED = 20_260_320;

const S = "registry /steps/initial.issue";
/** Forms that the plainest agent does not have: conditions, jumps, sections, fallbacks, actions, checks with values. */
const RICH = tree({
  "prompts/system.md": undefined,
  "agent /runner/flow/prompts/strict": true,
  "agent /description": "Works on issues. {uv-verdict_criteria}",
  "agent /runner/actions": { enabled: true, types: ["note"], handlers: { note: "builtin:log" } },
  "agent /runner/boundaries/allowedTools": ["Read", "Bash(git status)", "mcp__docs__*"],
  "agent /runner/mcpServers": { docs: { command: "docs-server", env: { A: "${A}" } } },
  [`${S}/transitions/next`]: {
    condition: "approach",
    targets: { high: "continuation.issue", default: "initial.issue" },
  },
  [`${S}/structuredGate/allowedIntents`]: ["next", "repeat", "jump"],
  [`${S}/structuredGate/targetField`]: "next_action.target",
  [`${S}/structuredGate/failFast`]: false,
  [`${S}/structuredGate/fallbackIntent`]: "repeat",
  "registry /steps/continuation.issue/inputs": { way: { from: "initial.issue.approach", default: "low" } },
  "registry /steps/section.context": { stepId: "section.context", c2: "section", c3: "context" },
  "registry /validators/there": { type: "file", path: "${name}.md", failurePattern: "git-dirty" },
  "registry /validationSteps/closure.issue/validationConditions": [
    { validator: "git-clean" },
    { validator: "there", params: { name: "notes" } },
  ],
  "schema /initial.issue/properties/analysis/properties/approach": { enum: ["high", "low"] },
  "schema /initial.issue/properties/next_action/properties/action/enum": ["next", "repeat", "jump"],
  "schema /initial.issue/properties/next_action/properties/target": { enum: ["continuation.issue"] },
  "prompts/steps/section/context/f_default.md": "Issue {uv-issue}.",
  "prompts/steps/initial/issue/f_default.md": "Look at {uv-issue}. {uv-section_context}",
});

/** One agent of each dialect, and one with many forms. */
const AGENTS: readonly { readonly name: string; readonly good: Tree }[] = [
  { name: "iterator", good: tree() },
  { name: "iterator", good: RICH },
  { name: "code-improver", good: tree001() },
  { name: "issues", good: tree002() },
];

test(`${ROUNDS} mutations of the good files: never an exception, every problem in full`, async () => {
  const next = random(SEED);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)]!;
  let found = 0;
  let mended = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const { name, good } = AGENTS[round % AGENTS.length]!;
    const json = Object.keys(good).filter((file) => file.endsWith(".json"));
    const changed: { [file: string]: string } = { ...good };
    for (let times = 1 + Math.floor(next() * 3); times > 0; times--) {
      const file = pick(json);
      const text = changed[file]!;
      changed[file] = next() < 0.15 ? mutateText(text, next) : mutateValue(text, next, pick);
    }
    if (next() < 0.1) delete changed[pick(Object.keys(good))];
    found += check(name, changed, round);
    if (round % SAMPLE === 0) mended += await checkMending(name, changed, round);
  }
  assert.ok(found > ROUNDS, `only ${found} problems`);
  assert.ok(mended > ROUNDS / SAMPLE / 10, `only ${mended} mended`);
});

/** Whatever is mended is still JSON, nothing is mended twice, and a second time nothing is left to do. */
async function checkMending(name: string, files: Tree, round: number): Promise<number> {
  const { changes, texts } = await mend(name, files);
  for (const [file, text] of texts) {
    assert.doesNotThrow(
      () => JSON.parse(text.replace(/^\uFEFF/, "")) as unknown,
      `round ${round}: ${file}\n${text}`,
    );
  }
  const again = await mend(name, { ...files, ...Object.fromEntries(texts) });
  assert.deepEqual(again.changes, [], `round ${round}`);
  return changes.length;
}

async function mend(name: string, files: Tree): Promise<FixedFiles> {
  const paths = Object.keys(files);
  return await applyFixes(filesOf(files), ({ read }) => {
    const texts = paths.flatMap((path) => {
      const found = read(path);
      return found.kind === "text" ? [[path, found.text] as const] : [];
    });
    return Promise.resolve(load(Object.fromEntries(texts), name).problems);
  });
}

function check(name: string, files: Tree, round: number): number {
  const { flow, problems } = load(files, name);
  for (const problem of problems) {
    const { code, file, message, fix, why, pointer, line, column } = problem;
    const isFull = code !== "" && file !== "" && message !== "" && fix !== "" && why !== "";
    const isPlaced = (pointer === "" || pointer.startsWith("/")) && line >= 1 && column >= 1;
    if (!isFull || !isPlaced) assert.fail(`round ${round}: ${JSON.stringify(problem)}`);
  }
  if (flow === null)
    assert.ok(
      problems.some((problem) => problem.severity === "error"),
      `round ${round}: no flow and no error`,
    );
  else {
    if (round % SAMPLE === 0) JSON.stringify(flow);
    const isSound = problems.every((problem) => problem.severity !== "error");
    if (isSound) assert.ok(Object.hasOwn(flow.steps, flow.entry), `round ${round}: no error, yet no entry`);
  }
  return problems.length;
}
