/** Rules about failure prompts: the files are there, what they read has a value, and their blocks are closed. */
import { failureNames } from "../flow/failure.ts";
import type { GuardedCheck, StepId } from "../flow/flow.ts";
import { parseRetry, type RetryFault } from "../flow/retry.ts";
import type { Finding } from "./finding.ts";
import { atStep, type Loaded } from "./loaded.ts";
import { escapeSegment } from "./places.ts";
import { inPrompt } from "./prompt-places.ts";
import { didYouMean } from "./suggest.ts";
import { placeholderPlaces } from "./variables.ts";

export function* checkFailures(loaded: Loaded): Generator<Finding> {
  const told = new Set<string>();
  for (const { guarded, at, where, steps } of guards(loaded)) {
    if (guarded.edition.file === null) {
      yield {
        code: "PR-EDITION",
        ...at,
        message: `There is no prompt for a failure of "${guarded.check}" ${where}; the model gets a general account of it. Tried: ${guarded.edition.tried.join(", ")}.`,
        fix: `Create ${guarded.edition.tried[0] ?? "the prompt file"}.`,
      };
      continue;
    }
    // One file may serve several checks and steps.
    for (const finding of checkText(loaded, guarded, steps)) {
      if (told.has(finding.message)) continue;
      told.add(finding.message);
      yield finding;
    }
  }
}

type Guarded = {
  readonly guarded: GuardedCheck;
  readonly at: Pick<Finding, "document" | "pointer" | "steps">;
  readonly where: string;
  readonly steps: readonly StepId[];
};

function* guards(loaded: Loaded): Generator<Guarded> {
  for (const [id, { guard }] of loaded.graph.steps)
    for (const guarded of guard?.checks ?? [])
      yield { guarded, at: atStep(loaded, id), where: `in the step "${id}"`, steps: [id] };
  const pointer = `/validationSteps/${escapeSegment(loaded.graph.stop?.judged.key ?? "")}`;
  const at = { document: loaded.sources.registryDocument, pointer };
  for (const guarded of loaded.flow.stopGuard?.checks ?? [])
    yield { guarded, at, where: "before an end by the verdict", steps: [loaded.flow.entry] };
}

function* checkText(
  { files, graph }: Loaded,
  { check: name, edition }: GuardedCheck,
  steps: readonly StepId[],
): Generator<Finding> {
  const check = graph.checks.get(name);
  if (check === undefined) return;
  const names = failureNames(check);
  const { reads, faults } = parseRetry(edition.text);
  const told = new Set<string>();
  for (const { path, at, each } of reads) {
    const [head = ""] = path;
    if (told.has(head) || told.size >= MOST_TOLD) continue;
    if (names.includes(head) || (head === "this" && each) || head === "") continue;
    told.add(head);
    yield {
      code: "FAILURE-NAME",
      ...inPrompt(files, edition, at),
      steps,
      message:
        head === "this"
          ? `${edition.file} reads {{this}} outside of {{#each}}, where it is empty.`
          : `${edition.file} reads "${head}", which a failure of "${check.name}" does not have, so it is empty.${didYouMean(head, names)}`,
      fix: `Use one of: ${[...new Set(names)].join(", ")}${check.kind === "command" ? `; or add "${head}" to extractParams of the validator` : ""}.`,
    };
  }
  for (const { at, written, what } of causes(faults.slice(0, MOST_TOLD))) {
    yield {
      code: "FAILURE-BLOCK",
      ...inPrompt(files, edition, at),
      steps,
      message: `${written} in ${edition.file} reaches the model as it is written: ${what}.`,
      fix: "Write {{name}}, {{#each list}}…{{this}}…{{/each}} or {{#if name}}…{{else}}…{{/if}}.",
    };
  }
  for (const [variable, place] of [...placeholderPlaces(edition.text)].slice(0, MOST_TOLD)) {
    yield {
      code: "FAILURE-BLOCK",
      ...inPrompt(files, edition, place),
      steps,
      message: `{uv-${variable}} in ${edition.file} reaches the model as it is written: a failure prompt reads only what the check found.`,
      fix: `Use one of: ${[...new Set(names)].map((one) => `{{${one}}}`).join(", ")}.`,
    };
  }
}

/** Of one prompt. */
const MOST_TOLD = 20;

/** A misspelled closing tag leaves a block open: that is one fault. */
function causes(faults: readonly RetryFault[]): readonly RetryFault[] {
  const ends = faults.filter(({ written }) => /^\{\{\s*\//.test(written)).map(({ at }) => at);
  return faults.filter(({ at, written }) => {
    const end = /^\{\{\s*#(?:each|if)\b/.test(written) ? ends.findIndex((place) => place > at) : -1;
    if (end === -1) return true;
    ends.splice(end, 1);
    return false;
  });
}
