/** The studio over runs on a PostgreSQL server that goes away and comes back. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createWorld, onlyDocument, replies, script, writeAgent } from "../cli/world.ts";
import { pgPackage, serversHere, startServer } from "../journal/postgres/server.ts";
import { needs } from "../needs.ts";
import { serve } from "./served.ts";

const [programs] = serversHere().values();
const missing =
  pgPackage() === null ? "pg@8 (studio on PostgreSQL)" : "PostgreSQL 15 or newer (studio on PostgreSQL)";
const { skip } = needs(pgPackage() !== null && programs !== undefined, missing);

describe("the studio on PostgreSQL", { skip }, () => {
  test("says that the server is away, and continues by itself when it is back", async () => {
    const server = await startServer(programs!);
    using world = createWorld();
    try {
      writeAgent(world, "notes");
      world.write("script.json", script(replies.initial(), replies.continuation(), replies.closure()));
      const at = ["--state", `${server.url}?schema=away`];
      const env = { LOCKSTEP_PACKAGES: process.env.LOCKSTEP_PACKAGES ?? "" };
      assert.equal((await world.lockstep(["fleet", "init", ...at], { env })).code, 0);
      const line = ["run", "notes", "--topic", "tides", "--script", "script.json", "--json", ...at];
      const { run } = onlyDocument(await world.lockstep(line, { env }));
      const studio = await serve(world, "--port", "0", ...at, env);
      const early = await studio.listen();
      await early.until(({ type }) => type === "questions", "it listens");
      assert.equal((await studio.get("runs")).document.runs[0].run, run);

      server.stop();
      const isProblem = (message: { readonly type: string }) =>
        message.type === "journal" && "problem" in message && message.problem !== null;
      await early.until(isProblem, "the open page hears that it is away");
      const refused = await studio.get("runs");
      assert.deepEqual([refused.status, refused.document.code], [503, "JOURNAL_UNAVAILABLE"]);
      const late = await studio.listen();
      await late.until(isProblem, "a page that is opened now hears it too");
      assert.equal((await studio.get("project")).status, 200);

      server.start();
      for (const heard of [early, late]) {
        await heard.until(({ type }) => type === "reset", "it asks for everything again");
        const last = heard.messages.findLast(({ type }) => type === "journal");
        assert.deepEqual(last, { type: "journal", problem: null });
      }
      assert.equal((await studio.get("runs")).document.runs[0].run, run);
      const second = onlyDocument(await world.lockstep(line, { env }));
      await early.until(
        (message) => message.type === "runs" && message.runs.some((row) => row.run === second.run),
        "a run that began afterwards is seen",
      );
      assert.equal(await studio.stop(), 0);
    } finally {
      server.remove();
    }
  });
});
