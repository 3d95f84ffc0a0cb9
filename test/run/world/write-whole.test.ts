import assert from "node:assert/strict";
import {
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { writeWhole } from "../../../src/run/world/write-whole.ts";

describe("run: files that are written whole", () => {
  it("makes a file", () =>
    folder((path) => {
      writeWhole(join(path, "a.json"), "new");
      assert.equal(readFileSync(join(path, "a.json"), "utf8"), "new");
    }));

  it("leaves the earlier file as it was to those who have it open, and keeps its permissions", () =>
    folder((path) => {
      const file = join(path, "a.json");
      writeFileSync(file, "old", { mode: 0o640 });
      linkSync(file, join(path, "seen"));
      writeWhole(file, "new");
      assert.deepEqual(
        [file, join(path, "seen")].map((name) => readFileSync(name, "utf8")),
        ["new", "old"],
      );
      if (process.platform !== "win32") assert.equal(statSync(file).mode & 0o777, 0o640);
      assert.deepEqual(readdirSync(path), ["a.json", "seen"]);
    }));

  it("writes where a link leads", () =>
    folder((path) => {
      writeFileSync(join(path, "real"), "old");
      symlinkSync("real", join(path, "link"));
      writeWhole(join(path, "link"), "new");
      assert.equal(lstatSync(join(path, "link")).isSymbolicLink(), true);
      assert.equal(readFileSync(join(path, "real"), "utf8"), "new");
    }));

  it("leaves nothing behind when it fails", () =>
    folder((path) => {
      mkdirSync(join(path, "a.json"));
      assert.throws(() => writeWhole(join(path, "a.json"), "new"), /EISDIR/);
      assert.throws(() => writeWhole(join(path, "gone", "a.json"), "new"), /ENOENT/);
      assert.deepEqual(readdirSync(path), ["a.json"]);
    }));

  it("writes to a device as it is", { skip: process.platform === "win32" && "there is none" }, () => {
    writeWhole("/dev/null", "new");
    assert.equal(statSync("/dev/null").isFile(), false);
  });
});

function folder(body: (path: string) => void): void {
  const path = mkdtempSync(join(tmpdir(), "lockstep-whole-"));
  try {
    body(path);
  } finally {
    rmSync(path, { recursive: true });
  }
}
