/** `lockstep export RUN --test` and `--script`: a recorded run as a test file, or as a script for `run --script`. */
import { scriptText, writeTests } from "../../proof/write-tests.ts";
import { testOfRun, type RunAsTest } from "../../proof/test-of-run.ts";
import type { Bundle } from "../../run/records/bundle.ts";
import { RunnerError } from "../../run/errors.ts";
import { prepareFlow, runTest } from "../../testing/flow-tests.ts";

type Prepared = Awaited<ReturnType<typeof prepareFlow>>;

export type RunAsText = {
  readonly text: string;
  readonly replies: number;
  /** Why the test does not go the way of the run; null: it does, it was tried. */
  readonly astray: string | null;
};

/** `lockstep`: the version, for the head of the file. */
export async function asTest(bundle: Bundle, as: "test" | "script", lockstep: string): Promise<RunAsText> {
  const { run, flows, entries, redacted } = bundle;
  const last = entries.findLast(({ event }) => event.type !== "run.noted")?.event;
  if (last?.type !== "run.ended")
    throw new RunnerError(
      "RUN_OPEN",
      `Run ${run.id} has not ended: a test needs its end. See: lockstep show ${run.id}`,
    );
  const prepared: { [digest: string]: Prepared } = {};
  for (const [digest, flow] of Object.entries(flows)) prepared[digest] = await prepareFlow(flow);
  const first = prepared[run.flow]!;
  // A run that took over a changed flow is tried on the one that it ended with.
  const newest = entries.reduce(
    (digest, { event }) => (event.type === "run.adopted" ? event.flow : digest),
    run.flow,
  );
  const made = (outputs: boolean) => testOfRun(first, entries, { run: run.id, outputs, adopted: prepared });
  // What commands printed may have been shortened or redacted: then it says less than whether they passed.
  let chosen = made(true);
  let astray = await whyAstray(prepared[newest]!, chosen);
  if (astray !== null) {
    chosen = made(false);
    astray = await whyAstray(prepared[newest]!, chosen);
  }
  const { test, models } = chosen;
  const about = [
    `Run ${run.id} of ${new Date(run.createdAt).toISOString()}${redacted ? ", redacted" : ""}`,
    `Flow ${newest.slice(0, 12)}, answered by ${models.length === 0 ? "no named model" : models.join(", ")}, ${lockstep}`,
  ].map((line) => line.replaceAll(/[\r\n]+/g, " "));
  const text = as === "test" ? writeTests([test], about) : scriptText(test.script, about);
  return { text: text.trimEnd(), replies: test.script.length, astray };
}

async function whyAstray(flow: Prepared, { test }: RunAsTest): Promise<string | null> {
  const { status, unmet } = await runTest(flow, test);
  if (status === "passed") return null;
  const [first] = unmet;
  return first === undefined ? "it does not pass" : `${first.key}: ${JSON.stringify(first.got)}`;
}
