/** Asking before anything of a state folder that this user did not make is obeyed. Looking at it needs no yes. */
import { fold } from "../../engine/drive/drive.ts";
import { RunnerError } from "../../engine/ports.ts";
import { isObject, own, type Json } from "../../flow/json.ts";
import { isImported, recall } from "../records/recall.ts";
import type { RecordedRun } from "../records/runs.ts";
import { rememberState, stateStanding } from "./state-folders.ts";

/** Whether what came from elsewhere is used all the same: said before, or asked when it comes to that. */
export type Yes = boolean | ((question: ForeignQuestion) => Promise<boolean>);

export type TrustJournal = {
  readonly trustJournal?: Yes;
  readonly env?: NodeJS.ProcessEnv;
  /** Hears what the user should know. */
  readonly notify?: (text: string) => void;
};

export type ForeignQuestion = {
  readonly stateDir: string;
  /** What is known about where it came from. */
  readonly why: string;
  /** The run that is to go on, where it is about one. */
  readonly run: ForeignRun | null;
};

export type ForeignRun = {
  readonly run: string;
  readonly agent: string;
  /** Where it says that it works. */
  readonly cwd: string;
  /** What it would do with the replies that are recorded, one line each. */
  readonly does: readonly string[];
};

/**
 * Returns when the state folder may be written to and obeyed; STATE_FOREIGN otherwise. A yes is recorded, unless
 * `before` throws because the command cannot go on: then nothing has changed.
 */
export async function requireOwnState(
  stateDir: string,
  { trustJournal, env = process.env, notify }: TrustJournal,
  now: number,
  run: () => Promise<ForeignRun | null> = () => Promise.resolve(null),
  before?: () => Promise<void>,
): Promise<void> {
  const standing = stateStanding(stateDir, env);
  if (standing.kind !== "foreign") return;
  const { why, isRefused } = standing;
  if (isRefused) throw stateForeign({ stateDir, why, run: null }, isRefused);
  const question = { stateDir, why, run: await run() };
  if (!(await isAccepted(question, trustJournal, env))) throw stateForeign(question);
  await before?.();
  const unknown = rememberState(stateDir, env, "accepted", now);
  if (unknown !== null) notify?.(unknown);
}

/** Throws STATE_FOREIGN without asking. */
export function requireKnownState(stateDir: string, env: NodeJS.ProcessEnv): void {
  const standing = stateStanding(stateDir, env);
  if (standing.kind === "foreign")
    throw stateForeign({ stateDir, why: standing.why, run: null }, standing.isRefused);
}

/** The same question about one run. true: a yes was needed and was given, and is to be recorded with the run. */
export async function acceptImported(
  recorded: RecordedRun,
  stateDir: string,
  { trustJournal, env = process.env }: TrustJournal,
): Promise<boolean> {
  const { row, entries } = recorded;
  if (!isImported(entries)) return false;
  const why = `run ${row.id} was imported from a file`;
  const question = { stateDir, why, run: foreseenOf(recorded) };
  if (await isAccepted(question, trustJournal, env)) return true;
  throw stateForeign(question);
}

async function isAccepted(
  question: ForeignQuestion,
  said: Yes | undefined,
  env: NodeJS.ProcessEnv,
): Promise<boolean> {
  if (said === true || env.LOCKSTEP_TRUST === "all") return true;
  return typeof said === "function" && (await said(question));
}

/** What a run would do if it went on. A recorded script makes its tool calls without asking any model. */
export function foreseenOf({ row: { id, agent }, entries, flow, adopted }: RecordedRun): ForeignRun {
  const { pending } = fold(flow, entries, adopted);
  const { cwd, spec, marks } = recall(entries);
  const due = pending.flatMap((command) => (command.type === "call" ? command.calls : []));
  const about = { run: id, agent, cwd };
  const replies = spec.id === "scripted" && isObject(spec.options) ? own(spec.options, "replies") : undefined;
  const dueLines = due.map(({ name, input }) => callLine(name, input));
  if (!Array.isArray(replies)) return { ...about, does: [...dueLines, `asks the model again (${spec.id})`] };
  const left = (replies as readonly Json[]).filter((_, place) => !marks.includes(place));
  const calls = [...dueLines, ...left.flatMap(callsIn)];
  return { ...about, does: calls.length === 0 ? ["no tool calls in its recorded replies"] : calls };
}

function callsIn(reply: Json): readonly string[] {
  const calls = isObject(reply) ? own(reply, "calls") : undefined;
  if (!Array.isArray(calls)) return [];
  return (calls as readonly Json[]).map((call) => {
    const [name, input] = isObject(call) ? [own(call, "name"), own(call, "input")] : [undefined, undefined];
    return callLine(typeof name === "string" ? name : "?", input ?? null);
  });
}

function callLine(name: string, input: Json): string {
  const command = isObject(input) ? own(input, "command") : undefined;
  return `${name} with recorded replies: ${typeof command === "string" ? command : JSON.stringify(input)}`;
}

/** All that a foreign run would do, line by line. Nothing is cut: the author of the record could put the dangerous line behind the cut. */
export function foreignLines({ run }: ForeignQuestion): readonly string[] {
  if (run === null) return [];
  const times = new Map<string, number>();
  for (const line of run.does) times.set(line, (times.get(line) ?? 0) + 1);
  const does = [...times].map(([line, count]) => (count === 1 ? line : `${line} (${count} times)`));
  return [`run ${run.run} of "${run.agent}" works in ${run.cwd}`, ...does];
}

export function stateForeign(question: ForeignQuestion, isRefused = false): RunnerError {
  const { stateDir, why, run } = question;
  const lines = foreignLines(question).map((line) => `\n  ${line}`);
  const foreseen = lines.length === 0 ? " " : ` If it went on:${lines.join("")}\n`;
  const yes = isRefused
    ? `Choose a folder of your own with --state DIR.`
    : `If you trust it${run === null ? "" : ", including its commands"}: answer the question on a terminal, pass --trust-journal, or set LOCKSTEP_TRUST=all on a disposable machine.`;
  // The other thing that would be refused next, so that one command can answer both.
  const trust =
    run === null || isRefused || !/^[\w.-]+$/.test(run.agent)
      ? ""
      : ` If you do not trust the agent yet, pass --trust DIGEST as well: lockstep trust show ${run.agent} prints it.`;
  return new RunnerError(
    "STATE_FOREIGN",
    `The state folder ${stateDir} is not used: ${why}. What it records (commands, folders, replies) is used only after you agree.${foreseen}Reading it is safe: lockstep runs, show, why, logs, replay. ${yes}${trust}`,
  );
}
