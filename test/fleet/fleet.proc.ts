/** A fleet by the commands as users type them: workers are processes, the server is real. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { replies, script, writeAgent } from "../cli/world.ts";
import { startServer, type PostgresServer } from "../journal/postgres/server.ts";
import { until } from "../until.ts";
import { createFleetWorld } from "./fleet-world.ts";
import { needsFleet, programs } from "./fleet-server.ts";

const { skip } = needsFleet("a fleet by its commands");

describe("a fleet", { skip }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await startServer(programs!);
  });
  after(() => server.remove());

  test("drives what is submitted, and is looked at and drained by its commands", async () => {
    using world = await createFleetWorld(`${server.url}?schema=verbs`);
    writeAgent(world, "notes");
    world.write("script.json", script(replies.initial(), replies.continuation(), replies.closure()));
    const runs = await world.submit("notes", 3);
    const early = await world.document(["fleet", "status"]);
    assert.match(JSON.stringify(early.faults), /No living worker takes runs from the queue runs/);
    assert.equal((await world.lockstep(["fleet", "status", "--check"], { env: world.around })).code, 1);
    const worker = world.startWorker("--script", "script.json", "--name", "one", "--concurrency", "2");
    await worker.ready();
    await until(async () => (await world.outcomes()).completed === 3, "all are completed").catch((error) => {
      throw new Error(`${String(error)}\n${JSON.stringify(worker.lines())}\n${worker.stderr()}`);
    });
    const shown = await world.document(["show", runs[0]!]);
    assert.deepEqual([shown.outcome, shown.success], ["completed", true]);
    const ps = (await world.document(["fleet", "ps", "--self"])).workers as readonly {
      name: string;
      alive: boolean;
    }[];
    assert.deepEqual(
      ps.map(({ name, alive }) => [name, alive]),
      [["one", true]],
    );
    assert.equal((await world.lockstep(["fleet", "status", "--check"], { env: world.around })).code, 0);
    const unknown = await world.lockstep(["fleet", "drain", "two"], { env: world.around });
    assert.match(unknown.stderr, /no living worker "two"/);
    assert.deepEqual((await world.document(["fleet", "drain", "one"])).draining, ["one"]);
    assert.equal(await worker.gone(), 0, worker.stderr());
    assert.deepEqual((await world.document(["fleet", "ps"])).workers, []);
    assert.equal((await world.lockstep(["fleet", "ps", "--self"], { env: world.around })).code, 1);
    const retry = await world.lockstep(["fleet", "retry", runs[0]!], { env: world.around });
    assert.match(retry.stderr, /is not poisoned/);
  });
});
