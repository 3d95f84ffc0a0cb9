/** graph, explain and the budget through the real command. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createWorld, onlyDocument, replies, script, writeAgent } from "./world.ts";

test("graph draws to stdout, to a file by its ending, and as one document", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  const drawn = await world.lockstep(["graph", "notes"]);
  assert.equal(drawn.code, 0, drawn.stderr);
  assert.match(drawn.stdout, /▶ initial\.note \(work, routed by model\)/);

  const written = await world.lockstep(["graph", "notes", "--out", "flow.svg"]);
  assert.deepEqual([written.code, written.stdout, written.stderr], [0, "", "Wrote flow.svg.\n"]);
  assert.match(readFileSync(join(world.root, "flow.svg"), "utf8"), /^<svg [\s\S]*<\/svg>\n$/);

  const document = onlyDocument(await world.lockstep(["graph", "notes", "--json"]));
  assert.deepEqual([document.v, document.entry], [1, "initial.note"]);

  const mistyped = await world.lockstep(["graph", "notes", "--format", "svgg"]);
  assert.equal(mistyped.code, 2);
  assert.match(mistyped.stderr, /Did you mean "svg"/);
});

test("graph of an agent that gives no flow tells why, as check does", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  const { code, stdout } = await world.lockstep(["graph", "note"]);
  assert.equal(code, 2);
  assert.match(stdout, /AC-SERVICE-001/);
});

test("explain tells of an agent and of a step, and names the step that was meant", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  const agent = await world.lockstep(["explain", "notes"]);
  assert.equal(agent.code, 0, agent.stderr);
  assert.match(agent.stdout, /runner\.verdict\.type .* \.agent\/notes\/agent\.json:\d+/);
  assert.match(
    agent.stdout,
    /^settings as declared \(the line "commands" above shows what applies on this machine\)$/m,
  );
  const step = onlyDocument(await world.lockstep(["explain", "notes", "closure.note", "--json"]));
  assert.deepEqual([step.v, step.step], [1, "closure.note"]);
  const mistyped = await world.lockstep(["explain", "notes", "closure.nte"]);
  assert.equal(mistyped.code, 2);
  assert.match(mistyped.stderr, /Did you mean "closure\.note"/);
});

test("check holds a flow to a budget, and run tells it before the start", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  const over = await world.lockstep(["check", "notes", "--max-turns", "1", "--json"]);
  assert.equal(over.code, 2);
  const { problems } = onlyDocument(over) as { problems: { code: string; file: string; message: string }[] };
  const found = problems.find(({ code }) => code === "BUDGET-TURNS");
  assert.equal(found?.file, ".agent/notes/agent.json");
  assert.match(found?.message ?? "", /A run can take \d+ model answers, more than 1/);
  assert.equal((await world.lockstep(["check", "notes", "--max-turns", "1000"])).code, 0);
  assert.equal((await world.lockstep(["check", "notes", "--max-turns", "few"])).code, 2);

  world.write("replies.json", script(replies.initial(), replies.continuation(), replies.closure()));
  const line = ["run", "notes", "--topic", "tides", "--script", "replies.json"];
  const told = await world.lockstep(line);
  assert.equal(told.code, 0, told.stderr);
  assert.match(told.stderr, /^Upper bound: \d+ answers \(.*\), [\d,]+ model calls including tool use\.$/m);
  assert.doesNotMatch(told.stderr, /\$/);
  assert.equal(told.stdout, '{"outcome":"success","result":{"note":"n"}}\n');
  assert.doesNotMatch((await world.lockstep([...line, "--quiet"])).stderr, /Upper bound/);
  const without = await world.lockstep(["run", "notes", "--script", "replies.json"]);
  assert.equal(without.code, 2);
  assert.match(without.stderr, /--topic/);
  assert.doesNotMatch(without.stderr, /Upper bound/);
});

test("show reads a run of another process whose schemas are of the 2020-12 draft", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  const file = ".agent/notes/schemas/note.schema.json";
  const text = readFileSync(join(world.root, file), "utf8");
  const draft = "https://json-schema.org/draft/2020-12/schema";
  world.write(file, text.replace("http://json-schema.org/draft-07/schema#", draft));
  world.write("replies.json", script(replies.initial(), replies.continuation(), replies.closure()));
  const ran = await world.lockstep(["run", "notes", "--topic", "tides", "--script", "replies.json"]);
  assert.equal(ran.code, 0, ran.stderr);
  const told = onlyDocument(await world.lockstep(["show", "@last", "--json"]));
  assert.equal(told.outcome, "completed");
});
