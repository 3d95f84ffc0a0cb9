/** The linter sees a promise that is returned, and not awaited, beside something that is given back at the end. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "lockstep-lint-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const bodies: readonly [name: string, body: string, isFound: boolean][] = [
  ["awaitUsing", "await using held = open(); return work(held);", true],
  ["plainUsing", "using held = openNow(); return work(held);", true],
  ["inner", "await using held = open(); { if (held !== null) return work(held); } return 1;", true],
  ["finallyCloses", "const held = openNow(); try { return work(held); } finally { close(held); }", true],
  ["awaited", "await using held = open(); return await work(held);", false],
  ["noPromise", "using held = openNow(); return [held].length;", false],
  ["nothingHeld", "return work(null);", false],
];

test("returns that are not awaited are found where something is held, and nowhere else", () => {
  const head = `declare function open(): AsyncDisposable;
declare function openNow(): Disposable;
declare function close(held: unknown): void;
declare function work(held: unknown): Promise<number>;
`;
  const functions = bodies.map(
    ([name, body]) => `export async function ${name}(): Promise<number> { ${body} }\n`,
  );
  writeFileSync(join(folder, "held.ts"), head + functions.join(""));
  cpSync(join(root, "tsconfig.json"), join(folder, "tsconfig.json"));
  cpSync(join(root, ".oxlintrc.json"), join(folder, ".oxlintrc.json"));
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  const oxlint = join(root, "node_modules/oxlint/bin/oxlint");
  const args = [oxlint, "--type-aware", "--format=unix", "held.ts"];
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: "utf8" });
  const found = stdout.split("\n").flatMap((line) => {
    const [, at] = /^held\.ts:(\d+):.*return-await/.exec(line) ?? [];
    return at === undefined ? [] : [bodies[Number(at) - 5]![0]];
  });
  assert.deepEqual(
    found.toSorted(),
    bodies.flatMap(([name, , isFound]) => (isFound ? [name] : [])).toSorted(),
    stdout + stderr,
  );
});
