/** Rules about limits: that they can hold, and that each can be reached before another one ends the run. */
import type { Document } from "../text/document.ts";
import type { Finding } from "./finding.ts";
import { AMOUNT_NAMES, softFault, type WrittenLimits, type WrittenStepLimits } from "../agent/spending.ts";

/** Limits as they are written, and where. */
export type LimitsAt = {
  readonly limits: WrittenStepLimits | undefined;
  readonly at: Pick<Finding, "document" | "pointer" | "steps">;
  /** Whose they are, in words. */
  readonly owner: string;
};

export function* checkLimits(ofRun: LimitsAt, ofSteps: readonly LimitsAt[]): Generator<Finding> {
  yield* checkOwn(ofRun);
  for (const ofStep of ofSteps) {
    if (ofStep.limits === undefined) continue;
    const { perAttempt } = ofStep.limits;
    const owner = `one attempt of ${ofStep.owner}`;
    const at = { ...ofStep.at, pointer: `${ofStep.at.pointer}/perAttempt` };
    const inAttempt: LimitsAt = { limits: perAttempt, at, owner };
    yield* checkOwn(ofStep);
    yield* checkOwn(inAttempt);
    yield* checkWithin(ofStep, ofRun);
    yield* checkWithin(inAttempt, ofStep);
    yield* checkWithin(inAttempt, ofRun);
  }
}

function* checkOwn({ limits, at, owner }: LimitsAt): Generator<Finding> {
  if (limits === undefined) return;
  if (limits.costUsd === 0) {
    yield {
      code: "LIMIT-INVALID",
      ...at,
      pointer: `${at.pointer}/costUsd`,
      message: `The limit costUsd of ${owner} is 0: no paid call could be made.`,
      fix: "Raise it, or remove it.",
    };
  }
  const fault =
    limits.soft === undefined ? null : softFault(limits.soft, limits as { [name: string]: number });
  if (fault === null) return;
  yield {
    code: "LIMIT-INVALID",
    ...at,
    pointer: `${at.pointer}/soft`,
    message: `The soft limit of ${owner} cannot be used: ${fault}.`,
    fix: "Write a fraction such as 0.8, or amounts that are not above the limits.",
  };
}

function* checkWithin(inner: LimitsAt, outer: LimitsAt): Generator<Finding> {
  for (const name of AMOUNT_NAMES) {
    const [most, all] = [inner.limits?.[name], outer.limits?.[name]];
    if (most === undefined || all === undefined || most <= all) continue;
    yield {
      code: "LIMIT-ABOVE",
      ...inner.at,
      pointer: `${inner.at.pointer}/${name}`,
      message: `The limit ${name} of ${inner.owner} is ${most}, above the ${all} of ${outer.owner}, so it is never reached.`,
      fix: `Lower it, or raise the limit of ${outer.owner}.`,
    };
  }
}

export function limitsOfRun(limits: WrittenLimits, document: Document, pointer: string): LimitsAt {
  return { limits, at: { document, pointer }, owner: "the run" };
}
