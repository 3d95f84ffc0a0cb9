/** `next` → a move. Whatever form it was written in, what is wrong with it is told at its place. */
import type { Move, StepId } from "../../flow/flow.ts";
import { isObject, type JsonObject, type Path } from "../../flow/json.ts";
import { parseFieldPath } from "../../flow/text/placeholder.ts";
import type { Code } from "../codes.ts";
import type { Finding } from "../rules/rule.ts";
import { escapeSegment } from "../../flow/json-pointer.ts";
import { readShape } from "../text/shape.ts";
import { RESULT_FIELDS } from "./machine-parts.ts";
import type { StageFile } from "./stage-file.ts";
import { END, NEXT_RESULT, PARALLEL, SWITCH, type MachineSource } from "./stage-shape.ts";
import { didYouMean } from "../../flow/text/suggest.ts";

export type MoveWorld = {
  /** Ids of stages, those of files that could not be read included. */
  readonly known: ReadonlySet<StepId>;
  readonly joinRule: MachineSource["joinRule"];
  readonly findings: Finding[];
};

const DONE: Move = { kind: "end", outcome: "completed" };

export function nextOf(file: StageFile, world: MoveWorld): Move {
  const { next } = file.source;
  if (typeof next === "string") return targetOf(file, next, "/next", world);
  if (!isObject(next)) return DONE;
  if (Object.hasOwn(next, "parallel")) return parallelOf(file, next, world);
  if (Object.hasOwn(next, "switch")) return switchOf(file, next, world);
  if (Object.hasOwn(next, "execution") || Object.hasOwn(next, "nextStages"))
    return resultOf(file, next, world);
  report(file, world, "StageDefinitionInvalid", "/next", {
    message: `next of the stage "${file.id}" has an unknown form.`,
    fix: "Write the id of a stage, end, {parallel: […], join: …} or {switch: …, cases: {…}}.",
  });
  return DONE;
}

/** Where a stage that failed goes on; null: nowhere. */
export function onFailOf(file: StageFile, world: MoveWorld): Move | null {
  const { onFail } = file.source;
  if (onFail === undefined) return null;
  if (onFail !== END) return targetOf(file, onFail, "/onFail", world);
  report(file, world, "StageTargetUnknown", "/onFail", {
    message: `onFail of the stage "${file.id}" is "${END}", but must be a stage.`,
    fix: "Remove onFail: without it a failure ends the run.",
  });
  return null;
}

function targetOf(file: StageFile, id: string, pointer: string, world: MoveWorld): Move {
  if (id === END) return DONE;
  requireStage(file, id, pointer, world);
  return { kind: "goto", step: id };
}

function requireStage(file: StageFile, id: string, pointer: string, world: MoveWorld): void {
  if (world.known.has(id)) return;
  report(file, world, "StageTargetUnknown", pointer, {
    message: `The stage "${file.id}" leads to "${id}", but there is no such stage.${didYouMean(id, world.known)}`,
    fix: `Name a stage, or add one with id: ${id}.`,
  });
}

function parallelOf(file: StageFile, written: JsonObject, world: MoveWorld): Move {
  const { parallel = [], join, policy } = readShape(PARALLEL, written, "/next", readerOf(file, world));
  if (join !== undefined && parallel.includes(join)) {
    report(file, world, "StageDefinitionInvalid", "/next/join", {
      message: `"${join}" is both a sibling and the join of the stage "${file.id}".`,
      fix: "Leave it out of parallel: the join runs when the siblings are done.",
    });
  }
  requireJoin(file, join, world);
  const fork = forkOf(file, parallel, join ?? null, "/next/parallel", world);
  return policy === "independent" ? { ...fork, policy } : fork;
}

