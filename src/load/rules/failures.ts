/** Rules about failure prompts: the files are there, what they read has a value, and their blocks are closed. */
import { failureNames } from "../../flow/failure.ts";
import type { GuardedCheck, StepId } from "../../flow/flow.ts";
import { parseRetry, type RetryFault } from "../../flow/text/retry.ts";
import { atStep, type Registered } from "./loaded.ts";
import { escapeSegment } from "../../flow/json-pointer.ts";
import { inPrompt } from "../text/prompt-places.ts";
import { didYouMean } from "../../flow/text/suggest.ts";
import { placeholderPlaces } from "../../flow/text/template.ts";
import { warning, type Codes, type Finding, type Tell } from "./rule.ts";

export const codes = {
  "PR-EDITION": warning(
    "failure prompt not found",
    "Without it, the model only gets a general description of the failed check.",
  ),
  "FAILURE-NAME": warning(
    "unknown name in a failure prompt",
    "The model would read an empty string instead of the details of the failure.",
  ),
  "FAILURE-BLOCK": warning(
    "braces in a failure prompt",
    "Unknown or unclosed tags are sent to the model unchanged.",
  ),
} satisfies Codes;

export function checkFailures(loaded: Registered, tell: Tell): void {
  const byFile = Map.groupBy(guards(loaded), ({ guarded }) => guarded.edition.file);
  for (const { guarded, at, where } of byFile.get(null) ?? []) {
    const { check, edition } = guarded;
    tell({
      code: "PR-EDITION",
      ...at,
      message: `There is no prompt for a failure of "${check}" ${where}; the model gets a general description. Tried: ${edition.tried.join(", ")}.`,
      fix: `Create ${edition.tried[0] ?? "the prompt file"}.`,
    });
  }
  for (const [file, users] of byFile) if (file !== null) checkText(loaded, users, tell);
}

type Guarded = {
  readonly guarded: GuardedCheck;
  readonly at: Pick<Finding, "document" | "pointer" | "steps">;
  readonly where: string;
  readonly steps: readonly StepId[];
};

function* guards(loaded: Registered): Generator<Guarded> {
  for (const { id, guard } of loaded.graph.steps.values())
    for (const guarded of guard?.checks ?? [])
      yield { guarded, at: atStep(loaded, id), where: `in the step "${id}"`, steps: [id] };
  const pointer = `/validationSteps/${escapeSegment(loaded.graph.stop?.judged.key ?? "")}`;
  const at = { document: loaded.sources.registryDocument, pointer };
  for (const guarded of loaded.flow.stopGuard?.checks ?? [])
    yield { guarded, at, where: "before the end by the verdict", steps: [loaded.flow.entry] };
}

/** One file may serve several checks: what one of them supplies is empty for the others, and meant to be. */
function checkText({ files, graph }: Registered, users: readonly Guarded[], tell: Tell): void {
  const { edition } = users[0]!.guarded;
  const steps = [...new Set(users.flatMap((user) => user.steps))];
  const checks = users.flatMap(({ guarded }) => graph.checks.get(guarded.check) ?? []);
  const names = [...new Set(checks.flatMap(failureNames))];
  const whose = checks.map(({ name }) => `"${name}"`).join(" or ");
  const isExtracted = checks.some(({ kind }) => kind === "command");
  const { reads, faults } = parseRetry(edition.text);
  const told = new Set<string>();
  for (const { path, at, each } of reads) {
    const [head = ""] = path;
    if (told.has(head) || told.size >= MOST_TOLD) continue;
    if (names.includes(head) || (head === "this" && each) || head === "") continue;
    told.add(head);
    tell({
      code: "FAILURE-NAME",
      ...inPrompt(files, edition, at),
      steps,
      message:
        head === "this"
          ? `${edition.file} reads {{this}} outside {{#each}}, where it is empty.`
          : `${edition.file} reads "${head}", which a failure of ${whose} does not provide, so it is empty.${didYouMean(head, names)}`,
      fix: `Use one of: ${names.join(", ")}${isExtracted ? `; or add "${head}" to extractParams of the validator` : ""}.`,
    });
  }
  for (const { at, written, what } of causes(faults.slice(0, MOST_TOLD))) {
    tell({
      code: "FAILURE-BLOCK",
      ...inPrompt(files, edition, at),
      steps,
      message: `${written} in ${edition.file} is sent to the model unchanged: ${what}.`,
      fix: "Write {{name}}, {{#each list}}…{{this}}…{{/each}} or {{#if name}}…{{else}}…{{/if}}.",
    });
  }
  for (const [variable, place] of [...placeholderPlaces(edition.text)].slice(0, MOST_TOLD)) {
    tell({
      code: "FAILURE-BLOCK",
      ...inPrompt(files, edition, place),
      steps,
      message: `{uv-${variable}} in ${edition.file} is sent to the model unchanged: a failure prompt reads only the results of the check.`,
      fix: `Use one of: ${names.map((one) => `{{${one}}}`).join(", ")}.`,
    });
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
