import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Problem } from "../../../src/flow/problem.ts";
import { createWorld, writeAgent, type World } from "../world.ts";
import { until } from "../../until.ts";

const REGISTRY = ".agent/notes/steps_registry.json";

/** The agent that `init` writes, with a step that calls itself by another name and a misspelled target. */
function broken(): World {
  const world = createWorld();
  writeAgent(world, "notes");
  const text = readFileSync(join(world.root, REGISTRY), "utf8")
    .replace('"stepId": "continuation.note"', '"stepId": "continuation.nte"')
    .replace('"handoff": { "target": "closure.note" }', '"handoff": { "target": "closure.nte" }');
  world.write(REGISTRY, text);
  return world;
}

test("--fix mends what has one right answer, tells it, and finds nothing to do the second time", async () => {
  using world = broken();
  const before = readFileSync(join(world.root, REGISTRY), "utf8");
  const first = await world.lockstep(["check", "notes", "--fix"]);
  assert.equal(first.code, 0, first.stdout + first.stderr);
  assert.match(
    first.stdout,
    /steps_registry\.json:\d+ {2}fixed {2}SR-VALID-004\n {2}"continuation\.nte" → "continuation\.note"/,
  );
  assert.match(first.stdout, /✓ notes: no problems/);
  const after = readFileSync(join(world.root, REGISTRY), "utf8");
  assert.equal(after, before.replaceAll(".nte", ".note"));

  const second = await world.lockstep(["check", "notes", "--fix"]);
  assert.match(second.stdout, /^Nothing can be fixed automatically/);
  assert.equal(readFileSync(join(world.root, REGISTRY), "utf8"), after);
});

test("--fix --dry-run only says so, in text and in the document", async () => {
  using world = broken();
  const before = readFileSync(join(world.root, REGISTRY), "utf8");
  const text = await world.lockstep(["check", "notes", "--fix", "--dry-run"]);
  assert.equal(text.code, 2);
  assert.match(text.stdout, /would fix {2}SR-TRANS-006/);
  const { code, stdout } = await world.lockstep(["check", "notes", "--fix", "--dry-run", "--json"]);
  const document = JSON.parse(stdout) as { ok: boolean; fixable: { code: string; before: string }[] };
  assert.deepEqual([code, document.ok], [2, false]);
  assert.deepEqual(
    document.fixable.map((one) => [one.code, one.before]),
    [
      ["SR-VALID-004", '"continuation.nte"'],
      ["SR-TRANS-006", '"closure.nte"'],
    ],
  );
  assert.equal(readFileSync(join(world.root, REGISTRY), "utf8"), before);
});

test("--sarif holds the findings of --json, with rules, places and ways", async () => {
  using world = broken();
  const json = await world.lockstep(["check", "--json"]);
  const { problems } = JSON.parse(json.stdout) as { problems: readonly Problem[] };
  const sarif = await world.lockstep(["check", "--sarif"]);
  assert.equal(sarif.code, json.code);
  const { version, runs } = JSON.parse(sarif.stdout) as Sarif;
  const [run] = runs;
  assert.equal(version, "2.1.0");
  assert.deepEqual(
    run!.results.map(({ ruleId, level, locations: [place], properties }) => ({
      code: ruleId,
      severity: level,
      file: place!.physicalLocation.artifactLocation.uri,
      line: place!.physicalLocation.region.startLine,
      fix: properties.fix,
    })),
    problems.map(({ code, severity, file, line, fix }) => ({ code, severity, file, line, fix })),
  );
  for (const { ruleId, ruleIndex } of run!.results) {
    const rule = run!.tool.driver.rules[ruleIndex];
    assert.equal(rule?.id, ruleId);
    assert.ok(rule.shortDescription.text !== "" && rule.fullDescription.text !== "");
  }
  const lost = run!.results.find(({ ruleId }) => ruleId === "SR-TRANS-006");
  const way = lost?.codeFlows?.[0]?.threadFlows[0]?.locations.map(({ location }) => location.message.text);
  assert.deepEqual(way, ["initial.note", "continuation.note", "closure.nte"]);
});

/** What a stranger types wrong in files that were good: text → text, and the one finding that it must bring. */
const SPOILED: readonly (readonly [file: string, from: string, to: string, found: string])[] = [
  ["notes/agent.json", '"Read", "Glob"', '"Raed", "Glob"', "TOOL-UNKNOWN agent.json"],
  ["notes/agent.json", '"version"', '"version": "0.0.1",\n  "version"', "DUPLICATE-KEY agent.json"],
  [
    "notes/steps_registry.json",
    '"structuredGate": {',
    '"StructuredGate": {',
    "UNKNOWN-KEY steps_registry.json",
  ],
  [
    "notes/schemas/note.schema.json",
    '"type": "array"',
    '"type": "array",\n          "maxItems": "one"',
    "FAILED_SCHEMA_RESOLUTION schemas/note.schema.json",
  ],
  [
    "notes/prompts/steps/initial/note/f_default.md",
    "{uv-topic}",
    "{uv-topic} {uv-topc}",
    "PR-RESOLVE-005 prompts/steps/initial/note/f_default.md",
  ],
  ["ship/stages/1-plan.md", "[Read, Glob, Grep]", "[Read, WebSearch]", "StageToolUnknown stages/1-plan.md"],
  ["ship/hooks.mjs", "", "export default {\n  plan: { setup() { } \n", "MODULE-SYNTAX hooks.mjs"],
];

