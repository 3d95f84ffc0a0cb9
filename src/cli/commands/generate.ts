/** `lockstep test NAME --generate`: tests for everything that no test covers, printed or written to generated.yaml. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import type { FlowTest } from "../../flow/flow-test.ts";
import { EXIT, exitOfSignal } from "../../flow/verdict.ts";
import { hitsIn, type Hits } from "../../proof/cover.ts";
import type { Covered } from "../../proof/coverage.ts";
import { keepOwn } from "../../proof/keep-own.ts";
import { testItems, writeTests } from "../../proof/write-tests.ts";
import { RunnerError } from "../../run/errors.ts";
import { createFiles } from "../../run/world/files.ts";
import { findProject, listAgents, type Project } from "../../run/world/project.ts";
import { notWritable, requireNoLinks, writeInProject } from "../../run/world/write-whole.ts";
import { prepareFlow, runTest } from "../../testing/flow-tests.ts";
import { generate, type Generated } from "../../testing/generate.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { coverageBy } from "../coverage/measure.ts";
import { schemasForTests } from "../schemas.ts";
import { readNamed, type AgentUnderTest } from "../tests/read.ts";
import { tellInvalid } from "../tests/refuse.ts";
import { count, shownInLine, table } from "../text/text.ts";

export async function generateTests(call: CallOf<"test">): Promise<number> {
  const { flags, screen } = call;
  refuseMixed(call);
  const signal = call.host.interruption();
  const project = findProject(call.cwd, call.stateDir);
  const files = createFiles(project.root);
  const named = call.words.length > 0 ? call : { ...call, words: listAgents(project) };
  const { agents, problems } = await readNamed(named, files);
  if (problems.length > 0) return tellInvalid(call, "lockstep-generated", problems, files);
  const all: GeneratedFor[] = [];
  for (const agent of agents) {
    if (signal.aborted) break;
    const made = {
      ...(await generateFor(call, agent, signal)),
      schemas: schemasForTests(project, agent.agent),
    };
    // Only some of the tests would take the place of all that are there.
    if (flags.write && !made.isStopped) writeGenerated(project, files, made);
    all.push(made);
  }
  const isStopped = signal.aborted;
  const ok = !isStopped && all.every(({ astray }) => astray.length === 0);
  if (flags.json)
    screen.document({
      v: 1,
      kind: "lockstep-generated",
      ok,
      ...(isStopped && { stopped: "interrupted" }),
      agents: all.map((made) => documentOf(made, flags.write && !made.isStopped)),
    });
  else for (const made of all) tell(call, made);
  if (isStopped) {
    const left = agents.length - all.filter((made) => !made.isStopped).length;
    if (left > 0) screen.complain(`Interrupted: the tests of ${count(left, "agent")} are not complete.`);
    return exitOfSignal(signal);
  }
  return ok ? EXIT.completed : EXIT.testsFailed;
}

function refuseMixed({ flags, words }: CallOf<"test">): void {
  const others = ["coverage", "last-failed", "list", "cut", "watch"] as const;
  const other = others.find((name) => flags[name]);
  if (other !== undefined) throw new UsageError(`--generate and --${other} cannot be used together.`);
  const file = words.find((word) => /[/\\*?]|\.(?:ya?ml|json)$/i.test(word));
  if (file !== undefined) throw new UsageError(`--generate takes names of agents, not "${file}".`);
}

type GeneratedFor = Generated & {
  readonly of: AgentUnderTest;
  readonly file: string;
  /** The way from there to the schemas for editors. */
  readonly schemas: string | null;
  /** What there is no test for, with its place. */
  readonly gaps: readonly (Covered & { readonly word: "not found" | "unreachable"; readonly why: string })[];
  /** Only some of the tests were asked for: those that are there stay. */
  readonly isPart: boolean;
};

