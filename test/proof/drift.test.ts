/** Recorded tests say what their responses were given to: a change of the flow is reported at those that it reaches only. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";
import { asTest } from "../../src/cli/commands/export-test.ts";
import type { FlowTest, HeardPart } from "../../src/flow/flow-test.ts";
import type { Flow, Prompt, Step } from "../../src/flow/flow.ts";
import { NO_SETTINGS, type DriftRule } from "../../src/flow/test-settings.ts";
import { readTestFile } from "../../src/load/tests.ts";
import { firstChanges, heardPage, readHeardPage } from "../../src/proof/drift-page.ts";
import { heardReplies, type HeardReply } from "../../src/proof/drift.ts";
import { exportRun, journalOf, parseBundle } from "../../src/run/records/bundle.ts";
import { createFiles } from "../../src/run/world/files.ts";
import { prepareFlow, runTest } from "../../src/testing/flow-tests.ts";

const HEAD = { lockstep: "Lockstep", schemas: () => null };

const FOLDER = join(import.meta.dirname, "../fixtures/journals");

/** The run as a test that was written and read again, and the flow that it ended with. */
async function cassette(file: string, redact: boolean) {
  const whole = parseBundle(readFileSync(join(FOLDER, file), "utf8"), file);
  const { bundle } = await exportRun(await journalOf(whole), whole.run.id, { redact });
  const { text, heard: page } = await asTest(bundle, "test", HEAD);
  const newest = bundle.entries.findLast(({ event }) => event.type === "run.adopted")?.event;
  const flow = bundle.flows[newest?.type === "run.adopted" ? newest.flow : bundle.run.flow]!;
  const findings: Parameters<typeof readTestFile>[3] = [];
  const files = { ...createFiles(FOLDER), read: () => ({ kind: "text", text }) as const };
  const [read] = readTestFile(flow, files, "recorded.yaml", findings);
  assert.deepEqual(findings, []);
  return { test: read!, flow, page };
}

async function driftsOf(flow: Flow, recorded: FlowTest) {
  const { drifted, outcomes, status } = await runTest(await prepareFlow(flow), recorded);
  const drifts = drifted.drifts.map(({ reply, parts }) => [reply, ...parts] as const);
  return { status, compared: drifted.compared, drifts, heard: heardReplies(outcomes!.moments) };
}

function withStep(flow: Flow, id: string, change: (step: Step) => Partial<Step>): Flow {
  const step = flow.steps[id]!;
  return { ...flow, steps: { ...flow.steps, [id]: { ...step, ...change(step) } } };
}

const longer = (prompt: Prompt): Prompt => ({ ...prompt, text: `${prompt.text}\nBe brief.` });
const numbersOf = (heard: readonly HeardReply[], isMeant: (one: HeardReply) => boolean) =>
  heard.filter(isMeant).map(({ reply }) => reply + 1);

const RECORDED = globSync(join(FOLDER, "*.json")).map((path) => basename(path));

for (const file of RECORDED)
  for (const redact of [false, true])
    test(`${file}${redact ? ", redacted" : ""}: a changed prompt is reported where it is said, and nowhere else`, async () => {
      const { test: recorded, flow, page } = await cassette(file, redact);
      const same = await driftsOf(flow, recorded);
      const asked = recorded.script.filter(({ step = "" }) => flow.steps[step]?.by.kind === "model").length;
      assert.deepEqual([same.status, same.compared, same.drifts], ["passed", asked, []]);
      assert.equal(page === null, redact);
      for (const id of Object.keys(flow.steps)) {
        if (flow.steps[id]!.prompt.file === null) continue;
        const changed = await driftsOf(
          withStep(flow, id, ({ prompt }) => ({ prompt: longer(prompt) })),
          recorded,
        );
        const said = numbersOf(
          same.heard,
          ({ step, texts }) => step === id && texts.prompt.includes(flow.steps[id]!.prompt.text),
        );
        assert.equal(changed.status, "passed");
        assert.deepEqual(
          changed.drifts,
          said.map((reply) => [reply, "prompt"]),
        );
      }
    });

