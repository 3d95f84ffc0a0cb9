/** A run that is submitted here and driven by workers elsewhere: killed at every write, its files, commits and results are as without. */
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Backend, Journal } from "../../src/engine/ports.ts";
import type { Entry } from "../../src/flow/event.ts";
import { openTravelPlace } from "../../src/run/source-place.ts";
import { prepareRun } from "../../src/run/submit.ts";
import { newestTree } from "../../src/run/tree.ts";
import { dying } from "./breaking.ts";
import { repository, WORKER } from "./repository.ts";
import { createFleet, never, working } from "./travel-fleet.ts";

/** The second line cannot be repeated without being noticed. */
const linesFor = (name: string) => [
  `echo two > ${name}.txt; git add -A; git commit -qm "work of ${name}"`,
  `echo once >> ${name}.log`,
];

describe("a run that is killed at a write goes on elsewhere", async () => {
  const world = repository();
  const fleet = createFleet(world);
  const RESULTS = {
    merge: { finalize: { push: true } },
    push: { finalize: { autoMerge: false, push: true } },
  };
  const of = async (run: string) => {
    const [first] = await fleet.entries(run);
    assert.ok(first?.event.type === "run.started");
    return first.event.worktree!;
  };
  /** What the remote has of a run, and how often. */
  const onRemote = async (run: string, name: string, how: keyof typeof RESULTS) => {
    const { branch } = await of(run);
    const ref = how === "merge" ? "main" : branch;
    const show = (file: string) => world.git(world.remote, "show", `${ref}:${file}`);
    const count = (pattern: string) =>
      world.git(world.remote, "log", "--format=%s%n%b", `--grep=${pattern}`, ref).split("\n").filter(Boolean)
        .length;
    return {
      files: [show(`${name}.txt`), show(`${name}.log`)],
      commits: count(`work of ${name}`),
      merges:
        how === "merge"
          ? world
              .git(world.remote, "log", "--merges", "--format=%H", `--grep=Run ${run} `, "main")
              .split("\n")
              .filter(Boolean).length
          : 0,
    };
  };
  const EXPECTED = (how: keyof typeof RESULTS) => ({
    files: ["two", "once"],
    commits: 1,
    merges: how === "merge" ? 1 : 0,
  });

  const whole: { [how: string]: number } = {};
  for (const how of ["merge", "push"] as const)
    await test(`${how}: without a kill`, async () => {
      const run = await fleet.submit("git", RESULTS[how]);
      const end = await fleet.drive(run, "one", working(linesFor(how)));
      assert.equal(end.kind, "ended", JSON.stringify(end));
      assert.deepEqual(await onRemote(run, how, how), EXPECTED(how));
      whole[how] = (await fleet.entries(run)).length;
    });

  for (const how of ["merge", "push"] as const)
    for (const when of ["before", "after"] as const)
      await test(`${how}: ${when} each of its writes`, async () => {
        const all = Array.from({ length: whole[how]! }, (_, place) => place + 1);
        // All of them where there is time for it.
        const ats = all.filter(
          (at) => process.env.FLEET_KILLS !== undefined || at % 4 === (when === "before" ? 0 : 2),
        );
        for (const at of ats) {
          const name = `${how}-${when}-${at}`;
          const run = await fleet.submit("git", RESULTS[how]);
          const killed = await fleet.drive(run, "one", working(linesFor(name)), {
            through: dying(fleet.journal, at, when),
          });
          const end =
            killed.kind === "ended" ? killed : await fleet.drive(run, "two", working(linesFor(name)));
          assert.equal(end.kind, "ended", `${name}: ${JSON.stringify(end)}`);
          assert.deepEqual(await onRemote(run, name, how), EXPECTED(how), name);
        }
      });

  test("the user's own branch and files are as they were", () => {
    assert.equal(world.git(world.home, "status", "--porcelain"), "");
    assert.equal(
      world.git(world.home, "for-each-ref", "--format=%(refname)", "refs/heads", "refs/lockstep"),
      "refs/heads/main",
    );
  });
});

