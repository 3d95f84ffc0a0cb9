/**
 * Plants small defects in the code, one at a time, and runs the tests that reach each: a defect that no test notices is
 * printed. Nothing is written into src/: the changed text is served to the process that runs the tests.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
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
  --workers N       processes side by side (2)
  --seconds N       tests are added to a defect until they take as long (8)
  --least PERCENT   exit with 1 when fewer are noticed
  --json            one document on stdout
`;

const ROOMS = ["flow", "load", "engine", "prompts", "boundaries", "run"];

interface Mutant extends Mutation {
  readonly file: string;
}

interface Judged {
  readonly mutant: Mutant;
  readonly outcome: "noticed" | "timed out" | "survived";
  /** The test that noticed. */
  readonly by: string | null;
  readonly tests: number;
  readonly ms: number;
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
    workers: { type: "string", default: "2" },
    seconds: { type: "string", default: "8" },
    least: { type: "string", default: "0" },
    json: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
  args: process.argv.slice(2).map((arg) => (arg === "--changed" ? "--changed=main" : arg)),
});

const texts = new Map<string, string>();
const hashes = new Map<string, string>();

if (given.help) process.stdout.write(HELP);
else await main();

async function main(): Promise<void> {
  const began = performance.now();
  const all = mutants();
  const testFiles = await recordings();
  const lines = reachedLines(testFiles);
  const reached = all.filter(({ file, line }) => lines.get(file)?.has(line) ?? false);
  const isWhole = given.count === undefined && (given.file.length > 0 || given.changed !== undefined);
  const drawn = draw(
    reached,
    isWhole ? Number.POSITIVE_INFINITY : Number(given.count ?? 600),
    Number(given.seed),
  );
  say(
    `${all.length} possible defects, ${all.length - reached.length} in lines that no test in process reaches`,
  );
  say(`${drawn.length} are planted`);
  const judged: Judged[] = [];
  await each(drawn, Number(given.workers), async (mutant) => {
    const one = await judge(mutant, testFiles);
    judged.push(one);
    const place = `${mutant.file}:${mutant.line}`;
    say(`${judged.length}/${drawn.length} ${one.outcome} ${place} (${mutant.kind}) ${one.by ?? ""}`);
    if (one.outcome === "survived" && !given.json) console.log(described(one));
  });
  for (const testFile of testFiles) keep(testFile);
  const unreached = counted(
    all.filter(({ file, line }) => lines.get(file)?.has(line) !== true),
    ({ file }) => file,
  );
  const document = summary(judged, { possible: all.length, unreached, ms: performance.now() - began });
  console.log(given.json ? JSON.stringify(document, null, 2) : table(document));
  if (document.percent < Number(given.least)) process.exitCode = 1;
}

