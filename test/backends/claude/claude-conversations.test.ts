/** Conversations with Claude Code that travel: stored with their run, and put where Claude Code looks for them elsewhere. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { createConversations } from "../../../src/backends/claude/claude-conversations.ts";
import type { Blobs } from "../../../src/engine/ports.ts";

const temp = realpathSync(mkdtempSync(join(tmpdir(), "lockstep-talk-")));
after(() => rmSync(temp, { recursive: true, force: true }));

function memory(): Blobs & { readonly all: Map<string, Uint8Array> } {
  const all = new Map<string, Uint8Array>();
  return {
    all,
    put: async (_run, bytes) => {
      const digest = createHash("sha256").update(bytes).digest("hex");
      all.set(digest, bytes);
      return digest;
    },
    get: async (digest) => all.get(digest) ?? null,
  };
}

/** A config folder and a working directory of a machine. */
function machine(name: string) {
  const [home, cwd] = [join(temp, name, "claude"), join(temp, name, "work tree")];
  for (const folder of [home, cwd]) mkdirSync(folder, { recursive: true });
  return { home, cwd };
}

function talk({ home }: { readonly home: string }, session: string, text: string): void {
  mkdirSync(join(home, "projects/-somewhere"), { recursive: true });
  writeFileSync(join(home, "projects/-somewhere", `${session}.jsonl`), text);
}

const mark = { session: "s-1", totals: { turns: 1 } };

test("a conversation is stored with its mark, and is there on another machine", async () => {
  const blobs = memory();
  const [one, two] = [machine("one"), machine("two")];
  talk(one, "s-1", "what was said");
  const kept = await createConversations(blobs, []).keep(one.home, "run", mark);
  assert.deepEqual({ ...(kept as object), conversation: "" }, { ...mark, conversation: "" });
  const there = createConversations(blobs, [kept]);
  assert.equal(await there.bring(two.home, two.cwd, "s-1"), true);
  const folder = two.cwd.replaceAll(/[^\dA-Za-z]/g, "-");
  assert.equal(readFileSync(join(two.home, "projects", folder, "s-1.jsonl"), "utf8"), "what was said");
  // One that is here is not overwritten.
  talk(one, "s-1", "more was said");
  assert.equal(await there.bring(one.home, one.cwd, "s-1"), true);
  assert.equal(readFileSync(join(one.home, "projects/-somewhere/s-1.jsonl"), "utf8"), "more was said");
});

test("a conversation of another folder, as that of a fork is, is copied to the folder that goes on with it", async () => {
  const six = machine("six");
  talk(six, "s-1", "what was said");
  const file = join(six.home, "projects", six.cwd.replaceAll(/[^\dA-Za-z]/g, "-"), "s-1.jsonl");
  const alone = createConversations(undefined, []);
  assert.equal(await alone.bring(six.home, six.cwd, "s-1"), true);
  assert.equal(readFileSync(file, "utf8"), "what was said");
  writeFileSync(file, "more was said");
  assert.equal(await alone.bring(six.home, six.cwd, "s-1"), true);
  assert.equal(readFileSync(file, "utf8"), "more was said");
});

test("one that is lost is not gone on with", async () => {
  const blobs = memory();
  const [one, three] = [machine("one-more"), machine("three")];
  talk(one, "s-1", "x");
  const kept = await createConversations(blobs, []).keep(one.home, "run", mark);
  assert.equal(await createConversations(blobs, []).bring(three.home, three.cwd, "s-1"), false, "no mark");
  blobs.all.clear();
  assert.equal(
    await createConversations(blobs, [kept]).bring(three.home, three.cwd, "s-1"),
    false,
    "no blob",
  );
});

test("without blobs nothing is stored, and Claude Code says itself what it does not have", async () => {
  const four = machine("four");
  talk(four, "s-1", "x");
  const alone = createConversations(undefined, []);
  assert.deepEqual(await alone.keep(four.home, "run", mark), mark);
  assert.equal(await alone.bring(four.home, four.cwd, "s-2"), true);
});

test("the name of a session leads nowhere else", async () => {
  const blobs = memory();
  const five = machine("five");
  writeFileSync(join(temp, "secret.jsonl"), "secret");
  for (const session of ["../../../secret", "*", "a/b", ""]) {
    const evil = { session, conversation: await blobs.put("run", Buffer.from("evil")) };
    const talks = createConversations(blobs, [evil]);
    assert.equal(await talks.bring(five.home, five.cwd, session), false, session);
    assert.deepEqual(await talks.keep(five.home, "run", evil), evil, session);
  }
  assert.equal(existsSync(join(five.home, "projects")), false);
  assert.deepEqual(readdirSync(five.home), []);
});
