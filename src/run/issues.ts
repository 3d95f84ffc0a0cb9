/** Which issues there are to work on. */
import { openGitHub } from "../effects/github.ts";
import { runProcess } from "../effects/process.ts";
import { RunnerError } from "../engine/ports.ts";
import { systemClock } from "./clock.ts";
import { programsFor } from "./programs.ts";

export type Asking = {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
};

/** The numbers of open issues that have a label, those first that were opened first. GITHUB_UNAVAILABLE: it cannot be asked. */
export async function labelledIssues(
  label: string,
  most: number,
  asking: Asking,
): Promise<readonly number[]> {
  const github = await openGitHub({
    ...asking,
    programs: programsFor(asking.env, [asking.cwd]),
    exec: runProcess,
    clock: systemClock,
  });
  if (!github.ok) throw unavailable(github.why);
  const found = await github.value.issues({ state: "open", labels: [label], limit: MOST_SEEN });
  if (!found.ok) throw unavailable(found.why);
  const numbers = found.value.items.map(({ number }) => number);
  return numbers.toSorted((one, other) => one - other).slice(0, most);
}

const MOST_SEEN = 1000;

function unavailable(why: string): RunnerError {
  return new RunnerError("GITHUB_UNAVAILABLE", `The issues cannot be listed. ${why}`);
}
