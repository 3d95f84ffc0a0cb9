/** What a chain says of moves, choices, stop rules and commands, each in one line. */
import type { StepCommand } from "../../flow/command.ts";
import type { SchemaSource, StopRule } from "../../flow/flow.ts";
import type { Why } from "../../tell/why.ts";
import { count, duration, shownInLine } from "./text.ts";

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
