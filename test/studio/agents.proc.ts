/** Looking at agents and at many runs from the studio: the documents of the command, files that are watched, and no secrets. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Refusal } from "../../src/studio/wire.ts";
import type { StartedDocument } from "../../src/studio/wire-acts.ts";
import type {
  AgentDocument,
  AgentsDocument,
  BoundaryDocument,
  CompareDocument,
  FiguresDocument,
  StepDocument,
  WhatIfDocument,
} from "../../src/studio/wire-agents.ts";
import { SHAPES } from "../boundaries/secrets.ts";
import { createWorld, onlyDocument, replies, script, writeAgent, type World } from "../cli/world.ts";
import { until } from "../until.ts";
import { openIn } from "./studio-client.ts";

const ALL = [replies.initial(), replies.continuation(), replies.closure()];
const REPEATED = [
  replies.initial(),
  replies.continuation("repeat"),
  replies.continuation(),
  replies.closure(),
];
const registryOf = (world: World) => join(world.root, ".agent/notes/steps_registry.json");

function edit(file: string, change: (document: { [key: string]: never }) => void): void {
  const document = JSON.parse(readFileSync(file, "utf8")) as { [key: string]: never };
  change(document);
  writeFileSync(file, JSON.stringify(document, null, 2));
}

async function ran(world: World, ...answers: readonly object[]): Promise<string> {
  world.write("all.json", script(...answers));
  const done = await world.lockstep(["run", "notes", "--topic=t", "--script=all.json", "--json"]);
  return (JSON.parse(done.stdout) as { readonly run: string }).run;
}

describe("looking from the studio", { concurrency: 2 }, () => {
  test("an agent, its steps and its boundary are those of explain, check and graph", async () => {
    using world = createWorld();
    writeAgent(world, "notes");
    writeAgent(world, "broken", {
      registry: (registry) => {
        const steps = registry.steps as { [id: string]: { transitions: object } };
        steps["initial.note"]!.transitions = { next: { target: "nowhere" } };
      },
    });
    const run = await ran(world, ...ALL);
    const studio = await openIn(world);
    const { agents } = (await studio.get<AgentsDocument>("agents")).document;
    assert.deepEqual(
      agents.map(({ agent, errors, runs, last }) => [agent, errors > 0, runs, last?.run ?? null]),
      [
        ["broken", true, 0, null],
        ["notes", false, 1, run],
      ],
    );
    const { document } = await studio.get<AgentDocument>("agents/notes");
    const { sandbox: _sandbox, ...explained } = onlyDocument(
      await world.lockstep(["explain", "notes", "--json"]),
    );
    assert.deepEqual(document.explained, explained);
    assert.deepEqual(document.earlier, [{ run, args: { topic: "t" } }]);
    assert.equal(document.script, ".agent/notes/script.yaml");
    assert.match(document.costLine ?? "", /^Upper bound: 24 answers/);
    assert.deepEqual([document.trust, document.taken.runs], [null, 1]);
    const taken = document.outline!.edges.flatMap(({ from, label }, place) =>
      document.taken.edges[place] === 0 ? [] : [`${from} ${label} ${document.taken.edges[place]}`],
    );
    assert.deepEqual(taken, ["initial.note next 1", "continuation.note handoff 1", "closure.note closing 1"]);
    const step = await studio.get<StepDocument>("agents/notes/steps/closure.note");
    assert.deepEqual(
      step.document,
      onlyDocument(await world.lockstep(["explain", "notes", "closure.note", "--json"])),
    );
    const boundary = await studio.get<BoundaryDocument>("agents/notes/boundary");
    const said = onlyDocument(await world.lockstep(["explain", "notes", "--boundary", "--json"]));
    assert.deepEqual(boundary.document, said);
    const broken = (await studio.get<AgentDocument>("agents/broken")).document;
    const found = onlyDocument(await world.lockstep(["check", "broken", "--json"]));
    assert.deepEqual(broken.problems, found.problems);
    const started = await studio.post<Refusal>("runs", { agent: "broken", args: { topic: "t" } });
    assert.deepEqual([started.status, started.document.code], [409, "FLOW_INVALID"]);
    assert.deepEqual(started.document.problems, found.problems);
    for (const [path, code] of [
      ["agents/nobody", "AGENT_UNKNOWN"],
      ["agents/..%2fnotes", "AGENT_UNKNOWN"],
      ["agents/notes/steps/nowhere", "STEP_UNKNOWN"],
      ["whatif/nobody", "AGENT_UNKNOWN"],
      ["figures?agent=nobody", "AGENT_UNKNOWN"],
    ] as const) {
      const refused = await studio.get<Refusal>(path);
      assert.deepEqual([refused.status, refused.document.code], [404, code], path);
    }
    await studio.close();
  });

  test("two runs compared, what if, and figures are those of the command", async () => {
    using world = createWorld();
    writeAgent(world, "notes");
    const [a, b] = [await ran(world, ...ALL), await ran(world, ...REPEATED)];
    const studio = await openIn(world);
    const compared = (await studio.get<CompareDocument>(`compare/${a}/${b}`)).document;
    const { outlines, ways, taken, ...same } = compared;
    assert.deepEqual(
      taken.map((times) => times.length),
      [4, 5],
    );
    assert.deepEqual(same, onlyDocument(await world.lockstep(["diff", a, b, "--json"])));
    assert.deepEqual(
      ways.map((way) => way.map(({ step, visit }) => `${step}@${visit}`)),
      [
        ["initial.note@1", "continuation.note@1", "closure.note@1"],
        ["initial.note@1", "continuation.note@1", "continuation.note@2", "closure.note@1"],
      ],
    );
    assert.deepEqual(
      outlines.map(({ entry }) => entry),
      ["initial.note", "initial.note"],
    );
    const inParts = async () => (await studio.get<FiguresDocument>("figures?agent=notes&within=0")).document;
    const [first, second] = [await inParts(), await inParts()];
    assert.deepEqual([first.ids, first.isAll, first.recorded], [[b], false, 2]);
    const { document: figures } = await studio.get<FiguresDocument>("figures?agent=notes");
    assert.deepEqual(second, figures);
    assert.equal(figures.isAll, true);
    assert.deepEqual(figures.ids, [b, a]);
    const step = figures.steps.find((one) => one.step === "continuation.note")!;
    assert.deepEqual([step.visits, step.in], [3, [0, 1]]);
    assert.equal(
      figures.ways?.find(({ from, label }) => from === "continuation.note" && label === "repeat")?.taken,
      1,
    );
    assert.deepEqual((await studio.get<FiguresDocument>("figures?since=99999999999999")).document.ids, []);
    const wrong = await studio.get<Refusal>("figures?since=soon");
    assert.equal(wrong.status, 400);
    const whatIf = async () => (await studio.get<WhatIfDocument>("whatif/notes")).document;
    const before = await whatIf();
    assert.deepEqual([before.same, before.changed, before.stuck, before.changes], [2, 0, 0, []]);
    edit(registryOf(world), (registry) => {
      const { "continuation.note": step } = registry.steps! as {
        [id: string]: { transitions: { repeat: object } };
      };
      step!.transitions.repeat = { target: "initial.note" };
    });
    // In parts, one more run with each request, they come to the same.
    const parts: WhatIfDocument[] = [];
    do parts.push((await studio.get<WhatIfDocument>("whatif/notes?within=0")).document);
    while (!parts.at(-1)!.isAll && parts.length < 5);
    assert.deepEqual(
      parts.map(({ runs, isAll, recorded }) => [runs.length, isAll, recorded]),
      [
        [1, false, 2],
        [2, true, 2],
      ],
    );
    const { changes, outline: _outline, isAll, recorded, ...after } = await whatIf();
    assert.deepEqual([isAll, recorded, parts.at(-1)!.runs], [true, 2, after.runs]);
    assert.deepEqual(after, onlyDocument(await world.lockstep(["whatif", "--agent=notes", "--json"])));
    assert.deepEqual([after.same, changes.length], [1, 1]);
    await studio.close();
  });

  test("a save of an agent's files is told, and the next look sees it", async () => {
    using world = createWorld();
    writeAgent(world, "notes");
    const studio = await openIn(world);
    const ended = new AbortController();
    const heard: string[] = [];
    const listening = studio.listen(ended.signal, (message) => {
      heard.push(message.type === "files" ? JSON.stringify(message) : message.type);
    });
    await until(() => heard.includes("hello"), "the stream says hello");
    const title = async () =>
      (await studio.get<AgentsDocument>("agents")).document.agents.map((one) => one.title);
    assert.deepEqual(await title(), ["notes"]);
    let version = 0;
    let looks = 0;
    // The first look at the files, after which changes are told, may still be under way.
    await until(() => {
      if (looks++ % 200 > 0) return heard.includes('{"type":"files","agents":["notes"]}');
      version += 1;
      edit(join(world.root, ".agent/notes/agent.json"), (agent) => {
        agent.displayName = `Title ${version}` as never;
      });
      return false;
    }, "the stream names the agent");
    assert.deepEqual(await title(), [`Title ${version}`]);
    writeAgent(world, "second");
    await until(() => heard.some((text) => text.includes('"second"')), "the stream names the new agent");
    ended.abort();
    await listening;
    await studio.close();
  });

  test("no key leaves the server, wherever it stands", async () => {
    using world = createWorld();
    const keys = Object.values(SHAPES);
    assert.ok(keys.length >= 25);
    writeAgent(world, "notes");
    const prompt = join(world.root, ".agent/notes/prompts/steps/initial/note/f_default.md");
    writeFileSync(prompt, `${readFileSync(prompt, "utf8")}\n${keys.join("\n")}\n`);
    world.write("all.json", script(...ALL));
    const plain = "a plain password of this user";
    const env = Object.fromEntries(keys.map((key, place) => [`MY_${place}_TOKEN`, key]));
    const studio = await openIn(world, [], { ...env, DATABASE_PASSWORD: plain });
    const topic = [...keys, plain].join(" ");
    const start = await studio.post<StartedDocument>("runs", {
      agent: "notes",
      args: { topic },
      script: "all.json",
    });
    const { run } = start.document;
    const texts = [start.text];
    const paths = [
      "project",
      "agents",
      "agents/notes",
      "agents/notes/steps/initial.note",
      "agents/notes/boundary",
      "runs",
      `runs/${run}`,
      `runs/${run}/frames`,
      `runs/${run}/at/1`,
      `runs/${run}/why/initial.note@1`,
      `runs/${run}/talk`,
      `runs/${run}/log`,
      `runs/${run}/effects`,
      `runs/${run}/replay`,
      `compare/${run}/${run}`,
      "whatif/notes",
      "figures?agent=notes",
      "questions",
      "worktrees",
      `runs/${encodeURIComponent(keys[0]!)}`,
    ];
    await until(async () => {
      const { document } = await studio.get<{ readonly row: { readonly state: string } }>(`runs/${run}`);
      return document.row.state === "completed";
    }, "the run is completed");
    for (const path of paths) texts.push((await studio.get(path)).text);
    const judged = await studio.post("agents/notes/arguments", { args: { topic, [keys[1]!]: "x" } });
    const refused = await studio.post("runs", { agent: keys[2]!, args: {} });
    const forked = await studio.post(`runs/${run}/judge`, { at: keys[3]! });
    texts.push(judged.text, refused.text, forked.text);
    for (const text of texts)
      for (const key of [...keys, plain])
        assert.ok(
          !text.includes(key),
          `${key} in ${text.slice(0, 80)} … ${text.slice(Math.max(0, text.indexOf(key) - 80), text.indexOf(key) + 40)}`,
        );
    await studio.close();
  });
});
