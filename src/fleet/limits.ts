/** What all workers of a fleet together may ask and spend: limits by name, as `lockstep fleet limit` sets them. */
import { RunnerError } from "../engine/ports.ts";
import type { Postgres, Rows } from "../journal/postgres/connection.ts";

/** `MODEL.requests` and `MODEL.tokens` are rates; `costUsd` is a budget, of all runs or of one group. */
export type FleetLimit = {
  readonly name: string;
  /** null: it is for all runs. */
  readonly group: string | null;
  readonly amount: number;
  readonly periodMs: number;
  /** How much of a rate may come at once. Of a budget: all of it. */
  readonly burst: number;
};

/** A limit as it stands now. `left` is below 0 where more was spent than was set aside for it. */
export type StandingLimit = FleetLimit & { readonly left: number; readonly notBefore: string | null };

export const BUDGET = "costUsd";
const KINDS = ["requests", "tokens"] as const;
const PERIODS: { readonly [name: string]: number } = {
  s: 1000,
  sec: 1000,
  second: 1000,
  min: 60_000,
  minute: 60_000,
  h: 3_600_000,
  hour: 3_600_000,
  day: 86_400_000,
};
/** A rate may come so much at once: what falls due in this time. Tokens come in large pieces. */
const BURST_MS = { requests: 1000, tokens: 10_000 } as const;

export function isBudget(name: string): boolean {
  return name === BUDGET || name.startsWith(`${BUDGET}@`);
}

/** The name of the row. */
export function bucketName({ name, group }: Pick<FleetLimit, "name" | "group">): string {
  return group === null ? name : `${name}@${group}`;
}

/** `openai/gpt-x.tokens`, `400000/min`. A RunnerError USAGE says what is wrong. */
export function readLimit(
  name: string,
  rate: string,
  how: { readonly group?: string | undefined; readonly burst?: number | undefined } = {},
): FleetLimit {
  requireName(name, how.group);
  const [, digits = "", period = ""] = /^(\d+(?:\.\d+)?)\/([a-z]+)$/.exec(rate) ?? [];
  const periodMs = Object.hasOwn(PERIODS, period) ? PERIODS[period]! : null;
  const amount = Number(digits);
  if (periodMs === null || !Number.isFinite(amount) || amount <= 0)
    throw usage(
      `"${rate}" is not a limit. Write an amount and a period, such as 60/min, 400000/min or 200/day; none removes the limit.`,
    );
  if (isBudget(name) && how.burst !== undefined)
    throw usage("--burst is for requests and tokens, not for a budget.");
  return {
    name,
    group: how.group ?? null,
    amount,
    periodMs,
    burst: how.burst ?? burstOf(name, amount, periodMs),
  };
}

export function requireName(name: string, group: string | undefined): void {
  const kind = KINDS.find((one) => name.endsWith(`.${one}`));
  const model = kind === undefined ? "" : name.slice(0, -kind.length - 1);
  // Nothing that a terminal would obey, since names are printed.
  const isPlain =
    /^[^\s\p{C}]{1,200}$/u.test(name) && (group === undefined || /^[^\p{C}]{1,200}$/u.test(group));
  if (!isPlain || (name !== BUDGET && !model.includes("/")))
    throw usage(
      `"${name.slice(0, 80)}" cannot be limited. Use PROVIDER/MODEL.requests, PROVIDER/MODEL.tokens or ${BUDGET}.`,
    );
  if (group !== undefined && name !== BUDGET) throw usage(`--group is for ${BUDGET} only.`);
}

function burstOf(name: string, amount: number, periodMs: number): number {
  if (isBudget(name)) return amount;
  const kind = KINDS.find((one) => name.endsWith(`.${one}`))!;
  return Math.min(amount, Math.max(1, (amount / periodMs) * BURST_MS[kind]));
}

function usage(message: string): RunnerError {
  return new RunnerError("USAGE", message);
}

/** What was used of the limit before stays used. */
export async function setLimit(postgres: Postgres, limit: FleetLimit): Promise<void> {
  const text = `INSERT INTO ${postgres.schema}.bucket AS b (name, amount, per_ms, burst, tokens, at)
      VALUES ($1, $2, $3, $4, $4, clock_timestamp())
    ON CONFLICT (name) DO UPDATE SET amount = $2, per_ms = $3, burst = $4,
      tokens = CASE WHEN $5 AND b.per_ms = $3 THEN b.tokens + $2 - b.amount ELSE least(b.tokens, $4) END`;
  const { amount, periodMs, burst, name } = limit;
  await postgres.send({ name: "limit-set", text }, [
    bucketName(limit),
    amount,
    periodMs,
    burst,
    isBudget(name),
  ]);
}

/** False: there was none. */
export async function removeLimit(
  postgres: Postgres,
  limit: Pick<FleetLimit, "name" | "group">,
): Promise<boolean> {
  const text = `DELETE FROM ${postgres.schema}.bucket WHERE name = $1 RETURNING name`;
  const gone = await postgres.together((send) => send({ name: "limit-remove", text }, [bucketName(limit)]));
  return gone.length > 0;
}

export async function listLimits(postgres: Postgres): Promise<readonly StandingLimit[]> {
  const text = `SELECT name, amount, per_ms, burst, ${haveText("b")} AS left,
      CASE WHEN not_before > clock_timestamp() THEN extract(epoch FROM not_before)::float8 * 1000 END AS not_before
    FROM ${postgres.schema}.bucket b ORDER BY name`;
  return (await postgres.send({ name: "limits", text })).map(toLimit);
}

function toLimit(row: Rows[number]): StandingLimit {
  const stored = row.name as string;
  const isOfGroup = stored.startsWith(`${BUDGET}@`);
  const notBefore = row.not_before as number | null;
  return {
    name: isOfGroup ? BUDGET : stored,
    group: isOfGroup ? stored.slice(BUDGET.length + 1) : null,
    amount: row.amount as number,
    periodMs: row.per_ms as number,
    burst: row.burst as number,
    left: row.left as number,
    notBefore: notBefore === null ? null : new Date(notBefore).toISOString(),
  };
}

/**
 * What is left in a bucket now. A rate flows back all the time, up to its burst; a budget is whole again when its period
 * begins anew (days begin at midnight UTC).
 */
export function haveText(row: string): string {
  const ms = (time: string) => `extract(epoch FROM ${time})::float8 * 1000`;
  const isOfBudget = `(${row}.name = '${BUDGET}' OR ${row}.name LIKE '${BUDGET}@%')`;
  const now = "clock_timestamp()";
  return `CASE WHEN ${isOfBudget} THEN
      CASE WHEN floor(${ms(now)} / ${row}.per_ms) > floor(${ms(`${row}.at`)} / ${row}.per_ms) THEN ${row}.amount ELSE ${row}.tokens END
    ELSE least(${row}.burst, ${row}.tokens + greatest(0, ${ms(`(${now} - ${row}.at)`)}) * ${row}.amount / ${row}.per_ms) END`;
}
