/** The recipes of docs/ci.md: the lines of each are run as its CI system runs them, on a project that is well and on others. */
import assert from "node:assert/strict";
import { spawnSync, type SpawnSyncReturns } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { isObject, type Json } from "../src/flow/json.ts";
import { readYaml } from "../src/load/text/yaml.ts";
import { stepsOf } from "../scripts/pages.ts";
import { createWorld, MAIN, type World } from "./cli/world.ts";

const page = readFileSync(fileURLToPath(new URL("../docs/ci.md", import.meta.url)), "utf8");
const files = new Map(
  stepsOf(page).flatMap((step) => (step.kind === "file" ? [[step.path, step.text] as const] : [])),
);

function yamlOf(path: string): Json {
  const read = readYaml(path, files.get(path)!);
  assert.equal(read.kind, "read", path);
  return read.kind === "read" ? read.document.value : null;
}

function at(value: Json | undefined, ...path: readonly (string | number)[]): Json | undefined {
  return path.reduce<Json | undefined>((inner, key) => {
    if (Array.isArray(inner)) return (inner as readonly Json[])[Number(key)];
    return isObject(inner) ? inner[key] : undefined;
  }, value);
}

const itemsOf = (value: Json | undefined): readonly Json[] =>
  Array.isArray(value) ? (value as readonly Json[]) : [];
const texts = (value: Json | undefined): readonly string[] =>
  itemsOf(value).filter((one) => typeof one === "string");

/** Of each system the lines of its recipe; a line that fails ends the job. */
const RECIPES: readonly (readonly [system: string, lines: readonly string[]])[] = [
  [
    "GitHub Actions",
    itemsOf(at(yamlOf(".github/workflows/agents.yml"), "jobs", "agents", "steps")).flatMap((step) =>
      texts([at(step, "run") ?? null]),
    ),
  ],
  ["GitLab", texts(at(yamlOf(".gitlab-ci.yml"), "agents", "script"))],
  ["cron", files.get("nightly.sh")!.split("\n")],
];

type Job = (lines: readonly string[]) => SpawnSyncReturns<string>;

/** A project as the page has it; `npm ci` is recorded, and `npx` finds the command as it does after an installation. */
async function project(): Promise<World & { readonly job: Job }> {
  const world = createWorld();
  const bin = join(world.root, "node_modules/.bin");
  mkdirSync(bin, { recursive: true });
  const program = (name: string, text: string) => {
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(bin, name), 0o755);
  };
  program("npm", 'echo "npm $*"');
  program("npx", `shift\nexec '${process.execPath}' '${MAIN}' "$@"`);
  assert.equal((await world.lockstep(["init", "hello"])).code, 0);
  for (const [path, text] of files) world.write(path, text);
  const job: Job = (lines) => {
    // The night is too long for a test.
    const script = lines.join("\n").replace("--for 10m", "--for 1s");
    return spawnSync("bash", ["-e", "-o", "pipefail", "-c", script], {
      cwd: world.root,
      encoding: "utf8",
      env: { ...world.env, PATH: `${bin}:${dirname(process.execPath)}:${process.env.PATH}`, CI: "true" },
    });
  };
  return { ...world, job };
}

test("every recipe installs, checks, tests with coverage and fuzzes", () => {
  for (const [system, lines] of RECIPES)
    assert.deepEqual(
      lines.map((line) => line.split(" ").slice(0, 3).join(" ")).filter((line) => line.startsWith("np")),
      ["npm ci", "npx lockstep check", "npx lockstep test", "npx lockstep fuzz"],
      system,
    );
});

for (const [system, lines] of RECIPES)
  test(`${system}: the recipe passes, and fails on a missed threshold, a failed test and a finding`, async () => {
    using world = await project();
    const missed = world.job(lines);
    assert.equal(missed.status, 7, missed.stdout + missed.stderr);
    assert.match(missed.stdout, /transitions +4\/10 +40 % +at least 100 % +missed/);
    assert.match(
      missed.stdout,
      /Generate tests for what is not covered with: lockstep test hello --generate --write/,
    );
    assert.doesNotMatch(missed.stdout, /every property held/, "a line that fails ends the job");

    assert.equal((await world.lockstep(["test", "hello", "--generate", "--write"])).code, 0);
    const passed = world.job(lines);
    assert.equal(passed.status, 0, passed.stdout + passed.stderr);
    assert.match(passed.stdout, /^npm ci$/m);
    assert.match(passed.stdout, /transitions +10\/10 +100 %/);
    assert.match(passed.stdout, /every property held/);
    const [coverage] = texts([at(yamlOf(".gitlab-ci.yml"), "agents", "coverage") ?? null]);
    const [, share] = new RegExp(coverage!.slice(1, -1), "m").exec(passed.stdout) ?? [];
    assert.equal(share, "100");

    const first = join(world.root, ".agent/hello/tests/first.yaml");
    const text = readFileSync(first, "utf8");
    const reports = join(world.root, "reports");
    rmSync(reports, { recursive: true, force: true });
    writeFileSync(first, text.replace("outcome: completed", "outcome: failed"));
    const failed = world.job(lines);
    assert.equal(failed.status, 7, failed.stdout + failed.stderr);
    assert.match(failed.stdout, /outcome +expected +failed +\.agent\/hello\/tests\/first\.yaml:13/);
    if (system !== "cron") {
      const junit = readFileSync(join(reports, "lockstep.xml"), "utf8");
      assert.match(junit, /failures="1"/);
    }
    if (system === "GitHub Actions")
      assert.match(failed.stdout, /^::error file=\.agent\/hello\/tests\/first\.yaml,line=13,/m);

    writeFileSync(first, text.replace("outcome:", "outcom:"));
    const found = world.job(lines);
    assert.equal(found.status, 2, found.stdout + found.stderr);
    assert.match(found.stdout, /TEST-KEY/);
    assert.doesNotMatch(found.stdout, /tests, /);
  });

test("the line for cron runs the script of the page", async () => {
  using world = await project();
  const [line] = /^\d+ \d+ \* \* \* (.*)$/m.exec(page)?.slice(1) ?? [];
  const { status } = world.job([line!.replace("$HOME/my-project", world.root)]);
  assert.equal(status, 7);
  const log = join(world.root, "nightly.log");
  assert.ok(existsSync(log));
  assert.match(readFileSync(log, "utf8"), /at least 100 % +missed/);
});
