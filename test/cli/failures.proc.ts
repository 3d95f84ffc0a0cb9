/** Whatever goes wrong: the promised exit code, and with --json exactly one document. */
import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  createWorld,
  lastLine,
  MAIN,
  onlyDocument,
  replies,
  script,
  start,
  writeAgent,
  writeCheckedAgent,
  type Ran,
} from "./world.ts";

const world = createWorld();
process.on("exit", () => world[Symbol.dispose]());

writeAgent(world, "notes");
writeAgent(world, "short", {
  agent: (agent) => {
    (agent.runner as { verdict: unknown }).verdict = { type: "detect:graph", config: { maxIterations: 2 } };
  },
});
writeAgent(world, "numbers", {
  agent: (agent) => {
    agent.parameters = { topic: { type: "number", description: "N", required: true, cli: "--topic" } };
  },
});
writeCheckedAgent(world, "doubter", "false", 2);
world.write(".agent/syntax/agent.json", '{\n  "name": "syntax",\n  "x" 1\n}\n');
world.write("full.json", script(replies.initial(), replies.continuation(), replies.closure()));
world.write("abort.json", script(replies.initial("abort")));
world.write(
  "doubt.json",
  script(
    replies.initial(),
    replies.continuation(),
    replies.closure(),
    replies.continuation(),
    replies.closure(),
  ),
);
world.write("mismatch.json", script(replies.closure()));
world.write("denied.json", script({ error: { kind: "auth", message: "no key" } }));
world.write("broken.yaml", "replies: [");
world.write(
  "text/runs.db",
  "this is no database, only some text that is long enough to be looked at by everybody\n".repeat(40),
);
world.write("file", "");

const base = ["--topic", "1", "--script", "full.json"];
type Case = {
  readonly name: string;
  readonly args: readonly string[];
  readonly code: number;
  readonly says: string | RegExp;
  readonly env?: NodeJS.ProcessEnv;
};

/** Commands that answer with the result document. */
const results: readonly Case[] = [
  { name: "a completed run", args: ["run", "notes", ...base], code: 0, says: /^null$/ },
  {
    name: "an aborted run",
    args: ["run", "notes", "--topic", "1", "--script", "abort.json"],
    code: 1,
    says: "AGENT_ABORTED",
  },
  {
    name: "a script for another step",
    args: ["run", "notes", "--topic", "1", "--script", "mismatch.json"],
    code: 1,
    says: "SCRIPT_MISMATCH",
  },
  { name: "no agent of that name", args: ["run", "notez", ...base], code: 2, says: "FLOW_INVALID" },
  { name: "broken JSON", args: ["run", "syntax"], code: 2, says: "FLOW_INVALID" },
  {
    name: "a parameter of the wrong type",
    args: ["run", "numbers", "--topic", "many", "--script", "full.json"],
    code: 2,
    says: "PARAMETERS_INVALID",
  },
  {
    name: "a parameter without a value",
    args: ["run", "notes", "--topic", "", "--script", "full.json"],
    code: 2,
    says: "PARAMETERS_INVALID",
  },
  {
    name: "a parameter missing",
    args: ["run", "notes", "--script", "full.json"],
    code: 2,
    says: "PARAMETERS_INVALID",
  },
  { name: "an unknown flag", args: ["run", "notes", "--topik", "x"], code: 2, says: "USAGE" },
  { name: "no name", args: ["run"], code: 2, says: "USAGE" },
  { name: "two names", args: ["run", "notes", "short", ...base], code: 2, says: "USAGE" },
  { name: "--json beside --events", args: ["run", "notes", ...base, "--events"], code: 2, says: "USAGE" },
  {
    name: "a script that is not there",
    args: ["run", "notes", "--topic", "1", "--script", "gone.yaml"],
    code: 2,
    says: "SCRIPT_INVALID",
  },
  {
    name: "a script that cannot be read",
    args: ["run", "notes", "--topic", "1", "--script", "broken.yaml"],
    code: 2,
    says: "SCRIPT_INVALID",
  },
  {
    name: "a folder that is not there",
    args: ["run", "notes", "-C", "gone"],
    code: 2,
    says: "NO_SUCH_FOLDER",
  },
  { name: "an unknown run", args: ["show", "zzz", "--state", "none"], code: 2, says: "RUN_UNKNOWN" },
  { name: "nothing to resume", args: ["resume", "zzz", "--state", "none"], code: 2, says: "RUN_UNKNOWN" },
  { name: "no model", args: ["run", "notes", "--topic", "1"], code: 3, says: "NO_BACKEND" },
  {
    name: "a model without credentials",
    args: ["run", "notes", "--topic", "1", "--script", "denied.json"],
    code: 3,
    says: "BACKEND_UNAVAILABLE",
  },
  {
    name: "commands that nobody trusts",
    args: ["run", "doubter", "--topic", "1", "--script", "doubt.json"],
    code: 3,
    says: "NOT_TRUSTED",
  },
  {
    name: "a journal that is a text file",
    args: ["run", "notes", ...base, "--state", "text"],
    code: 3,
    says: "STATE_FOREIGN",
  },
  {
    name: "a journal that is a text file, shown",
    args: ["show", "@last", "--state", "text"],
    code: 3,
    says: "JOURNAL_UNAVAILABLE",
  },
  {
    name: "a journal that is a text file, resumed",
    args: ["resume", "@last", "--state", "text"],
    code: 3,
    says: "JOURNAL_UNAVAILABLE",
  },
  {
    name: "a state folder that is a file",
    args: ["run", "notes", ...base, "--state", "file"],
    code: 3,
    says: "JOURNAL_UNAVAILABLE",
  },
  { name: "an agent without a name", args: ["run", ""], code: 2, says: "USAGE" },
  {
    name: "a state folder without a name",
    args: ["run", "notes", ...base, "--state", ""],
    code: 2,
    says: "USAGE",
  },
  { name: "too many iterations", args: ["run", "short", ...base], code: 4, says: "AGENT_MAX_ITERATIONS" },
  {
    name: "checks that never pass",
    args: ["run", "doubter", "--topic", "1", "--script", "doubt.json"],
    code: 6,
    says: "AGENT_VALIDATION_ABORT",
    env: { LOCKSTEP_TRUST: "all" },
  },
];

