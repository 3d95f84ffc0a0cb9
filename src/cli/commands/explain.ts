/** `lockstep explain NAME [STEP]`: what holds, and where it was said. */
import { budgetLine } from "../../tell/budget.ts";
import type { Check, Guard, SuccessRule } from "../../flow/flow.ts";
import type { Json } from "../../flow/json.ts";
import { outlineOf, type Outline } from "../../tell/outline.ts";
import type { ValueOrigin } from "../../load/index.ts";
import type { AgentExplained } from "../../tell/explain.ts";
import type { StageExplained, StepExplained } from "../../tell/explain-step.ts";
import { explainAgent, explainStep } from "../../run/explain.ts";
import { loadNamed } from "../agent.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { tellFindings } from "./check.ts";
import { conditionText, KIND_WORDS, targetText } from "../graph/graph-words.ts";
import { countProblems } from "../text/problems.ts";
import { count, duration, shown, shownInLine, table, type Paint } from "../text/text.ts";

export async function explain(call: CallOf<"explain">): Promise<number> {
  const [name = "", id] = call.words;
  const { screen } = call;
  const loaded = await loadNamed(name, call.cwd);
  const { configFile, readConfig } = await import("../../run/world/config.ts");
  const ofUser = { limits: readConfig(call.host.env).limits, file: configFile(call.host.env) };
  const agent = explainAgent(loaded, ofUser);
  if (agent === null || loaded.flow === null) return tellFindings(call, [loaded], name);
  if (call.flags.boundary)
    return await (await import("./boundary.ts")).explainBoundary(call, loaded.flow, id);
  if (id === undefined) {
    const { heldHere, heldText } = await import("./boundary.ts");
    const sandbox = await heldHere(call, loaded.flow);
    if (call.flags.json) screen.document({ ...agent, sandbox });
    else {
      const { moneyLine } = await import("../text/money.ts");
      const here = { money: moneyLine(loaded.flow, call.host.env), commands: heldText(sandbox) };
      screen.print(agentText(agent, outlineOf(loaded.flow), screen.out, here));
    }
    return 0;
  }
  const step = explainStep(loaded, id);
  if (step === null) {
    const candidates = Object.keys(loaded.flow.steps);
    throw new UsageError(`${name} has no step "${id}".`, { word: id, candidates });
  }
  if (call.flags.json) screen.document(step);
  else screen.print(stepText(step, screen.out));
  return 0;
}

/** What holds on this machine besides. */
type Here = { readonly money: string | null; readonly commands: string | null };

export function agentText(
  agent: AgentExplained,
  { edges }: Outline,
  paint: Paint,
  { money, commands }: Here = { money: null, commands: null },
): string {
  const leaving = Map.groupBy(edges, ({ from }) => from);
  const { parameters, settings, steps, system, entry } = agent;
  const head = [agent.agent, ...(agent.title === agent.agent ? [] : [agent.title]), `${agent.dialect} form`];
  return [
    paint("bold", head.map((part) => shownInLine(part, 80)).join(" · ")),
    ...(agent.description === "" ? [] : [shownInLine(agent.description, 400)]),
    "",
    ...facts(paint, [
      ["begins at", `${shownInLine(entry.value)}${dimmed(paint, entry.origin)}`],
      ["ends", endText(agent.ends)],
      ["steps in", agent.registry],
      ...(agent.dialect === "stage"
        ? []
        : promptFacts(
            "system",
            system,
            `none at ${system.tried.join(", ")}: the agent's name and description are used instead`,
          )),
      ...(agent.hooks === null
        ? []
        : [["hooks", `${shownInLine(agent.hooks)}: this code may change where a stage leads`] as const]),
      ["budget", budgetLine(agent.budget)],
      ...(money === null ? [] : [["money", money] as const]),
      ...(commands === null ? [] : [["commands", commands] as const]),
      ["digest", agent.digest.slice(0, 12)],
      ["findings", countProblems(agent.problems)],
    ]),
    ...section(
      paint,
      "parameters",
      ["FLAG", "TYPE", "VALUE", "ABOUT", "FROM"],
      parameters.map((one) => [
        one.flag,
        one.type,
        one.default === undefined
          ? one.required
            ? "required"
            : "optional"
          : `default ${plain(one.default)}`,
        shownInLine(one.description, 60),
        originText(one.origin),
      ]),
    ),
    ...section(
      paint,
      commands === null
        ? "settings"
        : 'settings as declared (the line "commands" above shows what applies on this machine)',
      ["KEY", "VALUE", "FROM"],
      settings.map(({ key, value, origin }) => [
        key,
        value === null ? "-" : plain(value),
        originText(origin),
      ]),
    ),
    ...section(
      paint,
      "steps",
      ["STEP", "KIND", "LEADS TO", "CHECKS", "FINDINGS"],
      steps.map((step) => {
        const targets = (leaving.get(step.id) ?? []).filter((edge) => !edge.isTacit);
        const leads = [...new Set(targets.map(({ to }) => (to.kind === "step" ? to.step : targetText(to))))];
        const aside = step.aside === null ? "" : ` about ${step.aside}`;
        return [
          `${step.isEntry ? "▶ " : ""}${shownInLine(step.id, 60)}`,
          `${KIND_WORDS[step.kind]}${aside}${step.isReached ? "" : ", never reached"}`,
          leads.map((to) => (to === step.id ? "itself" : shownInLine(to, 60))).join(", ") || "-",
          step.checks.map((check) => shownInLine(check, 40)).join(", ") || "-",
          step.findings.length === 0 ? "-" : countProblems(step.findings),
        ];
      }),
    ),
  ].join("\n");
}

