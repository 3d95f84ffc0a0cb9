/** `lockstep fuzz AGENT`: runs an agent against a hostile model, in memory. The report goes to stdout. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { FlowTest } from "../../flow/flow-test.ts";
import { hasErrors, type Problem } from "../../flow/problem.ts";
import { EXIT, exitOfSignal } from "../../flow/verdict.ts";
import { readTestSettings } from "../../load/test-settings.ts";
import { elementsOf } from "../../proof/elements.ts";
import { testItems, writeTests } from "../../proof/write-tests.ts";
import { flowDigest } from "../../run/load.ts";
import { RunnerError } from "../../run/errors.ts";
import { createFiles } from "../../run/world/files.ts";
import { findProject, type Project } from "../../run/world/project.ts";
import { notWritable, writeInProject } from "../../run/world/write-whole.ts";
import { fuzz, type Fuzzed, type FuzzCase } from "../../testing/fuzz.ts";
import { prepareFlow } from "../../testing/flow-tests.ts";
import { loadNamed } from "../agent.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { schemasForTests } from "../schemas.ts";
import { tellInvalid } from "../tests/refuse.ts";
import { count, shownInLine, table } from "../text/text.ts";

export async function fuzzAgent(call: CallOf<"fuzz">): Promise<number> {
  const { flags, screen, host } = call;
  const [name = ""] = call.words;
  if (flags.runs !== undefined && flags.for !== undefined)
    throw new UsageError("--runs and --for cannot be given together: one of them says how long to go on.");
  const stopped = host.interruption();
  const project = findProject(call.cwd, call.stateDir);
  const files = createFiles(project.root);
  const loaded = await loadNamed(name, call.cwd, files);
  const read = loaded.flow === null ? null : readTestSettings(loaded.flow, files);
  const problems: readonly Problem[] = [
    ...loaded.problems.filter(({ severity }) => severity === "error"),
    ...(read?.problems ?? []),
  ];
  if (loaded.flow === null || read === null || hasErrors(problems))
    return tellInvalid(call, "lockstep-fuzz", problems, files, { agent: name });
  const { seed = 1, for: ms } = flags;
  screen.tell(`Fuzzing ${shownInLine(name)}; Ctrl-C stops and reports.`);
  const until = ms === undefined ? Infinity : performance.now() + ms;
  const fuzzed = await fuzz(await prepareFlow(loaded.flow), {
    seed,
    runs: flags.runs ?? (ms === undefined ? 1000 : Infinity),
    isOver: () => stopped.aborted || performance.now() >= until,
    settings: read.settings,
    ...(flags.persona.length > 0 && { personas: flags.persona }),
  });
  const cases = casesIn(name, fuzzed);
  if (flags.save) for (const one of cases) save(project, name, one);
  const isBad = fuzzed.broken.length > 0 || (flags["fail-on"] === "weakness" && cases.length > 0);
  const flow = flowDigest(loaded.flow);
  const elements = elementsOf(loaded.flow);
  const covered = elements.filter(({ id }) => fuzzed.hits.has(id)).length;
  const about = { agent: name, flow, seed, runs: fuzzed.runs, covered, elements: elements.length };
  if (flags.json)
    screen.document({
      v: 1,
      kind: "lockstep-fuzz",
      ok: !isBad && !stopped.aborted,
      ...(stopped.aborted && { stopped: "interrupted" }),
      ...about,
      personas: [...fuzzed.ends].map(([persona, ends]) => ({ persona, ends: Object.fromEntries(ends) })),
      broken: cases.filter(({ isBroken }) => isBroken).map((one) => shape(one, flags.save)),
      weaknesses: cases.filter(({ isBroken }) => !isBroken).map((one) => shape(one, flags.save)),
    });
  else if (!flags.quiet || isBad) screen.print(report(call, about, fuzzed, cases));
  if (stopped.aborted) screen.complain(`Interrupted after ${count(fuzzed.runs, "run")}.`);
  if (stopped.aborted) return exitOfSignal(stopped);
  return isBad ? EXIT.testsFailed : EXIT.completed;
}

/** A case as it is reported and saved. */
type ReportedCase = FuzzCase & {
  readonly isBroken: boolean;
  /** The property, or the code of the weakness. */
  readonly name: string;
  readonly step?: string;
  readonly seq: number;
  readonly what: string;
  readonly file: string;
};

