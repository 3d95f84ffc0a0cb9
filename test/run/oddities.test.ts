/**
 * Oddities of model servers, over the real packages and loopback: each is understood, or ends the run with a sentence
 * that says what happened and what to do. The sentences are those of docs/model-errors.md.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { createMemoryJournal, run } from "../../src/run/index.ts";
import { fakeClock } from "../../src/testing/scenario.ts";
import { KEY, modelServer } from "../backends/model-server.ts";
import { CLOSING, ODDITIES, type Oddity } from "./oddities.ts";
import { agentFiles, projectWith } from "./project.ts";

const FILES = agentFiles("t", {
  "initial.t": { kind: "work", intents: ["next"], transitions: { next: { target: "closure.t" } } },
  "closure.t": { kind: "closure", intents: ["closing"], transitions: { closing: { target: null } } },
});

/** What a user with this model gets. */
async function meet({ wire, deed, entry = {} }: Pick<Oddity, "wire" | "deed" | "entry">) {
  let asked = 0;
  await using server = await modelServer(wire, ({ body }) => {
    if (JSON.stringify(body).includes("Do closure.t."))
      return wire === "google" || body.stream === true ? CLOSING.streamed : CLOSING.whole;
    asked += 1;
    return deed;
  });
  const { provider, model, baseUrl } = server.target;
  const opus = { provider, model, baseUrl, apiKeyEnv: "SOME_KEY", ...entry };
  const config = projectWith({ "lockstep/config.json": JSON.stringify({ models: { opus } }) });
  const waits: number[] = [];
  const result = await run({
    agent: "t",
    cwd: projectWith(FILES),
    journal: createMemoryJournal(),
    clock: fakeClock(waits),
    env: { XDG_CONFIG_HOME: config, SOME_KEY: KEY },
  });
  return { result, asked, waits, who: `${opus.provider}/${opus.model}: `, seen: server.seen };
}

describe("an oddity of a model server", { concurrency: 4 }, () => {
  for (const row of ODDITIES) {
    test(`${row.wire}: ${row.name}`, async () => {
      const { result, asked, waits, who } = await meet(row);
      if (row.says === null) assert.equal(result.success, true, result.reason);
      else assert.equal(result.reason, who + row.says);
      assert.deepEqual([result.exitCode, asked], [row.exit, row.asked]);
      if (row.waits !== undefined) assert.deepEqual(waits, row.waits);
      assert.ok(!JSON.stringify(result).includes(KEY));
    });
  }
});

test("a sentence without an end is cut, and what to do is not", async () => {
  const body = JSON.stringify({ error: { message: `prompt is too long: ${"x".repeat(50_000)}` } });
  const { result } = await meet({ wire: "anthropic", deed: { status: 400, body } });
  assert.ok(result.reason.length <= 600);
  assert.match(result.reason, /x… The conversation is too long for this model: .* read less\.$/);
});

describe("docs/model-errors.md", () => {
  const page = readFileSync(new URL("../../docs/model-errors.md", import.meta.url), "utf8");
  const rows = [...page.matchAll(/^\| `(.+?)` \|/gm)].map((match) => match[1]!.replaceAll("\\|", "|"));
  const patterns = rows.map((row) => {
    const parts = row.split("…").map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
    return { row, pattern: new RegExp(`^${parts.join(".*")}$`) };
  });
  const said = ODDITIES.flatMap(({ says }) => says ?? []);

  test("lists every sentence", () => {
    assert.ok(rows.length > 10);
    for (const sentence of said)
      assert.ok(
        patterns.some(({ pattern }) => pattern.test(sentence)),
        `not on the page: ${sentence}`,
      );
  });

  test("lists no other ones", () => {
    const others = patterns.filter(
      ({ row, pattern }) => !said.some((one) => pattern.test(one)) && !ELSEWHERE.test(row),
    );
    assert.deepEqual(
      others.map(({ row }) => row),
      [],
    );
  });
});

/** Sentences about connections and requests, which are tested below and in ai-sdk.test.ts. */
const ELSEWHERE = /^the connection failed|^nothing was received|^the step offers/;
