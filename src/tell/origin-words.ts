/** Where a value comes from, in words: the file that says it, or what supplies it to a prompt. */
import type { Json } from "../flow/json.ts";
import { shownInLine } from "../flow/text/harmless.ts";
import type { ValueOrigin } from "../load/index.ts";
import type { StepExplained } from "./explain-step.ts";

export function supplierText(supplier: NonNullable<StepExplained["variables"][0]["supplier"]>): string {
  switch (supplier.kind) {
    case "parameter":
      return `the parameter ${supplier.flag}${supplier.isSure ? "" : ", if it is given"}`;
    case "input":
      return `${supplier.key} of ${shownInLine(supplier.step, 60)}${supplier.isSure ? "" : ", if there is any"}`;
    case "runtime":
      return "the run itself";
    case "section":
      return `the section ${shownInLine(supplier.file ?? "")}`;
    case "constant":
      return `the constant ${plainValue(supplier.value)}`;
    case "handoff":
      return `${supplier.key}, handed on by ${shownInLine(supplier.step, 60)}`;
    case "argument":
      return "an argument, if it is given";
  }
}

/** `.agent/fixer/agent.json:21`, or `default`. */
export function originText(origin: ValueOrigin): string {
  switch (origin.kind) {
    case "default":
      return "default";
    case "written":
      return `${shownInLine(origin.file)}:${origin.line}`;
    case "overruled":
      return `fixed; ${shownInLine(origin.file)}:${origin.line} has no effect`;
  }
}

export function plainValue(value: Json): string {
  return shownInLine(typeof value === "string" ? value : JSON.stringify(value), 80);
}