const INTERRUPTED_WORDS = {
  retry: "done again",
  ask: "a person is asked",
  fail: "the run fails",
} as const;

export function stepText(step: StepExplained, paint: Paint): string {
  const { model, mode, tools, gate, guard, limits, ifInterrupted, problems, prompt, stage } = step;
  const head = [
    step.agent,
    step.step,
    ...(step.name === step.step ? [] : [step.name]),
    KIND_WORDS[step.kind],
  ];
  const files: readonly Fact[] =
    prompt === null
      ? []
      : [
          ...promptFacts("prompt", prompt, paint("red", "there is none")),
          ...prompt.tried
            .filter((path) => path !== prompt.file)
            .map((path): Fact => ["", `not at ${shownInLine(path)}`]),
        ];
  return [
    paint("bold", head.map((part) => shownInLine(part, 80)).join(" · ")),
    "",
    ...facts(paint, [
      ["written", originText(step.origin)],
      ["way", step.way.map((id) => shownInLine(id, 60)).join(" → ") || paint("yellow", "none leads here")],
      ...(step.aside === null ? [] : [["asks about", shownInLine(step.aside)] as const]),
      ...(step.by.kind === "model"
        ? []
        : [["command", shown([step.by.command, ...step.by.args].join(" "))] as const]),
      ...files,
      ...(step.by.kind === "model" ? modelFacts(step, paint) : []),
      ["limits", limitText(limits)],
      ...limits.spending.map(
        ({ key, value, origin }) => ["at most", `${key} ${plain(value)}${dimmed(paint, origin)}`] as const,
      ),
      ["if cut off", `${INTERRUPTED_WORDS[ifInterrupted.value]}${dimmed(paint, ifInterrupted.origin)}`],
      ...gateFacts(gate, paint),
      ...(stage === null ? [] : stageFacts(stage)),
      ["hands on", handedText(stage?.output ?? step.handoff) || (stage === null ? "nothing" : "its result")],
    ]),
    ...section(
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
    ...section(
      paint,
      "variables",
      ["NAME", "DECLARED", "IN PROMPT", "FROM"],
      step.variables.map(({ name, isDeclared, isUsed, supplier }) => [
        shownInLine(name, 60),
        tick(isDeclared),
        tick(isUsed),
        supplier === null ? paint("red", "nobody") : supplierText(supplier),
      ]),
    ),
    ...section(
      paint,
      "placeholders",
      ["WRITTEN", "FROM"],
      (stage?.placeholders ?? []).map(({ written, supplier }) => [
        shownInLine(written, 60),
        supplier === null ? paint("red", "nobody") : supplierText(supplier),
      ]),
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

export type Fact = readonly [name: string, text: string];

/** A file is named; words that stand in no file are shown. */
function promptFacts(
  title: string,
  { file, builtIn }: AgentExplained["system"],
  otherwise: string,
): readonly Fact[] {
  if (builtIn === null) return [[title, file ?? otherwise]];
  return [
    [title, `${shownInLine(file ?? "")}, because there is no file:`],
    ...builtIn.split("\n").map((line): Fact => ["", line === "" ? "" : `│ ${shownInLine(line, 160)}`]),
  ];
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

export function facts(paint: Paint, rows: readonly Fact[]): readonly string[] {
  return rows.map(([name, text]) => `  ${paint("dim", name.padEnd(10))}  ${text}`);
}

function section(
  paint: Paint,
  title: string,
  head: readonly string[],
  rows: readonly (readonly string[])[],
): readonly string[] {
  if (rows.length === 0) return [];
  const [first = "", ...lines] = table([head, ...rows]);
  return [
    "",
    paint("bold", title),
    paint("dim", `  ${first.trimEnd()}`),
    ...lines.map((line) => `  ${line.trimEnd()}`),
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
      return `the constant ${plain(supplier.value)}`;
    case "handoff":
      return `${supplier.key}, handed on by ${shownInLine(supplier.step, 60)}`;
    case "argument":
      return "an argument, if it is given";
  }
}

function endText({ criteria, checks }: AgentExplained["ends"]): string {
  const before = checks.length === 0 ? "" : ` Before that must pass: ${checks.join(", ")}.`;
  return shownInLine(criteria + before, 400);
}

function limitText({ answers, repairs, responses }: StepExplained["limits"]): string {
  if (responses === 0) return "no model is called";
  const repaired = repairs === 0 ? "" : ` (${count(repairs, "repair")} included)`;
  return `${count(answers, "answer")}${repaired} and ${count(responses, "response")} in a visit`;
}

/** `.agent/fixer/agent.json:21`, or `default`. */
function originText(origin: ValueOrigin): string {
  switch (origin.kind) {
    case "default":
      return "default";
    case "written":
      return `${shownInLine(origin.file)}:${origin.line}`;
    case "overruled":
      return `fixed; ${shownInLine(origin.file)}:${origin.line} has no effect`;
  }
}

function dimmed(paint: Paint, origin: ValueOrigin): string {
  return paint("dim", `  ${originText(origin)}`);
}

function plain(value: Json): string {
  return shownInLine(typeof value === "string" ? value : JSON.stringify(value), 80);
}

function tick(yes: boolean): string {
  return yes ? "✓" : "-";
}

function ordinal(number: number): string {
  const ending =
    number % 100 > 10 && number % 100 < 14 ? "th" : (["th", "st", "nd", "rd"][number % 10] ?? "th");
  return `${number}${ending}`;
}
