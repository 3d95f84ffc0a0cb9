/** The limits that a line gives: `--max-turns` and its like for the run, `--max` for anything. */
import type { Reached } from "../flow/event.ts";
import type { Granted } from "../flow/flow.ts";
import { grantedBeside } from "../flow/spending.ts";
import type { DriveOptions } from "../run/index.ts";
import {
  NEEDS_MONEY,
  needsCount,
  needsDuration,
  readCount,
  readDuration,
  readMoney,
  TIME_UNITS,
  UsageError,
} from "./args.ts";
import type { CommandCall } from "./call.ts";
import type { DriveFlags } from "./commands.ts";
import { shellWord } from "./text/text.ts";

export function spending({
  flags,
}: CommandCall<Pick<DriveFlags, SpendingFlag>>): Pick<DriveOptions, "spending"> {
  const short = Object.entries(SHORT).flatMap(([flag, name]) => {
    const value = flags[flag as keyof typeof SHORT];
    return value === undefined ? [] : [{ [name]: value }];
  });
  const allowed: readonly Granted[] = flags["allow-unmetered"] ? [{ unmetered: true }] : [];
  const all = [...short, ...flags.max.map(parseLimit), ...allowed];
  return all.length === 0 ? {} : { spending: all.reduce<Granted>(grantedBeside, {}) };
}

type SpendingFlag = keyof typeof SHORT | "max" | "allow-unmetered";

const SHORT = {
  "max-turns": "turns",
  "max-tokens": "tokens",
  "max-cost": "costUsd",
  "max-time": "wallMs",
} as const;

/** The flag that gives twice as much as a limit that was reached, or more where the next call needs more: `--max-turns 4`, `--max initial.issue.tokens=20000`. */
export function raised({ of, step, name, most, used, next = 0 }: Reached): string {
  const value = written(name, Math.max(2 * most, used + 2 * next));
  if (of !== "run")
    return `--max ${shellWord(`${step}${of === "attempt" ? ".perAttempt" : ""}.${name}=${value}`)}`;
  // A record of somebody else may name a limit that does not exist.
  const flag = Object.entries(SHORT).find(([, other]) => other === name)?.[0];
  return flag === undefined ? `--max ${shellWord(`${name}=${value}`)}` : `--${flag} ${value}`;
}

/** As the flags read it. */
function written(name: Reached["name"], value: number): string {
  if (name === "costUsd")
    return String(value < 0.01 ? Number(value.toFixed(6)) : Math.ceil(value * 100) / 100);
  if (name !== "wallMs") return String(Math.ceil(value));
  const ms = Math.ceil(value);
  const [unit, size] = TIME_UNITS.find(([, each]) => ms >= each && ms % each === 0) ?? ["ms", 1];
  return `${ms / size}${unit}`;
}

/** `turns=50`, `initial.issue.tokens=9000`, `initial.issue.perAttempt.wallMs=90s`, `soft=0.9`. */
export function parseLimit(text: string): Granted {
  const [, whose = "", name = "", value = ""] =
    /^(?:(.+)\.)?(turns|tokens|costUsd|wallMs|soft)=(.*)$/.exec(text) ?? [];
  if (name === "")
    throw new UsageError(
      `--max cannot be "${text}": write turns, tokens, costUsd, wallMs or soft with a value, such as turns=20; for a step, initial.issue.turns=20.`,
    );
  const limits = { [name]: amount(name, value, `--max ${name}`) };
  if (whose === "") return limits;
  const step = whose.replace(/\.perAttempt$/, "");
  return { steps: { [step]: step === whose ? limits : { perAttempt: limits } } };
}

function amount(name: string, text: string, flag: string): number {
  const { read, needs } = READ[name] ?? WHOLE;
  const value = read(text);
  if (value !== null) return value;
  throw new UsageError(`${flag} needs ${needs(text)}, not "${text}".`);
}

/** How an amount is read, and what one that cannot be read lacks. */
type Reading = {
  readonly read: (text: string) => number | null;
  readonly needs: (text: string) => string;
};

const WHOLE: Reading = { read: (text) => readCount(text), needs: () => needsCount() };

const READ: { readonly [name: string]: Reading } = {
  costUsd: { read: readMoney, needs: () => NEEDS_MONEY },
  wallMs: { read: (text) => readDuration(text), needs: needsDuration },
  soft: { read: share, needs: () => "a fraction above 0 and at most 1, such as 0.8" },
};

function share(text: string): number | null {
  return /^(?:0?\.\d{1,4}|1)$/.test(text) && Number(text) > 0 ? Number(text) : null;
}
