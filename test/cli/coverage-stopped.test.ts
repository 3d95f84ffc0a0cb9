/** Coverage that is interrupted: what was shown until then is measured. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { measureTests } from "../../src/cli/coverage/measure.ts";
import { load } from "../../src/run/load.ts";
import { createFiles } from "../../src/run/world/files.ts";

const cwd = join(import.meta.dirname, "../../examples/09-tested-agent");

/** So many questions whether it is aborted are answered with no. */
function abortedAfter(questions: number): AbortSignal {
  let left = questions;
  return Object.defineProperty(new AbortController().signal, "aborted", { get: () => left-- <= 0 });
}

test("an interruption ends the measuring between two tests", async () => {
  const loaded = await load("notes", { cwd });
  const shown = async (signal?: AbortSignal) => {
    const measured = await measureTests(loaded, loaded.flow!, createFiles(cwd), signal);
    assert.equal(measured.kind, "measured");
    return measured.kind === "measured" ? measured.coverage.totals.transitions.covered : -1;
  };
  const all = await shown();
  assert.equal(await shown(abortedAfter(0)), 0);
  const some = await shown(abortedAfter(2));
  assert.ok(some > 0 && some < all, `${some} of ${all}`);
  assert.equal(await shown(new AbortController().signal), all);
});
