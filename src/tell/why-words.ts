/** What a chain says of moves, choices, stop rules and commands, each in one line. */
import type { Say, StepCommand } from "../flow/command.ts";
import type { SchemaSource, StopRule } from "../flow/flow.ts";
import type { Why } from "./why.ts";
import { count, duration } from "../flow/text/figures.ts";
import { shownInLine } from "../flow/text/harmless.ts";

type Followed = NonNullable<Why["moments"][number]["followed"]>;

/** Why there is no decision. */
export const UNDECIDED: { readonly [state in Why["state"]]: string } = {
  settled: "",
  open: "nothing yet",
  stopped: "nothing: the run stopped here, and resumes here",
  left: "nothing: the run ended first",
};

export function schemaText(schema: SchemaSource): string {
  switch (schema.kind) {
    case "any":
      return "no schema: any JSON object";
    case "schema":
      return shownInLine(schema.name);
    case "unresolved":
      return `${shownInLine(schema.name)}, which could not be resolved: ${shownInLine(schema.why, 400)}`;
  }
}

export function whyMoveText(move: NonNullable<Followed["move"]>): string {
  switch (move.kind) {
    case "goto":
      return shownInLine(move.step, 80);
    case "fork":
      return `${move.steps.map((id) => shownInLine(id, 60)).join(", ")} side by side, then ${move.join ?? "end"}`;
    case "end":
      return move.outcome === "completed" ? "end" : `end in failure: ${shownInLine(move.code, 60)}`;
  }
}

export function choiceText(
  choice: Followed["choices"][number],
  line: (value: Extract<typeof choice, { kind: "jump" }>["found"], longest: number) => string,
): string {
  switch (choice.kind) {
    case "switch": {
      const found = choice.value === null ? "has no value" : `is "${line(choice.value, 80)}"`;
      return `${choice.on.join(".")} ${found}${choice.otherwise ? ", which no case names" : ""}`;
    }
    case "jump": {
      const found = choice.found === null ? "names no step" : `names ${line(choice.found, 80)}`;
      return `${choice.field.join(".")} ${found}`;
    }
    case "times":
      return choice.taken < choice.max
        ? `taken ${count(choice.taken, "time")} before, of ${choice.max} allowed`
        : `all ${count(choice.max, "time")} that it may be taken are used up`;
  }
}

/** The rule, then its parts. */
export function standRows({ rule, standing, done, parts }: NonNullable<Followed["stop"]>): readonly string[] {
  const stands = { over: "the run is over", going: "the run goes on", look: "to be looked up" };
  return [`${ruleText(rule, done)}: ${stands[standing.kind]}`, ...parts.flatMap(standRows)];
}

function ruleText(rule: StopRule, done: number | null): string {
  switch (rule.kind) {
    case "end":
      return "an edge to the end";
    case "visits":
      return `${done} of ${count(rule.count, "iteration")}`;
    case "checks":
      return `${done} of ${count(rule.count, "status check")}`;
    case "keyword":
      return `the keyword ${shownInLine(rule.text, 80)}`;
    case "signal":
      return `the signal ${shownInLine(rule.type, 80)}`;
    case "state":
      return `the state of the ${rule.resource.kind}`;
    case "module":
      return `what ${shownInLine(rule.module.file, 80)} says`;
    case "all":
      return "all of these";
    case "any":
      return "one of these";
  }
}

export function commandText(command: StepCommand): string {
  switch (command.type) {
    case "ask":
      return `turn ${command.turn} is asked${command.attempt === 1 ? "" : `, attempt ${command.attempt}`}`;
    case "call":
      return `${command.calls.map(({ name }) => shownInLine(name, 40)).join(", ")} called`;
    case "check":
      return `${command.checks.map((name) => shownInLine(name, 60)).join(", ")} run`;
    case "look":
      return "what the stop rule asks for is looked up";
    case "hook":
      return `the hook ${command.hook} is run`;
    case "question":
      return "a person is asked";
    case "wait":
      return `waiting for ${duration(command.ms)}`;
  }
}

/** Why something other than the ordinary prompt was said; null: it was that prompt, or results of tools. */
export function becauseText(say: Say): string | null {
  switch (say.kind) {
    case "failed-check": {
      const where = say.guard === null ? "the stop rule" : shownInLine(say.guard, 80);
      return `check ${shownInLine(say.result.name, 80)} of ${where} failed`;
    }
    case "repair":
      return "the answer before could not be used";
    case "steer":
      return `${shownInLine(say.tool, 60)} was not called`;
    case "retry":
      return "the step has to be repeated";
    case "budget":
      return "a limit is near";
    case "results":
    case "prompt":
      return null;
  }
}

/** How an answer came to its label. `said`: what stands in the field that decides, on one line; null: nothing. */
export function namingText(
  by: NonNullable<Why["moments"][number]["read"]>["by"],
  field: string,
  said: string | null,
): string {
  const found = said === null ? "holds nothing" : `says ${said}`;
  switch (by) {
    case "word":
      return `as ${field} says`;
    case "alias":
      return `${field} ${found}, another word for it`;
    case "fallback":
      return `the fallback, since ${field} ${found}, which is not allowed`;
    case "miss":
      return "the label for an unusable answer";
    case "const":
    case null:
      return "the only possible label";
  }
}