test("text, --json and --sarif hold the same findings, each with file, line, column and fix", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  await world.lockstep(["init", "ship", "--stages"]);
  for (const [file, from, to] of SPOILED) {
    const path = join(world.root, ".agent", file);
    const text = from === "" ? "" : readFileSync(path, "utf8");
    assert.ok(text.includes(from), `${file}: ${from}`);
    world.write(`.agent/${file}`, text.replace(from, to));
  }
  const text = await world.lockstep(["check"]);
  const json = await world.lockstep(["check", "--json"]);
  const sarif = await world.lockstep(["check", "--sarif"]);
  const { problems } = JSON.parse(json.stdout) as { problems: readonly Problem[] };
  const told = problems.map((one) => `${one.file}:${one.line}:${one.column} ${one.severity} ${one.code}`);
  assert.deepEqual(
    problems.map((one) => `${one.code} ${one.file.split("/").slice(2).join("/")}`).toSorted(),
    SPOILED.map(([, , , found]) => found).toSorted(),
  );
  assert.ok(problems.every(({ message, why, fix }) => message !== "" && why !== "" && fix !== ""));
  assert.deepEqual(
    [...text.stdout.matchAll(/^(\S+:\d+:\d+) {2}(\w+) {2}(\S+)$/gm)]
      .map(([, place, severity, code]) => `${place} ${severity} ${code}`)
      .toSorted(),
    told.toSorted(),
  );
  assert.equal([...text.stdout.matchAll(/^ {2}fix {2}\S/gm)].length, problems.length);
  const results = (JSON.parse(sarif.stdout) as Sarif).runs[0]!.results;
  assert.deepEqual(
    results.map(({ ruleId, level, locations: [place] }) => {
      const { artifactLocation, region } = place!.physicalLocation;
      return `${artifactLocation.uri}:${region.startLine}:${region.startColumn} ${level} ${ruleId}`;
    }),
    told,
  );
  assert.deepEqual([text.code, json.code, sarif.code], [2, 2, 2]);
});

type Sarif = {
  readonly version: string;
  readonly runs: readonly {
    readonly tool: {
      readonly driver: {
        readonly rules: readonly {
          readonly id: string;
          readonly shortDescription: { readonly text: string };
          readonly fullDescription: { readonly text: string };
        }[];
      };
    };
    readonly results: readonly {
      readonly ruleId: string;
      readonly ruleIndex: number;
      readonly level: string;
      readonly locations: readonly {
        readonly physicalLocation: {
          readonly artifactLocation: { readonly uri: string };
          readonly region: { readonly startLine: number; readonly startColumn: number };
        };
      }[];
      readonly codeFlows?: readonly {
        readonly threadFlows: readonly {
          readonly locations: readonly {
            readonly location: { readonly message: { readonly text: string } };
          }[];
        }[];
      }[];
      readonly properties: { readonly fix: string };
    }[];
  }[];
};

test("--watch tells of every change to the findings, of nothing else, and ends with 0", async () => {
  using world = broken();
  const path = join(world.root, REGISTRY);
  const before = readFileSync(path, "utf8");
  let stage = 0;
  /** As a whole: a file that is only half written is another finding. */
  const replace = (text: string) => {
    writeFileSync(`${path}.new`, text);
    renameSync(`${path}.new`, path);
  };
  /** The same findings again, until a reading of them cannot be one that had begun before, and then none. */
  const change = async (child: ChildProcess) => {
    for (const end of ["\n", "\n\n", "\n\n\n"]) {
      const read = bytesReadBy(child);
      replace(before + end);
      await until(() => bytesReadBy(child) >= read + before.length, "the file is read again");
    }
    replace(before.replaceAll(".nte", ".note"));
  };
  const { code, stdout } = await world.lockstep(["check", "notes", "--watch"], {
    watch: (output, child) => {
      if (stage === 0 && output.includes("✗ notes:")) {
        stage = 1;
        void change(child);
      } else if (stage === 1 && output.includes("✓ notes: no problems")) {
        stage = 2;
        child.kill("SIGINT");
      }
    },
  });
  assert.equal(code, 0);
  assert.equal(stage, 2);
  assert.equal(stdout.match(/^[✗✓] notes:/gm)?.length, 2, stdout);
});

/** Where the system does not count them, the process is taken to have read enough. */
function bytesReadBy({ pid }: ChildProcess): number {
  const counts = `/proc/${pid}/io`;
  if (!existsSync(counts)) return Number.POSITIVE_INFINITY;
  return Number(/^rchar: (\d+)$/m.exec(readFileSync(counts, "utf8"))?.[1]);
}

for (const [flags, says] of [
  [["--sarif", "--json"], /--sarif and --json cannot be used together/],
  [["--watch", "--fix"], /--watch and --fix cannot be used together/],
  [["--dry-run"], /--dry-run only works with --fix/],
] as const) {
  test(`${flags.join(" ")} is refused`, async () => {
    using world = createWorld();
    writeAgent(world, "notes");
    const { code, stderr } = await world.lockstep(["check", ...flags]);
    assert.equal(code, 2);
    assert.match(stderr, says);
  });
}
