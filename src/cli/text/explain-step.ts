/** What holds for one step, and where it was said, as a person reads it. */
import type { Check, Guard, SuccessRule } from "../../flow/flow.ts";
import type { StageExplained, StepExplained } from "../../tell/explain-step.ts";
import { conditionText, KIND_WORDS, targetText } from "../../tell/graph-words.ts";
import { dimmed, facts, factSection, promptFacts, type Fact } from "./facts.ts";
import { originText, plainValue, supplierText } from "../../tell/origin-words.ts";
import { count, duration, shown, shownInLine, type Paint } from "./text.ts";

const INTERRUPTED_WORDS = { retry: "done again", ask: "a person is asked", fail: "the run fails" } as const;

export function stepText(step: StepExplained, paint: Paint): string {
  const { model, mode, tools, gate, guard, limits, ifInterrupted, problems, prompt, stage } = step;
  const named = step.name === step.step ? [] : [step.name];
  const head = [step.agent, step.step, ...named, KIND_WORDS[step.kind]];
  const files: readonly Fact[] =
    prompt === null
      ? []
      : [
          ...promptFacts("prompt", prompt, paint("red", "there is none")),
          ...prompt.tried
            .filter((path) => path !== prompt.file)
            .map((path): Fact => ["", `not at ${shownInLine(path)}`]),
        ];
  const from = (supplier: StepExplained["variables"][0]["supplier"]) =>
    supplier === null ? paint("red", "nobody") : supplierText(supplier);
  return [
    paint("bold", head.map((part) => shownInLine(part, 80)).join(" · ")),
    "",
    ...facts(paint, [
      ["written", originText(step.origin)],
      ["way", step.way.map((id) => shownInLine(id, 60)).join(" → ") || paint("yellow", "none leads here")],
      step.aside === null ? null : ["asks about", shownInLine(step.aside)],
      step.by.kind === "model" ? null : ["command", shown([step.by.command, ...step.by.args].join(" "))],
      ...files,
      ...(step.by.kind === "model" ? modelFacts(step, paint) : []),
      ["limits", limitText(limits)],
      ...limits.spending.map(({ key, value, origin }): Fact => {
        return ["at most", `${key} ${plainValue(value)}${dimmed(paint, origin)}`];
      }),
      ["if cut off", `${INTERRUPTED_WORDS[ifInterrupted.value]}${dimmed(paint, ifInterrupted.origin)}`],
      ...gateFacts(gate, paint),
      ...(stage === null ? [] : stageFacts(stage)),
      ["hands on", handedText(stage?.output ?? step.handoff) || (stage === null ? "nothing" : "its result")],
    ]),
    ...factSection(
      paint,
      "contract",
      ["LABEL", "SCHEMA", "ALLOWED", "LEADS TO", "FROM", ""],
      step.contract.map(({ label, schema, allowed, transition, leads, mismatches }) => [
        shownInLine(label, 40),
        schema === null
          ? "any"
          : schema.length > 0 && !schema.includes(label)
            ? schema.join(", ")
            : tick(schema.length > 0),
        tick(allowed),
        leads
          .map((edge) => {
            const condition = conditionText(edge);
            return `${targetText(edge.to)}${condition === "" ? "" : ` [${condition}]`}`;
          })
          .join("; ") || "-",
        transition === null ? "-" : originText(transition),
        mismatches.length === 0 ? "" : paint("red", `✗ ${mismatches.join("; ")}`),
      ]),
    ),
    ...factSection(
      paint,
      "variables",
      ["NAME", "DECLARED", "IN PROMPT", "FROM"],
      step.variables.map(({ name, isDeclared, isUsed, supplier }) => [
        shownInLine(name, 60),
        tick(isDeclared),
        tick(isUsed),
        from(supplier),
      ]),
    ),
    ...factSection(
      paint,
      "placeholders",
      ["WRITTEN", "FROM"],
      (stage?.placeholders ?? []).map(({ written, supplier }) => [shownInLine(written, 60), from(supplier)]),
    ),
    ...(guard === null ? [] : guardText(guard, paint)),
    ...(problems.length === 0
      ? []
      : [
          "",
          paint("bold", "findings"),
          ...problems.map(({ code, severity, message }) => {
            const sign = severity === "error" ? paint("red", "✗") : paint("yellow", "!");
            return `  ${sign} ${code} ${shownInLine(message, 160)}`;
          }),
        ]),
  ].join("\n");

  function modelFacts({ answer }: StepExplained, colour: Paint): readonly Fact[] {
    const mostly = mode.by === "kind" ? `as ${KIND_WORDS[step.kind]} steps have` : `said by the ${mode.by}`;
    return [
      ["model", `${shownInLine(model.value)}${dimmed(colour, model.origin)}`],
      [
        "mode",
        `${mode.value}${colour("dim", `  ${mostly}${mode.origin.kind === "default" ? "" : `, ${originText(mode.origin)}`}`)}`,
      ],
      ["tools", tools.offered.join(", ") || "none"],
      [
        "",
        `of ${tools.value.map((tool) => shownInLine(tool, 40)).join(", ") || "none"}${dimmed(colour, tools.origin)}`,
      ],
      [
        "answer",
        answer.kind === "text"
          ? "any text"
          : `${answer.schema === null ? "any JSON object" : `JSON that fits ${shownInLine(answer.schema)}`}; ${stage === null ? `sent back ${count(limits.repairs, "time")}` : "sent back while there are turns"}, then ${answer.miss}`,
      ],
    ];
  }
}

