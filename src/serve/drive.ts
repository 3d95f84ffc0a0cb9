/** Commands that a server starts: each in a process of its own, which goes on when the server ends. */
import { spawn, type ChildProcess, type ChildProcessByStdio } from "node:child_process";
import type { Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import { isObject, own, parseJson, type JsonObject } from "../flow/json.ts";
import { errorText, shown } from "../flow/text/harmless.ts";
import type { CommandLine } from "./command-line.ts";
import { RequestRefusal, statusOf } from "./refusal.ts";

export type Driver = {
  /** Gives the id of the run once its first entry is recorded; `run`: the one that is resumed. Refused in the words of the command. */
  readonly start: (line: CommandLine, run?: string) => Promise<string>;
  /** The document that a command prints with `--json`. It is ended when the signal aborts. */
  readonly read: (line: CommandLine, signal: AbortSignal) => Promise<JsonObject>;
};

export type DriverOptions = {
  /** The file and the arguments that the command is started by. */
  readonly program: readonly string[];
  readonly cwd: string;
  readonly stateFlag: string | undefined;
  readonly env: NodeJS.ProcessEnv;
};

/** So many commands of one server may drive runs at once; and so many others may look at something. */
const MOST_DRIVEN = 8;
const MOST_LOOKING = 8;
/** How long a command may take until its run is recorded: it may have to open a sandbox and start servers. */
const PATIENCE_MS = 60_000;
const MOST_SAID = 64 * 1024;
const MOST_READ = 16 * 1024 * 1024;

export function createDriver(options: DriverOptions): Driver {
  const driven = atMost(MOST_DRIVEN);
  const looking = atMost(MOST_LOOKING);
  return {
    start: async (line, run) =>
      await firstWord(
        driven(() => spawned(options, line, ["--events", "--quiet"], {})),
        line,
        run ?? null,
      ),
    read: async (line, signal) =>
      await onlyWord(looking(() => spawned(options, line, ["--json", "--quiet"], { signal }))),
  };
}

function atMost(most: number): <Child extends ChildProcess>(spawned: () => Child) => Child {
  const begun = new Set<ChildProcess>();
  return (spawned) => {
    if (begun.size >= most) {
      const why = `${most} commands that were started here are running already. Wait until one has ended, or start this one in a terminal.`;
      throw new RequestRefusal(409, "TOO_MANY_RUNS", why);
    }
    const child = spawned();
    begun.add(child);
    for (const over of ["close", "error"]) child.once(over, () => begun.delete(child));
    return child;
  };
}

type Piped = ChildProcessByStdio<Writable, Readable, Readable>;

/** Without a signal it goes on when the server ends. */
function spawned(
  { program, cwd, stateFlag, env }: DriverOptions,
  { words }: CommandLine,
  flags: readonly string[],
  until: { readonly signal?: AbortSignal },
): Piped {
  const [file = "", ...before] = program;
  const [command = "", ...rest] = words;
  // The name of an agent is that of a folder, and the id of a run is from a record: the command would take this for a flag.
  if (rest[0]?.startsWith("-") === true)
    throw new RequestRefusal(
      400,
      "USAGE",
      `A name that begins with a dash cannot be passed to a command: ${rest[0]}`,
    );
  const unfit = words.find((word) => word.includes("\0") || Buffer.byteLength(word) > LONGEST_WORD);
  if (unfit !== undefined)
    throw new RequestRefusal(
      400,
      "USAGE",
      "A value holds a NUL character or is longer than 100,000 bytes, and so cannot be passed to a command.",
    );
  const state = stateFlag === undefined ? [] : [`--state=${stateFlag}`];
  return spawn(file, [...before, command, ...flags, ...state, ...rest], {
    cwd,
    env,
    ...until,
    detached: until.signal === undefined,
    stdio: ["pipe", "pipe", "pipe"],
  });
}

/** The one document of a command that ends by itself. */
async function onlyWord(child: Piped): Promise<JsonObject> {
  child.stdin.on("error", () => undefined);
  child.stdin.end();
  const failed = new Promise<never>((_resolve, reject) => {
    child.once("error", (error) => reject(notStarted(error)));
  });
  const read = async (stream: Readable, most: number) => {
    let text = "";
    for await (const part of stream.setEncoding("utf8")) if (text.length < most) text += String(part);
    return text;
  };
  const closed = new Promise<number | null>((resolve) => child.once("close", resolve));
  const said = Promise.all([read(child.stdout, MOST_READ), read(child.stderr, MOST_SAID), closed]);
  const [out, complaint, exit] = await Promise.race([said, failed]);
  const document = parseJson(out);
  if (!isObject(document)) throw refusalOf(exit, complaint);
  return document;
}

function notStarted(error: Error): RequestRefusal {
  return new RequestRefusal(503, "NOT_STARTED", `The command cannot be started: ${errorText(error)}`);
}

/** The id of its run, once there is one. */
async function firstWord(child: Piped, { input }: CommandLine, run: string | null): Promise<string> {
  child.unref();
  for (const stream of [child.stdout, child.stderr]) (stream as Socket).unref();
  child.stdin.on("error", () => undefined);
  child.stdin.end(input ?? "");
  return await new Promise((resolve, reject) => {
    let out = "";
    let said = "";
    const settle = (how: () => void) => {
      clearTimeout(timer);
      // What the run writes later is taken and dropped: a full pipe would stop it.
      for (const stream of [child.stdout, child.stderr]) stream.removeAllListeners("data").resume();
      how();
    };
    const timer = setTimeout(() => {
      const why = `No run was recorded within ${PATIENCE_MS / 1000} s. The command goes on; its run appears by itself.`;
      settle(() => reject(new RequestRefusal(503, "START_SLOW", why)));
    }, PATIENCE_MS);
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      if (out.length < MOST_READ) out += text;
      const end = out.indexOf("\n");
      const found = end === -1 ? null : (run ?? runIn(out.slice(0, end)));
      if (found !== null) settle(() => resolve(found));
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said = `${said}${text}`.slice(-MOST_SAID);
    });
    child.once("error", (error) => settle(() => reject(notStarted(error))));
    child.once("close", (code) => settle(() => reject(refusalOf(code, said))));
  });
}

/** The id in the first entry of a run. */
function runIn(line: string): string | null {
  const entry = parseJson(line);
  const event = isObject(entry) ? own(entry, "event") : undefined;
  const run = isObject(event) ? own(event, "run") : undefined;
  return typeof run === "string" ? run : null;
}

/** A command that ended before it recorded anything: what it wrote is the reason, and its headline names the code. */
function refusalOf(exit: number | null, said: string): RequestRefusal {
  const [first = "", ...rest] = shown(said).trim().split("\n");
  const [, code] = /^\S+ failed ([A-Z][\w-]*)\b/.exec(first) ?? [];
  const lines = code === undefined ? [first, ...rest] : rest;
  const reason = lines.map((line) => line.replace(/^ {2}/, "")).join("\n");
  const why = reason === "" ? `The command ended with exit code ${exit} before its run began.` : reason;
  if (code === undefined) return new RequestRefusal(exit === 2 ? 400 : 409, "NOT_STARTED", why);
  const status = statusOf(code);
  return new RequestRefusal(status === 400 && exit !== 2 ? 409 : status, code, why);
}

/** Linux takes 128 KB for one word. */
const LONGEST_WORD = 100_000;
