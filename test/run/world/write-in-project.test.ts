/** What commands add to a project stays in it: no link is followed, wherever it stands. */
import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  mkdtempDisposableSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { writeInProject } from "../../../src/run/world/write-whole.ts";

const FILE = ".agent/a/tests/generated.yaml";
const cases: readonly [what: string, link: string | null, isDangling: boolean][] = [
  ["nothing is a link", null, false],
  ["the file is a link", FILE, false],
  ["the file is a link to nothing", FILE, true],
  ["its folder is a link", ".agent/a/tests", false],
  ["the agent is a link", ".agent/a", false],
  ["the folder of agents is a link to nothing", ".agent", true],
];
for (const [what, link, isDangling] of cases)
  test(what, () => {
    using folder = mkdtempDisposableSync(join(tmpdir(), "lockstep-write-"));
    const [root, outside] = [join(folder.path, "project"), join(folder.path, "outside")];
    mkdirSync(root);
    if (link !== null) {
      mkdirSync(dirname(join(root, link)), { recursive: true });
      if (!isDangling && link === FILE) writeFileSync(outside, "precious");
      else if (!isDangling) mkdirSync(outside);
      symlinkSync(outside, join(root, link));
    }
    const write = () => writeInProject(root, FILE, "tests: []\n");
    if (link === null) {
      write();
      assert.equal(readFileSync(join(root, FILE), "utf8"), "tests: []\n");
      return;
    }
    assert.throws(write, { code: "NOT_WRITABLE", message: new RegExp(`${link} is a link`) });
    if (link === FILE && !isDangling) assert.equal(readFileSync(outside, "utf8"), "precious");
    else assert.equal(existsSync(join(outside, "generated.yaml")), false);
    assert.equal(existsSync(outside), !isDangling);
  });