type Change = (flow: Flow) => Flow;
const CHANGES: readonly [what: string, part: HeardPart, change: Change, replies: readonly number[]][] = [
  [
    "tools",
    "tools",
    (flow) => withStep(flow, "closure.guide", () => ({ tools: { allow: ["Read"], mode: "default" } })),
    [3, 6, 9],
  ],
  [
    "a schema",
    "schema",
    (flow) =>
      withStep(flow, "closure.guide", ({ answer }) =>
        answer.kind === "object" && answer.schema.kind === "schema"
          ? {
              answer: {
                ...answer,
                schema: { ...answer.schema, schema: { ...answer.schema.schema, title: "T" } },
              },
            }
          : {},
      ),
    [3, 6, 9],
  ],
  [
    "a retry prompt",
    "prompt",
    (flow) =>
      withStep(flow, "closure.guide", ({ guard }) => ({
        guard: {
          ...guard!,
          checks: guard!.checks.map(({ check, edition }) => ({ check, edition: longer(edition) })),
        },
      })),
    [4, 7],
  ],
  [
    "the system prompt",
    "system",
    (flow) => ({ ...flow, system: longer(flow.system) }),
    [1, 2, 3, 4, 5, 6, 7, 8, 9],
  ],
];
for (const [what, part, change, replies] of CHANGES)
  test(`a change of ${what} is drift of ${part}`, async () => {
    const { test: recorded, flow } = await cassette("closure-retry.json", false);
    const { drifts } = await driftsOf(change(flow), recorded);
    assert.deepEqual(
      drifts,
      replies.map((reply) => [reply, part]),
    );
  });

test("other values in the same prompt are drift of words", async () => {
  const { test: recorded, flow } = await cassette("closure-retry.json", false);
  const same = await driftsOf(flow, recorded);
  const [last] = recorded.script.slice(-1);
  assert.deepEqual(same.drifts, []);
  // The failure that the check reports stands in the retry prompt.
  const checks = Object.fromEntries(
    Object.keys(recorded.around.checks).map((name) => [
      name,
      [{ kind: "fail", summary: "other" } as const, { kind: "pass" } as const],
    ]),
  );
  const other = await driftsOf(flow, { ...recorded, around: { ...recorded.around, checks } });
  assert.ok(last !== undefined && other.drifts.length > 0);
  for (const [, ...parts] of other.drifts) assert.deepEqual(parts, ["words"]);
});

const RULES: readonly [rule: DriftRule | undefined, status: string, replies: readonly number[]][] = [
  [undefined, "passed", [3, 6, 9]],
  ["warn", "passed", [3, 6, 9]],
  ["ignore", "passed", []],
  ["fail", "failed", [3, 6, 9]],
];
for (const [rule, status, replies] of RULES)
  test(`drift of a prompt with the rule ${rule ?? "that holds without one"}`, async () => {
    const { test: recorded, flow } = await cassette("closure-retry.json", false);
    const changed = withStep(flow, "closure.guide", ({ prompt }) => ({ prompt: longer(prompt) }));
    const drift = rule === undefined ? {} : { prompt: rule, tools: "fail" as const };
    const result = await runTest(await prepareFlow(changed), recorded, {
      settings: { ...NO_SETTINGS, drift },
    });
    assert.equal(result.status, status);
    assert.deepEqual(
      result.drifted.drifts.map(({ reply }) => reply),
      replies,
    );
    assert.deepEqual(
      result.unmet.map(({ key, at, line }) => [key, at, line]),
      status === "failed" ? replies.map((at) => ["drift", "prompt", recorded.script[at - 1]!.line]) : [],
    );
  });

test("what was said is read back from its page, whatever is in it", () => {
  const heard = (reply: number, system: string, words: string): HeardReply => ({
    reply,
    step: "a",
    visit: 1,
    texts: { system, prompt: "", schema: "", tools: "", words },
  });
  const all = [
    heard(0, "", "plain"),
    heard(1, "Be good.", "```text\nfence\n```\n## Response 9: x #1\n\nSystem:\n\n````"),
    heard(2, "Be good.", "System:\n\nlast\n"),
  ];
  const page = readHeardPage(heardPage("a test", all));
  assert.deepEqual(
    [...page].map(([at, { system, words }]) => [at - 1, system, words]),
    all.map(({ reply, texts: { system, words } }) => [reply, system, words.replace(/\n$/, "")]),
  );
  assert.deepEqual(firstChanges(page.get(1), { system: "", words: "simple" }), [["- plain", "+ simple"]]);
  assert.deepEqual(firstChanges(page.get(3), { system: "Be better.", words: "System:\n\nfirst\n" }), [
    ["- Be good.", "+ Be better."],
    ["  System:", "  ", "- last", "+ first"],
  ]);
  assert.deepEqual(firstChanges(page.get(1), { system: "", words: "plain\n" }), []);
  assert.deepEqual(firstChanges(page.get(9), { system: "", words: "" }), []);
  assert.deepEqual([...readHeardPage("## Response 1: a\n```text\nno end")], []);
});
