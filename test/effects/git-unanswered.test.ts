/** A git that could not be started has answered nothing: no exit code of it is taken for an answer. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { heldChangesOn, type HeldChanges } from "../../src/effects/git/control-changes.ts";
import { finalize as finish, type Finalizing } from "../../src/effects/git/finalize.ts";
import type { GitAnswer, Git } from "../../src/effects/git/git.ts";
import { createLedger, type Done } from "../../src/effects/actions/ledger.ts";
import { mergeBranch } from "../../src/effects/git/merge.ts";
import type { Worktree } from "../../src/flow/event.ts";

const home = mkdtempSync(join(tmpdir(), "lockstep-unanswered-"));
mkdirSync(join(home, ".git"));
writeFileSync(join(home, ".git/HEAD"), "ref: refs/heads/main\n");
after(() => rmSync(home, { recursive: true }));

const finalize = { autoMerge: true, push: false, createPr: false, remote: "origin", prTarget: null };
const worktree: Worktree = {
  path: join(home, "tree"),
  branch: "mine",
  base: "main",
  commit: "c0",
  home,
  finalize,
};
const listed = (name: string, tip: string) => `refs/heads/${name}\0${tip}\0\0\n`;
const BRANCHES = listed("main", "c0") + listed("mine", "c1");
const ok = (out: string): GitAnswer => ({ ok: true, out });
const not = (exit: number, out = ""): GitAnswer => ({ ok: false, exit, out, why: "bwrap: no" });

/** Answers by the first word that it is asked with. */
const gitThat =
  (answers: { readonly [word: string]: GitAnswer }): Git =>
  (_cwd, [word = ""]) =>
    Promise.resolve(answers[word] ?? not(126));

const raw = (modes: string, path: string) => `:${modes} old new M\0${path}\0`;

const CHANGES = [
  raw("100644 100644", "a.txt"),
  raw("000000 100644", ".agent/x"),
  raw("160000 160000", "lib"),
  raw("100644 160000", "more"),
  raw("160000 000000", "gone"),
].join("");

describe("what a branch changes of what a person has to look at", () => {
  const rows: readonly (readonly [string, { readonly [word: string]: GitAnswer }, HeldChanges | null])[] = [
    ["nothing can be asked", {}, null],
    ["the branches cannot be listed", { "merge-base": ok("c0\n"), "diff-tree": ok("") }, null],
    ["the changes cannot be listed", { "for-each-ref": ok(BRANCHES), "merge-base": ok("c0\n") }, null],
    [
      "there is no such branch",
      { "for-each-ref": ok(listed("mine/x", "c2")) },
      { files: [], submodules: [] },
    ],
    [
      "all is answered",
      { "for-each-ref": ok(BRANCHES), "merge-base": ok("c0\n"), "diff-tree": ok(CHANGES) },
      {
        files: [".agent/x"],
        submodules: [
          { path: "lib", from: "old", to: "new" },
          { path: "more", from: null, to: "new" },
          { path: "gone", from: "old", to: null },
        ],
      },
    ],
  ];
  for (const [name, answers, expected] of rows)
    test(name, async () => {
      assert.deepEqual(await heldChangesOn(gitThat(answers), worktree, "mine"), expected);
    });
});

describe("a merge", () => {
  const rows: readonly (readonly [string, GitAnswer, RegExp])[] = [
    ["is not in conflict over nothing", not(1), /^not merged: bwrap: no$/],
    ["is not in conflict where git was not started", not(126), /^not merged: bwrap: no$/],
    ["is in conflict where git names a file", not(1, "tree\0a.txt\0"), /in conflict over a\.txt; resolve/],
  ];
  for (const [name, answer, says] of rows)
    test(name, async () => {
      const done: Done[] = [];
      const ledger: Finalizing["ledger"] = {
        act: async ({ perform }) => done.push(await perform()) > 0,
        stateOf: () => null,
        isOpen: () => false,
        dryRun: false,
      };
      const git = gitThat({ "for-each-ref": ok(BRANCHES), "merge-tree": answer });
      const proposing = {} as Finalizing["proposing"];
      await mergeBranch({
        git,
        ledger,
        worktree,
        copy: [],
        run: "r",
        agent: "a",
        proposing,
        onWait: () => undefined,
        signal: new AbortController().signal,
      });
      assert.deepEqual(
        done.map(({ state }) => state),
        ["failed"],
      );
      assert.match(done[0]!.detail, says);
    });
});

describe("a question that an interruption cuts off is not answered", () => {
  // What an earlier process left open, and the questions of the rest of the end.
  const rows: readonly (readonly [open: string, questions: number])[] = [
    ["remove", 3],
    ["merge", 2],
  ];
  for (const [open, questions] of rows)
    for (let nth = 1; nth <= questions; nth += 1)
      test(`${open}: at question ${nth} nothing is recorded from it`, async () => {
        const stop = new AbortController();
        let asked = 0;
        // Without the interruption the branch would be gone, or all of it be in its base.
        const git: Git = (_cwd, [word = ""]) => {
          asked += 1;
          if (asked === nth) stop.abort();
          if (stop.signal.aborted) return Promise.resolve({ ok: false, exit: null, out: "", why: "cut off" });
          return Promise.resolve(word === "rev-parse" ? ok("c1\n") : ok(""));
        };
        const events: string[] = [];
        const ledger = createLedger({
          past: new Map([[open, { state: "intended" as const }]]),
          record: async ({ type, key }) => void events.push(`${key} ${type}`),
          dryRun: false,
          signal: stop.signal,
        });
        const about = { git, ledger, worktree, copy: [], run: "r", agent: "a" };
        const proposing = {} as Finalizing["proposing"];
        const around = { proposing, onWait: () => undefined, signal: stop.signal };
        assert.equal(await finish({ ...about, ...around }), false);
        assert.deepEqual(
          events.filter((event) => event !== `${open} effect.intended`),
          [],
        );
        assert.ok(asked >= nth, "it was not asked so often");
      });
});
