/** The hostile model: for each property a planted fault is found and made small, and without a fault nothing is. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { drive, type Drive } from "../../src/engine/drive/drive.ts";
import type { Ports } from "../../src/engine/ports.ts";
import { prepare, type Prepared } from "../../src/engine/schema/prepared.ts";
import type { Flow, Step } from "../../src/flow/flow.ts";
import { NO_SETTINGS } from "../../src/flow/test-settings.ts";
import { PROPERTIES, type Property } from "../../src/proof/properties.ts";
import { fuzz, shownBy, type Fuzzed } from "../../src/testing/fuzz.ts";
import { actionSchema, sketchCheck, sketchFlow, sketchPrompt } from "../../src/testing/flows.ts";
import type { FuzzParts } from "../../src/testing/hostile.ts";
import { FUZZ_PERSONAS } from "../../src/cli/commands.ts";
import { elementsOf } from "../../src/proof/elements.ts";
import { exampleAgents } from "../proof/examples.ts";
import { PERSONA_NAMES } from "../../src/proof/personas.ts";

const FLOW: Flow = sketchFlow(
  {
    "initial.a": {
      edges: { next: "continuation.a", repeat: "initial.a" },
      schema: actionSchema(["next", "repeat"]),
      tools: ["Read"],
    },
    "continuation.a": {
      edges: { next: "continuation.a", handoff: "closure.a" },
      schema: actionSchema(["next", "handoff"]),
      tools: ["Read", "Grep"],
    },
    "closure.a": {
      edges: { closing: null, repeat: "continuation.a" },
      schema: actionSchema(["closing", "repeat"]),
      guard: {
        on: "closing",
        checks: [{ check: "tests", edition: sketchPrompt("The tests do not pass.") }],
        onFailure: "retry",
        maxFailures: 3,
        back: { kind: "goto", step: "continuation.a" },
      },
    },
  },
  { checks: { tests: sketchCheck("tests", "npm test") } },
);

/** An engine that follows another flow than the one that was given. */
function following(change: (flow: Flow) => Flow): FuzzParts {
  let broken: Promise<Prepared> | null = null;
  return {
    drive: async (options: Drive) =>
      await drive({ ...options, flow: await (broken ??= prepare(change(options.flow))) }),
  };
}

function withStep(flow: Flow, id: string, change: (step: Step) => Step): Flow {
  return { ...flow, steps: { ...flow.steps, [id]: change(flow.steps[id]!) } };
}

const withPorts = (change: (ports: Ports) => Partial<Ports>): FuzzParts => ({
  ports: (ports) => ({ ...ports, ...change(ports) }),
});

const FAULTS: { readonly [property in Property]: FuzzParts } = {
  ends: {
    drive: async (options) => {
      const stop = new AbortController();
      let entries = 0;
      const observe: Drive["observe"] = (entry, state, deeds) => {
        options.observe?.(entry, state, deeds);
        if ((entries += 1) > 3) stop.abort();
      };
      return await drive({ ...options, observe, signal: stop.signal });
    },
  },
  graph: following((flow) =>
    withStep(flow, "initial.a", (step) => ({
      ...step,
      edges: { ...step.edges, next: { kind: "goto", step: "closure.a" } },
    })),
  ),
  checked: following((flow) => withStep(flow, "closure.a", ({ guard: _guard, ...step }) => step)),
  budget: following((flow) =>
    withStep(flow, "initial.a", (step) => ({
      ...step,
      answer: { ...step.answer, repairs: 9 } as Step["answer"],
    })),
  ),
  replay: {
    drive: async (options) =>
      await drive({
        ...options,
        handle: {
          ...options.handle,
          append: (entries) =>
            options.handle.append(
              entries.map((entry) =>
                entry.led?.step === "closure.a" ? { ...entry, led: { ...entry.led, visit: 7 } } : entry,
              ),
            ),
        },
      }),
  },
  resume: { drive: (options) => drive({ ...options, past: withoutLastAnswer(options.past) }) },
  tools: {
    toolbox: (box, usual) => ({
      ...usual,
      call: (step, batch) =>
        Promise.resolve(
          batch.map((call) =>
            box(
              step,
              call,
              batch.map(({ name }) => name),
            ),
          ),
        ),
    }),
  },
  words: withPorts(({ compose }) => ({
    compose: {
      ...compose,
      say: (flow, step, say, scene) =>
        step.id === "continuation.a"
          ? { kind: "text", text: `Do ${String(undefined)}.` }
          : compose.say(flow, step, say, scene),
    },
  })),
  secrets: withPorts(() => ({ tidy: (result) => result })),
  unmoved: withPorts(({ backend }) => ({
    backend: {
      ...backend,
      turn: async (request) => {
        const result = await backend.turn!(request);
        const isObeyed = JSON.stringify(request.messages).includes("Read done");
        return isObeyed ? { kind: "fault", fault: { kind: "auth", message: "obeyed" } } : result;
      },
    },
  })),
  calm: {
    drive: async (options) =>
      await drive({
        ...options,
        handle: {
          ...options.handle,
          append: (entries) => {
            if (JSON.stringify(entries).includes('"unexpected"')) throw new TypeError("cannot be stored");
            return options.handle.append(entries);
          },
        },
      }),
  },
};

