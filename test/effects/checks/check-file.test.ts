import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { judgeFile } from "../../../src/effects/checks/check-file.ts";

const folder = mkdtempSync(join(tmpdir(), "lockstep-file-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const cwd = join(folder, "work");
mkdirSync(join(cwd, "out"), { recursive: true });
mkdirSync(join(folder, "work-beside"));
for (const path of ["work/out/a.md", "work/..b", "secret", "work-beside/c"])
  writeFileSync(join(folder, path), "");
symlinkSync("out/a.md", join(cwd, "inward"));
symlinkSync("../secret", join(cwd, "outward"));
symlinkSync("..", join(cwd, "up"));
symlinkSync("nowhere", join(cwd, "dangling"));
symlinkSync("round", join(cwd, "round"));
symlinkSync(cwd, join(folder, "linked"));

const judge = (path: string, where = cwd) =>
  judgeFile({ kind: "file", name: "there", pattern: "absent", description: "", path }, where);

for (const path of ["out/a.md", "./out/../out/a.md", "out", "..b", "inward", "up/work/out/a.md"]) {
  test(`${path} is there`, () => {
    assert.deepEqual(judge(path), {
      name: "there",
      ok: true,
      pattern: "absent",
      summary: `\`${path}\` is there.`,
      params: {},
    });
  });
}

const faults: readonly [path: string, why: string][] = [
  ["out/b.md", "is not there"],
  ["out/a.md/b", "is not there"],
  ["dangling", "is not there"],
  ["../secret", "leads out of the working directory"],
  ["../work-beside/c", "leads out of the working directory"],
  ["/etc/passwd", "leads out of the working directory"],
  ["outward", "leads out of the working directory"],
  ["up", "leads out of the working directory"],
  ["up/secret", "leads out of the working directory"],
  ["round", "cannot be looked at: ELOOP"],
  ["a\0b", "cannot be looked at: ERR_INVALID_ARG_VALUE"],
];
for (const [path, why] of faults) {
  test(`${JSON.stringify(path)} ${why}`, () => {
    const { ok, params, unrecoverable, summary } = judge(path);
    assert.deepEqual([ok, unrecoverable], [false, undefined]);
    assert.ok(summary.endsWith(`${why}.`), summary);
    assert.deepEqual(params, { missingFiles: [path], expectedPath: path, summary });
  });
}

test("a working directory that is a link itself is no matter", () => {
  assert.equal(judge("out/a.md", join(folder, "linked")).ok, true);
});

test("without a working directory nothing is there", () => {
  assert.equal(judge("a", join(folder, "gone")).ok, false);
});