/** What is done when the gate of a stage does not let it begin. */
const UNRESOLVED: { readonly [policy in StageExplained["unresolved"]]: string } = {
  "retry-later": "the run waits, and can be resumed",
  fail: "the run fails",
  skip: "the stage is skipped",
  ask: "a person is asked; if no one is available, the run fails",
};

function stageFacts(stage: StageExplained): readonly Fact[] {
  const { attempts, backoff, turnCap, gate, unresolved, completionTool, inputsSchema } = stage;
  const waits =
    attempts === 1 || backoff === "none" ? "no wait between them" : `waits that grow ${backoff}ly`;
  return [
    ["retries", `${count(attempts, "attempt")} of ${count(turnCap, "turn")} each, ${waits}`],
    ["gate", gate === null ? "none" : `${shownInLine(gate, 60)} must pass first`],
    ["", `a gate that says no (${unresolved}): ${UNRESOLVED[unresolved]}`],
    ["ends with", completionTool === null ? "-" : `a call of ${completionTool}, alone in its response`],
    ...(inputsSchema === null
      ? []
      : [["is given", `results that fit ${shownInLine(inputsSchema)}`] as const]),
  ];
}

function handedText(handed: StepExplained["handoff"]): string {
  return handed.map(({ key, path }) => (key === path ? key : `${key} (${path})`)).join(", ");
}

function gateFacts(gate: StepExplained["gate"], paint: Paint): readonly Fact[] {
  if (gate === null) return [];
  const { field, fallback, aliases } = gate;
  const words = Object.entries(aliases).map(([word, label]) => `${word} = ${label}`);
  return [
    ["gate", `${shownInLine(field.value)}${dimmed(paint, field.origin)}`],
    ["", fallback === null ? "no label there ends the run" : `no label there means ${fallback}`],
    ...(words.length === 0 ? [] : [["", `other words: ${shownInLine(words.join(", "), 160)}`] as const]),
  ];
}

function plainAccount(tried: readonly string[]): string {
  const places = tried.map((path) => shownInLine(path)).join(", ");
  return places === "" ? "a built-in text" : `a built-in text, because none of these exists: ${places}`;
}

function backText(back: Guard["back"]): string {
  switch (back.kind) {
    case "goto":
      return shownInLine(back.step, 60);
    case "caller":
      return "the step that led here";
    case "again":
      return "the same conversation";
    case "onward":
      return "where the step leads";
  }
}

function guardText(guard: NonNullable<StepExplained["guard"]>, paint: Paint): readonly string[] {
  const back = backText(guard.back);
  const after = {
    retry: `a failure leads back to ${back}; the ${ordinal(guard.maxFailures)} ends the run`,
    abort: "a failure ends the run",
    skip: "a failure is recorded and ignored",
  }[guard.onFailure];
  return [
    "",
    `${paint("bold", `checks before ${shownInLine(guard.on, 40)}`)}${dimmed(paint, guard.origin)}`,
    ...guard.checks.flatMap((check) => [
      ...checkText(check, paint),
      `    described by ${check.edition ?? plainAccount(check.tried)}`,
    ]),
    `  ${after}`,
  ];
}

function checkText(check: Check, paint: Paint): readonly string[] {
  const name = shownInLine(check.name, 60);
  const otherwise = `; else ${shownInLine(check.pattern, 60)}`;
  switch (check.kind) {
    case "command":
      return [
        `  ${name}  ${paint("cyan", shownInLine(check.command, 160))}`,
        `    passes if ${successText(check.success)}, within ${duration(check.timeoutMs)}${otherwise}`,
        ...Object.entries(check.env ?? {}).map(
          ([key, value]) => `    ${shownInLine(key, 60)} = ${shownInLine(value, 80)}`,
        ),
      ];
    case "file":
      return [
        `  ${name}  ${paint("cyan", shownInLine(check.path, 160))}`,
        `    passes if it is there${otherwise}`,
      ];
    case "commit-message":
      return [`  ${name}`, `    passes if the newest commit has the form type(scope)!: subject${otherwise}`];
  }
}

function successText(rule: SuccessRule): string {
  switch (rule.kind) {
    case "empty":
      return "it prints nothing";
    case "exit":
      return `it exits with ${rule.code}`;
    case "contains":
      return `it prints ${JSON.stringify(rule.text)}`;
    case "matches":
      return `it prints something like /${shownInLine(rule.pattern, 80)}/`;
  }
}

function limitText({ answers, repairs, responses }: StepExplained["limits"]): string {
  if (responses === 0) return "no model is called";
  const repaired = repairs === 0 ? "" : ` (${count(repairs, "repair")} included)`;
  return `${count(answers, "answer")}${repaired} and ${count(responses, "response")} in a visit`;
}

function tick(yes: boolean): string {
  return yes ? "✓" : "-";
}

function ordinal(number: number): string {
  const ending =
    number % 100 > 10 && number % 100 < 14 ? "th" : (["th", "st", "nd", "rd"][number % 10] ?? "th");
  return `${number}${ending}`;
}