describe("run, resume and show answer with the result document", { concurrency: 3 }, () => {
  for (const { name, args, code, says, env } of results) {
    test(`${name}: exit ${code}`, async () => {
      const ran = await world.lockstep(["--json", ...args], env === undefined ? {} : { env });
      const document = onlyDocument(ran);
      assert.equal(ran.code, code, ran.stderr);
      assert.deepEqual([document.v, document.exitCode, document.success], [1, code, code === 0]);
      assert.match(String(document.code), says instanceof RegExp ? says : new RegExp(`^${says}$`));
      assert.ok(Array.isArray(document.path) && Array.isArray(document.problems));
      assert.ok(String(document.reason).length > 0);
    });
  }
});

/** Commands that answer with something else; `says` is looked for in the whole document. */
const others: readonly Case[] = [
  { name: "no command", args: [], code: 2, says: '"code":"USAGE"' },
  { name: "an unknown command", args: ["chek"], code: 2, says: 'Did you mean \\\\"check\\\\"' },
  {
    name: "an unknown flag of check",
    args: ["check", "--stric"],
    code: 2,
    says: '"ok":false,"problems":\\[{"code":"USAGE"',
  },
  {
    name: "findings",
    args: ["check", "syntax"],
    code: 2,
    says: '"agent":"syntax","ok":false,"problems":\\[{"code":"AC-SERVICE-002"',
  },
  {
    name: "findings of all agents",
    args: ["check"],
    code: 2,
    says: '"agents":\\[{"agent":"doubter","ok":true',
  },
  {
    name: "an agent that is misspelled",
    args: ["check", "notez"],
    code: 2,
    says: 'Did you mean \\\\"notes\\\\"',
  },
  {
    name: "run --validate",
    args: ["run", "notes", "--validate"],
    code: 0,
    says: '"agent":"notes","ok":true,"problems":\\[\\]',
  },
  {
    name: "a word too few",
    args: ["diff", "@last"],
    code: 2,
    says: 'diff needs RUN RUN; only \\\\"@last\\\\" was given',
  },
  { name: "an unknown flag and no command", args: ["-V"], code: 2, says: "Unknown flag -V" },
  {
    name: "an unknown long flag and no command",
    args: ["--wat"],
    code: 2,
    says: "Unknown flag --wat",
  },
  {
    name: "a drawing in a form that there is not",
    args: ["graph", "notes", "--out", "flow.png"],
    code: 2,
    says: "no format for .png. Name the file .mmd.*--format text",
  },
  { name: "a limit that is no number", args: ["runs", "--limit", "many"], code: 2, says: '"code":"USAGE"' },
  {
    name: "runs in a text file",
    args: ["runs", "--state", "text"],
    code: 3,
    says: '"code":"JOURNAL_UNAVAILABLE"',
  },
  {
    name: "a doctor who finds a broken journal",
    args: ["doctor", "--state", "text"],
    code: 3,
    says: '"ok":false.*"status":"fail"',
  },
  { name: "a bad name for an agent", args: ["init", "My_Agent"], code: 2, says: "cannot name an agent" },
  { name: "an unknown shell", args: ["completion", "tcsh"], code: 2, says: '"code":"USAGE"' },
  { name: "runs in a file", args: ["runs", "--state", "file"], code: 3, says: "file is not a folder" },
  {
    name: "a check of nothing",
    args: ["check", ""],
    code: 2,
    says: 'check needs NAME, but \\\\"\\\\" was given',
  },
  {
    name: "a run without a name",
    args: ["show", ""],
    code: 2,
    says: 'show needs RUN\\|FILE, but \\\\"\\\\" was given',
  },
  {
    name: "help of an agent that is not there",
    args: ["run", "notez", "--help"],
    code: 2,
    says: "AC-SERVICE-001",
  },
  { name: "help for nothing", args: ["help", "rnu"], code: 2, says: 'Did you mean \\\\"run\\\\"' },
  { name: "help", args: ["help", "run"], code: 0, says: '"commands":\\[{"name":"run"' },
  { name: "help of a command", args: ["runs", "--help"], code: 0, says: '"commands":\\[{"name":"runs"' },
  { name: "the version", args: ["--version"], code: 0, says: '"version":"\\d' },
];

