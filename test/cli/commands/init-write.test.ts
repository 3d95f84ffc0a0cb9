/** A new agent is written whole or not at all, inside of its project, and a refusal names its cause. */
import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { unwrittenReason, requireFree, writeAgent } from "../../../src/cli/commands/init-write.ts";

function inFolder(
  act: (place: { readonly root: string; readonly agentsDir: string }, top: string) => void,
): void {
  const top = mkdtempSync(join(tmpdir(), "lockstep-init-write-"));
  try {
    const root = join(top, "project");
    mkdirSync(root);
    act({ root, agentsDir: join(root, ".agent") }, top);
  } finally {
    rmSync(top, { recursive: true });
  }
}

/** The second file needs a folder where the first one is. */
const IMPOSSIBLE = { "agent.json": "{}", "agent.json/more": "x" };
const FINE = { "agent.json": "{}", "prompts/a.md": "a" };

for (const isThere of [false, true])
  test(`a failure leaves nothing, and the next try succeeds; .agent is ${isThere ? "" : "not "}there before`, () =>
    inFolder((place) => {
      if (isThere) mkdirSync(join(place.agentsDir, "other"), { recursive: true });
      const before = readdirSync(place.root, { recursive: true });
      assert.throws(() => writeAgent(place, "notes", IMPOSSIBLE), {
        code: "NOT_WRITABLE",
        message: /^The agent cannot be written: .* or choose another folder with --cwd DIR\.$/,
      });
      assert.deepEqual(readdirSync(place.root, { recursive: true }), before);
      requireFree(place, "notes");
      writeAgent(place, "notes", FINE);
      assert.equal(readFileSync(join(place.agentsDir, "notes/prompts/a.md"), "utf8"), "a");
      assert.deepEqual(readdirSync(place.agentsDir).toSorted(), isThere ? ["notes", "other"] : ["notes"]);
    }));

/** What is in place of `.agent`, and why it is refused; null: it is not. */
const PLACES: readonly [what: string, make: (agents: string, top: string) => void, why: RegExp | null][] = [
  ["nothing", () => undefined, null],
  ["a folder", (agents) => mkdirSync(agents), null],
  ["a file", (agents) => writeFileSync(agents, ""), /\.agent is not a folder\. Move it away, or/],
  [
    "a link to nowhere",
    (agents) => symlinkSync("gone", agents),
    /is a link that leads nowhere\. Remove it, or/,
  ],
  [
    "a link out",
    (agents, top) => symlinkSync(top, agents),
    /is a link out of the project, to .*\. Replace it with/,
  ],
  [
    "a link to a folder whose name begins like the project",
    (agents, top) => {
      mkdirSync(join(top, "project-2"));
      symlinkSync("../project-2", agents);
    },
    /is a link out of the project/,
  ],
  [
    "a link to a folder inside",
    (agents) => {
      mkdirSync(join(agents, "../agents"));
      symlinkSync("agents", agents);
    },
    null,
  ],
  [
    "a link to a file inside",
    (agents) => {
      writeFileSync(join(agents, "../f"), "");
      symlinkSync("f", agents);
    },
    /which is not a folder\. Remove it, or/,
  ],
];
for (const [what, make, why] of PLACES)
  test(`${what} as .agent is ${why === null ? "fine" : "refused"}`, () =>
    inFolder((place, top) => {
      make(place.agentsDir, top);
      if (why !== null)
        return assert.throws(() => requireFree(place, "notes"), { code: "NOT_WRITABLE", message: why });
      requireFree(place, "notes");
      writeAgent(place, "notes", FINE);
      assert.ok(existsSync(join(place.agentsDir, "notes/agent.json")));
    }));

test("an agent that is there is not overwritten, nor a link that leads nowhere", () =>
  inFolder((place) => {
    mkdirSync(join(place.agentsDir, "empty"), { recursive: true });
    symlinkSync("gone", join(place.agentsDir, "dangling"));
    for (const name of ["empty", "dangling"])
      assert.throws(() => requireFree(place, name), { code: "USAGE", message: /is there already/ });
  }));

for (const [code, reason] of [
  ["ENOSPC", /^the disk is full\. Make room/],
  ["EDQUOT", /quota/],
  ["EROFS", /^\/p is on a file system that can only be read/],
  ["EACCES", /^you may not write there \(said\)\. Make \/p writable$/],
  ["EPERM", /^you may not write/],
  ["ENOTEMPTY", /^somebody else has just written there/],
  ["EIO", /^said\. Remove the cause$/],
] as const)
  test(`${code} is given as ${reason.source}`, () =>
    assert.match(unwrittenReason(Object.assign(new Error("said"), { code }), "/p"), reason));
