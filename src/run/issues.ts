/** Which issues there are to work on. */
import { openGitHub } from "../effects/github/github.ts";
import { runProcess } from "../effects/process/process.ts";
import { RunnerError } from "../engine/ports.ts";
import { systemClock } from "./world/clock.ts";
import { programsFor } from "./world/programs.ts";

export type Asking = {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
};

/** Open issues, those first that were opened first. `left`: how many more there are, as far as they were counted. */
export type Labelled = { readonly numbers: readonly number[]; readonly left: number };

/** The open issues that have a label, at most so many. GITHUB_UNAVAILABLE: it cannot be asked. */
export async function labelledIssues(label: string, most: number, asking: Asking): Promise<Labelled> {
  const github = await openGitHub({
    ...asking,
    programs: programsFor(asking.env, [asking.cwd]),
    exec: runProcess,
    clock: systemClock,
  });
  if (!github.ok) throw unavailable(github.why);
  const found = await github.value.issues({
    state: "open",
    labels: [label],
    limit: MOST_SEEN,
    order: "oldest first",
  });
  if (!found.ok) throw unavailable(found.why);
  const all = found.value.items.map(({ number }) => number).toSorted((one, other) => one - other);
  return { numbers: all.slice(0, most), left: Math.max(0, all.length - most) };
}

const MOST_SEEN = 1000;

function unavailable(why: string): RunnerError {
  return new RunnerError("GITHUB_UNAVAILABLE", `The issues cannot be listed. ${why}`);
}
