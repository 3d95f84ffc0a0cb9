/** Files of a project are read inside of it and nowhere else. */
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { createFiles } from "../../../src/run/world/files.ts";
import { projectWith } from "../project.ts";

const outside = projectWith({ "secret.txt": "secret", "folder/secret.txt": "secret" });
const root = projectWith({ "a.txt": "a", "deep/er/b.txt": "b", "..foo/c.txt": "c", "日本語/d.txt": "d" });
symlinkSync(join(outside, "secret.txt"), join(root, "link.txt"));
symlinkSync(join(outside, "folder"), join(root, "linked"));
symlinkSync(join(root, "deep"), join(root, "inner"));
symlinkSync(join(root, "nowhere"), join(root, "dangling"));
mkdirSync(`${root}-evil`);
after(() => rmSync(`${root}-evil`, { recursive: true, force: true }));
writeFileSync(`${root}-evil/e.txt`, "evil");
symlinkSync(`${root}-evil`, join(root, "sibling"));

const files = createFiles(root);
const rows: readonly [path: string, kind: string][] = [
  ["a.txt", "text"],
  ["./a.txt", "text"],
  ["deep/er/b.txt", "text"],
  ["deep/../a.txt", "text"],
  ["..foo/c.txt", "text"],
  ["日本語/d.txt", "text"],
  ["inner/er/b.txt", "text"],
  ["missing.txt", "missing"],
  ["missing/folder/x.txt", "missing"],
  ["a.txt/below", "missing"],
  ["dangling", "missing"],
  ["../secret.txt", "refused"],
  ["deep/../../x", "refused"],
  [`${outside}/secret.txt`, "refused"],
  ["/etc/passwd", "refused"],
  ["link.txt", "refused"],
  ["linked/secret.txt", "refused"],
  ["sibling/e.txt", "refused"],
  ["a\0.txt", "refused"],
  ["deep", "unreadable"],
];
for (const [path, kind] of rows) {
  test(`${JSON.stringify(path.replace(outside, "<outside>"))} is ${kind}`, () => {
    assert.equal(files.read(path).kind, kind);
  });
}

const folders: readonly [path: string, names: readonly string[] | null][] = [
  ["deep", ["er"]],
  [".", readdirSync(root).toSorted()],
  ["", readdirSync(root).toSorted()],
  ["inner", ["er"]],
  ["deep/er", ["b.txt"]],
  ["missing", null],
  ["a.txt", null],
  ["linked", null],
  ["sibling", null],
  ["..", null],
  ["/etc", null],
  ["a\0", null],
];
for (const [path, names] of folders) {
  test(`the folder ${JSON.stringify(path)} ${names === null ? "is not there" : `holds ${names.join()}`}`, () => {
    assert.deepEqual(files.list(path), names);
  });
}
