/** Commands that install an optional package: each puts it where this program looks for it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { installCommand } from "../../../src/flow/machine/install.ts";

const cases: readonly [where: string, from: string, folder: string | undefined, expected: string][] = [
  ["for everybody", "/usr/lib/node_modules/lockstep/dist/bin/a.js", undefined, "--global"],
  [
    "for everybody, by nvm",
    "/home/u/.nvm/versions/node/v24.0.0/lib/node_modules/lockstep/dist/a.js",
    undefined,
    "--global",
  ],
  [
    "for everybody, on Windows",
    "/C:/Users/u/AppData/Roaming/npm/node_modules/lockstep/dist/a.js",
    undefined,
    "--global",
  ],
  ["in a project", "/home/u/my-app/node_modules/lockstep/dist/a.js", undefined, "--prefix /home/u/my-app"],
  [
    "in a project with spaces",
    "/home/u/my%20app/node_modules/lockstep/dist/a.js",
    undefined,
    "--prefix '/home/u/my app'",
  ],
  [
    "by npx",
    "/home/u/.npm/_npx/1a/node_modules/lockstep/dist/a.js",
    undefined,
    "--prefix /home/u/.npm/_npx/1a",
  ],
  ["in a clone", "/home/u/lockstep/src/flow/install.ts", undefined, "--prefix /home/u/lockstep"],
  [
    "with a folder of the user",
    "/usr/lib/node_modules/lockstep/dist/a.js",
    "/opt/more",
    "--prefix /opt/more",
  ],
  [
    "with a folder that has quotes",
    "/home/u/lockstep/src/a.ts",
    "/opt/it's",
    String.raw`--prefix '/opt/it'\''s'`,
  ],
];
for (const [where, from, folder, expected] of cases) {
  test(`installed ${where}`, () => {
    assert.equal(installCommand("ws@8", `file://${from}`, folder), `npm install ws@8 ${expected}`);
  });
}
