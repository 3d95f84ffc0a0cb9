/** `lockstep coverage NAME`: what tests and recorded runs have shown of a flow, side by side or each alone. */
import { hasErrors } from "../../flow/problem.ts";
import { NO_SETTINGS } from "../../flow/test-settings.ts";
import { EXIT, exitOfSignal } from "../../flow/verdict.ts";
import type { Coverage } from "../../proof/coverage.ts";
import { createFiles } from "../../run/world/files.ts";
import { loadNamed } from "../agent.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { requireEnding, writeCoverage } from "../coverage/coverage-file.ts";
import { compared, comparisonText, coverageText } from "../coverage/coverage-text.ts";
import { measureRuns, measureTests, type MeasuredRuns } from "../coverage/measure.ts";
import { tellInvalid } from "../tests/refuse.ts";
import { count } from "../text/text.ts";

export async function showCoverage(call: CallOf<"coverage">): Promise<number> {
  const { tests: onlyTests, runs: onlyRuns, since, out, json } = call.flags;
  if (onlyTests && onlyRuns)
    throw new UsageError("--tests and --runs exclude each other. Without them, both are shown.");
  if (onlyTests && since !== undefined)
    throw new UsageError("--since is about recorded runs: leave out --tests.");
  if (out !== undefined && !onlyTests && !onlyRuns)
    throw new UsageError("--out writes one coverage: add --tests or --runs.");
  if (out !== undefined) requireEnding(out);
  const signal = call.host.interruption();
  const [name = ""] = call.words;
  const loaded = await loadNamed(name, call.cwd);
  const { flow } = loaded;
  const files = createFiles(loaded.project.root);
  const about = { agent: name };
  if (flow === null || hasErrors(loaded.problems))
    return tellInvalid(call, "lockstep-coverage", loaded.problems, files, about);
  const measured = onlyRuns ? null : await measureTests(loaded, flow, files, signal);
  if (measured?.kind === "invalid")
    return tellInvalid(call, "lockstep-coverage", measured.problems, files, about);
  const from = since === undefined ? -Infinity : Date.now() - since;
  const runs = onlyTests ? null : await measureRuns(call, loaded, flow, files, from, signal);
  const tests = measured?.coverage ?? null;
  if (out !== undefined) {
    writeCoverage(call.cwd, out, [{ flow, coverage: (tests ?? runs?.coverage)! }]);
    call.screen.tell(`Wrote ${out}.`);
  }
  const isStopped = signal.aborted;
  const text = () => [...textOf(call, tests, runs), ...(isStopped ? ["", STOPPED] : [])];
  if (json)
    call.screen.document({
      ...documentOf(tests, runs),
      ok: !isStopped,
      ...(isStopped && { stopped: "interrupted" }),
    });
  else if (!call.flags.quiet || out === undefined) call.screen.print(text().join("\n"));
  return isStopped ? exitOfSignal(signal) : EXIT.completed;
}

const STOPPED = "Interrupted: this is what was measured until then.";

/** More gaps than these are listed only with --verbose. */
const MOST_GAPS = 20;

function textOf(
  { screen, flags }: CallOf<"coverage">,
  tests: Coverage | null,
  runs: MeasuredRuns | null,
): readonly string[] {
  const about = runs === null ? [] : ["", aboutRuns(runs)];
  const most = flags.verbose ? Infinity : MOST_GAPS;
  if (tests !== null && runs !== null && runs.runs > 0)
    return [...comparisonText(tests, runs.coverage, screen.out, most), ...about];
  const coverage = (tests ?? runs?.coverage)!;
  return [...coverageText(coverage, NO_SETTINGS.coverage, screen.out, most), ...about];
}

function aboutRuns({ runs, earlier, damaged }: MeasuredRuns): string {
  return [
    count(runs, "recorded run"),
    ...(earlier === 0 ? [] : [`${earlier} of an earlier version of the flow`]),
    ...(damaged === 0 ? [] : [`${damaged} damaged: only what can be read counts`]),
  ].join(", ");
}

/** One coverage is the document of coverage files; two are compared. */
function documentOf(tests: Coverage | null, runs: MeasuredRuns | null): object {
  if (runs === null) return { ...tests };
  const { coverage, ...about } = runs;
  if (tests === null) return { ...coverage, recorded: about };
  const { onlyRuns, onlyTests, neither } = compared(tests, coverage);
  const ids = (elements: readonly { readonly id: string }[]) => elements.map(({ id }) => id);
  return {
    v: 1,
    kind: "lockstep-coverage-compared",
    agent: tests.agent,
    digest: tests.digest,
    recorded: about,
    onlyRuns: ids(onlyRuns),
    onlyTests: ids(onlyTests),
    neither: ids(neither),
    tests,
    runs: coverage,
  };
}
