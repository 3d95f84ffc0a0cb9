/** `lockstep schema`: the schemas of the package, each under the name of its file. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createWorld } from "../world.ts";

const FOLDER = join(import.meta.dirname, "../../../schemas");

test("every schema of the package is listed, and printed as its file holds it", async () => {
  using world = createWorld();
  const listed = await world.lockstep(["schema", "--json"]);
  assert.equal(listed.code, 0, listed.stderr);
  const { schemas } = JSON.parse(listed.stdout) as {
    readonly schemas: readonly { readonly kind: string; readonly title: string; readonly file: string }[];
  };
  assert.deepEqual(
    schemas.map(({ kind }) => `${kind}.schema.json`).toSorted(),
    readdirSync(FOLDER).toSorted(),
  );
  for (const { kind, title, file } of schemas) {
    const text = readFileSync(join(FOLDER, `${kind}.schema.json`), "utf8");
    assert.equal((JSON.parse(text) as { readonly title: string }).title, title);
    assert.equal(readFileSync(file, "utf8"), text);
  }
  for (const flags of [[], ["--json"]]) {
    const printed = await world.lockstep(["schema", "machine", ...flags]);
    assert.equal(printed.code, 0, printed.stderr);
    assert.equal(printed.stdout, readFileSync(join(FOLDER, "machine.schema.json"), "utf8"));
  }
  assert.match((await world.lockstep(["schema"])).stdout, /KIND +DESCRIBES +FILE\nagent +agent\.json of/);
});

test("an unknown kind is a usage error that names the nearest one", async () => {
  using world = createWorld();
  const ran = await world.lockstep(["schema", "registry", "--json"]);
  assert.equal(ran.code, 2);
  const { code, reason } = JSON.parse(ran.stdout) as { readonly code: string; readonly reason: string };
  assert.equal(code, "USAGE");
  assert.match(reason, /takes agent, .* or config, not "registry"\. Did you mean "steps_registry"\?/);
});
