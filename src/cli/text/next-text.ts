/** What can be done next, as commands to type. Pure: what is there in, suggestions out. */
import type { Flow } from "../../flow/flow.ts";
import type { RunSummary } from "../../run/index.ts";
import { count, shellWord, shownInLine, table, type Paint } from "./text.ts";

/** A command, and what it is good for here. */
export type Suggestion = { readonly command: string; readonly why: string };

export const WHERE_NOTHING_IS: readonly Suggestion[] = [
  { command: "lockstep init notes", why: "create a small agent that runs without an API key" },
  { command: "lockstep init --template help", why: "list the ready-made flows that can be created" },
  { command: "lockstep doctor", why: "check that everything is installed" },
];

const MOST_RUNS = 5;

/** What to do about a run in this state; those that are complete need nothing. */
const AFTER: { readonly [state in RunSummary["state"]]: ((run: string) => Suggestion) | null } = {
  waiting: (run) => ({ command: `lockstep answer ${run}`, why: "waits for your answer" }),
  paused: (run) => ({ command: `lockstep continue ${run}`, why: "is paused" }),
  interrupted: (run) => ({ command: `lockstep resume ${run}`, why: "was interrupted" }),
  queued: (run) => ({ command: `lockstep show ${run}`, why: "waits for a worker of the fleet" }),
  poisoned: (run) => ({ command: `lockstep show ${run}`, why: "is left alone by the workers of the fleet" }),
  running: (run) => ({ command: `lockstep show ${run} --follow`, why: "is running" }),
  failed: (run) => ({ command: `lockstep why ${run}`, why: "failed" }),
  damaged: () => ({ command: "lockstep doctor", why: "cannot be read" }),
  completed: null,
};

/** Those that need a person first. A run that failed is mentioned only if no later run of the agent has completed. */
export function afterRuns(newestFirst: readonly RunSummary[]): readonly Suggestion[] {
  const states = Object.keys(AFTER);
  const isOld = ({ agent }: RunSummary, place: number) =>
    newestFirst.slice(0, place).some((later) => later.agent === agent && later.state === "completed");
  return newestFirst
    .filter((run, place) => AFTER[run.state] !== null && !(run.state === "failed" && isOld(run, place)))
    .toSorted((a, b) => states.indexOf(a.state) - states.indexOf(b.state))
    .slice(0, MOST_RUNS)
    .map(({ run, agent, state, code }) => {
      const { command, why } = AFTER[state]!(shellWord(shownInLine(run, 64)));
      const because = state === "failed" && code !== null ? `${why} (${shownInLine(code, 80)})` : why;
      return { command, why: `a run of ${shownInLine(agent, 40)} ${because}` };
    });
}

export type AgentHere = {
  readonly agent: string;
  readonly flow: Flow | null;
  readonly canRun: boolean;
  readonly hasTests: boolean;
  /** Answers that it can be run with instead of a model. */
  readonly script: string | null;
};

export function forAgent({ agent, flow, canRun, hasTests, script }: AgentHere): readonly Suggestion[] {
  const name = shellWord(shownInLine(agent, 80));
  if (flow === null || !canRun)
    return [{ command: `lockstep check ${name}`, why: "shows why it cannot run" }];
  const parameters = flow.parameters
    .filter(({ required }) => required)
    .map((parameter) => `${parameter.flag} ${shellWord(exampleOf(parameter))}`);
  const run = ["lockstep run", name, ...parameters].join(" ");
  const about = shownInLine(flow.description, 70);
  return [
    ...(script === null
      ? [{ command: run, why: about }]
      : [{ command: `${run} --script ${shellWord(script)}`, why: `${about} (without a model)` }]),
    ...(hasTests ? [{ command: `lockstep test ${name}`, why: "run its tests" }] : []),
  ];
}

/** A value that can stand for the parameter until the user writes another one. */
function exampleOf({ name, type, validation }: Flow["parameters"][number]): string {
  const [first] = validation?.enum ?? [];
  if (typeof first === "string" || typeof first === "number") return String(first);
  if (type === "number") return String(validation?.min ?? 1);
  return type === "boolean" ? "true" : name.toUpperCase();
}

const STUDIO: Suggestion = { command: "lockstep studio", why: "see and steer the runs in a web page" };
const HELP: Suggestion = { command: "lockstep help", why: "all commands" };

/** `width`: columns of the terminal. Where a row does not fit, every reason stands below its command. */
export function nextText(
  root: string,
  agents: readonly string[],
  suggestions: readonly Suggestion[],
  paint: Paint,
  typed: (text: string) => string,
  width: number,
): string {
  const shown = agents.slice(0, 8).map((name) => shownInLine(name, 40));
  const more = agents.length > shown.length ? ", …" : "";
  const here =
    agents.length === 0
      ? `There is no agent in ${shownInLine(root, 200)} yet.`
      : `${count(agents.length, "agent")} in ${shownInLine(root, 200)}: ${shown.join(", ")}${more}`;
  const rows = [...suggestions, ...(agents.length === 0 ? [] : [STUDIO]), HELP].map(({ command, why }) => ({
    command: typed(command),
    why,
  }));
  const longest = (texts: readonly string[]) => Math.max(...texts.map((text) => text.length));
  const isWide = longest(rows.map((row) => row.command)) + longest(rows.map((row) => row.why)) + 4 <= width;
  const lines = isWide
    ? table(rows.map(({ command, why }) => [`  ${paint("cyan", command)}`, why]))
    : rows.flatMap(({ command, why }) => [`  ${paint("cyan", command)}`, `      ${why}`]);
  return [here, "", "What you can do next:", ...lines].join("\n");
}
