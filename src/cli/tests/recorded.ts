/** `lockstep test NAME --recorded`: holds the author's own properties over recorded runs, and names run and visit. */
import { hasErrors, type Problem } from "../../flow/problem.ts";
import type { TestSettings } from "../../flow/test-settings.ts";
import { EXIT, exitOfSignal } from "../../flow/verdict.ts";
import { readTestSettings } from "../../load/test-settings.ts";
import { hasRules, watchRules, type Breach, type Watching } from "../../proof/author.ts";
import { RunnerError } from "../../run/errors.ts";
import { foldEvery } from "../../run/records/fold.ts";
import { createFiles } from "../../run/world/files.ts";
import { findProject, listAgents } from "../../run/world/project.ts";
import { loadNamed } from "../agent.ts";
import { UsageError } from "../args.ts";
import { GLOBAL_FLAGS, type CallOf } from "../commands.ts";
import { withJournal } from "../journal.ts";
import { tellInvalid } from "./refuse.ts";
import { count, shownInLine } from "../text/text.ts";

type RecordedBreach = Breach & { readonly run: string };

type HeldOver = {
  readonly agent: string;
  /** Where the properties are written. */
  readonly file: string | null;
  readonly runs: number;
  /** Runs that can only partly be read, or not at all. */
  readonly damaged: number;
  readonly breaches: readonly RecordedBreach[];
};

export async function holdRecorded(call: CallOf<"test">): Promise<number> {
  refuseOthers(call);
  const { flags, screen, host } = call;
  const stopped = host.interruption();
  const { settings, problems } = await settingsOf(call);
  if (hasErrors(problems)) {
    const files = createFiles(findProject(call.cwd, call.stateDir).root);
    return tellInvalid(call, "lockstep-recorded", problems, files);
  }
  if (settings.size === 0)
    throw new RunnerError(
      "USAGE",
      "There is nothing to hold over recorded runs. Write before, never or within to .agent/NAME/tests/settings.yaml.",
    );
  const since = flags.since === undefined ? -Infinity : Date.now() - flags.since;
  const agents = await heldOver(call, settings, since, stopped);
  const ok = agents.every(({ breaches }) => breaches.length === 0);
  const isWhole = !stopped.aborted;
  if (flags.json)
    screen.document({ v: 1, kind: "lockstep-recorded", ok: ok && isWhole, whole: isWhole, agents });
  else {
    const lines = agents.flatMap((one) => textOf(one, call));
    screen.print([...lines, ...(isWhole ? [] : ["Interrupted: not all runs were read."])].join("\n"));
  }
  if (!isWhole) return exitOfSignal(stopped);
  return ok ? EXIT.completed : EXIT.testsFailed;
}

/** Everything else that `lockstep test` takes is about test files. */
function refuseOthers({ words, written }: CallOf<"test">): void {
  const beside = new Set(["recorded", "since", ...GLOBAL_FLAGS.map(({ name }) => name)]);
  const other = Object.entries(written).find(([name, values]) => values.length > 0 && !beside.has(name));
  if (other !== undefined)
    throw new UsageError(`--recorded runs no tests, so --${other[0]} cannot be used with it.`);
  const file = words.find((word) => /[/\\*?]|\.(?:ya?ml|json)$/i.test(word));
  if (file !== undefined)
    throw new UsageError(`--recorded takes names of agents, and "${file}" names files.`);
}

/** Of the agents that were named, or of all that say something about runs. */
async function settingsOf(call: CallOf<"test">): Promise<{
  readonly settings: ReadonlyMap<string, TestSettings>;
  readonly problems: readonly Problem[];
}> {
  const project = findProject(call.cwd, call.stateDir);
  const files = createFiles(project.root);
  const settings = new Map<string, TestSettings>();
  const problems: Problem[] = [];
  for (const agent of call.words.length > 0 ? new Set(call.words) : listAgents(project)) {
    const { flow, problems: about } = await loadNamed(agent, call.cwd, files);
    const read = flow === null ? null : readTestSettings(flow, files);
    problems.push(...(read?.problems ?? about));
    if (read !== null && hasRules(read.settings)) settings.set(agent, read.settings);
  }
  return { settings, problems };
}

async function heldOver(
  call: CallOf<"test">,
  settings: ReadonlyMap<string, TestSettings>,
  since: number,
  stopped: AbortSignal,
): Promise<readonly HeldOver[]> {
  return await withJournal(call, async (journal) => {
    const all: HeldOver[] = [];
    for (const [agent, rules] of settings) {
      const breaches: RecordedBreach[] = [];
      let [runs, damaged] = [0, 0];
      let watching: Watching = watchRules(rules);
      const open = () => (watching = watchRules(rules)).add;
      if (journal !== null && !stopped.aborted)
        for await (const { row, isWhole } of foldEvery(journal, { agent, since }, open)) {
          runs += 1;
          if (!isWhole) damaged += 1;
          for (const breach of watching.breaches()) breaches.push({ run: row.id, ...breach });
          if (runs % SHOWN_EVERY === 0) call.screen.status(`read ${count(runs, "run")}`);
          // An interruption is heard only between turns of the event loop.
          await new Promise(setImmediate);
          if (stopped.aborted) break;
        }
      all.push({ agent, file: rules.file, runs, damaged, breaches });
    }
    return all;
  }).finally(() => call.screen.status(null));
}

const SHOWN_EVERY = 50;

function textOf(
  { agent, file, runs, damaged, breaches }: HeldOver,
  { screen, typed }: CallOf<"test">,
): readonly string[] {
  const paint = screen.out;
  const partly = damaged === 0 ? "" : `, ${damaged} damaged and held as far as they can be read`;
  const broken = new Set(breaches.map(({ run }) => run)).size;
  const how =
    broken === 0 ? paint("green", "every property held") : `${count(broken, "run")} broke a property`;
  return [
    `${paint("bold", shownInLine(agent))}: ${count(runs, "recorded run")}${partly}; ${how}`,
    ...breaches.flatMap(({ run, rule, line, at, what }) => [
      `${paint("red", "✗")} ${shownInLine(rule)}: ${shownInLine(what)}${line === null || file === null ? "" : `  ${paint("dim", `${shownInLine(file)}:${line}`)}`}`,
      `    ${typed(`lockstep why ${shownInLine(run)} ${shownInLine(at)}`.trimEnd())}`,
    ]),
  ];
}
