/** Everything that the baseline uses of `src/`: when files move or get other names, only this file has to follow. */
import { createCall, lineOf, type Host } from "../../src/cli/call.ts";
import { commandNamed } from "../../src/cli/commands.ts";
import { createProgress } from "../../src/cli/text/progress.ts";
import { createScreen } from "../../src/cli/screen.ts";
import { renderText } from "../../src/cli/graph/graph-text.ts";
import { createPaint } from "../../src/cli/text/text.ts";
import { outlineOf } from "../../src/tell/outline.ts";
import { parseBundle } from "../../src/run/records/bundle.ts";
import {
  createMemoryJournal,
  exportRun,
  followRun,
  importRun,
  load,
  openJournal,
  replayRun,
  RunnerError,
  show,
  type Bundle,
  type Entry,
  type Flow,
  type Journal,
  type LoadOptions,
  type Problem,
} from "../../src/run/index.ts";
import { foldRun } from "../../src/run/records/fold.ts";
import { createSpans } from "../../src/tell/spans.ts";

export { createMemoryJournal, exportRun, importRun, openJournal, parseBundle, replayRun, show };
export type { Bundle, Entry, Flow, Journal, Problem };
export type Files = NonNullable<LoadOptions["files"]>;

/** What a command prints, and its exit code. */
export type Printed = { readonly code: number; readonly out: string; readonly err: string };

/** A command in this process, on a plain terminal of 100 columns that nobody is at. */
export async function lockstep(argv: readonly string[], env: NodeJS.ProcessEnv): Promise<Printed> {
  const printed = { out: "", err: "" };
  const signal = new AbortController().signal;
  const host: Host = {
    ...terminalTo(printed, env),
    program: "lockstep",
    cwd: () => "/",
    stopped: () => signal,
    interruption: () => signal,
    interruptible: async (wait) => await wait(),
    driving: () => undefined,
  };
  try {
    const command = commandNamed(argv[0] ?? "");
    const call = createCall(command, argv, host, lineOf(command, argv), () => undefined);
    const code = await (await command.load())(call);
    return { code, ...printed };
  } catch (error) {
    if (!(error instanceof RunnerError)) throw error;
    return { code: -1, out: printed.out, err: `${printed.err}${error.code}: ${error.message}\n` };
  }
}

function terminalTo(printed: { out: string; err: string }, env: NodeJS.ProcessEnv) {
  return {
    stdin: {
      isTTY: false,
      open: (): never => {
        throw new Error("nobody is there to answer");
      },
    },
    stdout: { write: (text: string) => (printed.out += text), isTTY: false, columns: 100 },
    stderr: { write: (text: string) => (printed.err += text), isTTY: false, columns: 100 },
    env: { LANG: "C.UTF-8", NO_COLOR: "1", ...env },
  };
}

/** What a person at the terminal saw while the run went on, with and without --verbose. */
export async function progressOf(journal: Journal, run: string, isVerbose: boolean): Promise<string> {
  const printed = { out: "", err: "" };
  const screen = createScreen(terminalTo(printed, {}), { quiet: false, color: null });
  let now = 0;
  const progress = createProgress(screen, isVerbose, () => now);
  for await (const { entry, state, flow, deeds } of entriesOf(journal, run)) {
    now = entry.at;
    progress.observe(entry, state, flow, deeds);
  }
  progress.stop();
  return printed.err;
}

/** Every entry with the state it led to. */
export function entriesOf(journal: Journal, run: string) {
  // It goes on at every look: a run that nobody drives has then been waited for long enough.
  let now = 0;
  const clock = { now: () => (now += 1000), sleep: () => Promise.resolve() };
  return followRun(journal, run, clock, new AbortController().signal);
}

/** The spans that a collector is sent, with what was said in them. */
export async function spansOf(journal: Journal, run: string): Promise<readonly object[]> {
  const [row] = await journal.rows([run]);
  const flow = await journal.flow(row!.digest);
  const spans = createSpans(flow!, run, true);
  const found: object[] = [];
  await foldRun(journal, row!, (moment) => {
    found.push(...spans.hear(moment));
  });
  return [...found, ...spans.close()];
}

/** The drawing of a flow as text, and the document that drawings are made from. */
export function drawingOf(flow: Flow) {
  const outline = outlineOf(flow, []);
  return { text: renderText(outline, 100, createPaint(false)), outline };
}

/** What `check` finds about an agent whose files are given. */
export async function problemsOf(agent: string, files: Files, cwd: string): Promise<readonly Problem[]> {
  return (await load(agent, { cwd, files })).problems;
}