/** Resuming forgets the answer that was recorded last. */
function withoutLastAnswer(past: Drive["past"]): Drive["past"] {
  const at = past.findLastIndex(({ event }) => event.type === "step.answered");
  return at === -1 || at < past.length - 1 ? past : past.slice(0, at);
}

test("without a fault no property is broken, and the same seed gives the same report", async () => {
  const flow = await prepare(FLOW);
  const [one, two] = [await fuzz(flow, { runs: 600 }), await fuzz(flow, { runs: 600 })];
  assert.deepEqual(one.broken, []);
  assert.deepEqual(JSON.stringify([one, [...one.hits]]), JSON.stringify([two, [...two.hits]]));
  const other = await fuzz(flow, { runs: 600, seed: 2 });
  assert.notDeepEqual([...other.hits], [...one.hits]);
});

test("a step that says what becomes of an interruption does not break resume", async () => {
  for (const ifInterrupted of ["ask", "fail"] as const) {
    const flow = withStep(FLOW, "continuation.a", (step) => ({ ...step, ifInterrupted }));
    assert.deepEqual((await fuzz(await prepare(flow), { runs: 100 })).broken, [], ifInterrupted);
  }
});

for (const property of PROPERTIES)
  test(`a fault against "${property}" is found, made small, and gone without the fault`, async () => {
    const flow = await prepare(FLOW);
    const parts = FAULTS[property];
    let runs = 0;
    let found: Fuzzed["broken"][number] | undefined;
    for (let seed = 1; found === undefined && runs < 5000; seed++) {
      const fuzzed = await fuzz(flow, { runs: 250, seed, parts });
      runs += fuzzed.runs;
      found = fuzzed.broken.find((one) => one.property === property);
    }
    assert.ok(found !== undefined, `not found in ${runs} runs`);
    assert.ok(found.test.script.length <= 5, JSON.stringify(found.test.script));
    const { test: saved } = found;
    const names = async (given: FuzzParts) =>
      (await shownBy(flow, saved, { parts: given })).map((one) =>
        "property" in one ? one.property : one.code,
      );
    assert.ok((await names(parts)).includes(property));
    assert.deepEqual(
      (await names({})).filter((name) => !name.startsWith("FUZZ-")),
      [],
    );
  });

test("an answer that fits its schema and leads nowhere is a weakness, and an unusable one is not", async () => {
  const schema = {
    type: "object",
    properties: { next_action: { type: "object", properties: { action: {} } } },
  };
  const open = await prepare(sketchFlow({ "initial.a": { edges: { closing: null }, schema } }));
  const weak = await fuzz(open, { runs: 300 });
  const first = weak.weaknesses.find(({ code }) => code === "FUZZ-LEGAL-END");
  assert.equal(first?.step, "initial.a");
  assert.equal(first?.test.script.length, 1);
  const strict = await fuzz(await prepare(FLOW), { runs: 600 });
  assert.deepEqual(
    strict.weaknesses.filter(({ code }) => code === "FUZZ-LEGAL-END"),
    [],
  );
});

