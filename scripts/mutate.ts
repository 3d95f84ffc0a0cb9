/**
 * Plants small defects in the code, one at a time, and runs the tests that reach each: a defect that no test notices is
 * printed. Nothing is written into src/: the changed text is served to the process that runs the tests.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import type { Job, Outcome, Recorded } from "./mutant.ts";
import { diffOf, isValid, type Kind, KINDS, type Mutation, mutationsOf, planted } from "./mutations.ts";

const HELP = `Plants defects and prints those that no test notices.

  node scripts/mutate.ts [options]

  --count N         how many defects to plant (600; with --file or --changed: all)
  --seed N          another seed draws other defects (1)
  --file PATH       only in files whose path begins so; PATH:LINE is one line; may be repeated
  --changed[=REF]   only in lines that differ from REF (main)
  --kind NAME       only this kind, as printed; may be repeated
  --again PATH      only what survived in an earlier document (--json); what was noticed then still counts
  --tests PATH      only tests whose path begins so; may be repeated
  --workers N       processes side by side (2)
  --seconds N       tests are added to a defect until they take as long (10)
  --least PERCENT   exit with 1 when fewer are noticed
  --json            one document on stdout
`;

const ROOMS = ["flow", "load", "engine", "prompts", "boundaries", "story", "tell", "run"];

/** What composes files, processes and servers is held by tests that start the command; and logs are words for people. */
function isPure(file: string): boolean {
  if (!/^src\/(?:run|tell)\//.test(file)) return true;
  return !/\bfrom "node:|\bimport\("node:|\bprocess\./.test(textOf(file)) && !/\/log-/.test(file);
}

/** How many lines on either side of a defect count as being around it. */
const AROUND = 12;

/** How long tests may take where nothing is planted. */
const LONGEST_MS = 600_000;

interface Mutant extends Mutation {
  readonly file: string;
}

interface Judged {
  readonly mutant: Mutant;
  readonly outcome: "noticed" | "timed out" | "refused" | "survived";
  /** The test that noticed. */
  readonly by: string | null;
  readonly tests: number;
  /** Whether all tests that reach it ran. */
  readonly isTried: boolean;
}

/** What the tests of one file reached when they last ran, and the texts that this holds for. */
interface TestFile {
  readonly file: string;
  readonly texts: { readonly [file: string]: string };
  readonly recorded: readonly Recorded[];
  /** Tests that fail without those before them, by number. */
  readonly dependent: number[];
  /** Tests that were seen to pass on their own where nothing is planted, by name. */
  readonly alone: string[];
}

type Chosen = Job["files"];

const root = new URL("../", import.meta.url).pathname;
const cache = `${root}node_modules/.cache/mutate/`;

const { values: given } = parseArgs({
  options: {
    count: { type: "string" },
    seed: { type: "string", default: "1" },
    file: { type: "string", multiple: true, default: [] },
    changed: { type: "string" },
    kind: { type: "string", multiple: true, default: [] },
    again: { type: "string" },
    tests: { type: "string", multiple: true, default: [] },
    workers: { type: "string", default: "2" },
    seconds: { type: "string", default: "10" },
    least: { type: "string", default: "0" },
    json: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
  args: process.argv.slice(2).map((arg) => (arg === "--changed" ? "--changed=main" : arg)),
});

const texts = new Map<string, string>();
const hashes = new Map<string, string>();
const counted = new Map<string, readonly number[]>();

const stop = new AbortController();
process.once("SIGINT", () => {
  stop.abort();
  say("stopping: what was planted so far is summed up");
});

if (given.help) process.stdout.write(HELP);
else await main();

async function main(): Promise<void> {
  const began = performance.now();
  const earlier =
    given.again === undefined ? null : (JSON.parse(readFileSync(given.again, "utf8")) as Summary);
  const all = earlier === null ? mutants() : survivorsOf(earlier, mutants());
  const testFiles = await recordings();
  const lines = reachedLines(testFiles);
  const reached = all.filter(({ file, line }) => lines.get(file)?.has(line) ?? false);
  const isPart = given.file.length > 0 || given.changed !== undefined || earlier !== null;
  const isWhole = given.count === undefined && isPart;
  const drawn = draw(
    reached,
    isWhole ? Number.POSITIVE_INFINITY : Number(given.count ?? 600),
    Number(given.seed),
  );
  say(
    `${all.length} possible defects, ${all.length - reached.length} in lines that no test in process reaches`,
  );
  say(`${drawn.length} are planted`);
  const seconds = Number(given.seconds);
  const first = earlier === null ? await judgeAll(drawn, testFiles, seconds) : drawn.map(isOpenYet);
  const open = first.filter(({ outcome, isTried }) => outcome === "survived" && !isTried);
  if (open.length > 0) say("what survived meets more of the tests that reach it");
  const second = await judgeAll(
    open.map(({ mutant }) => mutant),
    testFiles,
    seconds * 5,
  );
  const again = new Map(second.map((one) => [one.mutant, one]));
  const judged = await withTypes(first.map((one) => again.get(one.mutant) ?? one));
  for (const testFile of testFiles) keep(testFile);
  const unreached = numbers(
    all.filter(({ file, line }) => lines.get(file)?.has(line) !== true),
    ({ file }) => file,
  );
  const document = withEarlier(
    earlier,
    summary(judged, { possible: all.length, unreached, ms: performance.now() - began }),
  );
  const survivors = judged.filter(({ outcome }) => outcome === "survived").map(described);
  console.log(given.json ? JSON.stringify(document, null, 2) : [...survivors, table(document)].join("\n"));
  if (document.percent < Number(given.least)) process.exitCode = 1;
}

async function judgeAll(
  all: readonly Mutant[],
  testFiles: readonly TestFile[],
  seconds: number,
): Promise<readonly Judged[]> {
  const judged: Judged[] = [];
  await each(all, Number(given.workers), async (mutant) => {
    const one = await judge(mutant, testFiles, seconds);
    // Ctrl-C ends the tests as well, and that is not a defect.
    if (stop.signal.aborted) return;
    judged.push(one);
    const { file, line, kind } = mutant;
    say(`${judged.length}/${all.length} ${one.outcome} ${file}:${line} (${kind}) ${one.by ?? ""}`);
    if (one.outcome === "survived") say(diffOf(textOf(file), mutant));
  });
  return judged;
}

/** What no test notices the compiler may refuse; it reads a copy of src/. */
async function withTypes(judged: readonly Judged[]): Promise<readonly Judged[]> {
  const copy = mkdtempSync(join(tmpdir(), "lockstep-mutate-"));
  try {
    cpSync(`${root}src`, `${copy}/src`, { recursive: true });
    for (const file of ["package.json", "tsconfig.json"]) cpSync(root + file, join(copy, file));
    symlinkSync(`${root}node_modules`, `${copy}/node_modules`);
    const { compilerOptions } = JSON.parse(textOf("tsconfig.json")) as { readonly compilerOptions: object };
    writeFileSync(`${copy}/tsconfig.json`, JSON.stringify({ compilerOptions, include: ["src"] }));
    if (!(await isTyped(copy))) throw new Error("src/ has errors of types where nothing is planted");
    const all: Judged[] = [];
    for (const one of judged) {
      const { file, line, kind } = one.mutant;
      const isOpen = one.outcome === "survived" && !stop.signal.aborted;
      if (isOpen) writeFileSync(join(copy, file), planted(textOf(file), one.mutant));
      const isRefused = isOpen && !(await isTyped(copy));
      if (isOpen) writeFileSync(join(copy, file), textOf(file));
      if (isRefused) say(`refused by the types: ${file}:${line} (${kind})`);
      all.push(isRefused ? { ...one, outcome: "refused", by: "tsc" } : one);
    }
    return all;
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

function isTyped(folder: string): Promise<boolean> {
  const tsc = spawn(`${root}node_modules/.bin/tsc`, ["-p", folder], { stdio: "ignore" });
  return new Promise((done, fail) => {
    tsc.once("error", fail);
    tsc.once("exit", (code) => done(code === 0));
  });
}

function mutants(): readonly Mutant[] {
  const changed = given.changed === undefined ? null : changedLines(given.changed);
  const unknown = given.kind.filter((kind) => !KINDS.some((known) => known === kind));
  if (unknown.length > 0) throw new Error(`--kind is one of: ${KINDS.join(", ")}`);
  return globSync(`src/{${ROOMS.join(",")}}/**/*.ts`, { cwd: root })
    .toSorted()
    .filter((file) => isMeant(file, null) && isPure(file) && (changed === null || changed.has(file)))
    .flatMap((file) => mutationsOf(textOf(file)).map((mutation) => Object.assign(mutation, { file })))
    .filter(({ file, line }) => isMeant(file, line) && (changed === null || changed.get(file)!.has(line)))
    .filter(({ kind }) => given.kind.length === 0 || given.kind.includes(kind));
}

/** The same edits as before: a file may have moved, and lines above may have come or gone. */
function survivorsOf(earlier: Summary, all: readonly Mutant[]): readonly Mutant[] {
  const keyOf = (kind: string, diff: string) => JSON.stringify([kind, diff]);
  const byEdit = Map.groupBy(all, (one) => keyOf(one.kind, diffOf(textOf(one.file), one)));
  const found = earlier.survivors.flatMap(({ file, line, kind, diff }) => {
    const isSame = (one: Mutant) => basename(one.file) === basename(file);
    const same = (byEdit.get(keyOf(kind, diff)) ?? []).toSorted(
      (a, b) => Number(isSame(b)) - Number(isSame(a)) || Math.abs(a.line - line) - Math.abs(b.line - line),
    );
    return same.slice(0, 1);
  });
  say(
    `${found.length} of ${earlier.survivors.length} survivors are planted again; the code of the others is gone`,
  );
  return found;
}

/** What survived before has had its first look. */
function isOpenYet(mutant: Mutant): Judged {
  return { mutant, outcome: "survived", by: null, tests: 0, isTried: false };
}

/** The score of both looks together; code that is gone is left out. */
function withEarlier(earlier: Summary | null, now: Summary): Summary {
  if (earlier === null) return now;
  const [planted, noticed] = [earlier.noticed + now.planted, earlier.noticed + now.noticed];
  return {
    ...now,
    seed: earlier.seed,
    possible: earlier.possible,
    planted,
    noticed,
    percent: percentOf(noticed, planted),
  };
}

function isMeant(file: string, line: number | null): boolean {
  if (given.file.length === 0) return true;
  return given.file.some((path) => {
    const [, start = path, number] = /^(.*?):(\d+)$/.exec(path) ?? [];
    return file.startsWith(start) && (line === null || number === undefined || Number(number) === line);
  });
}

function changedLines(ref: string): Map<string, Set<number>> {
  const args = ["-C", root, "diff", "--unified=0", "--no-color", "--no-ext-diff", ref, "--", "src"];
  const diff = execFileSync("/usr/bin/env", ["git", ...args], { encoding: "utf8", maxBuffer: 1 << 28 });
  const found = new Map<string, Set<number>>();
  let lines = new Set<number>();
  for (const line of diff.split("\n")) {
    const file = /^\+\+\+ b\/(.*)$/.exec(line)?.[1];
    if (file !== undefined) found.set(file, (lines = new Set()));
    const [, first, count = "1"] = /^@@ \S+ \+(\d+)(?:,(\d+))? @@/.exec(line) ?? [];
    if (first === undefined) continue;
    for (let at = 0; at < Number(count); at += 1) lines.add(Number(first) + at);
  }
  return found;
}

/** At random, and no kind more often than every tenth time. */
function draw(all: readonly Mutant[], count: number, seed: number): readonly Mutant[] {
  const most = Math.ceil(count / 10);
  const times = new Map<Kind, number>();
  const drawn: Mutant[] = [];
  for (const mutant of shuffled(all, randomFrom(seed))) {
    const before = times.get(mutant.kind) ?? 0;
    if (drawn.length >= count) break;
    if (before >= most || !isValid(planted(textOf(mutant.file), mutant))) continue;
    times.set(mutant.kind, before + 1);
    drawn.push(mutant);
  }
  return drawn;
}

/** Lines that any test reaches, by file. */
function reachedLines(testFiles: readonly TestFile[]): ReadonlyMap<string, ReadonlySet<number>> {
  const found = new Map<string, Set<number>>();
  const seen = new Set<string>();
  for (const { recorded } of testFiles) {
    for (const [file, bits] of recorded.flatMap(({ lines }) => Object.entries(lines))) {
      if (seen.has(file + bits)) continue;
      seen.add(file + bits);
      const lines = found.get(file) ?? new Set();
      found.set(file, lines);
      for (let at = 0; at < bits.length * 4; at += 1) if (hasBit(bits, at)) lines.add(at + 1);
    }
  }
  return found;
}

/**
 * The tests for a defect, as many as fit the time. A line that every run passes is reached by thousands of tests; those
 * that also reach lines around it which few others reach are about this code, and come first.
 */
function chosenFor(mutant: Mutant, testFiles: readonly TestFile[], seconds: number): Chosen {
  const candidates = testFiles.flatMap((testFile) => {
    const nearness = nearnessOf(testFile, mutant);
    return testsThatReach(mutant, testFile).map((test) => ({
      testFile,
      test,
      score: nearness * closeness(test, mutant, testFiles),
    }));
  });
  const chosen = new Map<string, number[]>();
  let left = seconds * 1000;
  for (const { testFile, test } of candidates.toSorted(
    (a, b) => b.score - a.score || a.test.ms - b.test.ms,
  )) {
    const tests = chosen.get(testFile.file) ?? [];
    const cost = test.ms + (tests.length === 0 ? loadTime(testFile) : 0);
    if (cost > left && chosen.size > 0) continue;
    left -= cost;
    chosen.set(testFile.file, tests);
    tests.push(test.number);
  }
  return Array.from(chosen, ([file, tests]) => ({ file, tests: tests.toSorted((a, b) => a - b) }));
}

/** A line that ran only while its file was imported: the tests that reach anything in that file, or else all that import it. */
function testsThatReach({ file, line }: Mutant, { recorded, dependent }: TestFile): readonly Recorded[] {
  const isThere = ({ lines }: Recorded) => hasBit(lines[file] ?? "", line - 1);
  const able = recorded.filter(({ number }) => number >= 0 && !dependent.includes(number));
  const own = able.filter(isThere);
  if (own.length > 0 || !recorded.some(isThere)) return own;
  const inFile = able.filter(({ lines }) => lines[file] !== undefined);
  return inFile.length > 0 ? inFile : able;
}

/** `test/` mirrors `src/`: tests of the same room are nearer, and those of the same name nearest. */
function nearnessOf({ file }: TestFile, mutant: Mutant): number {
  const [, room = "", name = ""] = /^src\/([^/]+)\/(.*)\.ts$/.exec(mutant.file) ?? [];
  return file.startsWith(`test/${room}/${name}`) ? 4 : file.startsWith(`test/${room}/`) ? 2 : 1;
}

function loadTime({ recorded }: TestFile): number {
  return recorded.find(({ number }) => number === -1)?.ms ?? 0;
}

/** The sum over the lines around a defect that a test reaches, each the less the more tests reach it. */
function closeness({ lines }: Recorded, { file, line }: Mutant, testFiles: readonly TestFile[]): number {
  const counts = reachCounts(file, testFiles);
  const bits = lines[file] ?? "";
  let sum = 0;
  for (let at = Math.max(0, line - 1 - AROUND); at < line + AROUND; at += 1)
    if (hasBit(bits, at)) sum += 1 / (counts[at] ?? 1);
  return sum;
}

/** How many tests reach each line of a file. */
function reachCounts(file: string, testFiles: readonly TestFile[]): readonly number[] {
  const known = counted.get(file);
  if (known !== undefined) return known;
  const counts = textOf(file)
    .split("\n")
    .map(() => 0);
  for (const { number, lines } of testFiles.flatMap(({ recorded }) => recorded)) {
    const bits = number < 0 ? undefined : lines[file];
    if (bits !== undefined)
      for (let at = 0; at < counts.length; at += 1) if (hasBit(bits, at)) counts[at]! += 1;
  }
  counted.set(file, counts);
  return counts;
}

async function judge(mutant: Mutant, testFiles: readonly TestFile[], seconds: number): Promise<Judged> {
  const chosen = chosenFor(mutant, testFiles, seconds);
  const source = planted(textOf(mutant.file), mutant);
  const job = { mutant: { file: mutant.file, source }, files: chosen, isRecorded: false };
  const outcome = (await ran(job, longest(seconds))) ?? (await patiently(job));
  const tests = chosen.reduce((sum, each) => sum + (each.tests?.length ?? 0), 0);
  const reaching = testFiles.reduce((sum, each) => sum + testsThatReach(mutant, each).length, 0);
  const judged = (is: Judged["outcome"], by: string | null): Judged => ({
    mutant,
    outcome: is,
    by,
    tests,
    isTried: tests === reaching,
  });
  if (outcome === null) return judged("timed out", null);
  if (outcome.is === "passed") return judged("survived", null);
  const testFile = testFiles.find(({ file }) => file === outcome.file)!;
  if (await isReliable(testFile, outcome, chosen))
    return judged("noticed", `${outcome.file} › ${outcome.test}`);
  return judge(mutant, testFiles, seconds);
}

function longest(seconds: number): number {
  return seconds * 10_000 + 30_000;
}

/** A busy machine is slow without any defect: what does not end has ten times as long as the same tests take without it. */
async function patiently(job: Job): Promise<Outcome | null> {
  const began = performance.now();
  await ran({ ...job, mutant: null }, LONGEST_MS);
  return await ran(job, (performance.now() - began) * 10);
}

/** Whether what failed passes where nothing is planted; a test that needs those before it is left out from then on. */
async function isReliable(
  testFile: TestFile,
  { test }: Outcome & { is: "failed" },
  chosen: Chosen,
): Promise<boolean> {
  if (testFile.alone.includes(test)) return true;
  const files = chosen.filter(({ file }) => file === testFile.file);
  const plain = await ran({ mutant: null, files, isRecorded: false }, LONGEST_MS);
  if (plain?.is === "passed") {
    const numbers = new Set(files.flatMap(({ tests }) => tests ?? []));
    const passed = testFile.recorded.filter(({ number }) => numbers.has(number));
    testFile.alone.push(test, ...passed.map(({ name }) => name));
    return true;
  }
  const failing = testFile.recorded.find(({ name }) => plain !== null && name === plain.test);
  say(`${testFile.file}: ${plain?.test ?? "something"} fails without the tests before it, and is left out`);
  if (failing === undefined) testFile.dependent.push(...testFile.recorded.map(({ number }) => number));
  else testFile.dependent.push(failing.number);
  return false;
}

/**
 * What each test file reaches: recorded where it, or anything it reads, is not what it was. Tests that try thousands of
 * inputs take too long for one defect.
 */
async function recordings(): Promise<readonly TestFile[]> {
  mkdirSync(cache, { recursive: true });
  const files = globSync("test/**/*.test.ts", {
    cwd: root,
    exclude: ["**/*{fuzz,mutations}.test.ts"],
  })
    .filter((file) => given.tests.length === 0 || given.tests.some((path) => file.startsWith(path)))
    .toSorted();
  const kept = files.map((file) => keptFor(file));
  const missing = files.filter((_, at) => kept[at] === null);
  if (missing.length > 0) say(`recording what ${missing.length} test files reach`);
  const made: TestFile[] = [];
  await each(missing, Number(given.workers), async (file) => {
    const outcome = await ran({ mutant: null, files: [{ file, tests: null }], isRecorded: true }, LONGEST_MS);
    if (outcome?.is !== "passed") {
      say(`${file} is left out: ${outcome === null ? "it did not end" : `${outcome.test}: ${outcome.why}`}`);
      return;
    }
    const read = Object.fromEntries([file, ...outcome.read].map((path) => [path, hashOf(path)]));
    const testFile = { file, texts: read, recorded: outcome.recorded, dependent: [], alone: [] };
    keep(testFile);
    made.push(testFile);
    say(`${made.length}/${missing.length} ${file}`);
  });
  return [...kept.filter((each) => each !== null), ...made];
}

function keptFor(file: string): TestFile | null {
  try {
    const testFile = JSON.parse(readFileSync(keptAt(file), "utf8")) as TestFile;
    return Object.entries(testFile.texts).every(([path, hash]) => hashOf(path) === hash) ? testFile : null;
  } catch {
    return null;
  }
}

function keep(testFile: TestFile): void {
  writeFileSync(keptAt(testFile.file), JSON.stringify(testFile));
}

function keptAt(file: string): string {
  return `${cache}${file.replaceAll("/", "+")}.json`;
}

/** Runs a job in a process of its own; null: it did not end in time. */
function ran(job: Job, limit: number): Promise<Outcome | null> {
  const child = spawn(
    process.execPath,
    [
      "--disable-warning=ExperimentalWarning",
      "--import",
      "./test/surroundings.ts",
      new URL("mutant.ts", import.meta.url).pathname,
    ],
    {
      cwd: root,
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      env: { ...process.env, NODE_COMPILE_CACHE: `${cache}compiled` },
    },
  );
  return outcomeOf(child, job, limit);
}

function outcomeOf(child: ChildProcess, job: Job, limit: number): Promise<Outcome | null> {
  return new Promise((done) => {
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      done(null);
    }, limit);
    const end = (outcome: Outcome) => {
      clearTimeout(timer);
      done(outcome);
    };
    child.once("message", (outcome) => end(outcome as Outcome));
    child.once("exit", (code, signal) =>
      end({
        is: "failed",
        file: job.files[0]?.file ?? "",
        test: "process",
        why: `it ended with ${signal ?? code}`,
      }),
    );
    child.send(job);
  });
}

async function each<T>(all: readonly T[], workers: number, work: (one: T) => Promise<void>): Promise<void> {
  const waiting = [...all];
  const worker = async () => {
    for (let next = waiting.shift(); next !== undefined && !stop.signal.aborted; next = waiting.shift())
      await work(next);
  };
  await Promise.all(Array.from({ length: workers }, worker));
}

interface Share {
  readonly planted: number;
  readonly noticed: number;
}

interface Summary extends Share {
  readonly v: 1;
  readonly seed: number;
  readonly percent: number;
  readonly timedOut: number;
  /** Noticed by no test, and refused by the compiler. */
  readonly refused: number;
  readonly msPerMutant: number;
  readonly possible: number;
  readonly rooms: { readonly [room: string]: Share };
  readonly kinds: { readonly [kind: string]: Share };
  readonly survivors: readonly {
    readonly file: string;
    readonly line: number;
    readonly kind: Kind;
    readonly diff: string;
    readonly tests: number;
  }[];
  /** Possible defects in lines that no test in process reaches, by file. */
  readonly unreached: { readonly [file: string]: number };
}

function summary(
  judged: readonly Judged[],
  { possible, unreached, ms }: { possible: number; unreached: Summary["unreached"]; ms: number },
): Summary {
  const noticed = judged.filter(({ outcome }) => outcome !== "survived").length;
  const share = (of: (one: Judged) => string) =>
    Object.fromEntries(
      Object.entries(Object.groupBy(judged, of)).map(([name, some = []]) => [
        name,
        { planted: some.length, noticed: some.filter(({ outcome }) => outcome !== "survived").length },
      ]),
    );
  return {
    v: 1,
    seed: Number(given.seed),
    planted: judged.length,
    noticed,
    percent: percentOf(noticed, judged.length),
    timedOut: judged.filter(({ outcome }) => outcome === "timed out").length,
    refused: judged.filter(({ outcome }) => outcome === "refused").length,
    msPerMutant: Math.round(ms / Math.max(1, judged.length)),
    possible,
    rooms: share(({ mutant }) => mutant.file.split("/")[1]!),
    kinds: share(({ mutant }) => mutant.kind),
    survivors: judged
      .filter(({ outcome }) => outcome === "survived")
      .map(({ mutant, tests }) => ({
        file: mutant.file,
        line: mutant.line,
        kind: mutant.kind,
        diff: diffOf(textOf(mutant.file), mutant),
        tests,
      })),
    unreached,
  };
}

function percentOf(noticed: number, all: number): number {
  return all === 0 ? 100 : Math.round((noticed / all) * 1000) / 10;
}

function described({ mutant, tests }: Judged): string {
  const { file, line, kind } = mutant;
  return `\n${file}:${line} ${kind}: ${tests} tests pass\n${diffOf(textOf(file), mutant)}`;
}

function table({
  planted: all,
  noticed,
  percent,
  timedOut,
  refused,
  rooms,
  kinds,
  unreached,
  msPerMutant,
}: Summary): string {
  const rows = (shares: Summary["rooms"]) =>
    Object.entries(shares).map(([name, one]) => `  ${name.padEnd(22)} ${one.noticed} of ${one.planted}`);
  const most = Object.entries(unreached)
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, 20);
  return [
    "",
    `noticed ${noticed} of ${all} (${percent} %), ${timedOut} of them by never ending and ${refused} by the types alone; ${msPerMutant} ms each`,
    "by room:",
    ...rows(rooms),
    "by kind:",
    ...rows(kinds),
    "possible defects in lines that no test in process reaches (the first 20 files):",
    ...most.map(([file, count]) => `  ${file.padEnd(40)} ${count}`),
  ].join("\n");
}

function numbers<T>(all: readonly T[], name: (one: T) => string): { readonly [name: string]: number } {
  return Object.fromEntries(
    Object.entries(Object.groupBy(all, name)).map(([key, some = []]) => [key, some.length]),
  );
}

function hasBit(bits: string, at: number): boolean {
  return ((Number.parseInt(bits[at >> 2] ?? "0", 16) >> (at & 3)) & 1) === 1;
}

function textOf(file: string): string {
  const text = texts.get(file) ?? readFileSync(root + file, "utf8");
  texts.set(file, text);
  return text;
}

function hashOf(file: string): string {
  const hash = hashes.get(file) ?? createHash("sha256").update(textOf(file)).digest("hex").slice(0, 16);
  hashes.set(file, hash);
  return hash;
}

function shuffled<T>(all: readonly T[], random: () => number): T[] {
  const order = [...all];
  for (let at = order.length - 1; at > 0; at -= 1) {
    const other = Math.floor(random() * (at + 1));
    [order[at], order[other]] = [order[other]!, order[at]!];
  }
  return order;
}

/** mulberry32. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}
