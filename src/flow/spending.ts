/** What may be spent, as a file says it. */
import type { Granted, Limits, Spending, StepLimits } from "./flow.ts";
import { isObject, type Json } from "./json.ts";
import { anything, number, object } from "./shape.ts";

const AMOUNTS = {
  turns: number("Responses of the model.", { min: 1, integer: true }),
  tokens: number("Tokens, in and out.", { min: 1, integer: true }),
  costUsd: number("US dollars. A model without a known price is refused.", { min: 0 }),
  wallMs: number("Milliseconds of active time.", { min: 1, integer: true }),
};
export const AMOUNT_NAMES = ["turns", "tokens", "costUsd", "wallMs"] as const;
const SHARE = { type: "number", exclusiveMinimum: 0, maximum: 1 } as const;
const SOFT_SCHEMA = {
  anyOf: [
    SHARE,
    {
      type: "object",
      properties: Object.fromEntries(AMOUNT_NAMES.map((name) => [name, { type: "number" }])),
      additionalProperties: false,
    },
  ],
};

export const LIMIT_FIELDS = {
  ...AMOUNTS,
  soft: anything("When the model is warned that a limit is near: a fraction such as 0.8, or amounts.", {
    schema: SOFT_SCHEMA,
  }),
};

export const STEP_LIMITS = object("What the step may spend in a run.", {
  ...LIMIT_FIELDS,
  perAttempt: object("What one visit (of a stage: one attempt) may spend.", LIMIT_FIELDS),
});

export type WrittenLimits = { readonly [key in keyof Spending]?: number | undefined } & {
  readonly soft?: Json | undefined;
};
export type WrittenStepLimits = WrittenLimits & { readonly perAttempt?: WrittenLimits | undefined };

/** Only what is written, and only what makes sense: the rest is told by the rules. */
export function limitsOf({ soft, ...written }: WrittenLimits): Limits {
  const limits = amountsOf(written);
  if (typeof soft === "number") return softFault(soft, limits) === null ? { ...limits, soft } : limits;
  if (!isObject(soft) || softFault(soft, limits) !== null) return limits;
  return { ...limits, soft: amountsOf(soft) };
}

export function stepLimitsOf(written: WrittenStepLimits | undefined): { readonly limits?: StepLimits } {
  if (written === undefined) return {};
  const { perAttempt, ...whole } = written;
  const limits = limitsOf(whole);
  return { limits: perAttempt === undefined ? limits : { ...limits, perAttempt: limitsOf(perAttempt) } };
}

function amountsOf(written: WrittenLimits): Spending {
  return Object.fromEntries(
    AMOUNT_NAMES.flatMap((name) => (written[name] === undefined ? [] : [[name, written[name]]])),
  );
}

/** What is wrong with it, or null. */
export function softFault(soft: Json, limits: Spending): string | null {
  if (typeof soft === "number")
    return soft > 0 && soft <= 1 ? null : `${soft} is not a valid fraction: it must be above 0 and at most 1`;
  if (!isObject(soft)) return "it is neither a fraction such as 0.8 nor a group of amounts";
  for (const [name, value] of Object.entries(soft)) {
    const most = (limits as { readonly [name: string]: number | undefined })[name];
    if (!AMOUNT_NAMES.some((known) => known === name))
      return `"${name}" is not one of ${AMOUNT_NAMES.join(", ")}`;
    if (typeof value !== "number" || !(value > 0)) return `${name} must be a number above 0`;
    if (most !== undefined && value > most) return `${name} is ${value}, above its limit of ${most}`;
  }
  return null;
}

/** The lesser of what the files of an agent and the user's settings say. */
export function effectiveLimits(ofFlow: Limits, ofUser: Limits): Limits {
  const least = amountsOf(
    Object.fromEntries(
      AMOUNT_NAMES.flatMap((name) => {
        const said = [ofFlow[name], ofUser[name]].filter((value) => value !== undefined);
        return said.length === 0 ? [] : [[name, Math.min(...said)]];
      }),
    ),
  );
  const soft = ofFlow.soft ?? ofUser.soft;
  return { ...least, ...(soft !== undefined && { soft }) };
}

/** The same with more granted; what is said of a step adds to what was said of it before. */
export function grantedBeside(before: Granted, more: Granted): Granted {
  const steps = { ...before.steps };
  for (const [step, limits] of Object.entries(more.steps ?? {})) {
    const { perAttempt } = { ...steps[step], ...limits };
    const inAttempt = perAttempt && { perAttempt: { ...steps[step]?.perAttempt, ...limits.perAttempt } };
    steps[step] = { ...steps[step], ...limits, ...inAttempt };
  }
  return { ...before, ...more, ...(Object.keys(steps).length > 0 && { steps }) };
}
