/**
 * Running a cloned project's agent means doing what its files say: commands, modules, servers, addresses, acts on GitHub.
 * That is done only once somebody who owns this machine said so: for exactly this, in exactly this place.
 */
import { realpathSync } from "node:fs";
import { RunnerError } from "../../engine/ports.ts";
import type { Flow } from "../../flow/flow.ts";
import { gutter, visible, visibleInLine } from "../../flow/text/visible.ts";
import type { DriveOptions } from "../options.ts";
import { homeFolder } from "../world/project.ts";
import { inThisTurn } from "../world/read-once-a-turn.ts";
import type { Trusted, TrustStore } from "./trust-store.ts";
import { errorText } from "../../flow/text/harmless.ts";

export type TrustOptions = {
  readonly root: string;
  readonly env: NodeJS.ProcessEnv;
  /** Whether commands of the run are in a sandbox: what the model runs outside of one is part of what is trusted. */
  readonly confined: boolean;
  /** A digest given on the command line: the whole, or at least its first 32 digits. */
  readonly digest?: string;
  /** Asks the person at the terminal; absent without a terminal. */
  readonly confirm?: (question: TrustQuestion) => Promise<boolean>;
  /** Hears of what was recorded. */
  readonly notify?: (text: string) => void;
  /** Of a run that somebody else submitted: nobody is asked here. */
  readonly submitted?: SubmittedTrust;
  /** Where the run is to be recorded, if that needs a yes of its own which was not given yet. */
  readonly stateDir?: string;
};

export type SubmittedTrust = {
  /** What the submitter trusted; null: nothing was to be trusted. */
  readonly digest: string | null;
  /** What this machine takes over: anything that a submitter trusted, or these digests alone. */
  readonly accepts: "submitted" | readonly string[];
};

export type TrustQuestion = {
  readonly root: string;
  readonly agent: string;
  readonly digest: string;
  /** Everything that is to be trusted, one line each, as it is written. */
  readonly commands: readonly string[];
  /** What is new and what is gone since this agent was last trusted here; null: it never was. */
  readonly change: TrustChange | null;
};

export type TrustChange = { readonly added: readonly string[]; readonly removed: readonly string[] };

/** What would be asked, and how it stands. */
export type TrustState = TrustQuestion & {
  /** `nothing`: there is nothing to trust. `everything`: the environment says LOCKSTEP_TRUST=all. */
  readonly state: "nothing" | "everything" | "trusted" | "changed" | "new";
  /** When it was trusted. */
  readonly at: string | null;
};

/**
 * Returns when the flow may run, NOT_TRUSTED otherwise. A flow that could do nothing needs no trust. A digest that is given
 * must be the right one, also where it is not needed: the user who wrote it down meant something else.
 */
export async function requireTrust(flow: Flow, options: TrustOptions): Promise<void> {
  const { env, digest: given, confirm, notify, submitted } = options;
  const isFree = env.LOCKSTEP_TRUST === "all";
  if (submitted !== undefined && (!isFree || submitted.accepts !== "submitted"))
    return await requireSubmitted(flow, options, submitted);
  if (isFree && given === undefined) return;
  const lines = await linesFor(flow, options);
  if (lines.length === 0) return;
  const { store, wanted } = await standing(flow, lines, options);
  const held = store?.covering(wanted) ?? null;
  const { root, agent, digest } = wanted;
  const isGiven = given !== undefined && (isDigest(given, digest) || isDigest(given, held?.digest ?? ""));
  const isWrong = given !== undefined && !isGiven;
  if (!isWrong && (isFree || held !== null)) return;
  const change = changeSince(store, wanted);
  if (!isWrong && (isGiven || (await confirm?.({ root, agent, digest, commands: lines, change })) === true)) {
    record(store, { ...wanted, at: new Date().toISOString() }, notify);
    return;
  }
  const foreign = await foreignness(options);
  throw new RunnerError(
    "NOT_TRUSTED",
    `Agent "${flow.agent}" needs your trust first. Its files make Lockstep do this:\n` +
      (change === null ? "" : "(It changed since you trusted it: + added, - removed.)\n") +
      commandLines(lines, change).join("\n") +
      `\nThese files decide what Lockstep does with your permissions, so read them before you agree.` +
      (isWrong ? `\n--trust ${visibleInLine(given)} is not the digest of these files.` : "") +
      (foreign === null ? "" : `\nThe state folder ${foreign}.`) +
      `\nTo agree, pass --trust ${digest}${foreign === null ? "" : " --trust-journal"}, or answer the question on a ` +
      `terminal. On a disposable machine, set LOCKSTEP_TRUST=all to trust everything.`,
  );
}

/**
 * The files that came with the run ask for exactly what the submitter said yes to. That was asked for as without a sandbox,
 * because the sandbox of this machine was not known; it covers the same in one.
 */
