/** Commands that the studio starts: each in a process of its own, which goes on when the studio ends. */
import { spawn } from "node:child_process";
import type { Socket } from "node:net";
import { isObject, own, parseJson } from "../flow/json.ts";
import { errorText, shown } from "../flow/text/harmless.ts";
import type { CommandLine } from "./command-line.ts";
import { StudioRefusal, statusOf } from "./route.ts";

export type Driver = {
  /** Gives the id of the run once its first entry is recorded; `run`: the one that is resumed. Refused in the words of the command. */
  readonly start: (line: CommandLine, run?: string) => Promise<string>;
};

export type DriverOptions = {
  /** The file and the arguments that the command is started by. */
  readonly program: readonly string[];
  readonly cwd: string;
  readonly stateFlag: string | undefined;
  readonly env: NodeJS.ProcessEnv;
};

/** So many commands of one studio may be at work at once. */
const MOST_DRIVEN = 8;
/** How long a command may take until its run is recorded: it may have to open a sandbox and start servers. */
const PATIENCE_MS = 60_000;
const MOST_SAID = 64 * 1024;

export function createDriver(options: DriverOptions): Driver {
  let driven = 0;
  return {
    start: async (line, run) => {
      if (driven >= MOST_DRIVEN) {
        const why = `The studio runs ${MOST_DRIVEN} commands already. Wait until one has ended, or start this one in a terminal.`;
        throw new StudioRefusal(409, "TOO_MANY_RUNS", why);
      }
      driven += 1;
      return await begin(options, line, run ?? null, () => (driven -= 1));
    },
  };
}

/** `onEnd` is called once, when the process is over or could not be started. */
async function begin(
  { program, cwd, stateFlag, env }: DriverOptions,
  { words, input }: CommandLine,
  run: string | null,
  onEnd: () => void,
): Promise<string> {
  const [file = "", ...before] = program;
  const [command = "", ...rest] = words;
  const state = stateFlag === undefined ? [] : [`--state=${stateFlag}`];
  const child = spawn(file, [...before, command, "--events", "--quiet", ...state, ...rest], {
    cwd,
    env,
    detached: true,
    stdio: ["pipe", "pipe", "pipe"],
  });
  child.once("close", onEnd);
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
      settle(() => reject(new StudioRefusal(503, "START_SLOW", why)));
    }, PATIENCE_MS);
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text;
      const end = out.indexOf("\n");
      const found = end === -1 ? null : (run ?? runIn(out.slice(0, end)));
      if (found !== null) settle(() => resolve(found));
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said = `${said}${text}`.slice(-MOST_SAID);
    });
    child.once("error", (error) => {
      // A process that was never there is not closed.
      if (child.pid === undefined) onEnd();
      settle(() =>
        reject(new StudioRefusal(503, "NOT_STARTED", `The command cannot be started: ${errorText(error)}`)),
      );
    });
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
function refusalOf(exit: number | null, said: string): StudioRefusal {
  const [first = "", ...rest] = shown(said).trim().split("\n");
  const [, code] = /^\S+ failed ([A-Z][\w-]*)\b/.exec(first) ?? [];
  const lines = code === undefined ? [first, ...rest] : rest;
  const reason = lines.map((line) => line.replace(/^ {2}/, "")).join("\n");
  const why = reason === "" ? `The command ended with exit code ${exit} before its run began.` : reason;
  if (code === undefined) return new StudioRefusal(exit === 2 ? 400 : 409, "NOT_STARTED", why);
  const status = statusOf(code);
  return new StudioRefusal(status === 400 && exit !== 2 ? 409 : status, code, why);
}