function casesIn(agent: string, { broken, weaknesses }: Fuzzed): readonly ReportedCase[] {
  const fileOf = (name: string, { test: { script, around } }: FuzzCase) =>
    `.agent/${agent}/tests/fuzz-${name}-${digest([name, script, around])}.yaml`;
  return [
    ...broken.map((one) => ({ ...one, isBroken: true, name: one.property, file: fileOf(one.property, one) })),
    ...weaknesses.map((one) => {
      const name = one.code.replace("FUZZ-", "").toLowerCase();
      return { ...one, isBroken: false, name: one.code, file: fileOf(name, one) };
    }),
  ];
}

function digest(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 8);
}

function save(project: Project, agent: string, { name, what, test, file, persona }: ReportedCase): void {
  const { root } = project;
  const about = [
    `Found by lockstep fuzz: ${shownInLine(name)}. ${shownInLine(what)}`,
    "The test fails as long as a run with these responses shows it.",
  ];
  const text = writeTests(
    [{ ...test, name: `${name}, from a model that is ${persona}`, file }],
    about,
    schemasForTests(project, agent),
  );
  try {
    writeInProject(root, file, text);
  } catch (cause) {
    throw cause instanceof RunnerError
      ? cause
      : notWritable(`${file} cannot be written`, join(root, file), cause);
  }
}

function shape(
  { name, isBroken, step, seq, what, persona, numbers, test, tries, file }: ReportedCase,
  isSaved: boolean,
) {
  return {
    ...(isBroken ? { property: name } : { code: name }),
    ...(step !== undefined && { step }),
    entry: seq,
    what,
    persona,
    script: test.script.map(({ line: _line, ...reply }) => reply),
    test: testItems([test]).join("\n"),
    numbers,
    tries,
    ...(isSaved && { file }),
  };
}

type About = {
  readonly agent: string;
  readonly flow: string;
  readonly seed: number;
  readonly runs: number;
  readonly covered: number;
  readonly elements: number;
};

function report(
  { flags, screen: { out } }: CallOf<"fuzz">,
  { agent, flow, seed, runs, covered, elements }: About,
  { ends }: Fuzzed,
  cases: readonly ReportedCase[],
): string {
  const rows = [...ends].map(([persona, counts]) => {
    const all = [...counts.values()].reduce((sum, one) => sum + one, 0);
    const others = [...counts]
      .filter(([end]) => end !== "completed")
      .toSorted(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))
      .map(([end, times]) => `${end.replace(/^failed /, "")} ${times}`);
    return [persona, `${all}`, `${counts.get("completed") ?? 0}`, others.join(", ")];
  });
  const lines = [
    `${out("bold", shownInLine(agent))}: ${count(runs, "run")}, seed ${seed}, flow ${flow.slice(0, 12)}, ${covered} of ${elements} elements shown`,
    "",
    ...table([["persona", "runs", "completed", "ended otherwise"], ...rows]).map((row) => `  ${row}`),
    "",
  ];
  for (const { isBroken, name, what, persona, test, tries, file } of cases) {
    const mark = isBroken ? out("red", "✗") : out("yellow", "!");
    lines.push(
      `${mark} ${out("bold", name === "author" ? "your rule" : name)}  ${shownInLine(what)}`,
      `    ${count(test.script.length, "response")} of a model that is ${persona}, found smallest after ${count(tries, "try", "tries")}`,
      ...testLines(test).map((line) => `    ${line}`),
      ...(flags.save ? [`    saved as ${file}`] : []),
      "",
    );
  }
  const broken = cases.filter((one) => one.isBroken).length;
  const weak = cases.length - broken;
  const held = broken === 0 ? "every property held" : `${count(broken, "property", "properties")} broken`;
  return [...lines, weak === 0 ? held : `${held}, ${count(weak, "weakness", "weaknesses")}`].join("\n");
}

/** The test as it stands in a file: what checks and tools gave is part of the case. */
function testLines(test: FlowTest): readonly string[] {
  const lines = testItems([test]).map((line) => shownInLine(line.slice(2), 160));
  const more = lines.length - MOST_SHOWN;
  return more > 0 ? [...lines.slice(0, MOST_SHOWN), `and ${count(more, "line")} more`] : lines;
}

const MOST_SHOWN = 16;
