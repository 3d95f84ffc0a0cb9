/** Where a command writes: the result to stdout, everything else to stderr. Knows what the terminal can bear. */
import { asciiOf, isAscii } from "./text/ascii.ts";
import { createPaint, jsonLine, shown, type Paint } from "./text/text.ts";

export type Screen = {
  /** The result for people, a line or several. */
  readonly print: (text: string) => void;
  /** A result for programs, which stays as it is. */
  readonly emit: (text: string) => void;
  /** The one document of `--json`. */
  readonly document: (value: unknown) => void;
  /** The last line of a plain run. */
  readonly outcome: (line: string) => void;
  /** For the person at the keyboard; not said under `--quiet`. */
  readonly tell: (text: string) => void;
  /** What must be said even under `--quiet`. */
  readonly complain: (text: string) => void;
  /** The line, or lines, written over and over; null takes them away. Nothing where `isLive` is false. */
  readonly status: (text: string | null) => void;
  /**
   * Gives the last line to a person who types an answer: the live line is gone meanwhile, and messages that can wait
   * come after the answer. `read` gives null if no answer was given.
   */
  readonly ask: (question: string, read: () => Promise<string | null>) => Promise<string | null>;
  readonly isLive: boolean;
  /** Whether somebody can be asked. */
  readonly isAnswering: boolean;
  readonly width: number;
  /** Colours for stdout and for stderr. */
  readonly out: Paint;
  readonly err: Paint;
};

export type Stream = {
  readonly write: (text: string) => unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
};

export type Terminal = {
  readonly stdin: { readonly isTTY?: boolean };
  readonly stdout: Stream;
  readonly stderr: Stream;
  readonly env: { readonly [name: string]: string | undefined };
  /** Called when the one result of the command is written. */
  readonly answered?: () => void;
};

export type Manners = { readonly quiet: boolean; readonly color: boolean | null };

export function createScreen(terminal: Terminal, { quiet, color }: Manners): Screen {
  const { stdin, stdout, stderr, env } = terminal;
  const isPlain = isOn(env.CI) || env.TERM === "dumb";
  const isLive = !quiet && !isPlain && stderr.isTTY === true;
  const [outHas, errHas] = [stdout, stderr].map((stream) => hasColours(stream, env, color, isPlain));
  const drawn = (text: string, has = errHas) => {
    const safe = has === true ? harmless(text) : seen(text);
    return isAscii(env) ? asciiOf(safe) : safe;
  };
  let status: string | null = null;
  /** Messages that came while a person typed; null: no one is typing. */
  let held: string[] | null = null;
  const erase = () => {
    if (status === null) return;
    const above = status.split("\n").length - 1;
    stderr.write(`\r\u001b[K${"\u001b[1A\u001b[K".repeat(above)}`);
  };
  const say = (text: string) => {
    if (held !== null) {
      stderr.write(`\n${drawn(text)}\n${PROMPT}`);
      return;
    }
    erase();
    stderr.write(`${drawn(text)}\n`);
    if (status !== null) stderr.write(status);
  };
  const put = (text: string) => {
    const isShared = stdout.isTTY === true;
    if (isShared && held !== null) stderr.write("\n");
    if (isShared) erase();
    stdout.write(`${text}\n`);
    if (isShared && (held !== null || status !== null)) stderr.write(held === null ? status! : PROMPT);
  };
  const tell = (text: string) => {
    if (quiet) return;
    if (held === null) say(text);
    else held.push(text);
  };
  const err = createPaint(errHas === true, MARK);
  const width = () => Math.max(20, stderr.columns || 80);
  return {
    print: (text) => put(drawn(text, outHas)),
    emit: (text) => put(unmarked(text)),
    document: (value) => {
      stdout.write(`${jsonLine(value, stdout.isTTY === true ? 2 : undefined)}\n`);
      terminal.answered?.();
    },
    outcome: (line) => {
      put(line);
      terminal.answered?.();
    },
    tell,
    complain: say,
    ask: async (question, read) => {
      erase();
      status = null;
      stderr.write(`${drawn(question)}\n${PROMPT}`);
      held = [];
      let line: string | null = null;
      try {
        return (line = await read());
      } finally {
        if (line === null) stderr.write("\n");
        const late = held;
        held = null;
        late.forEach(tell);
      }
    },
    status: (text) => {
      if (!isLive || held !== null) return;
      erase();
      const cut = (line: string) => unmarked(err("dim", line.slice(0, width() - 1)));
      status = text === null ? null : drawn(text).split("\n").map(cut).join("\n");
      if (status !== null) stderr.write(status);
    },
    isLive,
    isAnswering: !isOn(env.CI) && stderr.isTTY === true && stdin.isTTY === true,
    get width() {
      return width();
    },
    out: createPaint(outHas === true, MARK),
    err,
  };
}

const PROMPT = "> ";

/** All output goes through this: of the escape codes in a line only our own colours reach the terminal, and none where it has no colours. */
function harmless(text: string): string {
  return text
    .split(COLOURS)
    .map((part, place) => (place % 2 === 1 ? unmarked(part) : seen(part)))
    .join("");
}

function unmarked(text: string): string {
  return text.replaceAll(`${MARK}m`, "m");
}

function seen(text: string): string {
  return shown(text).replaceAll(NO_WIDTH, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Between other letters and in emoji they have a purpose; beside ASCII they only disguise a name. */
const NO_WIDTH =
  /(?<=[!-~])[\u00ad\u180e\u200b-\u200d\u2060-\u2064\ufeff]|[\u00ad\u180e\u200b-\u200d\u2060-\u2064\ufeff](?=[!-~])/gu;

/** In the codes of our own colours until they are written. It is new in every process, so that no foreign text can hold it. */
const MARK = `;${Math.floor(Math.random() * 2 ** 48)}`;

const ESCAPE = "\u001b";
const COLOURS = new RegExp(`(${ESCAPE}\\[(?:1|2|22|31|32|33|36|39)${MARK}m)`);

/** `--color` and `--no-color`, then FORCE_COLOR, then NO_COLOR, then what the stream is: the order Node itself keeps. */
function hasColours(stream: Stream, env: Terminal["env"], color: boolean | null, isPlain: boolean): boolean {
  if (color !== null) return color;
  if (env.FORCE_COLOR !== undefined) return env.FORCE_COLOR !== "0" && env.FORCE_COLOR !== "false";
  if (env.NO_COLOR !== undefined && env.NO_COLOR !== "") return false;
  return !isPlain && stream.isTTY === true;
}

export function isOn(value: string | undefined): boolean {
  return value !== undefined && value !== "" && value !== "false" && value !== "0";
}
