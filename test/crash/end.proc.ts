/**
 * crash-end: strikes at the end of runs with worktrees. At every git that is started, before, inside of and after it, at every
 * write of the journal and at every question to GitHub the command is killed, alone or with everything it has started,
 * or told to stop, once or twice; and again while it resumes. The user's checkout stays as it is, everything is done once,
 * the next resume ends the run, and nothing is left behind. CRASH_STRIKES and CRASH_SEED choose how many and which.
 */
import assert from "node:assert/strict";
import { existsSync, rmSync, mkdtempSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { hasBwrap, NO_BWRAP } from "../boundaries/confined.ts";
import { openStandIn, type StandIn } from "../github/stand-in.ts";
import type { StoredIssue } from "../../src/testing/github/world.ts";
import { random as seeded } from "../load/random.ts";
import { needs } from "../needs.ts";
import { STRACE } from "./halts.ts";
import { BLOWS, documentOf, goOn, SLOW, strike, type Blow, type Hit, type Place } from "./strike.ts";
import { leftBehind, struckWorld, type Scenario, type Struck } from "./struck-world.ts";

const STRIKES = Number(process.env.CRASH_STRIKES ?? 60);
const SEED = Number(process.env.CRASH_SEED ?? 7);
/** `CRASH_RUN=3/14`: only that run of that scenario, as a failure names it; `CRASH_RUN=3`: all runs of it. */
const ONLY = process.env.CRASH_RUN?.split("/").map(Number) ?? null;
const WORKERS = 2;
const MOST_FAILURES = 20;

const temp = realpathSync(mkdtempSync(join(tmpdir(), "lockstep-end-")));
after(() => rmSync(temp, { recursive: true, force: true, maxRetries: 5 }));

const COMMIT =
  "mkdir -p new; echo b > new/b.txt; git add new; git commit -qm work; echo changed > files/1.txt";
/** Added, changed and removed: a checkout that was cut off has some of each. */
const MANY =
  "git rm -q many/1*; for f in $(seq 500 900); do echo $f > many/$f; done; for f in many/2*; do echo new > $f; done; git add -A; git commit -qm many";
/** Git reports on stderr how far it has come with what takes longer than two seconds. */
const FILTERED = `git config --global filter.slow.smudge '${SLOW.join(" ")}; cat'
  git config --global filter.slow.clean cat; echo '*.slow filter=slow' > .gitattributes; git add -A; git commit -qm filter`;
const FILTERED_WORK = "for f in a b c d; do echo $f > $f.slow; done; git add -A; git commit -qm slow";
const MEANWHILE = "echo other > other.txt; git add other.txt; git commit -qm other; git switch -q -";
const NOTES = "echo mine > notes.txt";
const EDIT = "git switch -q side; echo mine >> files/0.txt";
const MERGED = ["commit:applied", "merge:applied", "remove:applied"];

/** The commits on main: the start, what the agent committed, what it left, and one merge. */
const SCENARIOS: readonly Scenario[] = [
  {
    name: "many files, merged into the branch that is checked out, and pushed",
    flags: ["--push"],
    before: "mkdir many; for f in $(seq 400); do echo $f > many/$f; done; git add -A; git commit -qm many",
    work: MANY,
    local: { main: 4, side: 1 },
    remote: { main: 4 },
    effects: ["merge:applied", "push:applied", "remove:applied"],
    at: ["merge", "push", "update-ref", "file"],
    share: 0.5,
  },
  {
    name: "files of a slow filter, merged into the branch that is checked out",
    flags: [],
    before: FILTERED,
    work: FILTERED_WORK,
    local: { main: 4, side: 1 },
    remote: { main: 1 },
    effects: ["merge:applied", "remove:applied"],
    at: ["merge"],
    isEarly: true,
    blows: ["kill", "SIGINT twice"],
    share: 0.2,
  },
  {
    name: "files of a slow filter in the sandbox, merged into the branch that is checked out",
    flags: [],
    before: FILTERED,
    work: FILTERED_WORK,
    local: { main: 4, side: 1 },
    remote: { main: 1 },
    effects: ["merge:applied", "remove:applied"],
    isConfined: true,
    share: 0.2,
  },
  {
    name: "merged into the branch that is checked out",
    flags: [],
    work: COMMIT,
    meanwhile: NOTES,
    users: ["?? notes.txt"],
    local: { main: 4, side: 1 },
    remote: { main: 1 },
    effects: MERGED,
  },
  {
    name: "merged into the branch that is checked out and has moved",
    flags: ["--push"],
    work: COMMIT,
    meanwhile: `git switch -q main; ${MEANWHILE}; git switch -q main; ${NOTES}`,
    users: ["?? notes.txt"],
    local: { main: 5, side: 1 },
    remote: { main: 5 },
    effects: ["commit:applied", "merge:applied", "push:applied", "remove:applied"],
  },
  {
    name: "merged into a branch that is not checked out",
    flags: [],
    work: COMMIT,
    meanwhile: EDIT,
    on: "side",
    users: [" M files/0.txt"],
    local: { main: 4, side: 1 },
    remote: { main: 1 },
    effects: MERGED,
  },
  {
    name: "merged into a branch that is not checked out and has moved",
    flags: ["--push"],
    work: COMMIT,
    meanwhile: `git switch -q side; git switch -q main; ${MEANWHILE}; ${EDIT}`,
    on: "side",
    users: [" M files/0.txt"],
    local: { main: 5, side: 1 },
    remote: { main: 5 },
    effects: ["commit:applied", "merge:applied", "push:applied", "remove:applied"],
  },
  {
    name: "from its beginning, merged into the branch that is checked out",
    isWhole: true,
    flags: [],
    meanwhile: NOTES,
    work: "echo b > b.txt",
    users: ["?? notes.txt"],
    local: { main: 3, side: 1 },
    remote: { main: 1 },
    effects: MERGED,
  },
  {
    name: "pushed and not merged",
    flags: ["--no-merge", "--push"],
    work: COMMIT,
    local: { main: 1, mine: 3, side: 1 },
    remote: { main: 1, mine: 3 },
    effects: ["commit:applied", "push:applied"],
    kept: true,
  },
  {
    name: "without any work",
    flags: ["--no-merge"],
    local: { main: 1, side: 1 },
    remote: { main: 1 },
    effects: ["remove:applied"],
  },
  {
    name: "a pull request, labels and the closing of an issue",
    flags: ["--create-pr"],
    work: COMMIT,
    github: true,
    local: { main: 1, mine: 3, side: 1 },
    remote: { main: 1, mine: 3 },
    effects: ["commit:applied", "push:applied", "pull-request:applied", ...labelled()],
    kept: true,
  },
  {
    name: "merged and pushed, labels and the closing of an issue",
    flags: ["--push"],
    work: COMMIT,
    github: true,
    local: { main: 4, side: 1 },
    remote: { main: 4 },
    effects: ["commit:applied", "merge:applied", "push:applied", "remove:applied", ...labelled()],
  },
];

const SHARES = SCENARIOS.reduce((sum, { share = 1 }) => sum + share, 0);

function labelled(): readonly string[] {
  return ["label:applied", "label:applied", "close:applied"];
}

const bwrap = needs(hasBwrap, NO_BWRAP);
const strace = needs(STRACE !== "", "strace holds git in the middle of its work");

const linux = needs(process.platform === "linux", "processes are found and held by /proc");
/** Only for a machine that is very busy. */
const HOUR_MS = 3_600_000;

test(
  `${STRIKES} strikes at the end of runs: each is resumed to its end, and nothing is done twice or left behind`,
  { ...linux, timeout: HOUR_MS },
  async (context) => {
    const queue = SCENARIOS.map((scenario, index) => ({ scenario, index })).filter(
      ({ scenario }) => bwrap.skip === false || !scenario.isConfined,
    );
    const tallies: Tally[] = [];
    const failures: Error[] = [];
    await Promise.all(
      Array.from({ length: WORKERS }, async () => {
        for (let next = queue.shift(); next !== undefined; next = queue.shift())
          if (ONLY === null || ONLY[0] === next.index)
            tallies.push(await strikeAt(next.scenario, next.index, failures));
      }),
    );
    const sum = (key: keyof Tally) => tallies.reduce((all, tally) => all + tally[key], 0);
    const without = strace.skip === false ? "" : `; ${strace.skip}`;
    context.diagnostic(
      `${sum("strikes")} strikes, ${sum("again")} of them at a resume; ${sum("runs")} runs; seed ${SEED}${without}`,
    );
    if (failures.length > 0)
      throw new AggregateError(failures, failures.map(({ message }) => message).join("\n"));
    if (ONLY === null) assert.ok(sum("strikes") >= STRIKES);
  },
);

type Tally = { strikes: number; again: number; runs: number };

async function strikeAt(scenario: Scenario, index: number, failures: Error[]): Promise<Tally> {
  const stand = scenario.github ? await openStandIn() : undefined;
  stand?.world.branches.add("mine");
  const issue = stand?.world.addIssue({ labels: ["todo", "bug"] });
  const cache = { XDG_CACHE_HOME: join(tmpdir(), "lockstep-test-cache") };
  const world = await struckWorld(join(temp, `world-${index}`), scenario, cache, stand);
  const share = ONLY === null ? Math.ceil((STRIKES * (scenario.share ?? 1)) / SHARES) : STRIKES;
  const places = inRounds(placesIn(world, stand), seeded(SEED + index));
  const tally = { strikes: 0, again: 0, runs: 0 };
  const first = ONLY?.[1] ?? 0;
  for (let run = first; tally.strikes < share && failures.length < MOST_FAILURES; run += 1) {
    await world.restore();
    if (stand !== undefined) forget(stand, issue!);
    const done: string[] = [];
    try {
      await oneRun(world, stand, chancesFor(places, scenario.blows ?? BLOWS, index, run), tally, done);
    } catch (error) {
      const again = `CRASH_SEED=${SEED} CRASH_RUN=${index}/${run}`;
      failures.push(new Error(`${scenario.name}: ${done.join(", then ")}; ${again}`, { cause: error }));
      console.error(failures.at(-1)!.message);
    }
    tally.runs += 1;
    if (ONLY?.[1] !== undefined) break;
  }
  await stand?.close();
  rmSync(world.root, { recursive: true, force: true });
  rmSync(`${world.root}-copy`, { recursive: true, force: true });
  return tally;
}

type Chance = { readonly place: Place; readonly blow: Blow };

/**
 * The strikes at one run. The first of them goes through all places, so that none is left out, and each time it comes to
 * the same place with another blow.
 */
function chancesFor(
  places: readonly Place[],
  blows: readonly Blow[],
  index: number,
  run: number,
): readonly Chance[] {
  const random = seeded(SEED * 1_000_000 + index * 10_000 + run);
  const any = <T>(list: readonly T[]) => list[Math.floor(random() * list.length)]!;
  const round = Math.floor(run / places.length);
  const first = { place: places[run % places.length]!, blow: blows[(run + index + round) % blows.length]! };
  // A resume has less to do, and seldom comes to the last places.
  const sooner = (one: Place, other: Place) => (one.nth < other.nth ? one : other);
  const others = Array.from({ length: Math.floor(random() * 3) }, () => {
    return { place: sooner(any(places), any(places)), blow: any(blows) };
  });
  return [first, ...others];
}

/** Every place at which something can happen, as the end without a strike went. */
function placesIn({ recorded, scenario }: Struck, stand: StandIn | undefined): readonly Place[] {
  const around = (what: "git" | "write" | "file" | "http", count: number) =>
    some(count, MOST_FILES).flatMap((at): readonly Place[] => [
      { what, nth: at + 1, when: "before" },
      { what, nth: at + 1, when: "after" },
    ]);
  const inside = recorded.gits.flatMap(({ changes }, index) => {
    return some(changes.length, MOST_CHANGES).map((at): Place => {
      const call = changes[at]!;
      const time = changes.slice(0, at + 1).filter((other) => other === call).length;
      return { what: "git", nth: index + 1, when: "inside", call, time };
    });
  });
  const all = [
    ...around("git", recorded.gits.length),
    ...inside,
    ...around("write", recorded.writes),
    ...around("file", recorded.files),
    ...around("http", stand?.log.length ?? 0),
  ];
  const commandOf = ({ what, nth }: Place) => (what === "git" ? recorded.gits[nth - 1]!.command : what);
  const { at, isEarly, isConfined } = scenario;
  if (isConfined) return [1, 2, 3, 4].map((nth) => ({ what: "filter", nth, when: "inside" }));
  const isEarlyAt = (place: Place) =>
    place.when === "before" || (place.what === "git" && place.when === "inside" && place.time === 1);
  return all
    .filter((place) => at === undefined || at.includes(commandOf(place)))
    .filter((place) => isEarly !== true || isEarlyAt(place));
}

/** All of them, or the first, the last and some between of many that are alike. */
function some(length: number, most: number): readonly number[] {
  if (length <= most) return Array.from({ length }, (_, at) => at);
  return Array.from({ length: most }, (_, at) => Math.round((at * (length - 1)) / (most - 1)));
}

const MOST_FILES = 40;
const MOST_CHANGES = 12;

/**
 * First one place of every git, write and question, then another one of each. An effect that nobody has learned of comes
 * before anything else.
 */
function inRounds(places: readonly Place[], random: () => number): readonly Place[] {
  const shuffled = places
    .map((place) => ({ place, by: random() }))
    .toSorted((a, b) => a.by - b.by)
    .map(({ place }) => place);
  const nths = new Map<string, number>();
  return shuffled
    .map((place) => {
      // Changes of files are many, and those beside each other are much alike.
      const one = place.what === "file" ? `file ${Math.ceil(place.nth / 4)}` : `${place.what} ${place.nth}`;
      nths.set(one, (nths.get(one) ?? 0) + 1);
      const isUnheard = place.what === "http" && place.when === "after";
      return { place, round: isUnheard ? 0 : nths.get(one)! };
    })
    .toSorted((a, b) => a.round - b.round)
    .map(({ place }) => place);
}

async function oneRun(
  world: Struck,
  stand: StandIn | undefined,
  chances: readonly Chance[],
  tally: Tally,
  done: string[],
): Promise<void> {
  let hit: Hit | null = null;
  let isHalfWritten = false;
  let args: readonly string[] | null = world.begin;
  for (const [time, { place, blow }] of chances.entries()) {
    done.push(`${blow} at ${strikeText(world, place)}`);
    const before = hit?.release;
    if (before !== undefined) setTimeout(before, 100);
    hit = await strike(world, args, place, blow, stand);
    before?.();
    if (!hit.isHit) {
      done.push("which was not reached");
      assert.equal(hit.code, 0, hit.stdout + hit.stderr);
    } else {
      tally.strikes += 1;
      if (time > 0) tally.again += 1;
      checkExit(hit, blow);
      isHalfWritten = await checkStruck(world, place, blow, time > 0, isHalfWritten);
    }
    args = await world.resume();
    if (args === null || !hit.isHit) break;
  }
  if (args === null) {
    done.push("before there was a run");
    hit?.release();
    await checkNothing(world);
    return;
  }
  const last = await goOn(world, args, hit?.release);
  done.push("resumed");
  assert.equal(last.code, 0, last.stdout + last.stderr);
  await checkEnded(world, stand, last);
}

/** A run that was not recorded has left nothing but the lock file of its process, which the next run removes. */
async function checkNothing(world: Struck): Promise<void> {
  const { home, scenario } = world;
  assert.deepEqual(await countsIn(world, home), { main: 1, side: 1 });
  assert.equal(existsSync(join(home, ".worktrees/mine")), false);
  assert.deepEqual(
    leftBehind(world).filter((file) => !file.includes(".lockstep/owners/")),
    [],
  );
  assert.deepEqual(linesOf(await world.git(home, "status", "--porcelain")), scenario.users ?? []);
}

function strikeText({ recorded }: Struck, place: Place): string {
  const command = place.what === "git" ? `(${recorded.gits[place.nth - 1]?.command}) ` : "";
  const call = place.what === "git" && place.when === "inside" ? ` ${place.call} ${place.time}` : "";
  return `${place.what} ${place.nth} ${command}${place.when}${call}`;
}

function checkExit(hit: Hit, blow: Blow): void {
  const said = hit.stdout + hit.stderr;
  if (blow.startsWith("kill")) {
    assert.equal(hit.signal, "SIGKILL", said);
    return;
  }
  const document = documentOf(hit);
  if (document?.outcome === "completed") assert.equal(hit.code, 0, said);
  else assert.equal(hit.code, blow === "SIGTERM" ? 143 : 130, said);
  if (blow !== "SIGINT twice") assert.equal(document?.exitCode, hit.code, said);
}

/**
 * Only power that fails in the middle of writing files can leave a checkout half written, until a resume comes to it: as
 * long as that is so, a note says it. At a resume the nth git can be any of the recorded ones. Gives whether it may be so.
 */
async function checkStruck(
  { home, git, scenario, recorded }: Struck,
  place: Place,
  blow: Blow,
  again: boolean,
  wasHalfWritten: boolean,
): Promise<boolean> {
  const { on = "main", users = [] } = scenario;
  assert.equal(await git(home, "symbolic-ref", "--short", "HEAD"), on);
  const isMerge = place.what === "git" && (again || recorded.gits[place.nth - 1]?.command === "merge");
  if (isMerge && (blow === "kill all" || blow === "kill, git slow")) return true;
  // A sandbox ends with the process that made it.
  if (place.what === "filter" && blow.startsWith("kill")) return true;
  if (wasHalfWritten && existsSync(join(home, ".git/info/lockstep-merge.json"))) return true;
  assert.deepEqual(linesOf(await git(home, "status", "--porcelain")), users, "the checkout of the user");
  return false;
}

async function checkEnded(world: Struck, stand: StandIn | undefined, last: Hit): Promise<void> {
  const { home, remote, git, scenario } = world;
  const { on = "main", users = [], kept = false } = scenario;
  const document = documentOf(last);
  assert.deepEqual([document?.outcome, document?.success], ["completed", true]);
  const effects = document?.effects as readonly { readonly kind: string; readonly state: string }[];
  assert.deepEqual(
    effects.map(({ kind, state }) => `${kind}:${state}`).toSorted(),
    scenario.effects.toSorted(),
  );
  assert.equal(await git(home, "symbolic-ref", "--short", "HEAD"), on);
  assert.deepEqual(linesOf(await git(home, "status", "--porcelain")), users, "the checkout of the user");
  assert.deepEqual(await countsIn(world, home), scenario.local);
  assert.deepEqual(await countsIn(world, remote), scenario.remote);
  const pushes = scenario.flags.includes("--push") || scenario.flags.includes("--create-pr");
  const pushed = scenario.remote.mine === undefined ? "main" : "mine";
  if (pushes) {
    assert.equal(await git(home, "rev-parse", pushed), await git(remote, "rev-parse", pushed));
    const updates = linesOf(await git(remote, "reflog", "show", "--format=%H", pushed));
    assert.equal(updates.length, pushed === "main" ? 2 : 1, "pushed once");
  }
  assert.equal(existsSync(join(home, ".worktrees/mine")), kept);
  const trees = linesOf(await git(home, "worktree", "list", "--porcelain")).filter((line) =>
    line.startsWith("worktree "),
  );
  assert.equal(trees.length, kept ? 2 : 1);
  assert.deepEqual(
    leftBehind(world).filter((path) => !kept || !path.includes(".git/worktrees/mine")),
    [],
  );
  await git(home, "fsck", "--connectivity-only", "--no-dangling");
  if (stand === undefined) return;
  const [issue] = [...stand.world.issues.values()];
  assert.deepEqual([issue?.state, issue?.labels.toSorted()], ["closed", ["bug", "done"]]);
  assert.equal(stand.world.pulls.size, scenario.flags.includes("--create-pr") ? 1 : 0);
}

async function countsIn({ git }: Struck, repository: string): Promise<{ readonly [branch: string]: number }> {
  const names = linesOf(await git(repository, "for-each-ref", "--format=%(refname:short)", "refs/heads"));
  const counts: { [branch: string]: number } = {};
  for (const name of names) counts[name] = Number(await git(repository, "rev-list", "--count", name));
  return counts;
}

function linesOf(text: string): readonly string[] {
  return text === "" ? [] : text.split("\n");
}

function forget(stand: StandIn, { number }: StoredIssue): void {
  stand.world.pulls.clear();
  stand.log.length = 0;
  const issue = stand.world.issues.get(number)!;
  Object.assign(issue, { labels: ["todo", "bug"], state: "open", stateReason: null, comments: [] });
}
