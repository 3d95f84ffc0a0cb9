/** Cloned projects at every door of the command: before somebody trusts one, nothing of it runs, loads or calls out. */
import assert from "node:assert/strict";
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { agentFiles, stepTo } from "../run/project.ts";
import { enter } from "./doors.ts";
import { FOREIGN, git, PROJECTS, put, URL_MARK } from "./hostile-projects.ts";

const closing = { output: { stepId: "x", next_action: { action: "closing" } } };
const handoff = { output: { stepId: "x", next_action: { action: "handoff" } } };
const SCRIPT = JSON.stringify({ replies: [handoff, closing] });
const FREE = { boundaries: { allowedTools: ["*"], permissionMode: "bypassPermissions" } };
/** A model that does harm as soon as it is asked again. */
const HARM = { calls: [{ name: "Bash", input: { command: "touch PWNED ../PWNED" } }] };

const steps = (closure: object = {}) => ({
  "initial.a": stepTo("work", { handoff: "closure.a" }),
  "closure.a": { ...stepTo("closure", { closing: null }), more: closure },
});

/** In this order: the later ones meet what the earlier ones left. */
const DOORS: readonly (readonly string[])[] = [
  ["list"],
  ["check"],
  ["check", "trusting", "--json"],
  ["graph", "trusting"],
  ["explain", "trusting"],
  ["explain", "trusting", "--boundary"],
  ["doctor"],
  ["models"],
  ["runs"],
  ["show", "@last"],
  ["why", "@last"],
  ["logs", "@last"],
  ["effects", "@last"],
  ["replay", "@last"],
  ["export", "@last"],
  ["worktree", "list"],
  ["worktree", "prune", "--dry-run"],
  ["resume", "@last", "--max-turns", "9"],
  ["answer", "@last"],
  ["continue", "@last"],
  ["pause", "@last"],
  ["stop", "@last"],
  ["fork", "@last", "--at", "initial.a"],
  ["whatif", "--agent", "trusting"],
  ["run", "trusting", "--script", "SCRIPT"],
  ["resume", "@last"],
  ["import", "BUNDLE"],
  ["resume", "@last", "--max-turns", "9"],
  ["worktree", "prune"],
  ["runs", "--prune", "--yes"],
];

describe("before anybody trusted it, nothing is obeyed of a project with", () => {
  let base: string;
  let bundle: string;
  let connections = 0;
  const server = createServer((_, response) => response.end("{}")).on("connection", () => (connections += 1));

  before(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    base = realpathSync(mkdtempSync(join(tmpdir(), "lockstep-hostile-")));
    // Recorded by somebody else, in the middle of a run.
    const author = join(base, "author");
    for (const [path, text] of Object.entries(agentFiles("trusting", steps(), { runner: FREE })))
      put(author, path, text);
    put(author, "script.json", JSON.stringify({ replies: [handoff, HARM, HARM, closing] }));
    const env = { PATH: process.env.PATH, HOME: join(base, "author-home"), LOCKSTEP_TRUST: "all" };
    mkdirSync(env.HOME);
    const begun = ["run", "trusting", "--script", join(author, "script.json"), "--max-turns", "1"];
    const recorded = await enter(begun, author, env);
    assert.equal(recorded.code, 4, recorded.stderr);
    const exported = await enter(["export", "@last"], author, env);
    assert.equal(exported.code, 0, exported.stderr);
    bundle = join(base, "bundle.json");
    writeFileSync(bundle, exported.stdout);
  });
  after(() => {
    server.close();
    rmSync(base, { recursive: true, force: true });
  });

  assert.ok(Object.keys(PROJECTS).length >= 100, `${Object.keys(PROJECTS).length} projects`);
  for (const [name, make] of Object.entries(PROJECTS)) {
    test(name, async () => {
      const folder = mkdtempSync(join(base, "project-"));
      const [root, home, outside] = ["project", "home", "outside"].map((part) => join(folder, part)) as [
        string,
        string,
        string,
      ];
      for (const made of [root, home, outside]) mkdirSync(made);
      writeFileSync(join(home, "keep.txt"), "yours");
      const {
        more,
        closure,
        files = {},
        prepare,
        cwd = ".",
        path = [],
        repository,
        flags = [],
        runs = false,
      } = make({
        root,
        home,
        outside,
      });
      const { port } = server.address() as AddressInfo;
      const own = { ...agentFiles("trusting", steps(closure), more), ...files };
      for (const [file, text] of Object.entries(own))
        put(root, file, text.replaceAll(URL_MARK, `http://127.0.0.1:${port}/evil`));
      if (repository) {
        git(root, "init", "-q");
        git(root, "add", "-A");
        git(root, "commit", "-qm", "start");
      }
      prepare?.({ root, home, outside });
      adoptForeign(root, outside);
      const script = join(folder, "script.json");
      writeFileSync(script, SCRIPT);

      const PATH = [...path.map((part) => join(root, part)), ...path, process.env.PATH].join(delimiter);
      const env = { PATH, HOME: home, CI: "1" };
      const words = { SCRIPT: script, BUNDLE: bundle } as { readonly [word: string]: string };
      for (const door of DOORS) {
        const args = door.map((word) => words[word] ?? word);
        const all = door[0] === "run" ? [...args, ...flags] : args;
        const ran = await enter(all, join(root, cwd), env);
        const told = `${door.join(" ")}: exit ${ran.code}\n${ran.stderr}`;
        assert.doesNotMatch(ran.stderr, /bug in Lockstep/, told);
        if (door[0] === "run") assert.ok(runs ? ran.code === 0 : ran.code === 2 || ran.code === 3, told);
        assert.deepEqual(globSync("**/PWNED", { cwd: folder }), [], told);
        assert.equal(connections, 0, told);
        assert.equal(existsSync(join(home, ".config/lockstep/trust.json")), false, told);
        assert.equal(readFileSync(join(home, "keep.txt"), "utf8"), "yours", told);
        assert.equal(existsSync(join(home, ".hushlogin")) || existsSync(join(home, "made.db")), false, told);
      }
    });
  }

  function adoptForeign(root: string, outside: string): void {
    if (!existsSync(join(root, FOREIGN))) return;
    rmSync(join(root, FOREIGN));
    const moved = join(outside, "moved");
    const target = existsSync(moved) ? moved : join(root, ".lockstep");
    cpSync(join(base, "author/.lockstep"), target, { recursive: true });
  }
});
