/** `lockstep mutate AGENT`: changes the flow in small ways and reports which changes its tests notice. */
import { join } from "node:path";
import type { FlowTest } from "../../flow/flow-test.ts";
import type { Path } from "../../flow/json.ts";
import { hasErrors } from "../../flow/problem.ts";
import { EXIT, exitOfSignal } from "../../flow/verdict.ts";
import { readTests } from "../../load/tests.ts";
import { MUTANT_CLASSES, type MutantClass } from "../../proof/mutants.ts";
import { testItems, writeTests } from "../../proof/write-tests.ts";
import { RunnerError } from "../../run/errors.ts";
import { createFiles } from "../../run/world/files.ts";
import { findProject, type Project } from "../../run/world/project.ts";
import { notWritable, requireNoLinks, writeInProject } from "../../run/world/write-whole.ts";
import { prepareFlow } from "../../testing/flow-tests.ts";
import { baseOf, mutate, scoreOf, type Mutated, type Mutation } from "../../testing/mutate.ts";
import { loadNamed } from "../agent.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { schemasForTests } from "../schemas.ts";
import { tellInvalid } from "../tests/refuse.ts";
import { count, headed, shownInLine, type Paint } from "../text/text.ts";

export async function mutateAgent(call: CallOf<"mutate">): Promise<number> {
  const { flags, screen } = call;
  const [name] = call.words;
  if (name === undefined) throw new UsageError("mutate needs the NAME of an agent.");
  if (flags.min !== undefined && flags.min > 100) throw new UsageError("--min is a percentage, at most 100.");
  const signal = call.host.interruption();
  const project = findProject(call.cwd, call.stateDir);
  const files = createFiles(project.root);
  const loaded = await loadNamed(name, call.cwd, files);
  const read = loaded.flow === null ? { tests: [], problems: [] } : readTests(loaded.flow, files);
  const problems = [...loaded.problems.filter(({ severity }) => severity === "error"), ...read.problems];
  if (loaded.flow === null || hasErrors(problems))
    return tellInvalid(call, "lockstep-mutation", problems, files);
  const flow = await prepareFlow(loaded.flow);
  const base = await baseOf(flow, read.tests, signal);
  if (base.failing.length > 0) throw failing(name, base.failing[0]!.test, base.failing.length);
  const found = await mutate(flow, base, {
    signal,
    ...(flags.class.length > 0 && { classes: flags.class }),
    onMutant: (done) => screen.status(`${count(done, "change")} tried`),
  }).finally(() => screen.status(null));
  const isStopped = signal.aborted;
  const added = flags.write ? addTests(project, name, found.mutants) : null;
  // A part that is not written by itself is where the part around it is.
  const placeOf = (part: Path): Place => {
    const origin = loaded.origin(part)?.origin;
    if (origin !== undefined && origin.kind !== "default") return { file: origin.file, line: origin.line };
    return part.length > 1 ? placeOf(part.slice(0, -1)) : null;
  };
  const score = scoreOf(found.mutants);
  // Of what was not tried nothing is known.
  const isEnough = isStopped
    ? false
    : flags.min === undefined || (score !== null && score * 100 >= flags.min);
  const skipped = read.tests.length - base.results.length;
  if (flags.json)
    screen.document({
      v: 1,
      kind: "lockstep-mutation",
      ok: isEnough,
      ...(isStopped && { stopped: "interrupted" }),
      agent: name,
      tests: base.results.length,
      skipped,
      score,
      classes: classRows(found.mutants),
      notLive: found.notLive,
      mutants: found.mutants.map((one) => documentOf(one, placeOf)),
      ...(added !== null && { written: added }),
    });
  else if (!flags.quiet || !isEnough)
    screen.print(
      [
        ...survivorLines(found, placeOf, screen.out, flags.verbose),
        ...headed(screen.out, [
          ["class", "killed", "by check", "survived", "not covered", "score"],
          ...classRows(found.mutants).map(rowOf),
        ]),
        ...notes(found, skipped, added, flags).map(call.typed),
        ...(isStopped
          ? [`Interrupted after ${count(found.mutants.length, "change")}: the others were not tried.`]
          : []),
      ].join("\n"),
    );
  if (isStopped) return exitOfSignal(signal);
  return isEnough ? EXIT.completed : EXIT.testsFailed;
}

type Place = { readonly file: string; readonly line: number } | null;

function failing(name: string, { name: first, file, line }: FlowTest, failed: number): RunnerError {
  const others = failed === 1 ? "" : ` and ${failed - 1} more`;
  return new RunnerError(
    "TESTS_FAILED",
    `The test "${first}" (${file}:${line})${others} fails on the flow as it is, so a change cannot be judged by it. See: lockstep test ${name}.`,
  );
}

type ClassRow = {
  readonly class: MutantClass | "all";
  readonly killed: number;
  readonly checked: number;
  readonly survived: number;
  readonly uncovered: number;
  readonly score: number | null;
};

