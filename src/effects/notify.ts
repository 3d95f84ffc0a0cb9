/** Delivers notices to webhooks and commands of the user: signed, tried again, and never awaited by a run. */
import { createHmac } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { escapedInLine, errorText } from "../flow/text/harmless.ts";
import { childEnv, runProcess, type Env } from "./process/process.ts";

export type Delivered = {
  readonly kind: string;
  readonly run: string;
  readonly seq: number;
  readonly text: string;
};

/** Where notices go: the address of a server, or a program with its arguments. */
export type NoticeTarget = {
  readonly webhook?: string;
  /** The environment variable that holds the key of signatures. */
  readonly secretEnv?: string;
  readonly command?: readonly string[];
  /** Environment variables that the command gets besides the usual ones. */
  readonly pass?: readonly string[];
};

export type Notifier = {
  readonly send: (notice: Delivered) => void;
  /** Waits for what is under way, but not longer than that. What a person should know. */
  readonly close: (withinMs: number) => Promise<readonly string[]>;
};

export type NotifierOptions = {
  readonly name: string;
  readonly target: NoticeTarget;
  readonly env: Env;
  readonly cwd: string;
  readonly now: () => number;
};

const TRIES = 4;
const FIRST_WAIT_MS = 500;
const ONE_TRY_MS = 10_000;
/** A run that warns without end does not flood a telephone. */
const MOST_WAITING = 100;

export function createNotifier(options: NotifierOptions): Notifier {
  const stop = new AbortController();
  const under = new Set<Promise<void>>();
  let lost = 0;
  let trouble = "";

  const deliver = async (notice: Delivered): Promise<void> => {
    for (let tries = 1; ; tries += 1) {
      const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(ONE_TRY_MS)]);
      const refusal = await once(options, notice, signal);
      if (refusal === null) return;
      // What was wrong is said by the tries that had their time.
      if (trouble === "" || !stop.signal.aborted) trouble = refusal.why;
      if (!refusal.isPassing || tries === TRIES || stop.signal.aborted) break;
      const wait = FIRST_WAIT_MS * 4 ** (tries - 1);
      await delay(wait, undefined, { signal: stop.signal, ref: false }).catch(() => undefined);
    }
    lost += 1;
  };

  return {
    send: (notice) => {
      if (under.size >= MOST_WAITING) {
        lost += 1;
        trouble = `more than ${MOST_WAITING} were waiting`;
        return;
      }
      const sent = deliver(notice).finally(() => under.delete(sent));
      under.add(sent);
    },
    close: async (withinMs) => {
      const limit = setTimeout(() => stop.abort(), withinMs);
      await Promise.all(under);
      clearTimeout(limit);
      if (lost === 0) return [];
      return [`${lost} of the notices for "${options.name}" could not be delivered: ${trouble}.`];
    },
  };
}

/** `isPassing`: another try may succeed. */
type Refusal = { readonly why: string; readonly isPassing: boolean };

async function once(
  options: NotifierOptions,
  notice: Delivered,
  signal: AbortSignal,
): Promise<Refusal | null> {
  return options.target.webhook === undefined
    ? await start(options, notice, signal)
    : await post(options, options.target.webhook, notice, signal);
}

/** Not followed elsewhere: what it says is meant for this address. */
async function post(
  { target: { secretEnv }, env, now }: NotifierOptions,
  url: string,
  notice: Delivered,
  signal: AbortSignal,
): Promise<Refusal | null> {
  const secret = secretEnv === undefined ? undefined : env[secretEnv];
  if (secretEnv !== undefined && !secret) return { why: `${secretEnv} is not set`, isPassing: false };
  const body = JSON.stringify(notice);
  try {
    const answer = await fetch(url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        // The same for every try, so that the server can tell a repeated one.
        "lockstep-delivery": `${notice.run}-${notice.seq}-${notice.kind}`,
        ...(secret && { "lockstep-signature": signatureOf(secret, Math.floor(now() / 1000), body) }),
      },
      body,
      redirect: "error",
      signal,
    });
    await answer.body?.cancel();
    if (answer.ok) return null;
    return { why: `the server answered ${answer.status}`, isPassing: isPassing(answer.status) };
  } catch (error) {
    const { cause } = error as Error;
    const why = errorText(cause instanceof Error && cause.message !== "" ? cause : error);
    return { why: escapedInLine(why, 200), isPassing: true };
  }
}

/** `t=SECONDS,v1=HEX`: the HMAC-SHA256 of `SECONDS.BODY`. An old one can be refused by its time. */
export function signatureOf(secret: string, seconds: number, body: string): string {
  const mac = createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex");
  return `t=${seconds},v1=${mac}`;
}

function isPassing(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || status >= 500;
}

/** No shell reads it. In its arguments `{text}`, `{kind}` and `{run}` are replaced; LOCKSTEP_NOTICE holds the document. */
async function start(
  { target: { command = [], pass }, env, cwd }: NotifierOptions,
  notice: Delivered,
  signal: AbortSignal,
): Promise<Refusal | null> {
  const [program = "", ...args] = command;
  const put = (arg: string) =>
    inArgument(
      arg.replaceAll(/\{(text|kind|run)\}/g, (_, name: "text" | "kind" | "run") =>
        escapedInLine(notice[name], 1000),
      ),
      arg,
    );
  const { exitCode, timedOut, aborted } = await runProcess({
    command: [program, ...args.map(put)],
    cwd,
    env: {
      ...childEnv(env, [
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "DBUS_SESSION_BUS_ADDRESS",
        "XDG_RUNTIME_DIR",
        ...(pass ?? []),
      ]),
      LOCKSTEP_NOTICE: JSON.stringify({ ...notice, text: notice.text.slice(0, MOST_CHARACTERS) }),
    },
    timeoutMs: ONE_TRY_MS,
    maxOutputBytes: 1024,
    signal,
  });
  if (exitCode === 0) return null;
  if (timedOut || aborted) return { why: `${escapedInLine(program, 100)} took too long`, isPassing: false };
  const why =
    exitCode === 127
      ? `${escapedInLine(program, 100)} does not exist`
      : `${escapedInLine(program, 100)} ended with ${exitCode ?? "a signal"}`;
  return { why, isPassing: exitCode !== 127 && exitCode !== 126 };
}

/** The kernel refuses long variables, and counts bytes. */
const MOST_CHARACTERS = 10_000;

/** What a model wrote is never an option: a blank before its dash keeps it a word. */
function inArgument(text: string, written: string): string {
  return text.startsWith("-") && !written.startsWith("-") ? ` ${text}` : text;
}