/** The join is listed among the stages, unless the machine says that it need only be declared. */
function resultOf(file: StageFile, written: JsonObject, world: MoveWorld): Move {
  const read = readShape(NEXT_RESULT, written, "/next", readerOf(file, world));
  const { execution, nextStages = [], join } = read;
  if (execution === "parallel") {
    if (join !== undefined && world.joinRule === "listed" && !nextStages.includes(join)) {
      report(file, world, "StageJoinDangling", "/next/join", {
        message: `The join "${join}" of the stage "${file.id}" is not one of its nextStages.${didYouMean(join, nextStages)}`,
        fix: `Add "${join}" to nextStages, or set joinRule: declared in machine.yaml.`,
      });
    } else requireJoin(file, join, world);
    const siblings = nextStages.filter((id) => id !== join);
    return forkOf(file, siblings, join ?? null, "/next/nextStages", world);
  }
  if (join !== undefined) {
    report(file, world, "StageDefinitionInvalid", "/next/join", {
      message: `The stage "${file.id}" has a join, but its nextStages do not run in parallel.`,
      fix: "Set execution to parallel, or remove join.",
    });
  }
  if (nextStages.length > 1) {
    report(file, world, "StageDefinitionInvalid", "/next/nextStages", {
      message: `The stage "${file.id}" names ${nextStages.length} stages to run one after the other.`,
      fix: "Name the first one, and let each lead to the one after it with its own next.",
    });
  }
  const [first] = nextStages;
  return first === undefined ? DONE : targetOf(file, first, "/next/nextStages/0", world);
}

function requireJoin(file: StageFile, join: string | undefined, world: MoveWorld): void {
  if (join === undefined || world.known.has(join)) return;
  report(file, world, "StageJoinDangling", "/next/join", {
    message: `The join "${join}" of the stage "${file.id}" is not a stage.${didYouMean(join, world.known)}`,
    fix:
      join === END
        ? "Remove join: without it the run ends when all siblings are done."
        : "Name a stage of the machine.",
  });
}

function forkOf(
  file: StageFile,
  siblings: readonly string[],
  join: StepId | null,
  pointer: string,
  world: MoveWorld,
): Move & { kind: "fork" } {
  const steps = [...new Set(siblings)];
  for (const [index, id] of siblings.entries()) {
    requireStage(file, id, `${pointer}/${index}`, world);
    if (siblings.indexOf(id) === index) continue;
    report(file, world, "StageDefinitionInvalid", `${pointer}/${index}`, {
      message: `The stage "${file.id}" lists the sibling "${id}" twice.`,
      fix: "List each stage once; to run it twice, copy its file with another id.",
    });
  }
  if (steps.length < 2) {
    report(file, world, "InvalidParallelPlan", pointer, {
      message: `The stage "${file.id}" has ${steps.length === 0 ? "no stage" : "only one stage"} in parallel.`,
      fix: "List two or more stages, or write the id of the one stage as next.",
    });
  }
  return { kind: "fork", steps, join };
}

function switchOf(file: StageFile, written: JsonObject, world: MoveWorld): Move {
  const { switch: on, cases } = readShape(SWITCH, written, "/next", readerOf(file, world));
  const path = on === undefined ? null : resultPath(file, on, world);
  const moves = [...cases].map(
    ([value, id]) => [value, targetOf(file, id, `/next/cases/${escapeSegment(value)}`, world)] as const,
  );
  if (moves.length === 0 && isObject(written.cases)) {
    report(file, world, "StageDefinitionInvalid", "/next/cases", {
      message: `The switch of the stage "${file.id}" has no cases.`,
      fix: "Add a case for each value, and default.",
    });
  }
  if (path === null) return DONE;
  const otherwise = moves.find(([value]) => value === "default")?.[1];
  return {
    kind: "switch",
    on: path,
    cases: Object.fromEntries(moves.filter(([value]) => value !== "default")),
    ...(otherwise !== undefined && { otherwise }),
  };
}

function resultPath(file: StageFile, on: string, world: MoveWorld): Path | null {
  const path = parseFieldPath(on);
  const [root = ""] = path ?? [];
  if (path !== null && RESULT_FIELDS.includes(root)) return path;
  report(file, world, "StageDefinitionInvalid", "/next/switch", {
    message:
      path === null
        ? `"${on}" is not a valid path into the result of the stage "${file.id}".`
        : `"${on}" is not in the result of the stage "${file.id}": results have no "${root}".${didYouMean(root, RESULT_FIELDS)}`,
    fix: `Write a path such as parsed.approved; a result holds ${RESULT_FIELDS.join(", ")}.`,
  });
  return null;
}

function readerOf({ document }: StageFile, { findings }: MoveWorld) {
  return { document, code: "StageDefinitionInvalid", findings } as const;
}

function report(
  { document, id }: StageFile,
  { findings }: MoveWorld,
  code: Code,
  pointer: string,
  words: { readonly message: string; readonly fix: string },
): void {
  findings.push({ code, document, pointer, steps: [id], ...words });
}
