/** Runs handed to a fleet: what is recorded, what is refused before that, and what workers of this machine make of it. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { readPostgresAddress } from "../../src/journal/postgres/address.ts";
import { openPostgres, type Postgres } from "../../src/journal/postgres/connection.ts";
import { pgPackage, serversHere, startServer, type PostgresServer } from "../journal/postgres/server.ts";
import { createWorld, onlyDocument, replies, script, writeAgent, type World } from "../cli/world.ts";
import { needs } from "../needs.ts";

const packages = process.env.LOCKSTEP_PACKAGES ?? "";
const [programs] = serversHere().values();
const missing = pgPackage() === null ? "pg@8 (a fleet)" : "PostgreSQL 15 or newer (a fleet)";
const { skip } = needs(pgPackage() !== null && programs !== undefined, missing);
const env = { LOCKSTEP_PACKAGES: packages };

type Row = { readonly [column: string]: unknown };

describe("fleet submit", { skip }, () => {
  let server: PostgresServer;
  let address = "";
  let postgres: Postgres;
  let world: World;
  before(async () => {
    server = await startServer(programs!);
    address = `${server.url}?schema=submit`;
    world = createWorld();
    writeAgent(world, "notes");
    world.write("script.json", script(replies.initial(), replies.continuation(), replies.closure()));
    assert.equal((await world.lockstep(["fleet", "init", "--state", address], { env })).code, 0);
    postgres = openPostgres({ address: readPostgresAddress(address), pg: pgPackage()!, patienceMs: 5000 });
  });
  after(async () => {
    await postgres?.close();
    world?.[Symbol.dispose]();
    server?.remove();
  });

  const fleet = async (...args: readonly string[]) =>
    await world.lockstep(["fleet", ...args, "--state", address], { env });
  const NOTES = ["submit", "notes", "--topic", "tides", "--script", "script.json", "--no-files"];
  const rows = async (): Promise<readonly Row[]> =>
    await postgres.send({ name: "", text: `SELECT * FROM ${postgres.schema}.run ORDER BY key` });

  test("records a run that nobody drives, with what was asked for it", async () => {
    const wanted = ["--queue", "slow", "--group", "nightly", "--priority", "-5", "--not-before", "8h"];
    const ran = await fleet(...NOTES, ...wanted, "--json");
    assert.equal(ran.code, 0, ran.stderr);
    const { v, runs } = onlyDocument(ran) as { v: number; runs: readonly Row[] };
    assert.equal(v, 1);
    const [{ run, ...rest }] = runs as [Row];
    assert.deepEqual(rest, { name: "notes", queue: "slow", isNew: true });
    const row = (await rows()).find(({ id }) => id === run);
    assert.deepEqual(
      [row?.queue, row?.grp, row?.priority, row?.owner, row?.epoch, row?.speaks],
      ["slow", "nightly", -5, null, 0, 1],
    );
    const wait = (row!.due as Date).getTime() - Date.now();
    assert.ok(wait > 7 * 3_600_000 && wait <= 8 * 3_600_000 + 60_000, String(wait));
    const shown = onlyDocument(
      await world.lockstep(["show", String(run), "--json", "--state", address], { env }),
    );
    assert.deepEqual([shown.outcome, shown.code, shown.exitCode], ["queued", "QUEUED", null]);
    assert.match(ran.stderr, /No worker takes runs from the queue "slow"/);
  });

  test("a span is counted by the clock of the server", async () => {
    const skew = new URL("skew.ts", import.meta.url).href;
    const around = { ...env, NODE_OPTIONS: `--import=${skew}`, SKEW_MS: "-7200000" };
    const args = ["fleet", ...NOTES, "--not-before", "8h", "--state", address];
    const ran = await world.lockstep(args, { env: around });
    assert.equal(ran.code, 0, ran.stderr);
    const wait = ((await rows()).at(-1)!.due as Date).getTime() - Date.now();
    assert.ok(wait > 7 * 3_600_000 && wait <= 8 * 3_600_000 + 60_000, String(wait));
  });

  test("the same key is the same run; of several issues, each has its own", async () => {
    writeAgent(world, "iterator", {
      agent: (agent) => {
        agent.parameters = {
          ...(agent.parameters as object),
          issue: { type: "number", description: "The issue", required: true, cli: "--issue" },
        };
      },
    });
    const issues = [
      "submit",
      "iterator",
      "--topic",
      "tides",
      "--script",
      "script.json",
      "--no-files",
      "--key",
      "night 1",
      "--json",
    ];
    const first = onlyDocument(await fleet(...issues, "--issues", "12,15-16")).runs as readonly Row[];
    assert.deepEqual(
      first.map(({ name, isNew }) => [name, isNew]),
      [
        ["#12", true],
        ["#15", true],
        ["#16", true],
      ],
    );
    const again = onlyDocument(await fleet(...issues, "--issues", "12,15-17")).runs as readonly Row[];
    assert.deepEqual(
      again.map(({ isNew }) => isNew),
      [false, false, false, true],
    );
    assert.deepEqual(
      again.slice(0, 3).map(({ run }) => run),
      first.map(({ run }) => run),
    );
  });

  test("asks for the trust that `trust show` names, and takes its digest", async () => {
    writeAgent(world, "busy", {
      agent: ({ runner }) => {
        const boundaries = { allowedTools: ["*"], permissionMode: "acceptEdits" };
        Object.assign(runner as object, { boundaries });
      },
      registry: ({ steps }) => {
        for (const step of Object.values(steps as { [id: string]: { permissionMode?: string } }))
          step.permissionMode = "acceptEdits";
      },
    });
    const busy = ["submit", "busy", ...NOTES.slice(2)];
    const refused = await fleet(...busy);
    const [, wanted = ""] = /pass --trust ([0-9a-f]{64})/.exec(refused.stderr) ?? [];
    assert.deepEqual([refused.code, wanted.length], [3, 64], refused.stderr);
    const here = await world.lockstep(["trust", "show", "busy"], { env });
    assert.match(here.stdout + here.stderr, new RegExp(`trust show busy --sandbox off|${wanted}`));
    const shown = await world.lockstep(["trust", "show", "busy", "--sandbox", "off", "--json"], { env });
    assert.equal(onlyDocument(shown).digest, wanted);
    assert.equal((await fleet(...busy, "--trust", wanted)).code, 0);
    assert.equal((await fleet(...busy)).code, 0);
    const after = await world.lockstep(["trust", "show", "busy"], { env });
    assert.doesNotMatch(after.stdout + after.stderr, /--sandbox off/);
  });

  const REFUSED: readonly (readonly [name: string, args: readonly string[], says: RegExp])[] = [
    ["a priority that is none", [...NOTES, "--priority", "high"], /-1000 to 1000/],
    ["a priority that is too high", [...NOTES, "--priority", "1001"], /-1000 to 1000/],
    ["a time that is none", [...NOTES, "--not-before", "soon"], /2030-01-31/],
    ["a queue that is no name", [...NOTES, "--queue", "a b"], /letters, digits/],
    ["a queue without a name", [...NOTES, "--queue", ""], /letters, digits/],
    ["a group without a name", [...NOTES, "--group", ""], /--group needs a text/],
    ["a group that is too long", [...NOTES, "--group", "g".repeat(501)], /1 to 500/],
    ["an empty key", [...NOTES, "--key", ""], /--key needs a text/],
    ["a worker of a queue that is no name", ["worker", "--queue", "bad name"], /letters, digits/],
    ["a worker of a queue without a name", ["worker", "--queue", "runs", "--queue", ""], /letters, digits/],
    ["a worker without a name", ["worker", "--name", ""], /--name needs a text/],
    ["to drain a worker without a name", ["drain", ""], /not empty/],
    ["files and none", [...NOTES, "--bundle"], /cannot be used together/],
    ["a folder without a repository", NOTES.slice(0, -1), /no git repository.*--no-files/s],
    ["a parameter that is missing", ["submit", "notes", "--no-files"], /topic/],
    ["an agent that is not there", ["submit", "nobody", "--no-files"], /nobody/],
  ];
  for (const [name, args, says] of REFUSED)
    test(`refuses ${name}, and records nothing`, async () => {
      const before = (await rows()).length;
      const ran = await fleet(...args);
      assert.equal(ran.code, 2, ran.stdout + ran.stderr);
      assert.match(ran.stdout + ran.stderr, says);
      assert.equal((await rows()).length, before);
    });

  test("workers whose rows others wrote are shown as unknown, and do not hide the id of a run", async () => {
    const { schema } = postgres;
    const offers = ["'not json'", "'{}'", "'null'", "NULL", '\'{"slots":2,"queues":["odd"],"speech":1}\''];
    const values = offers.map(
      (text, at) =>
        `('o${at}', 'h', ${at}, clock_timestamp(), clock_timestamp(), '1 hour', 'w${at}', ${text})`,
    );
    await postgres.send({
      name: "",
      text: `INSERT INTO ${schema}.owner (id, host, pid, since, beat, lease, worker, offers) VALUES ${values.join(", ")}`,
    });
    const ps = await fleet("ps");
    assert.equal(ps.code, 0, ps.stderr);
    assert.match(ps.stdout, /^w0 +h \(0\) +\? +\? +0\/\? +\?/m);
    assert.match(ps.stdout, /^w4 +h \(4\) +\? +odd +0\/2 +no/m);
    const status = await fleet("status", "--check");
    assert.equal(status.code, 1);
    assert.match(status.stdout, /^5 workers, 0 of 2 slots taken$/m);
    assert.match(status.stderr, /row of the worker w3 cannot be read/);
    const ran = await fleet(...NOTES, "--queue", "odd");
    assert.equal(ran.code, 0, ran.stderr);
    assert.ok(
      (await rows()).some(({ id }) => id === ran.stdout.trim()),
      ran.stdout,
    );
    assert.doesNotMatch(ran.stderr, /No worker takes/);
    await postgres.send({ name: "", text: `DELETE FROM ${schema}.owner` });
  });

  test("the id of a run is there also where the workers cannot be asked", async () => {
    const { schema } = postgres;
    await postgres.send({ name: "", text: `ALTER TABLE ${schema}.owner RENAME COLUMN offers TO away` });
    const ran = await fleet(...NOTES).finally(() =>
      postgres.send({ name: "", text: `ALTER TABLE ${schema}.owner RENAME COLUMN away TO offers` }),
    );
    assert.equal(ran.code, 0, ran.stderr);
    assert.ok(
      (await rows()).some(({ id }) => id === ran.stdout.trim()),
      ran.stdout,
    );
    assert.match(ran.stderr, /not known whether a worker takes it/);
  });

  test("one who only submits needs the rights that docs/fleet.md names, and can neither delete nor read others", async () => {
    const { schema } = postgres;
    const say = async (text: string) => void (await postgres.send({ name: "", text }));
    assert.equal(
      (await world.lockstep(["fleet", "init", "--state", `${server.url}?schema=others`], { env })).code,
      0,
    );
    const page = readFileSync(new URL("../../docs/fleet.md", import.meta.url), "utf8");
    const [, grants = ""] = /```sql\n(GRANT.*?)```/s.exec(page) ?? [];
    await say(`CREATE ROLE submitter LOGIN; ${grants.replaceAll(/\blockstep\b/g, schema)}`);
    const submitter = new URL(address);
    submitter.username = "submitter";
    using elsewhere = createWorld();
    writeAgent(elsewhere, "notes");
    elsewhere.write("script.json", script(replies.initial(), replies.continuation(), replies.closure()));
    const who = ["-c", "user.name=a", "-c", "user.email=a@example.invalid"];
    for (const args of [
      ["init", "-qb", "main"],
      ["add", "-A"],
      [...who, "commit", "-qm", "first"],
    ])
      assert.equal(spawnSync("git", args, { cwd: elsewhere.root, env: elsewhere.env }).status, 0);
    elsewhere.write("made.txt", "not committed");
    const submit = async (...how: readonly string[]) =>
      await elsewhere.lockstep(["fleet", ...NOTES.slice(0, -1), ...how, "--state", submitter.href], { env });
    const dirty = await submit();
    assert.equal(dirty.code, 2, dirty.stderr);
    assert.match(dirty.stderr, /made\.txt is not committed.*--bundle/s);
    const before = (await rows()).length;
    for (const how of [
      ["--no-files", "--key", "k"],
      ["--no-files", "--key", "k"],
      ["--bundle"],
      ["--bundle"],
    ]) {
      const ran = await submit(...how);
      assert.equal(ran.code, 0, ran.stderr);
    }
    assert.equal((await rows()).length, before + 3, "the same key is the same run");
    const tables = await postgres.send({
      name: "",
      text: `SELECT table_schema AS schema, table_name AS name FROM information_schema.tables
        WHERE table_schema IN ('${schema}', '${schema}_boss', 'others') AND table_type = 'BASE TABLE'`,
    });
    assert.ok(tables.length > 20, String(tables.length));
    const theirs = openPostgres({
      address: readPostgresAddress(submitter.href),
      pg: pgPackage()!,
      patienceMs: 0,
    });
    const isRefused = async (text: string) =>
      await theirs.send({ name: "", text }).then(
        () => false,
        (error: Error) => /permission denied/.test(error.message),
      );
    try {
      for (const table of tables) {
        const [of, name] = [String(table.schema), String(table.name)];
        assert.ok(await isRefused(`DELETE FROM ${of}.${name}`), `delete from ${of}.${name}`);
        assert.ok(await isRefused(`TRUNCATE ${of}.${name}`), `truncate ${of}.${name}`);
        const canRead = !(await isRefused(`SELECT * FROM ${of}.${name} LIMIT 1`));
        assert.equal(canRead, of === schema, `read ${of}.${name}`);
      }
      assert.ok(await isRefused(`UPDATE ${schema}.event SET body = ''`), "an entry stays as it is");
      assert.ok(await isRefused(`UPDATE ${schema}.run SET owner = 'me'`), "nobody takes a run this way");
      assert.ok(await isRefused(`UPDATE ${schema}.blob SET bytes = ''`), "files stay as they are");
    } finally {
      await theirs.close();
    }
  });

  test("refuses a folder as the record, and a server without tables", async () => {
    const folder = await world.lockstep(["fleet", ...NOTES, "--state", "here"], { env });
    assert.equal(folder.code, 2);
    assert.match(folder.stderr, /needs the address of a server/);
    const empty = await world.lockstep(["fleet", ...NOTES, "--state", `${server.url}?schema=empty`], { env });
    assert.equal(empty.code, 3);
    assert.match(empty.stderr, /lockstep fleet init/);
  });
});