function classRows(mutants: readonly Mutated[]): readonly ClassRow[] {
  const rowFor = (name: ClassRow["class"], of: readonly Mutated[]): ClassRow => {
    const number = (kind: Mutated["fate"]["kind"]) => of.filter(({ fate }) => fate.kind === kind).length;
    return {
      class: name,
      killed: number("killed"),
      checked: number("checked"),
      survived: number("survived"),
      uncovered: number("uncovered"),
      score: scoreOf(of),
    };
  };
  const rows = MUTANT_CLASSES.map((name) => {
    const of = mutants.filter(({ mutant }) => mutant.kind === name);
    return of.length === 0 ? [] : [rowFor(name, of)];
  });
  return [...rows.flat(), rowFor("all", mutants)];
}

function rowOf({ class: name, killed, checked, survived, uncovered, score }: ClassRow): readonly string[] {
  return [name, killed, checked, survived, uncovered, percentage(score)].map(String);
}

function percentage(score: number | null): string {
  return score === null ? "-" : `${Math.floor(score * 100)} %`;
}

function documentOf({ mutant, fate }: Mutated, placeOf: (part: Path) => Place): object {
  const { id, kind, step, what, part } = mutant;
  const place = placeOf(part);
  const about = { id, class: kind, step, what, file: place?.file ?? null, line: place?.line ?? null };
  if (fate.kind === "killed") return { ...about, fate: "killed", by: fate.by };
  if (fate.kind === "checked") return { ...about, fate: "checked", code: fate.code };
  const { test, tried } = fate;
  return { ...about, fate: fate.kind, test: test === null ? null : testText(test), tried };
}

/** A test as it stands in a file. */
function testText(test: FlowTest): string {
  return testItems([test]).join("\n");
}

function survivorLines(
  { mutants }: Mutation,
  placeOf: (part: Path) => Place,
  paint: Paint,
  withTests: boolean,
): readonly string[] {
  const lines = mutants.flatMap(({ mutant, fate }) => {
    if (fate.kind === "killed" || fate.kind === "checked") return [];
    const place = placeOf(mutant.part);
    const where = place === null ? "" : `  ${paint("dim", `${shownInLine(place.file)}:${place.line}`)}`;
    const word = fate.kind === "survived" ? paint("red", "survived") : paint("yellow", "not covered");
    const test =
      fate.test === null
        ? [`  No script of the ${fate.tried} that were tried distinguishes the two flows.`]
        : withTests
          ? testItems([fate.test]).map((line) => shownInLine(line, 2000))
          : [];
    return [`${word}  ${shownInLine(mutant.what)}${where}`, ...test, ...(withTests ? [""] : [])];
  });
  return withTests || lines.length === 0 ? lines : [...lines, ""];
}

function notes(
  { mutants, notLive }: Mutation,
  skipped: number,
  added: Added | null,
  { min, verbose }: { readonly min?: number | undefined; readonly verbose: boolean },
): readonly string[] {
  const score = scoreOf(mutants);
  const open = mutants.filter(({ fate }) => "test" in fate && fate.test !== null).length;
  return [
    "",
    ...(notLive.length === 0
      ? []
      : [
          `Not changed, because no run comes to ${notLive.length === 1 ? "it" : "them"}: ${notLive.map((id) => shownInLine(id)).join(", ")}`,
        ]),
    ...(skipped === 0
      ? []
      : [`${count(skipped, "test")} in a project folder left out: changes are judged in memory.`]),
    ...(added !== null
      ? [`${count(added.tests, "test")} added to ${added.file}`]
      : open > 0
        ? [
            ...(verbose ? [] : ["See the shortest test that would notice each of them with --verbose."]),
            "Add these tests to tests/generated.yaml with --write, and read them before you keep them.",
          ]
        : []),
    ...(min !== undefined && (score ?? 0) * 100 < min ? [`The score is below ${min} %.`] : []),
  ];
}

type Added = { readonly file: string; readonly tests: number };

/** At the end of the file, behind what is there; each test once, however many changes it notices. */
function addTests(project: Project, agent: string, mutants: readonly Mutated[]): Added {
  const { root } = project;
  const folder = join(".agent", agent, "tests");
  const file = join(folder, "generated.yaml");
  const tests = new Map<string, FlowTest>();
  for (const { fate } of mutants)
    if ("test" in fate && fate.test !== null) {
      const { name: _name, ...rest } = fate.test;
      const key = JSON.stringify(rest);
      if (!tests.has(key)) tests.set(key, fate.test);
    }
  const path = join(root, file);
  try {
    if (tests.size === 0) return { file, tests: 0 };
    requireNoLinks(root, file);
    const read = createFiles(root).read(file);
    if (read.kind !== "text" && read.kind !== "missing") throw new Error("it cannot be read");
    const before = read.kind === "text" ? read.text : "";
    const text =
      before.trim() === ""
        ? writeTests(
            [...tests.values()],
            ["Written by lockstep mutate: what the flow does today. Read it before you rely on it."],
            schemasForTests(project, agent),
          )
        : `${before.trimEnd()}\n${testItems([...tests.values()]).join("\n")}\n`;
    writeInProject(root, file, text);
  } catch (cause) {
    throw cause instanceof RunnerError ? cause : notWritable(`${file} cannot be written`, path, cause);
  }
  return { file, tests: tests.size };
}
