/** Rules about stages as a machine: one is the first, siblings end where they are, and a failure is not a success. */
import type { Move, StepId } from "../../flow/flow.ts";
import type { Machine } from "../stages/machine-parts.ts";
import { didYouMean } from "../../flow/text/suggest.ts";
import { atPart, witness } from "./loaded.ts";
import { warning, type Codes, type Rules, type Tell } from "./rule.ts";

export const rules: Rules = { stage: [checkEntry, checkSiblings, checkFailures] };

export const codes = {
  "STAGE-CAP-SUCCESS": warning(
    "failure goes on as success",
    "When success and failure lead to the same stage, a stage that ran out of turns looks like a success.",
  ),
} satisfies Codes;

function checkEntry({ source, document, steps, entry, isWhole }: Machine, tell: Tell): void {
  // What could not be read may be the stage that is missing.
  if (!isWhole || steps.has(entry.step)) return;
  const finding = { code: "StageDefinitionInvalid", document, pointer: "/entry" } as const;
  if (source.entry !== undefined) {
    const hint = didYouMean(source.entry, steps.keys());
    const message = `The entry stage "${source.entry}" does not exist.${hint}`;
    tell({ ...finding, message, fix: "Name a stage of the machine." });
    return;
  }
  const names = entry.candidates.map((id) => `"${id}"`).join(", ");
  const message =
    entry.candidates.length === 0
      ? "No stage can be the first: another stage leads to each of them."
      : `The first stage is ambiguous: nothing leads to any of ${names}.`;
  const example = entry.candidates[0] ?? [...steps.keys()][0] ?? "plan";
  tell({ ...finding, message, fix: `Set it in ${document.file}, for example entry: ${example}.` });
}

/** Siblings end where they are: only the join goes on. */
function checkSiblings(machine: Machine, tell: Tell): void {
  const { steps } = machine;
  const told = new Set<StepId>();
  for (const { id: owner, edges } of steps.values()) {
    if (edges.ok?.kind !== "fork") continue;
    for (const id of edges.ok.steps) {
      const sibling = steps.get(id);
      if (sibling === undefined || told.has(id)) continue;
      told.add(id);
      const onward = sibling.edges.ok;
      if (onward !== undefined && !isTerminal(onward)) {
        const nested = onward.kind === "fork" ? "fans out itself" : "leads to another stage";
        tell({
          code: "StageDefinitionInvalid",
          ...atPart(machine, "steps", id, "edges", "ok"),
          message: `The stage "${id}" runs in parallel after "${owner}", but ${nested}.`,
          fix: "Remove its next, and continue from the join.",
          witness: witness(machine, id),
        });
      }
      const failure = sibling.edges.fail;
      const recovery = failure?.kind === "goto" ? steps.get(failure.step) : undefined;
      if (recovery === undefined || isTerminal(recovery.edges.ok!)) continue;
      tell({
        code: "StageDefinitionInvalid",
        ...atPart(machine, "steps", id, "edges", "fail"),
        message: `The stage "${id}" runs in parallel, and its onFail leads to "${recovery.id}", which leads to another stage.`,
        fix: `Let onFail lead to a stage without next: the parallel group of "${id}" has failed anyway.`,
        witness: witness(machine, id, recovery.id),
      });
    }
  }
}

function isTerminal(move: Move): boolean {
  if (move.kind !== "switch") return move.kind === "end";
  return [...Object.values(move.cases), ...(move.otherwise === undefined ? [] : [move.otherwise])].every(
    isTerminal,
  );
}

/** A stage that ran out of turns must not lead on as if it had been done. */
function checkFailures(machine: Machine, tell: Tell): void {
  for (const [id, { edges }] of machine.steps) {
    const { ok, cap } = edges;
    if (ok?.kind !== "goto" || cap?.kind !== "goto" || ok.step !== cap.step) continue;
    tell({
      code: "STAGE-CAP-SUCCESS",
      ...atPart(machine, "steps", id, "edges", "fail"),
      message: `The stage "${id}" leads to "${ok.step}" when it is done, and also when it failed or ran out of turns.`,
      fix: "Let onFail lead to a stage that deals with the failure, or remove it.",
    });
  }
}