async function generateFor(
  { flags, screen }: CallOf<"test">,
  of: AgentUnderTest,
  signal: AbortSignal,
): Promise<Omit<GeneratedFor, "schemas">> {
  const { agent, flow, tests, settings } = of;
  const file = `.agent/${agent}/tests/${GENERATED}`;
  const isPart = flags.covers !== undefined;
  const prepared = await prepareFlow(flow);
  const hits: Hits = new Map(settings.ignore.map(({ id }) => [id, 1]));
  for (const test of tests) {
    // What is written again must not count as there.
    if (flags.write && !isPart && isReplaced(test, file)) continue;
    if (test.ground.kind !== "memory") continue;
    // A busy process hears no signals.
    await setImmediate();
    if (signal.aborted) break;
    const { outcomes } = await runTest(prepared, test);
    if (outcomes !== null) for (const [id, times] of hitsIn(outcomes.moments)) hits.set(id, times);
  }
  screen.status(`searching ${shownInLine(agent)}`);
  const { covers: only } = flags;
  const made = await generate(prepared, hits, { signal, ...(only !== undefined && { only }) });
  screen.status(null);
  if (isPart && !made.isStopped && made.tests.length + made.missing.length + made.astray.length === 0)
    throw new RunnerError(
      "USAGE",
      `No element of ${agent} that is not covered begins with "${flags.covers}". See: lockstep test ${agent} --coverage`,
    );
  const places = new Map(coverageBy(of, flow, [], settings).elements.map((one) => [one.id, one]));
  const gaps = made.missing.map(({ element: { id }, doubt }) => ({
    ...places.get(id)!,
    word: doubt === null ? ("unreachable" as const) : ("not found" as const),
    why:
      doubt === null
        ? `proved: all ${made.states} states were tried with every kind of answer, result and fault`
        : `not proved: ${doubt}`,
  }));
  return { ...made, of, file, gaps, isPart };
}

const GENERATED = "generated.yaml";

function isReplaced({ generated, file }: FlowTest, path: string): boolean {
  return generated && file === path;
}

const ABOUT = [
  "Written by lockstep test --generate --write: what the flow does today, to be read by a person.",
  "Tests that say generated: true are replaced when it is run again; remove that line to keep one as it is.",
];

function writeGenerated({ root }: Project, files: ReturnType<typeof createFiles>, made: GeneratedFor): void {
  const { file, tests, of, isPart, schemas } = made;
  const path = join(root, file);
  requireNoLinks(root, file);
  const before = files.read(file);
  const old = before.kind === "text" ? before.text : "";
  const there = of.tests.filter((test) => test.file === file);
  const kept = keepOwn(old, there, ({ generated }) => isPart || !generated);
  if (kept === null)
    throw new RunnerError(
      "USAGE",
      `${file} has tests of yours that cannot be kept where they are. Move them to another file of the folder.`,
    );
  try {
    if (tests.length === 0 && kept.length === 0) {
      if (old !== "") rmSync(path);
      return;
    }
    writeInProject(root, file, writeTests(tests, ABOUT, schemas) + kept.join(""));
  } catch (cause) {
    throw notWritable(`The tests cannot be written to ${file}`, path, cause);
  }
}

function documentOf({ of, file, schemas, tests, gaps, astray, states }: GeneratedFor, isWritten: boolean) {
  return {
    agent: of.agent,
    file: isWritten ? file : null,
    states,
    tests: tests.map(({ name, covers }) => ({ name, covers })),
    yaml: tests.length === 0 ? "" : writeTests(tests, ABOUT, schemas),
    gaps: gaps.map(({ id, kind, file: at, line, word, why }) => ({ id, kind, file: at, line, word, why })),
    astray: astray.map(({ test, why }) => ({
      name: test.name,
      covers: test.covers,
      why,
      yaml: writeTests([test], [], schemas),
    })),
  };
}

/** Tests to stdout, so that they can be kept; what was found about them to stderr. */
function tell({ flags, screen }: CallOf<"test">, made: GeneratedFor): void {
  const { of, file, schemas, tests, gaps, astray, states } = made;
  const isWritten = flags.write && !made.isStopped;
  if (isWritten)
    for (const { name } of tests)
      screen.print(`${screen.out("green", "+")} ${shownInLine(of.agent)} › ${shownInLine(name)}`);
  else if (tests.length > 0) screen.emit(writeTests(tests, ABOUT, schemas).trimEnd());
  for (const { test, why } of astray)
    screen.print(
      [
        `${screen.out("red", "✗")} The flow allows this way, but a run cannot go it: ${shownInLine(why, 1000)}`,
        ...testItems([test]).map((line) => shownInLine(line, 1000)),
      ].join("\n"),
    );
  const covered = tests.reduce((sum, { covers }) => sum + covers.length, 0);
  const where = isWritten && tests.length > 0 ? ` in ${file}` : "";
  screen.tell(
    [
      `${shownInLine(of.agent)}: ${count(tests.length, "test")}${where} for ${count(covered, "element")} without a test; ${count(states, "state")} searched`,
      ...table(
        gaps.map(({ word, id, file: at, line, why }) => [
          `  ${word}`,
          shownInLine(id, 100),
          at === null ? "" : `${shownInLine(at, 100)}:${line}`,
          shownInLine(why, 200),
        ]),
      ),
    ].join("\n"),
  );
}
