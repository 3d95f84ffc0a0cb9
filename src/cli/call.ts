/** One call of a command: the line as it was understood, and the screen to answer on. */
import { oneOf, parseLine, UsageError, valuesOf, type Flag, type GivenFlags, type Line } from "./args.ts";
import { GLOBAL_FLAGS, type CliCommand, type GlobalFlags } from "./commands.ts";
import { shellWord } from "../flow/text/harmless.ts";
import { createScreen, type Screen, type Terminal } from "./screen.ts";
import { aimed, asTyped } from "./text/typed.ts";

/** `Flags`: the values of the flags that the command declares, beside those of every command. */
export type CommandCall<Flags extends object = object> = {
  readonly command: CliCommand;
  /** What was written after the program's name. */
  readonly argv: readonly string[];
  /** The words after the command. */
  readonly words: readonly string[];
  readonly flags: GlobalFlags & Flags;
  /** What was written for each flag, as text; nothing: it was not given. */
  readonly written: { readonly [name in keyof (GlobalFlags & Flags)]: readonly string[] };
  /** What was given for flags that the agent declares, by flag. */
  readonly declared: GivenFlags;
  readonly cwd: string;
  readonly stateDir: string | undefined;
  readonly screen: Screen;
  readonly host: Host;
  /** Our own words with the commands in them as the user types them. Not for `--json`, and not for what others wrote. */
  readonly typed: (text: string) => string;
  /** The same line read again, strictly, now that the agent's own flags are known. */
  readonly declare: (flags: readonly Flag[]) => CommandCall<Flags>;
};

/** The process around the call. */
export type Host = Terminal & {
  /** How the user calls this program. */
  readonly program: string;
  readonly cwd: () => string;
  /** Opened only when it is read: an open stdin holds the process. */
  readonly stdin: { readonly isTTY: boolean; readonly open: () => NodeJS.ReadStream };
  readonly env: NodeJS.ProcessEnv;
  /** Aborted by the first interruption that is heard. Until somebody listens, one ends the process at once. */
  readonly stopped: () => AbortSignal;
  /** From now on the first interruption aborts `stopped`, and the second one ends the process. */
  readonly interruption: () => AbortSignal;
  /** The same while something is waited for. Not for work: a busy process hears nothing, and would not end. */
  readonly interruptible: <T>(wait: () => Promise<T>) => Promise<T>;
  /** What is driven here: it is part of the answer when a signal or a bug ends the process. */
  readonly driving: (what: CallUnderWay) => void;
};

/** A run or a batch of runs. */
export type CallUnderWay = {
  /** null: it is a batch. */
  readonly run: string | null;
  /** `begins`: it is about to be recorded. `over`: its end is recorded, and its result is about to be written. */
  readonly phase: "begins" | "recorded" | "over";
  /** The command that goes on with it. */
  readonly resume: string;
  /** What is known of a batch so far, as the document that it ends with. */
  readonly document?: () => object;
};

/** The line of a command, read strictly. `declared`: the flags of the agent that it names. */
export function lineOf(command: CliCommand, argv: readonly string[], declared: readonly Flag[] = []): Line {
  return parseLine(argv, { flags: flagsOf(command), declared });
}

function flagsOf({ flags }: CliCommand): readonly Flag[] {
  return [...GLOBAL_FLAGS, ...flags];
}

/** `line`: as it was read, or a first look at it where an agent has to be loaded before it can be read. */
export function createCall(
  command: CliCommand,
  argv: readonly string[],
  host: Host,
  line: Line,
  onRead: (call: CommandCall) => void,
  flagsOfAgent: readonly Flag[] = [],
): CommandCall {
  const words = line.words.slice(command.name.split(" ").length);
  const all = flagsOf(command);
  const written = Object.fromEntries(all.map(({ name }) => [name, line.flags.get(name) ?? []]));
  const where = writtenFlags({ written: written as CommandCall["written"] }, ["cwd", "state"]);
  const create = (isLenient: boolean): CommandCall => {
    const flags = valuesOf(all, line.flags, isLenient) as GlobalFlags;
    return {
      command,
      argv,
      words,
      flags,
      written: written as CommandCall["written"],
      declared: line.declared,
      cwd: flags.cwd ?? host.cwd(),
      stateDir: withoutPassword(flags.state),
      screen: createScreen(host, { quiet: flags.quiet, color: flags.color ?? null }),
      host,
      typed: (said) => asTyped(aimed(said, where), host.program),
      declare: (flagsOfAgent) =>
        createCall(command, argv, host, lineOf(command, argv, flagsOfAgent), onRead, flagsOfAgent),
    };
  };
  const call = readable(create, line.isLenient, onRead);
  if (!line.isLenient && !call.flags.help) requireWords(command, words, openFlag(flagsOfAgent, line));
  return call;
}

/** How a line is answered whose values cannot be read depends on what can be read of it. */
function readable(
  create: (isLenient: boolean) => CommandCall,
  isLenient: boolean,
  onRead: (call: CommandCall) => void,
): CommandCall {
  try {
    const call = create(isLenient);
    onRead(call);
    return call;
  } catch (error) {
    onRead(create(true));
    throw error;
  }
}

/** Those of these flags that were given, to be repeated in a command. */
export function writtenFlags(
  { written }: Pick<CommandCall, "written">,
  names: readonly string[],
): readonly string[] {
  const all: { readonly [name: string]: readonly string[] } = written;
  return names.flatMap((name) => (all[name] ?? []).flatMap((value) => [`--${name}`, shellWord(value)]));
}

/** The first flag of the agent that takes a value and was not given. */
function openFlag(flagsOfAgent: readonly Flag[], { declared }: Line): string | null {
  const open = flagsOfAgent.find(({ name, takes }) => takes !== undefined && !declared.has(name));
  return open === undefined ? null : `--${open.name}`;
}

function requireWords(
  { name, words: takes }: CliCommand,
  words: readonly string[],
  flag: string | null,
): void {
  const surplus = takes.at(-1)?.repeats ? undefined : words[takes.length];
  if (surplus !== undefined) {
    const hint =
      flag === null ? "" : ` Parameters of an agent are given with flags: ${flag} ${shellWord(surplus)}`;
    throw new UsageError(`${name} takes no argument "${surplus}".${hint}`);
  }
  const empty = takes.find(({ is }, place) => (is === "agent" || is === "run") && words[place] === "");
  if (empty !== undefined) throw new UsageError(`${name} needs ${empty.name}, but "" was given.`);
  for (const [place, { is }] of takes.entries()) {
    const word = words[place];
    if (typeof is !== "string" && word !== undefined && !is.includes(word))
      throw new UsageError(`${name} takes ${oneOf(is)}, not "${word}".`, { word, candidates: is });
  }
  const needed = takes.filter(({ optional }) => optional === undefined);
  if (words.length >= needed.length) return;
  const given = words.length === 0 ? "" : `; only ${words.map((word) => `"${word}"`).join(" ")} was given`;
  const { is: kind } = needed[words.length]!;
  const lacks = kind === "agent" || kind === "run" ? kind : null;
  throw new UsageError(
    `${name} needs ${needed.map((word) => word.name).join(" ")}${given}.`,
    null,
    words.length === 0 ? lacks : null,
  );
}

/** Everybody on the machine can see a command line. */
function withoutPassword(state: string | undefined): string | undefined {
  if (state !== undefined && /^postgres(?:ql)?:\/\/[^/@]*:[^/@]*@/.test(state))
    throw new UsageError(
      "--state must not hold a password: every user of this machine can see command lines. Put it into PGPASSFILE, or give the whole address in LOCKSTEP_STATE.",
    );
  return state;
}