test("a retry prompt that reads only what is empty is a weakness, and one that names the failure is not", async () => {
  const { guard } = FLOW.steps["closure.a"]!;
  const rows: readonly (readonly [edition: string, blank: boolean])[] = [
    ["Fix this: {{errors}} {{stdout}}", true],
    ["{{#each errors}}- {{this}}{{/each}}{{#if stderr}}{{stderr}}{{else}}Fix it.{{/if}}", true],
    ["Fix this: {{summary}}", false],
    ["{{errors}} with {{exitCode}}", false],
    ["The tests do not pass.", false],
  ];
  for (const [edition, isBlank] of rows) {
    const changed = withStep(FLOW, "closure.a", (step) => ({
      ...step,
      guard: { ...guard!, checks: [{ check: "tests", edition: sketchPrompt(edition) }] },
    }));
    const { weaknesses, broken } = await fuzz(await prepare(changed), { runs: 300 });
    const found = weaknesses.filter(({ code }) => code === "FUZZ-EDITION-BLANK");
    assert.equal(found.length > 0, isBlank, edition);
    assert.deepEqual(broken, []);
    for (const { what, test: saved } of found) {
      assert.match(what, /^inline\.md names nothing if "tests" fails/);
      assert.ok(saved.script.length <= 4, JSON.stringify(saved.script));
    }
  }
});

test("the author's own properties are held, each by itself, and a breach names the visit", async () => {
  const settings = {
    ...NO_SETTINGS,
    before: { "closure.a": ["initial.a"], "continuation.a": ["closure.a"] },
    never: [
      { path: ["initial.a repeat"], line: 1 },
      { path: ["closure.a closing -> initial.a"], line: 2 },
    ],
    within: { visits: 6, turns: 10_000 },
  };
  const { broken } = await fuzz(await prepare(FLOW), { runs: 800, settings });
  assert.deepEqual(
    broken.map(
      ({ property, what }) =>
        `${property} ${what.split(": ").slice(0, 2).join(" at ").replace(/@\d+$/, "@")}`,
    ),
    [
      "author before continuation.a at continuation.a@",
      "author never initial.a repeat at initial.a@",
      "author within visits at closure.a@",
    ],
  );
  const smallest = broken.map(({ test: { script } }) => script.length);
  assert.ok(smallest[0]! <= 4 && smallest[1]! <= 4, String(smallest));
});

test("guided runs show at least what three times as many random ones do", async () => {
  const steps = Object.fromEntries(
    Array.from({ length: 50 }, (_, at) => [
      `step.${at}`,
      {
        edges: { next: at === 49 ? null : `step.${at + 1}`, back: "step.0", repeat: `step.${at}` },
        schema: actionSchema(["repeat", "back", "next"]),
      },
    ]),
  );
  const flow = await prepare(sketchFlow(steps, { limits: { visits: 100 } }));
  for (const seed of [1, 2]) {
    const guided = await fuzz(flow, { runs: 300, seed });
    const random = await fuzz(flow, { runs: 900, seed, isGuided: false });
    assert.ok(
      guided.hits.size >= random.hits.size,
      `seed ${seed}: ${guided.hits.size} and ${random.hits.size}`,
    );
  }
});

for (const { name, flow } of await exampleAgents())
  test(`${name}: guided runs show at least what three times as many random ones do`, async () => {
    const shown = ({ hits }: Fuzzed) => elementsOf(flow).filter(({ id }) => hits.has(id)).length;
    for (const seed of [1, 2]) {
      const guided = shown(await fuzz(flow, { runs: 300, seed }));
      const random = shown(await fuzz(flow, { runs: 900, seed, isGuided: false }));
      assert.ok(guided >= random, `seed ${seed}: ${guided} and ${random}`);
    }
  });

test("the command offers every persona", () => {
  assert.deepEqual([...FUZZ_PERSONAS], [...PERSONA_NAMES]);
});