function mutants(): readonly Mutant[] {
  const changed = given.changed === undefined ? null : changedLines(given.changed);
  const unknown = given.kind.filter((kind) => !KINDS.some((known) => known === kind));
  if (unknown.length > 0) throw new Error(`--kind is one of: ${KINDS.join(", ")}`);
  return globSync(`src/{${ROOMS.join(",")}}/**/*.ts`, { cwd: root })
    .toSorted()
    .filter((file) => isMeant(file, null) && (changed === null || changed.has(file)))
    .flatMap((file) => mutationsOf(textOf(file)).map((mutation) => Object.assign(mutation, { file })))
    .filter(({ file, line }) => isMeant(file, line) && (changed === null || changed.get(file)!.has(line)))
    .filter(({ kind }) => given.kind.length === 0 || given.kind.includes(kind));
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

/** As many of each kind, as far as there are any, and within a kind at random. */
function draw(all: readonly Mutant[], count: number, seed: number): readonly Mutant[] {
  const random = randomFrom(seed);
  const waiting = KINDS.map((kind) =>
    shuffled(
      all.filter((mutant) => mutant.kind === kind),
      random,
    ),
  );
  const drawn: Mutant[] = [];
  while (drawn.length < count && waiting.some((kind) => kind.length > 0)) {
    for (const kind of waiting) {
      const next = nextValid(kind);
      if (next !== null && drawn.length < count) drawn.push(next);
    }
  }
  return drawn;
}

function nextValid(waiting: Mutant[]): Mutant | null {
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop())
    if (isValid(planted(textOf(next.file), next))) return next;
  return null;
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

/** The tests that reach a defect: those of the nearest files first, as many as fit the time. */
function chosenFor(mutant: Mutant, testFiles: readonly TestFile[]): Chosen {
  const candidates = testFiles.flatMap((testFile) => {
    const tests = testsThatReach(mutant, testFile);
    return tests.length === 0 ? [] : [{ testFile, tests, cost: costOf(tests, testFile, mutant) }];
  });
  const chosen: { file: string; tests: readonly number[] }[] = [];
  let left = Number(given.seconds) * 1000;
  for (const { testFile, tests, cost } of candidates.toSorted((a, b) => a.cost.rank - b.cost.rank)) {
    const quick = withinTime(tests, left);
    if (quick.length === 0 || (chosen.length > 0 && cost.load > left)) continue;
    chosen.push({ file: testFile.file, tests: quick.map(({ number }) => number).toSorted((a, b) => a - b) });
    left -= cost.load + quick.reduce((sum, { ms }) => sum + ms, 0);
    if (left <= 0) break;
  }
  return chosen;
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

function costOf(tests: readonly Recorded[], { file, recorded }: TestFile, mutant: Mutant) {
  const load = recorded.find(({ number }) => number === -1)?.ms ?? 0;
  const time = load + tests.reduce((sum, { ms }) => sum + ms, 0);
  const [, room = "", name = ""] = /^src\/([^/]+)\/(.*)\.ts$/.exec(mutant.file) ?? [];
  const isNear = file.startsWith(`test/${room}/`);
  const isNamed = file.startsWith(`test/${room}/${name}`);
  return { load, rank: time * (isNamed ? 0.1 : isNear ? 0.4 : 1) };
}

/** The quickest tests; one at least, however long it takes. */
function withinTime(tests: readonly Recorded[], limit: number): readonly Recorded[] {
  let left = limit;
  return tests
    .toSorted((a, b) => a.ms - b.ms)
    .filter(({ ms }, at) => {
      left -= ms;
      return left > 0 || at === 0;
    });
}

async function judge(mutant: Mutant, testFiles: readonly TestFile[]): Promise<Judged> {
  const began = performance.now();
  const chosen = chosenFor(mutant, testFiles);
  const source = planted(textOf(mutant.file), mutant);
  const outcome = await ran({ mutant: { file: mutant.file, source }, files: chosen, isRecorded: false });
  const tests = chosen.reduce((sum, each) => sum + (each.tests?.length ?? 0), 0);
  const judged = (is: Judged["outcome"], by: string | null): Judged => ({
    mutant,
    outcome: is,
    by,
    tests,
    ms: performance.now() - began,
  });
  if (outcome === null) return judged("timed out", null);
  if (outcome.is === "passed") return judged("survived", null);
  const testFile = testFiles.find(({ file }) => file === outcome.file)!;
  if (await isReliable(testFile, outcome, chosen))
    return judged("noticed", `${outcome.file} › ${outcome.test}`);
  return judge(mutant, testFiles);
}

/** Whether what failed passes where nothing is planted; a test that needs those before it is left out from then on. */
async function isReliable(
  testFile: TestFile,
  { test }: Outcome & { is: "failed" },
  chosen: Chosen,
): Promise<boolean> {
  if (testFile.alone.includes(test)) return true;
  const files = chosen.filter(({ file }) => file === testFile.file);
  const plain = await ran({ mutant: null, files, isRecorded: false });
  if (plain?.is === "passed") {
    testFile.alone.push(test);
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
  }).toSorted();
  const kept = files.map((file) => keptFor(file));
  const missing = files.filter((_, at) => kept[at] === null);
  if (missing.length > 0) say(`recording what ${missing.length} test files reach`);
  const made: TestFile[] = [];
  await each(missing, Number(given.workers), async (file) => {
    const outcome = await ran({ mutant: null, files: [{ file, tests: null }], isRecorded: true });
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
function ran(job: Job): Promise<Outcome | null> {
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
  return outcomeOf(child, job);
}

function outcomeOf(child: ChildProcess, job: Job): Promise<Outcome | null> {
  const limit = job.isRecorded ? 600_000 : Number(given.seconds) * 4_000 + 30_000;
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
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await work(next);
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
    percent: judged.length === 0 ? 100 : Math.round((noticed / judged.length) * 1000) / 10,
    timedOut: judged.filter(({ outcome }) => outcome === "timed out").length,
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

function described({ mutant, tests }: Judged): string {
  const { file, line, kind } = mutant;
  return `\n${file}:${line} ${kind}: ${tests} tests pass\n${diffOf(textOf(file), mutant)}`;
}

function table({
  planted: all,
  noticed,
  percent,
  timedOut,
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
    `noticed ${noticed} of ${all} (${percent} %), ${timedOut} of them by never ending; ${msPerMutant} ms each`,
    "by room:",
    ...rows(rooms),
    "by kind:",
    ...rows(kinds),
    "possible defects in lines that no test in process reaches (the first 20 files):",
    ...most.map(([file, count]) => `  ${file.padEnd(40)} ${count}`),
  ].join("\n");
}

function counted<T>(all: readonly T[], name: (one: T) => string): { readonly [name: string]: number } {
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