describe("what travels", () => {
  /** A process that dies when this call is recorded. */
  const afterCall = (journal: Journal, nth: number, die: (entry: Entry) => never): Journal => {
    let calls = 0;
    return {
      ...journal,
      claim: async (...args) => {
        const handle = await journal.claim(...args);
        return {
          ...handle,
          append: async (entries, adopted) => {
            await handle.append(entries, adopted);
            const called = entries.find(({ event }) => event.type === "step.called");
            if (called !== undefined && (calls += 1) === nth) die(called);
          },
        };
      },
    };
  };

  test("a tool call that was cut off finds the files as they were before it", async () => {
    const world = repository({ execution: {} });
    const fleet = createFleet(world);
    const run = await fleet.submit();
    const lines = ["echo a > made", "test -f made; test ! -e half; echo x > half; rm made; cat half > done"];
    // The first call is recorded; the process dies after the second has done its work.
    const isSecond = (entries: readonly { readonly event: { readonly type: string } }[]) =>
      entries.some(({ event }) => event.type === "step.called");
    let calls = 0;
    const through: Journal = {
      ...fleet.journal,
      claim: async (...args) => {
        const handle = await fleet.journal.claim(...args);
        return {
          ...handle,
          append: async (entries, adopted) => {
            if (isSecond(entries) && ++calls === 2) throw new Error("killed");
            await handle.append(entries, adopted);
          },
        };
      },
    };
    await assert.rejects(fleet.drive(run, "one", working(lines), { through }), /killed/);
    assert.ok(existsSync(join(world.temp, "one/runs", run, "home/half")), "the call had begun");
    const end = await fleet.drive(run, "one", working(lines));
    assert.equal(end.kind, "ended");
    const called = (await fleet.entries(run)).flatMap(({ event }) =>
      event.type === "step.called" ? event.results : [],
    );
    assert.deepEqual(
      called.map(({ ok }) => ok),
      [true, true],
    );
  });

  for (const [where, finalize] of [
    ["home", undefined],
    ["tree", { autoMerge: false, push: true }],
  ] as const)
    test(`a run that was killed between two tool calls goes on elsewhere with the same files (${where})`, async () => {
      const world = repository(finalize === undefined ? { execution: {} } : {});
      world.write("sub/tool.sh", "#!/bin/sh\n");
      world.write(".gitignore", "ignored\n");
      world.shell("git add -A; git commit -qm more; git push -q origin main");
      const fleet = createFleet(world);
      const run = await fleet.submit("git", finalize === undefined ? {} : { finalize });
      const lines = [
        "echo changed >> a.txt; mkdir new; echo one > 'new/odd name'; chmod +x sub/tool.sh; ln -s a.txt link",
        "git mv sub/tool.sh moved.sh; git commit -qm moved; rm a.txt; printf '\\377' > binary; echo x > ignored",
        "true",
      ];
      let commit: string | undefined;
      const through = afterCall(fleet.journal, 2, ({ tree }) => {
        commit = tree?.commit;
        throw new Error("killed");
      });
      await assert.rejects(fleet.drive(run, "one", working(lines), { through }), /killed/);
      const difference: string[] = [];
      const model = working(lines);
      const looking: Backend = {
        ...model,
        turn: async (request) => {
          const folder = join(world.temp, "two/runs", run, where);
          // With what is not tracked, by an index of its own.
          const git = `GIT_INDEX_FILE='${world.temp}/index' git -C '${folder}'`;
          difference.push(world.shell(`${git} add -A && ${git} diff --cached --stat ${commit}`));
          return await model.turn!(request);
        },
      };
      const end = await fleet.drive(run, "two", looking);
      assert.equal(end.kind, "ended", JSON.stringify(end));
      assert.equal(model.asked[0], "initial.work 2", "the calls are not repeated");
      assert.equal(difference[0], "");
    });

  test("each entry that changed files names them, and no other does", async () => {
    const world = repository({ execution: {} });
    const fleet = createFleet(world);
    const run = await fleet.submit();
    await fleet.drive(run, "one", working(["echo 1 > one", "true", "echo 2 > two"]));
    const entries = await fleet.entries(run);
    const calls = entries.filter(({ event }) => event.type === "step.called");
    assert.deepEqual(
      calls.map(({ tree }) => tree !== undefined),
      [true, false, true],
    );
    assert.equal(entries.filter(({ tree }) => tree !== undefined).length, 2);
  });

  test("uncommitted files come along with --bundle, and the run commits them with its own", async () => {
    const world = repository();
    const fleet = createFleet(world);
    world.write("draft.txt", "not committed\n");
    const run = await fleet.submit("bundle", { finalize: { autoMerge: false, push: true } });
    const end = await fleet.drive(run, "one", working(["cat draft.txt > copy.txt"]));
    assert.equal(end.kind, "ended", JSON.stringify(end));
    const [first] = await fleet.entries(run);
    assert.ok(first?.event.type === "run.started");
    const { branch } = first.event.worktree!;
    assert.equal(world.git(world.remote, "show", `${branch}:copy.txt`), "not committed");
  });

  test("what makes files ready is run wherever they are put in place, and again if it was cut off", async () => {
    const log = "$HOME/prepared";
    const execution = {
      place: { carry: ["kept"], prepare: `test ! -e "$HOME/broken" && echo ready >> "${log}"` },
    };
    const world = repository({ execution });
    world.write(".gitignore", "kept\nforgotten\n");
    world.shell("git add -A; git commit -qm ignore; git push -q origin main");
    const fleet = createFleet(world);
    const run = await fleet.submit();
    const prepared = () => world.shell(`wc -l < "${log}" 2>/dev/null || echo 0`).trim();
    const lines = ["echo a > kept; echo b > forgotten", "cat kept; test ! -e forgotten"];
    writeFileSync(join(world.env.HOME!, "broken"), "");
    const broken = await fleet.drive(run, "one", working(lines));
    assert.ok(
      broken.kind === "unavailable" && broken.code === "WORKTREE_UNAVAILABLE",
      JSON.stringify(broken),
    );
    assert.match(broken.reason, /place\.prepare/);
    world.shell('rm "$HOME/broken"');
    const stop = new AbortController();
    const yielded = await fleet.drive(run, "one", working(lines), {
      yieldSignal: stop.signal,
      observe: ({ event }) => event.type === "step.called" && stop.abort(),
    });
    assert.equal(yielded.kind, "yielded");
    assert.equal(prepared(), "1");
    const end = await fleet.drive(run, "two", working(lines));
    assert.equal(end.kind, "ended", JSON.stringify(end));
    assert.equal(prepared(), "2");
    const called = (await fleet.entries(run)).flatMap(({ event }) =>
      event.type === "step.called" ? event.results : [],
    );
    assert.deepEqual(
      called.map(({ ok }) => ok),
      [true, true],
    );
  });

  test("files that are not those that were trusted are not driven", async () => {
    const world = repository({ execution: {} });
    const fleet = createFleet(world);
    const run = await fleet.submit();
    const env = { ...world.env, LOCKSTEP_TRUST: undefined };
    const refused = await fleet.drive(run, "one", working([]), { env, accepts: ["0".repeat(64)] });
    assert.ok(refused.kind === "unavailable" && refused.code === "NOT_TRUSTED", JSON.stringify(refused));
    const taken = await fleet.drive(run, "one", working([]), { env });
    assert.equal(taken.kind, "ended", JSON.stringify(taken));
  });

  test("a run of this machine's own folder is not taken for one that travels", async () => {
    const world = repository({ execution: {} });
    const fleet = createFleet(world);
    const env = { ...world.env, LOCKSTEP_TRUST: "all" };
    const { run, entries } = await prepareRun({ agent: WORKER, cwd: world.home, env });
    await (await fleet.journal.create(run, entries)).release();
    const refused = await fleet.drive(run.id, "one", working([]));
    assert.ok(refused.kind === "unavailable" && /no source/.test(refused.reason), JSON.stringify(refused));
  });

  test("the newest files can be had without driving the run", async () => {
    const world = repository({ execution: {} });
    const fleet = createFleet(world);
    const run = await fleet.submit();
    await fleet.drive(run, "one", working(["echo 1 > one"]));
    const entries = await fleet.entries(run);
    const started = entries[0]!.event;
    assert.ok(started.type === "run.started");
    const flow = (await fleet.journal.flow(started.flow))!;
    const place = await openTravelPlace({
      work: join(world.temp, "three"),
      started,
      newest: newestTree(entries),
      flow,
      blobs: fleet.blobs,
      repositories: ["file://**"],
      env: world.env,
      signal: never,
    });
    assert.ok(existsSync(join(place.cwd, "one")));
  });
});
