/** `lockstep export RUN --test` and `--script`: a recorded run as a test file, or as a script for `run --script`. */
import { scriptText, writeTests } from "../../proof/write-tests.ts";
import { defined } from "../../flow/json.ts";
import { heardPage } from "../../proof/drift-page.ts";

export { heardPath } from "../../proof/drift-page.ts";
import { heardDigests, heardReplies, type HeardReply } from "../../proof/drift.ts";
import { testOfRun, type RunAsTest } from "../../proof/test-of-run.ts";
import type { Bundle } from "../../run/records/bundle.ts";
import { RunnerError } from "../../run/errors.ts";
import { testsIn } from "../../load/tests.ts";
import { MOST_PROJECT_BYTES } from "../../run/world/files.ts";
import { sha256 } from "../../run/load.ts";
import { prepareFlow, runTest } from "../../testing/flow-tests.ts";

type Prepared = Awaited<ReturnType<typeof prepareFlow>>;

export type RunAsText = {
  readonly text: string;
  readonly replies: number;
  /** The page with what the responses were given to; null: they are redacted, or it is a script. */
  readonly heard: string | null;
  /** Why the test does not go the way of the run; null: it does, it was tried. */
  readonly astray: string | null;
};

type Head = {
  /** The version. */
  readonly lockstep: string;
  /** The way to the schemas for editors from the folder of an agent's tests, where there are any. */
  readonly schemas: (agent: string) => string | null;
};

export async function asTest(
  bundle: Bundle,
  as: "test" | "script",
  { lockstep, schemas }: Head,
): Promise<RunAsText> {
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
  const flow = prepared[newest]!;
  let tried = await tryOut(flow, made(true));
  if (tried.astray !== null) tried = await tryOut(flow, made(false));
  const { models, heard, astray } = tried;
  // What is said in the test: a run in the world has other times and folders in it.
  const digests = new Map(heard.map((one) => [one.reply, heardDigests(one, sha256)]));
  const script = tried.test.script.map((reply, at) => ({ ...reply, ...defined({ heard: digests.get(at) }) }));
  const test = as === "test" ? { ...tried.test, script } : tried.test;
  const about = [
    `Run ${run.id} of ${new Date(run.createdAt).toISOString()}${redacted ? ", redacted" : ""}`,
    `Flow ${newest.slice(0, 12)}, answered by ${models.length === 0 ? "no named model" : models.join(", ")}, ${lockstep}`,
  ].map((line) => line.replaceAll(/[\r\n]+/g, " "));
  const text =
    as === "test" ? writeTests([test], about, schemas(flow.agent)) : scriptText(test.script, about);
  const page = as === "test" && !redacted ? heardPage(test.name, heard) : null;
  const refused = as === "test" ? refusedOf(flow, text) : null;
  return { text: text.trimEnd(), replies: test.script.length, heard: page, astray: refused ?? astray };
}

/** Why `lockstep test` does not take the file; null: it does. */
function refusedOf(flow: Prepared, text: string): string | null {
  const bytes = Buffer.byteLength(text);
  if (bytes > MOST_PROJECT_BYTES)
    return `The file has ${bytes} bytes, and a test file can have ${MOST_PROJECT_BYTES}.`;
  const file = `.agent/${flow.agent}/tests/recorded.yaml`;
  const { problems } = testsIn(
    flow,
    { list: () => null, read: (path) => (path === file ? { kind: "text", text } : { kind: "missing" }) },
    file,
  );
  const [first] = problems;
  return first === undefined ? null : `Line ${first.line} of the file cannot be read: ${first.message}`;
}

type TriedOut = RunAsTest & { readonly heard: readonly HeardReply[]; readonly astray: string | null };

async function tryOut(flow: Prepared, made: RunAsTest): Promise<TriedOut> {
  const { status, unmet, outcomes } = await runTest(flow, made.test);
  const heard = heardReplies(outcomes?.moments ?? []);
  if (status === "passed") return { ...made, heard, astray: null };
  const [first] = unmet;
  const astray = first === undefined ? "it does not pass" : `${first.key}: ${JSON.stringify(first.got)}`;
  return { ...made, heard, astray };
}