describe("the other commands print one document too", { concurrency: 3 }, () => {
  for (const { name, args, code, says } of others) {
    test(`${name}: exit ${code}`, async () => {
      const ran = await world.lockstep([...args, "--json"]);
      const document = onlyDocument(ran);
      assert.equal(ran.code, code, ran.stderr);
      assert.equal(document.v, 1);
      assert.match(ran.stdout, new RegExp(says));
    });
  }
});

describe("without --json a person is told", { concurrency: 3 }, () => {
  test("lockstep alone prints help to stderr and is no success", async () => {
    const ran = await world.lockstep([]);
    assert.deepEqual([ran.code, ran.stdout], [2, ""]);
    assert.match(ran.stderr, /^Commands$/m);
  });

  test("--help is a result", async () => {
    const ran = await world.lockstep(["--help"]);
    assert.deepEqual([ran.code, ran.stderr], [0, ""]);
    assert.match(ran.stdout, /^Commands$/m);
  });

  test("-v alone is the version, as other programs have it; with a command it is not", async () => {
    const [version, alone, checked] = await Promise.all(
      [["--version"], ["-v"], ["list", "-v"]].map(async (line) => await world.lockstep(line)),
    );
    assert.deepEqual(alone, version);
    assert.notEqual(checked!.stdout, version!.stdout);
  });

  test("--version is one line, and loads no more than it needs", async () => {
    const ran = await withImport(REPORT_LOADS, ["--version"]);
    assert.equal(ran.code, 0);
    assert.match(ran.stdout, /^\d+\.\d+\.\d+\n$/);
    const loaded = filesLoadedBy(ran);
    // Most of it is the table of commands with their help; `bench` measures the time.
    const bytes = loaded.reduce((sum, url) => sum + statSync(fileURLToPath(url)).size, 0);
    assert.ok(loaded.length > 0 && loaded.length <= 3 && bytes < 96 * 1024, `${bytes}: ${loaded.join("\n")}`);
  });

  test("the user's settings are read once in a run, and once more by a resume", async () => {
    const count = `import fs from "node:fs";
      import { syncBuiltinESMExports } from "node:module";
      const { openSync } = fs;
      let reads = 0;
      fs.openSync = (file, ...how) => {
        if (String(file).endsWith("lockstep/config.json")) reads += 1;
        return openSync(file, ...how);
      };
      syncBuiltinESMExports();
      process.on("exit", () => process._rawDebug("settings read: " + reads));`;
    const readsIn = ({ stderr }: Ran) => /^settings read: (\d+)$/m.exec(stderr)?.[1];
    world.writeHome(".config/lockstep/config.json", '{ "limits": { "turns": 2 } }');
    try {
      const ran = await withImport(count, ["run", "notes", ...base, "--state", "once"]);
      assert.deepEqual([ran.code, readsIn(ran)], [4, "1"], ran.stderr);
      const more = ["--max-turns", "9", "--state", "once"];
      const resumed = await withImport(count, ["resume", "@last", ...more]);
      assert.deepEqual([resumed.code, readsIn(resumed)], [0, "1"], resumed.stderr);
    } finally {
      world.writeHome(".config/lockstep/config.json", "{}");
    }
  });

  test("a run loads few files, and no built-in module with all that Node would load on demand", async () => {
    const ran = await withImport(REPORT_LOADS, ["run", "notes", ...base]);
    const loaded = filesLoadedBy(ran);
    assert.ok(loaded.length > 3 && loaded.length <= 10, loaded.join("\n"));
    const builtins = ran.stderr.split("\n").filter((url) => url.startsWith("node:"));
    assert.deepEqual(
      builtins.filter((name) => name !== "node:module"),
      [],
    );
  });

  test("a check loads what loads an agent, and not what runs it; help loads neither", async () => {
    const isPart = (name: string) => (file: string) => new RegExp(`/${name}-[\\w-]{8}\\.js$`).test(file);
    for (const { line, parts } of [
      { line: ["check", "notes"], parts: ["load"] },
      { line: ["run", "notes", ...base], parts: ["load", "run"] },
      { line: ["--help"], parts: [] },
    ]) {
      const loaded = filesLoadedBy(await withImport(REPORT_LOADS, line));
      const found = ["load", "run", "ajv"].filter((name) => loaded.some(isPart(name)));
      assert.deepEqual(found, parts, loaded.join("\n"));
    }
  });

  test("an old Node is told so: exit 3", async () => {
    const old = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.1.0" } });
      process.getBuiltinModule = undefined;`;
    const ran = await withImport(old, ["runs", "--json"]);
    assert.deepEqual([ran.code, onlyDocument(ran).code], [3, "NODE_TOO_OLD"]);
    assert.match(ran.stderr, /^lockstep needs Node 24 or newer, but this is Node 20\.1\.0/);
  });

  test("the last line on stdout tells the outcome, even of a misspelled flag", async () => {
    const ran = await world.lockstep(["run", "notes", "--topik", "x"]);
    assert.equal(ran.code, 2);
    assert.equal(ran.stdout, '{"outcome":"failed"}\n');
    assert.match(
      ran.stderr,
      /Unknown flag --topik\. Did you mean "--topic"\? See: lockstep run notes --help/,
    );
  });

  test("help of an agent that cannot be read says so", async () => {
    const ran = await world.lockstep(["run", "syntax", "--help"]);
    assert.equal(ran.code, 0);
    assert.doesNotMatch(ran.stdout, /Parameters of the agent/);
    assert.match(ran.stderr, /^The parameters of syntax are unknown because .* See: lockstep check syntax$/m);
  });

  test("problems of an invalid flow are shown with their lines", async () => {
    const ran = await world.lockstep(["run", "syntax"]);
    assert.equal(lastLine(ran.stdout), '{"outcome":"failed"}');
    assert.match(ran.stderr, /^\.agent\/syntax\/agent\.json:3:\d+ {2}error {2}AC-SERVICE-002$/m);
    assert.match(ran.stderr, /^ {2}> 3 \| {3}"x" 1$/m);
    assert.match(ran.stderr, /^ {2}fix /m);
  });

  test("a missing model names the script that lies beside the agent", async () => {
    const ran = await world.lockstep(["run", "notes", "--topic", "two words"]);
    assert.equal(ran.code, 3);
    assert.match(
      ran.stderr,
      /lockstep run notes --topic 'two words' --script \.agent\/notes\/script\.yaml$/m,
    );
  });

  test("--quiet still says why it failed", async () => {
    const ran = await world.lockstep(["run", "notes", "-q", "--topic", "1", "--script", "abort.json"]);
    assert.equal(ran.code, 1);
    assert.equal(ran.stderr.trimEnd().split("\n").length, 2);
    assert.match(ran.stderr, /^✗ failed AGENT_ABORTED/);
    // All of the reason: the last lines say what to type.
    const untrusted = { env: { LOCKSTEP_TRUST: "" } };
    const refused = await world.lockstep(
      ["run", "doubter", "-q", "--topic", "1", "--script", "abort.json"],
      untrusted,
    );
    assert.equal(refused.code, 3, refused.stderr);
    assert.match(refused.stderr, /needs your trust first.*--trust /s);
  });

  test("a journal that is removed during the run ends it: exit 3", async () => {
    using own = createWorld();
    own.env.LOCKSTEP_TRUST = "all";
    writeCheckedAgent(own, "remover", "rm -rf .lockstep");
    own.write("all.json", script(replies.initial(), replies.continuation(), replies.closure()));
    const line = ["run", "remover", "--topic", "t", "--script", "all.json", "--sandbox", "off"];
    const ran = await own.lockstep(line);
    assert.equal(ran.code, 3, ran.stderr);
    assert.match(ran.stderr, /runs\.db was removed or moved while the run was using it/);
    // Without the check the same run is recorded to its end.
    writeCheckedAgent(own, "remover", "true");
    assert.equal((await own.lockstep(line)).code, 0);
  });

  test("a damaged run is named, and hides no other", async () => {
    using own = createWorld();
    writeAgent(own, "notes");
    own.write("all.json", script(replies.initial(), replies.continuation(), replies.closure()));
    for (const topic of ["sound", "harmed"])
      assert.equal((await own.lockstep(["run", "notes", "--topic", topic, "--script", "all.json"])).code, 0);
    const db = new DatabaseSync(join(own.root, ".lockstep/runs.db"));
    const [harmed = "", sound = ""] = db
      .prepare("SELECT id FROM run ORDER BY key DESC")
      .all()
      .map(({ id }) => String(id));
    const { seq } = db.prepare("SELECT max(seq) - 1 AS seq FROM event WHERE run = 2").get() as {
      seq: number;
    };
    db.prepare("UPDATE event SET body = replace(body, 'at', 'aT') WHERE run = 2 AND seq = ?").run(seq);
    db.close();
    const listed = await own.lockstep(["runs"]);
    assert.equal(listed.code, 0, listed.stderr);
    assert.match(listed.stdout, new RegExp(`${harmed} +notes +damaged JOURNAL_UNAVAILABLE`));
    assert.match(listed.stdout, new RegExp(`${sound} +notes +completed`));
    assert.equal((await own.lockstep(["show", sound])).code, 0);
    const said = new RegExp(`entry ${seq} of run ${harmed} does not fit its checksum`);
    for (const [line, out] of [
      [["show", harmed], /initial\.note #1 → .*✗ damaged JOURNAL_UNAVAILABLE/s],
      [["show", harmed, "--json"], /"outcome": ?"damaged".*"code": ?"JOURNAL_UNAVAILABLE"/s],
      [["show", harmed, "--result"], /^$/],
      [["effects", harmed], /^$/],
      [["effects", harmed, "--json"], /"damaged": ?"/],
      [["whatif", "--agent", "notes"], /cannot be followed: damaged.*2 runs: 1 the same, 0 another way, 1 /s],
      [["why", harmed, "closure.note@2"], /^$/],
      [["show", harmed, "--events"], /"run\.started"/],
      [["why", harmed, "initial.note"], /initial\.note/],
      [["why", harmed, "--json"], /"damaged": ?"/],
      [["logs", harmed], /info /],
      [["export", harmed, "-o", "part.json"], /^$/],
      [["resume", harmed], /"outcome":"failed"/],
    ] as const) {
      const shown = await own.lockstep([...line]);
      assert.equal(shown.code, 3, `${line.join(" ")}: ${shown.stderr}`);
      assert.match(shown.stdout + shown.stderr, said);
      assert.match(shown.stdout, out, line.join(" "));
    }
    const all = await own.lockstep(["replay", "--all"]);
    assert.equal(all.code, 3, all.stderr);
    const examined = await own.lockstep(["doctor"]);
    assert.match(
      examined.stdout,
      /warn +journal +2 runs, of which at least 1 .*fix: lockstep doctor --journal/,
    );
    assert.match(
      (await own.lockstep(["runs", "--prune", harmed, "--dry-run"])).stdout,
      new RegExp(`${harmed} +notes +damaged`),
    );
    assert.match(all.stdout, new RegExp(`damaged  ${harmed} .*\n.*same  ${sound} `));
    const bundle = JSON.parse(readFileSync(join(own.root, "part.json"), "utf8")) as {
      entries: unknown[];
      damaged: { seq: number };
    };
    assert.deepEqual([bundle.entries.length, bundle.damaged.seq], [seq - 1, seq]);
    assert.equal((await own.lockstep(["replay", "part.json"])).code, 0);
    const imported = await own.lockstep(["import", "part.json", "--as", "other"]);
    assert.match(imported.stderr, /was exported from a damaged record and is incomplete: .*lockstep replay/);
    const refused = await own.lockstep(["runs", "--prune", harmed, "--keep", "1"]);
    assert.match(refused.stderr, /--keep cannot be used with RUN/);
    assert.match((await own.lockstep(["runs", harmed])).stderr, /lockstep show/);
    const again = new DatabaseSync(join(own.root, ".lockstep/runs.db"));
    again.exec("DELETE FROM event WHERE run = 2 AND seq = 1");
    again.close();
    const first = await own.lockstep(["show", harmed, "--json"]);
    const told = JSON.parse(first.stdout) as { [name: string]: unknown };
    assert.deepEqual([first.code, told.run, told.agent, told.outcome], [3, harmed, "notes", "damaged"]);
    assert.match(String(told.reason), new RegExp(`from a copy, or .*: lockstep runs --prune ${harmed}$`));
    assert.equal((await own.lockstep(["runs", "--prune", harmed, "--yes"])).code, 0);
    const left = JSON.parse((await own.lockstep(["runs", "--json"])).stdout) as { runs: { run: string }[] };
    assert.deepEqual(
      left.runs.map(({ run }) => run),
      [sound],
    );
  });

  test("a journal that came from elsewhere does not control the terminal", async () => {
    using own = createWorld();
    writeAgent(own, "notes");
    own.write("all.json", script(replies.initial(), replies.continuation(), replies.closure()));
    for (const topic of ["a", "b", "c"])
      assert.equal((await own.lockstep(["run", "notes", "--topic", topic, "--script", "all.json"])).code, 0);
    const db = new DatabaseSync(join(own.root, ".lockstep/runs.db"));
    db.exec(`UPDATE run SET id = 'a' || char(27) || ']0;PWN' || char(7) || 'b' || char(10) || '  next rm -rf' WHERE key = 1;
      UPDATE run SET id = 'a$(id>pwned)' || char(8238) WHERE key = 2;
      UPDATE run SET id = 'sound', sum = NULL WHERE key = 3`);
    db.close();
    for (const [line, code, said] of [
      [["runs"], 0, /^damaged-2 +- +damaged JOURNAL_UNAVAILABLE/m],
      [["show", "a"], 2, /"a" could be any of damaged-2, damaged-1; give more/],
      [["show", "damaged-1"], 3, /row of run damaged-1 is not valid/],
      [["why", "a$"], 3, /row of run damaged-2 is not valid/],
      [["worktree", "list"], 0, /./],
      [["__complete", "--", "show", ""], 0, /^damaged-1\t/m],
      [["show", "sound"], 0, /completed/],
      [["runs", "--prune", "--keep", "1", "--yes"], 0, /Removed 2 runs/],
    ] as const) {
      const ran = await own.lockstep([...line]);
      const text = ran.stdout + ran.stderr;
      assert.equal(ran.code, code, text);
      assert.match(text, said);
      assert.doesNotMatch(text, /(?![\n\t])\p{Cc}|\u202e|pwned|PWN|next rm/u);
    }
  });

  test("a check that overturns the end is named", async () => {
    const ran = await world.lockstep(["run", "doubter", "--topic", "1", "--script", "doubt.json"], {
      env: { LOCKSTEP_TRUST: "all" },
    });
    assert.equal(ran.code, 6);
    assert.match(ran.stderr, /^ {2}closure\.note #1 → closing ✗ proof \(unproven\) → continuation\.note$/m);
    assert.match(ran.stderr, /^ {2}checks +proof: ✗ unproven, ✗ unproven$/m);
  });
});

/** For `withImport`: the address of every module that is loaded, on stderr. */
const REPORT_LOADS = `import { registerHooks } from "node:module";
  registerHooks({ load: (url, context, next) => (process._rawDebug(url), next(url, context)) });`;

function filesLoadedBy({ stderr }: Ran): readonly string[] {
  return stderr.split("\n").filter((url) => url.startsWith("file:"));
}

/** With a module that is loaded before the program. */
async function withImport(code: string, args: readonly string[]): Promise<Ran> {
  const url = `data:text/javascript,${encodeURIComponent(code)}`;
  return await start(process.execPath, ["--import", url, MAIN, ...args], world.root, { env: world.env });
}
