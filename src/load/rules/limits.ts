/** Rules about limits: that they can hold, and that each can be reached before another one ends the run. */
import { error, warning, type Codes, type Rules, type Tell } from "./rule.ts";
import { atPart, partOf, type At, type LoadedFlow } from "./loaded.ts";
import { AMOUNT_NAMES, softFault, type WrittenStepLimits } from "../../flow/spending.ts";

export const codes = {
  "LIMIT-INVALID": error(
    "unusable limit",
    "A limit of 0 stops every run, and a soft limit above the hard one never warns.",
  ),
  "LIMIT-ABOVE": warning(
    "limit never reached",
    "A limit above the one that encloses it has no effect, which is probably not intended.",
  ),
} satisfies Codes;

/** Limits as they are written, and where. */
type LimitsAt = {
  readonly limits: WrittenStepLimits | undefined;
  readonly place: At;
  /** Whose they are, in words. */
  readonly owner: string;
};

function checkLimits(loaded: LoadedFlow, tell: Tell): void {
  const { runLimits, entries, words } = loaded;
  const ofRun: LimitsAt = { limits: runLimits, place: atPart(loaded, "limits"), owner: "the run" };
  checkOwn(ofRun, tell);
  for (const id of entries.keys()) {
    const { limits } = entries.get(id)!;
    if (limits === undefined) continue;
    const ofStep = { limits, place: atPart(loaded, "steps", id, "limits"), owner: `${words.step} "${id}"` };
    const inAttempt: LimitsAt = {
      limits: limits.perAttempt,
      place: atPart(loaded, "steps", id, "limits", "perAttempt"),
      owner: `one attempt of ${ofStep.owner}`,
    };
    checkOwn(ofStep, tell);
    checkOwn(inAttempt, tell);
    checkWithin(ofStep, ofRun, tell);
    checkWithin(inAttempt, ofStep, tell);
    checkWithin(inAttempt, ofRun, tell);
  }
}

function checkOwn({ limits, place, owner }: LimitsAt, tell: Tell): void {
  if (limits === undefined) return;
  if (limits.costUsd === 0) {
    tell({
      code: "LIMIT-INVALID",
      ...partOf(place, "costUsd"),
      message: `The limit costUsd of ${owner} is 0: no paid call could be made.`,
      fix: "Raise it, or remove it.",
    });
  }
  const fault =
    limits.soft === undefined ? null : softFault(limits.soft, limits as { [name: string]: number });
  if (fault === null) return;
  tell({
    code: "LIMIT-INVALID",
    ...partOf(place, "soft"),
    message: `The soft limit of ${owner} cannot be used: ${fault}.`,
    fix: "Write a fraction such as 0.8, or amounts that are not above the limits.",
  });
}

function checkWithin(inner: LimitsAt, outer: LimitsAt, tell: Tell): void {
  for (const name of AMOUNT_NAMES) {
    const [most, all] = [inner.limits?.[name], outer.limits?.[name]];
    if (most === undefined || all === undefined || most <= all) continue;
    tell({
      code: "LIMIT-ABOVE",
      ...partOf(inner.place, name),
      message: `The limit ${name} of ${inner.owner} is ${most}, above the ${all} of ${outer.owner}, so it is never reached.`,
      fix: `Lower it, or raise the limit of ${outer.owner}.`,
    });
  }
}

export const rules: Rules = { all: [checkLimits] };
