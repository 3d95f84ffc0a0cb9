/** One call of a command: the line as it was understood, and the screen to answer on. */
import { parseLine, UsageError, type Flag, type Given } from "./args.ts";
import { everyFlag, GLOBAL_FLAGS, type Command } from "./commands.ts";
import { shellWord } from "../flow/text/harmless.ts";
import { createScreen, type Screen, type Terminal } from "./screen.ts";
import { aimed, asTyped } from "./text/typed.ts";

export type Call = {
  readonly command: Command;
  /** What was written after the program's name. */
  readonly argv: readonly string[];
  /** The words after the command. */
  readonly words: readonly string[];
  readonly on: (flag: string) => boolean;
  readonly text: (flag: string) => string | undefined;
  /** Everything that was given for a flag. */
  readonly all: (flag: string) => readonly string[];
  /** What was given for flags that the agent declares, by flag. */
  readonly declared: Given;
  readonly cwd: string;
  readonly stateDir: string | undefined;
  readonly screen: Screen;
  readonly host: Host;
  /** Our own words with the commands in them as the user types them. Not for `--json`, and not for what others wrote. */
  readonly typed: (text: string) => string;
  /** The same line read again, strictly, now that the agent's own flags are known. */
  readonly declare: (flags: readonly Flag[]) => Call;
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
  readonly driving: (what: UnderWay) => void;
};

/** A run or a batch of runs. */
export type UnderWay = {
  /** null: it is a batch. */
  readonly run: string | null;
  /** `begins`: it is about to be recorded. `over`: its end is recorded, and its result is about to be written. */
  readonly phase: "begins" | "recorded" | "over";
  /** The command that goes on with it. */
  readonly resume: string;
  /** What is known of a batch so far, as the document that it ends with. */
  readonly document?: () => object;
};

/** How the line is read: as one of the command, or only far enough to know the agent. */
export type Reading =
  | { readonly kind: "strict"; readonly declared: readonly Flag[] }
  | { readonly kind: "lenient" };

export function createCall(
  command: Command,
  argv: readonly string[],
  host: Host,
  reading: Reading,
  onRead: (call: Call) => void,
): Call {
  const line =
    reading.kind === "strict"
      ? parseLine(argv, { flags: [...GLOBAL_FLAGS, ...command.flags], declared: reading.declared })
      : parseLine(argv, { flags: everyFlag(), lenient: true });
  const [, ...words] = line.words;
  const declares = new Set([...GLOBAL_FLAGS, ...command.flags].map(({ name }) => name));
  const all = (flag: string) => {
    // A flag that is read but not declared could never be given.
    if (!declares.has(flag)) throw new Error(`${command.name} reads --${flag} and does not declare it`);
    return line.flags.get(flag) ?? [];
  };
  const text = (flag: string) => all(flag).at(-1);
  const on = (flag: string) => text(flag) === "true";
  const color = text("color");
  const where = ["cwd", "state"].flatMap((flag) => {
    const value = text(flag);
    return value === undefined ? [] : [`--${flag}`, shellWord(value)];
  });
  const call: Call = {
    command,
    argv,
    words,
    on,
    text,
    all,
    declared: line.declared,
    cwd: text("cwd") ?? host.cwd(),
    stateDir: text("state"),
    screen: createScreen(host, { quiet: on("quiet"), color: color === undefined ? null : color === "true" }),
    host,
    typed: (said) => asTyped(aimed(said, where), host.program),
    declare: (flags) => createCall(command, argv, host, { kind: "strict", declared: flags }, onRead),
  };
  onRead(call);
  // Resolved, an empty one would be the folder of the call itself.
  const blank = ["cwd", "state"].find((flag) => text(flag) === "");
  if (blank !== undefined) throw new UsageError(`--${blank} needs a folder, and "" was given.`);
  if (reading.kind === "strict" && !on("help")) requireWords(command, words);
  return call;
}

function requireWords({ name, words: takes }: Command, words: readonly string[]): void {
  const surplus = takes.at(-1)?.repeats ? undefined : words[takes.length];
  if (surplus !== undefined) throw new UsageError(`${name} does not know what to do with "${surplus}".`);
  const empty = takes.find(({ is }, place) => (is === "agent" || is === "run") && words[place] === "");
  if (empty !== undefined) throw new UsageError(`${name} needs ${empty.name}, and "" was given.`);
  const needed = takes.filter(({ optional }) => optional === undefined);
  if (words.length >= needed.length) return;
  const given = words.length === 0 ? "" : `; only ${words.map((word) => `"${word}"`).join(" ")} was given`;
  throw new UsageError(`${name} needs ${needed.map((word) => word.name).join(" ")}${given}.`);
}
