/** Runs that were recorded before the redesign: every teller reports about them what it reported then. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, mock, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { exportRun, importRun, lockstep, openJournal, parseBundle, replayRun, type Bundle } from "./doors.ts";
import { BASELINE, holdDocument, holdLines, holdPacked, holdText, readPacked } from "./stored.ts";
import { documentOf, NOW, tell, textOf, type Place } from "./tellers.ts";

/** Runs whose outputs are stored as they are, to be read in a diff; of the others documents are packed and texts are digests. */
const WHOLE: ReadonlySet<string> = new Set([
  "actions-099-completed",
  "clock-001-budget-exhausted",
  "ex01",
  "ex04-combined",
  "ex07",
  "ex08-github",
  "fork-054-interrupted",
  "golden-check-prompts",
  "golden-complete",
  "golden-fork",
  "golden-people",
  "golden-rate-limit",
  "golden-stage-hooks",
  "golden-stages",
  "people-022-answerrequired",
]);

/** Documents that say what a text beside them says, at greater length. */
const LONG: ReadonlySet<string> = new Set(["logs", "transcript", "redacted"]);

const names = readdirSync(join(BASELINE, "runs")).map((file) => file.replace(/\.json\.gz$/, ""));
const bundles = new Map<string, Bundle>();
const digests: string[] = [];

describe("runs recorded before the redesign", () => {
  let place: Place;
  let folder: string;

  before(async () => {
    mock.timers.enable({ apis: ["Date"], now: NOW });
    folder = mkdtempSync(join(tmpdir(), "lockstep-baseline-"));
    const stateDir = join(folder, "state");
    const env = { XDG_CONFIG_HOME: join(folder, "config"), HOME: folder };
    const journal = await openJournal(stateDir, { now: () => NOW }, { env });
    for (const name of names) {
      const bundle = parseBundle(readPacked(`runs/${name}.json.gz`), name);
      bundles.set(name, bundle);
      await importRun(journal, bundle, { as: name, cwd: "/project", now: 1_700_000_000_000 });
    }
    place = { journal, stateDir, env };
  });

  after(async () => {
    mock.timers.reset();
    await place.journal.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test("there are many, of every dialect", () => {
    const dialects = new Set([...bundles.values()].map(({ run, flows }) => flows[run.flow]!.dialect));
    assert.ok(names.length >= 50);
    assert.ok(dialects.size >= 4, [...dialects].join());
  });

  for (const name of names)
    test(name, async () => {
      const bundle = bundles.get(name)!;
      assert.equal((await replayRun(place.journal, name)).difference, null);
      assert.deepEqual((await exportRun(place.journal, name)).bundle.entries, bundle.entries);
      const isWhole = WHOLE.has(name);
      const { documents, texts } = await tell(name, bundle, place, isWhole);
      for (const [teller, text] of Object.entries(texts)) {
        const digest = createHash("sha256").update(text).digest("hex").slice(0, 16);
        if (isWhole) holdText(`told/${name}/${teller}.txt`, text);
        else digests.push(`${name} ${teller} ${digest}`);
      }
      const packed: { [teller: string]: unknown } = {};
      for (const [teller, document] of Object.entries(documents))
        if (isWhole && !LONG.has(teller)) holdDocument(`told/${name}/${teller}.json`, document);
        else packed[teller] = document;
      holdPacked(`told/${name}.json.gz`, packed);
    });

  test("the texts about the other runs", () => holdLines("told/texts.txt", digests));

  test("runs beside each other: diff and runs", async () => {
    const compared: { [pair: string]: unknown } = {};
    const texts: string[] = [];
    for (const [index, name] of names.entries()) {
      const pair = ["diff", name, names[(index + 1) % names.length]!];
      compared[pair.join(" ")] = await documentOf(pair, place);
      if (WHOLE.has(name)) texts.push(`$ ${pair.join(" ")}\n${await textOf(pair, place)}`);
    }
    compared.runs = await documentOf(["runs", "--limit", "500"], place);
    holdPacked("told/diff.json.gz", compared);
    holdText("told/diff.txt", texts.join("\n"));
  });
});

describe("journals as they were on disk before the redesign", () => {
  for (const file of readdirSync(join(BASELINE, "journals")))
    test(file, async () => {
      const folder = mkdtempSync(join(tmpdir(), "lockstep-baseline-"));
      try {
        const place = { stateDir: join(folder, "state"), env: { XDG_CONFIG_HOME: folder, HOME: folder } };
        mkdirSync(place.stateDir);
        const database = gunzipSync(readFileSync(join(BASELINE, "journals", file)));
        writeFileSync(join(place.stateDir, "runs.db"), database);
        const { code } = await lockstep(["replay", "--all", "--state", place.stateDir], place.env);
        assert.equal(code, 0);
        const listed = await documentOf(["runs"], place);
        const { document } = listed as {
          readonly document: { readonly runs: readonly { readonly run: string }[] };
        };
        const told: { [words: string]: unknown } = { runs: listed };
        for (const { run } of document.runs)
          for (const words of [
            ["show", run],
            ["why", run, "--all"],
          ])
            told[words.join(" ")] = await documentOf(words, place);
        holdPacked(`told/${file}.json.gz`, told);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    });
});
