/** Runs a test on a copy of its project: real tools and checks in the sandbox, GitHub as a stand-in, the model a script. */
import { dirname } from "node:path";
import { createScripted } from "../backends/scripted/scripted.ts";
import { RunnerError, type Backend } from "../engine/ports.ts";
import type { Prepared } from "../engine/schema/prepared.ts";
import type { FlowTest } from "../flow/flow-test.ts";
import { createMemoryJournal } from "../journal/memory.ts";
import { expandReplies } from "../proof/expand.ts";
import type { Heard } from "../proof/observe.ts";
import { runLoaded } from "../run/open.ts";
import type { Loaded } from "../run/load.ts";
import type { DriveOptions } from "../run/options.ts";
import { termsForCopies, type CopyTerms } from "../run/trust/trusted-copy.ts";
import { copyForTest, removeLeftCopies, type ProjectCopy } from "../run/world/project-copy.ts";
import { findProject } from "../run/world/project.ts";
import { githubAfter, githubOf } from "./github/in-tests.ts";
import type { Grounds } from "./flow-tests.ts";
import { heardIn, moreInTest, type Ran } from "./ground.ts";
import { projectClock } from "./test-clock.ts";

export type ProjectOptions = Pick<
  DriveOptions,
  "env" | "trust" | "notify" | "sandbox" | "network" | "signal"
>;

/**
 * The ground of the tests that need a project; none of them: nothing is asked. NOT_TRUSTED or SANDBOX_UNAVAILABLE where a
 * run would be refused, before the first test.
 */
export async function openProjectGround(
  loaded: Pick<Loaded, "agent" | "flow" | "project">,
  tests: readonly FlowTest[],
  options: ProjectOptions = {},
): Promise<NonNullable<Grounds["project"]>> {
  const { flow, project } = loaded;
  const needed = tests.filter(({ ground, skip }) => ground.kind === "project" && skip === undefined);
  const terms = new Map<boolean, CopyTerms>();
  for (const granting of new Set(needed.map(isGranting)))
    if (flow !== null) terms.set(granting, await termsForCopies(flow, project, granting, options));
  if (needed.length > 0) removeLeftCopies();
  return async (prepared, test) => {
    const held = terms.get(isGranting(test));
    if (held === undefined || test.ground.kind !== "project")
      throw new RunnerError("USAGE", `The test "${test.name}" was not announced.`);
    try {
      const copied = { root: project.root, agent: loaded.agent };
      using copy = await copyForTest(copied, test.ground, options.env ?? process.env, options.signal);
      return await runOn(copy, prepared, test, held, options.signal);
    } catch (error) {
      if (!(error instanceof RunnerError)) throw error;
      return { ...NOTHING, fault: { of: "project", line: test.line, why: error.message } };
    }
  };
}

const NOTHING = { entries: [], heard: [], waits: [], warnings: [] } as const;

/** Whether somebody could be asked. */
function isGranting({ around }: FlowTest): boolean {
  return around.answers.length > 0;
}

async function runOn(
  copy: ProjectCopy,
  flow: Prepared,
  test: FlowTest,
  terms: CopyTerms,
  signal?: AbortSignal,
): Promise<Ran> {
  const expansion = expandReplies(flow, test.script);
  if (expansion.kind === "none")
    return { ...NOTHING, fault: { of: "script", line: expansion.line, why: expansion.why } };
  const { around, until, params: args, input } = test;
  const heard: Heard[] = [];
  const waits: number[] = [];
  const scripted = createScripted(expansion.replies, [], moreInTest);
  const stop = new AbortController();
  const journal = createMemoryJournal();
  const github = around.github === null ? null : await githubOf(around.github);
  try {
    let run = "";
    const project = findProject(copy.folder, undefined, copy.env);
    const result = await runLoaded(
      { agent: flow.agent, project, flow, problems: [] },
      {
        args,
        input,
        cwd: copy.folder,
        env: { ...copy.env, ...github?.env },
        backend: hearing(scripted, heard),
        journal,
        clock: projectClock(around.clock, waits),
        ...terms,
        trustJournal: true,
        signal: signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]),
        ...answering(test),
        onRun: (id) => void (run = id),
        observe: (_entry, _state, _flow, deeds) => {
          if (deeds.some((deed) => deed.kind === "began" && deed.step === until)) stop.abort();
        },
      },
    );
    const entries = run === "" ? [] : await journal.read(run);
    if (entries.length === 0)
      return { ...NOTHING, fault: { of: "run", line: test.line, why: result.reason } };
    const warnings = stop.signal.aborted ? [] : (scripted.leftovers?.() ?? []);
    const left = {
      ...(await copy.left(test.expect.values)),
      ...(github !== null && { github: githubAfter(github) }),
    };
    const volatile = [
      [copy.folder, "folder"],
      [dirname(copy.folder), "temporary"],
      [run, "run"],
    ] as const;
    return { entries, heard, waits, warnings, left, volatile };
  } finally {
    await github?.close();
  }
}

function hearing(backend: Backend, heard: Heard[]): Backend {
  const { turn } = backend;
  if (turn === undefined) return backend;
  return {
    ...backend,
    turn: (request) => {
      heard.push(heardIn(request));
      return turn(request);
    },
  };
}

/** People answer in order; with no answers given there is nobody. */
function answering({ around: { answers } }: FlowTest): Pick<DriveOptions, "ask"> {
  if (answers.length === 0) return {};
  let asked = 0;
  return { ask: () => Promise.resolve(answers[asked++] ?? null) };
}