async function requireSubmitted(
  flow: Flow,
  options: TrustOptions,
  { digest: trusted, accepts }: SubmittedTrust,
): Promise<void> {
  const free = { ...options, confined: false };
  const lines = await linesFor(flow, free);
  if (lines.length === 0) return;
  const { digest } = (await standing(flow, lines, free)).wanted;
  const isAccepted = accepts === "submitted" ? digest === trusted : accepts.includes(digest);
  if (isAccepted) return;
  const why =
    accepts === "submitted"
      ? "the files that came with it are not those that its submitter trusted. Submit it again"
      : `fleet.trust of this machine does not list ${digest}. Add it there after reading the files`;
  throw new RunnerError(
    "NOT_TRUSTED",
    `The run of agent "${flow.agent}" would make Lockstep do this here:\n${commandLines(lines, null).join("\n")}\n` +
      `It is not driven: ${why}.`,
  );
}

/** What else would be refused next; null: nothing. */
async function foreignness({ stateDir, env }: TrustOptions): Promise<string | null> {
  if (stateDir === undefined) return null;
  const { stateStanding } = await import("./state-folders.ts");
  const standing = stateStanding(stateDir, env);
  if (standing.kind !== "foreign" || standing.isRefused) return null;
  return `${stateDir} needs your trust too: ${standing.why}`;
}

/** The same without asking: for those who want to know. */
export async function trustState(flow: Flow, options: TrustOptions): Promise<TrustState> {
  const lines = await linesFor(flow, options);
  const { store, wanted } = await standing(flow, lines, options);
  const { root, agent, digest } = wanted;
  const question = { root, agent, digest, commands: lines, change: changeSince(store, wanted) };
  if (lines.length === 0) return { ...question, change: null, state: "nothing", at: null };
  if (options.env.LOCKSTEP_TRUST === "all") return { ...question, state: "everything", at: null };
  const held = store?.covering(wanted) ?? null;
  if (held === null) return { ...question, state: question.change === null ? "new" : "changed", at: null };
  return { ...question, change: null, state: "trusted", at: held.at };
}

/** What trust depends on, from what a run is started with. */
export function trusting(
  root: string,
  confined: boolean,
  { env = process.env, trust, notify }: Pick<DriveOptions, "env" | "trust" | "notify">,
  stateDir?: string,
): TrustOptions {
  const state = stateDir !== undefined && { stateDir };
  return { root, env, confined, ...trust, ...(notify !== undefined && { notify }), ...state };
}

function linesFor(flow: Flow, { root, env, confined }: TrustOptions): Promise<readonly string[]> {
  return inThisTurn(["trust", flow, root, env, confined], async () => {
    const { trustLines } = await import("./trust-lines.ts");
    return await trustLines(flow, confined, () => ({ root, home: homeFolder(env) }));
  });
}

async function standing(flow: Flow, lines: readonly string[], options: TrustOptions) {
  const { trustDigest, openTrust } = await import("./trust-store.ts");
  const { agent } = flow;
  const root = realpathSync.native(options.root);
  const wanted: Trusted = { root, agent, digest: trustDigest(agent, lines), lines, at: null };
  return { store: openTrust(options.env), wanted };
}

const FEWEST_DIGITS = 32;

/** Whether it means this digest: the whole of it, or a beginning that is long enough to be unique. */
function isDigest(given: string, digest: string): boolean {
  const plain = given.trim().toLowerCase();
  return plain.length >= FEWEST_DIGITS && digest.startsWith(plain);
}

/** Where it cannot be kept, the yes is for this run. */
function record(store: TrustStore | null, entry: Trusted, notify: TrustOptions["notify"]): void {
  if (store === null) return;
  try {
    store.add(entry);
    notify?.(
      `Agent "${entry.agent}" is trusted here from now on. To undo this: lockstep trust revoke ${entry.agent}`,
    );
  } catch (error) {
    const why = errorText(error);
    notify?.(`Agent "${entry.agent}" is trusted for this run only, because that cannot be recorded: ${why}`);
  }
}

/** One line each, and nothing in them can pose as another; since the last time, `+` is new and `-` is gone. */
export function commandLines(commands: readonly string[], change: TrustChange | null): readonly string[] {
  const marked = (mark: string, line: string) => {
    const [first = "", ...rest] = visible(line).split("\n");
    return [`${mark} ${first}`, ...(rest.length === 0 ? [] : [gutter(rest.join("\n"), "    | ")])].join("\n");
  };
  if (change === null) return commands.map((line) => marked(" ", line));
  return [
    ...change.removed.map((line) => marked("-", line)),
    ...commands.map((line) => marked(change.added.includes(line) ? "+" : " ", line)),
  ];
}

function changeSince(store: TrustStore | null, { root, agent, lines }: Trusted): TrustChange | null {
  const known = store?.list().filter((entry) => entry.root === root && entry.agent === agent) ?? [];
  const newest = known.toSorted((a, b) => ((a.at ?? "") < (b.at ?? "") ? -1 : 1)).at(-1);
  if (newest === undefined) return null;
  // Older versions wrote a command without a mark before it.
  const before = newest.at === null ? newest.lines.map((line) => sameAs(line, lines)) : newest.lines;
  const added = lines.filter((line) => !before.includes(line));
  const removed = before.filter((line) => !lines.includes(line));
  // The same lines, but recorded by an older version, whose yes does not count.
  return added.length + removed.length === 0 ? null : { added, removed };
}

function sameAs(line: string, lines: readonly string[]): string {
  return lines.includes(line) ? line : `$ ${line}`;
}
