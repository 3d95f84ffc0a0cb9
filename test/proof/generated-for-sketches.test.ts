/** What the search finds in small flows, each about one thing that it must see, and that its tests go the same way when they run. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { prepare } from "../../src/engine/schema/prepared.ts";
import type { Flow, Step } from "../../src/flow/flow.ts";
import type { JsonSchema } from "../../src/flow/json.ts";
import { elementsOf } from "../../src/proof/elements.ts";
import { search } from "../../src/proof/search.ts";
import { suiteOf } from "../../src/proof/suite.ts";
import { runTest } from "../../src/testing/flow-tests.ts";
import { runInMemory, type Ran } from "../../src/testing/ground.ts";
import { planRuns, runDrafts } from "../../src/testing/run-drafts.ts";
import { inSlices } from "../../src/testing/slices.ts";
import { generate, type Generated } from "../../src/testing/generate.ts";
import {
  actionSchema,
  sketchCheck,
  sketchFlow,
  sketchPrompt,
  type StepSketch,
} from "../../src/testing/flows.ts";

async function generated(flow: Flow): Promise<Generated & { readonly covered: readonly string[] }> {
  const made = await generate(await prepare(flow), new Map());
  assert.deepEqual(
    made.astray.map(({ test: { name }, why }) => `${name}: ${why}`),
    [],
    "every generated test goes the way that the search went",
  );
  return { ...made, covered: made.tests.flatMap(({ covers }) => covers) };
}

const missing = ({ missing: all }: Generated) => all.map(({ element }) => element.id);

function flowWith(step: Partial<Step>, sketch: Partial<StepSketch> = {}): Flow {
  const flow = sketchFlow({ work: { edges: { next: null }, ...sketch } });
  return { ...flow, steps: { work: { ...flow.steps.work!, ...step } } };
}

test("each rule of allowedTools is tried with a call that the gate of a run allows, and one call is denied", async () => {
  const cases: readonly {
    readonly tools: Step["tools"];
    readonly kind?: Step["kind"];
    readonly shown: readonly string[];
    readonly absent?: readonly string[];
  }[] = [
    { tools: { allow: ["*"], mode: "acceptEdits" }, shown: ["*"] },
    { tools: { allow: ["*"], mode: "bypassPermissions" }, kind: "close", shown: ["*"] },
    {
      tools: { allow: ["Bash(git status:*)", "Bash(npm run *)", "Bash(ls)"], mode: "acceptEdits" },
      shown: ["Bash(git status:*)", "Bash(npm run *)", "Bash(ls)"],
    },
    { tools: { allow: ["mcp__notes__*", "Read"], mode: "acceptEdits" }, shown: ["mcp__notes__*", "Read"] },
    { tools: { allow: ["Read", "Write"], mode: "plan" }, shown: ["Read"], absent: ["Write"] },
    {
      tools: { allow: ["Read", "githubIssueClose"], mode: "acceptEdits" },
      shown: ["Read"],
      absent: ["githubIssueClose"],
    },
    {
      tools: { allow: ["Read", "githubIssueClose"], mode: "acceptEdits" },
      kind: "close",
      shown: ["Read", "githubIssueClose"],
    },
  ];
  for (const { tools, kind = "work", shown, absent = [] } of cases) {
    const made = await generated(flowWith({ tools, kind }));
    const about = `${tools.allow.join(" ")} in a ${kind} step with ${tools.mode}`;
    for (const rule of shown)
      assert.ok(made.covered.includes(`work may call ${rule}`), `${rule} of ${about}`);
    assert.ok(made.covered.includes("work is denied a call"), about);
    assert.deepEqual(missing(made), [], about);
    for (const rule of absent) assert.ok(!made.covered.includes(`work may call ${rule}`), about);
  }
});

test("what a step hands on is shown present and absent, wherever its schema leaves the choice", async () => {
  const schemaWith = (properties: JsonSchema, required: readonly string[] = []): JsonSchema => {
    const plain = actionSchema(["next"]) as { readonly properties: JsonSchema };
    return {
      ...plain,
      required: ["next_action", ...required],
      properties: { ...plain.properties, ...properties },
    };
  };
  const found = {
    type: "object",
    properties: { items: { type: "array", items: { type: "string" } } },
  } as const;
  const cases: readonly {
    readonly schema: JsonSchema;
    readonly covered: readonly string[];
    readonly missing: readonly string[];
  }[] = [
    { schema: schemaWith({ found }), covered: ["present", "absent"], missing: [] },
    { schema: schemaWith({ found }, ["found"]), covered: ["present", "absent"], missing: [] },
    {
      schema: schemaWith({ found: { ...found, required: ["items"] } }, ["found"]),
      covered: ["present"],
      missing: [],
    },
    // Left out as a whole.
    {
      schema: schemaWith({ found: { ...found, required: ["items"] } }),
      covered: ["present", "absent"],
      missing: [],
    },
    // What is said of `found` elsewhere leaves no room for members.
    {
      schema: schemaWith({ found: { type: "string", enum: ["yes", "no"] } }),
      covered: ["absent"],
      missing: ["present"],
    },
    // The usual answer holds it, and another may leave it out.
    {
      schema: {
        ...schemaWith({ found, verdict: { type: "string", enum: ["more", "done"] } }, ["verdict"]),
        if: { properties: { verdict: { const: "more" } } },
        then: { required: ["found"], properties: { found: { required: ["items"] } } },
      },
      covered: ["present", "absent"],
      missing: [],
    },
  ];
  for (const { schema, covered, missing: lacking } of cases) {
    const made = await generated(flowWith({}, { schema, handoff: ["found.items"] }));
    const about = JSON.stringify(schema);
    const data = made.covered.flatMap((id) => id.split("work hands on items: ").slice(1));
    assert.deepEqual(new Set(data), new Set(covered), about);
    assert.deepEqual(
      missing(made),
      lacking.map((how) => `work hands on items: ${how}`),
      about,
    );
  }
});

test("a failed check leads back only to steps that a run can come to", async () => {
  const made = await generated(
    sketchFlow(
      {
        work: { edges: { handoff: "closure" } },
        closure: {
          edges: { closing: null },
          guard: {
            on: "closing",
            checks: [{ check: "clean", edition: sketchPrompt("Clean up.") }],
            onFailure: "retry",
            maxFailures: 2,
            back: { kind: "caller" },
          },
        },
        // An entry of another mode: it leads to the closure, and nothing leads to it.
        elsewhere: { edges: { handoff: "closure" } },
      },
      { checks: { clean: sketchCheck("clean", "true") } },
    ),
  );
  assert.ok(made.covered.includes("closure x -> work"));
  assert.deepEqual(missing(made), []);
});

test("an answer without a label of the step falls back, wherever its schema takes one", async () => {
  const required = actionSchema(["next"]);
  const { required: _names, ...optional } = required;
  const cases: readonly { readonly schema: JsonSchema; readonly can: boolean }[] = [
    { schema: actionSchema(["next", "escalate"]), can: true },
    { schema: optional, can: true },
    { schema: required, can: false },
  ];
  for (const { schema, can } of cases) {
    const made = await generated(flowWith({}, { schema, fallback: "next" }));
    const id = "work answers with a word that falls back";
    assert.equal(made.covered.includes(id), can, JSON.stringify(schema));
    assert.deepEqual(
      made.missing.map(({ element, doubt }) => [element.id, doubt]),
      can ? [] : [[id, null]],
    );
  }
});

test("a step that a command performs is answered from the script", async () => {
  const flow = sketchFlow({
    measure: { edges: { more: "work", enough: null }, handoff: ["size"] },
    work: { edges: { next: null } },
  });
  const { measure, ...others } = flow.steps;
  const by: Step["by"] = { kind: "command", command: "measure", args: [], timeoutMs: 1000 };
  const made = await generated({
    ...flow,
    steps: { measure: { ...measure!, by }, ...others },
  });
  assert.deepEqual(missing(made), []);
  for (const id of ["measure more -> work", "measure enough -> end", "work next -> end"])
    assert.ok(made.covered.includes(id), id);
});

test("a step that is reached only by the way with the fewest visits is found", async () => {
  const guard = {
    on: "straight",
    checks: [{ check: "clean", edition: sketchPrompt("Clean up.") }],
    onFailure: "abort",
    maxFailures: 1,
    back: { kind: "caller" },
  } as const;
  const made = await generated(
    sketchFlow(
      {
        // Both ways to `late` are of two responses or checks, and only one of them leaves a visit for `last`.
        work: { edges: { detour: "detour", straight: "late" }, guard },
        detour: { edges: { next: "late" } },
        late: { edges: { next: "last" } },
        last: { edges: { next: null } },
      },
      { checks: { clean: sketchCheck("clean", "true") }, limits: { visits: 3 } },
    ),
  );
  assert.ok(made.covered.includes("last"));
  assert.deepEqual(missing(made), []);
});

test("a test whose end is far is over when the run goes on, and tests with the same beginning run as if alone", async () => {
  const size = 68;
  const checks = [{ check: "clean", edition: sketchPrompt("Clean up.") }];
  const guard = { on: "next", checks, onFailure: "retry", maxFailures: 2, back: { kind: "caller" } } as const;
  const flow = await prepare(
    sketchFlow(
      Object.fromEntries(
        Array.from({ length: size }, (_, at): [string, StepSketch] => [
          `s${at}`,
          {
            edges: {
              next: at === size - 1 ? null : `s${at + 1}`,
              repeat: `s${at}`,
              ...(at === 5 && { back: "s3" }),
            },
            ...(at % 40 === 20 && { guard }),
            ...(at % 3 === 0 && { transcript: "fresh" as const }),
            turns: 4,
          },
        ]),
      ),
      { checks: { clean: sketchCheck("clean", "true") }, limits: { visits: 1000 } },
    ),
  );
  const made = await generate(flow, new Map());
  assert.deepEqual(made.astray, []);
  assert.deepEqual(missing(made), []);
  const back = made.tests.find(({ covers }) => covers[0] === "s5 answers with back")!;
  assert.deepEqual([back.until, back.script.at(-1)!.step], ["s6", "s5"]);
  const repeat = (step: number) =>
    made.tests.find(({ covers }) => covers[0] === `s${step} answers with repeat`)!;
  assert.deepEqual([repeat(3).until, repeat(3).script.at(-1)!.step], ["s4", "s3"]);
  assert.deepEqual([repeat(60).until, repeat(60).script.at(-1)!.step], [undefined, "s67"]);
  for (const one of [repeat(3), repeat(60)]) {
    const { status, unmet } = await runTest(flow, one);
    assert.equal(status, "passed", `${one.name}: ${JSON.stringify(unmet)}`);
  }
  const elements = elementsOf(flow);
  const found = (await inSlices(search(flow, { wanted: elements })))!;
  const suite = await inSlices(suiteOf(flow, {}, found, new Set(elements.map(({ id }) => id))));
  let [count, sharing] = [0, 0];
  for await (const { test: one, ran, shared } of runDrafts(flow, planRuns(flow, suite!.tests))) {
    if (shared > 0) sharing += 1;
    if (count++ % 20 > 0) continue;
    const alone = await runInMemory(flow, one);
    const told = ({ moments = [] }: Ran) => moments.map(({ entry: { event, led } }) => ({ event, led }));
    assert.deepEqual(told(ran), told(alone), one.name);
    assert.equal(ran.heard.at(-1)?.text, alone.heard.at(-1)?.text, one.name);
    assert.deepEqual(ran.warnings, alone.warnings, one.name);
  }
  assert.ok(sharing > count / 2, `${sharing} of ${count}`);
});

/** So many steps that a search takes several slices of work. */
function longFlow(steps: number): Flow {
  const sketches = Array.from({ length: steps }, (_, at): [string, StepSketch] => [
    `s${at}`,
    { edges: { next: at === steps - 1 ? null : `s${at + 1}`, repeat: `s${at}` } },
  ]);
  return sketchFlow(Object.fromEntries(sketches), { limits: { visits: 5000 } });
}

test("what is searched and run can be stopped at any time, and claims nothing about what was not tried", async () => {
  const flow = await prepare(longFlow(60));
  const stopped = async (abort: (stop: AbortController) => void) => {
    const stop = new AbortController();
    abort(stop);
    return await generate(flow, new Map(), { signal: stop.signal });
  };
  const early = await stopped((stop) => stop.abort());
  assert.deepEqual([early.isStopped, early.states, early.tests], [true, 0, []]);
  const searching = await stopped((stop) => setImmediate(() => setImmediate(() => stop.abort())));
  assert.deepEqual([searching.isStopped, searching.tests, searching.missing], [true, [], []]);
  assert.ok(searching.states > 0);
  let turns = 0;
  const running = await stopped((stop) => {
    // Each run of a test gives way once, and there are hundreds: searching has fewer turns than that.
    const next = () => (++turns === 200 ? stop.abort() : setImmediate(next));
    setImmediate(next);
  });
  const whole = await generate(flow, new Map());
  assert.ok(running.isStopped && running.tests.length > 0 && running.tests.length < whole.tests.length);
  assert.deepEqual([running.missing, whole.isStopped, whole.missing.length > 0], [[], false, true]);
});
