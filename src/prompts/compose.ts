/** The words that go to the model: step prompts, failure editions, and the short texts of the contract. */
import { cached } from "../flow/cached.ts";
import type { CheckResult } from "../flow/event.ts";
import type { Say } from "../flow/command.ts";
import type { Flow, Prompt, Step } from "../flow/flow.ts";
import { own } from "../flow/json.ts";
import type { Compose, Composed, Scene } from "../flow/scene.ts";
import { renderRetry } from "./retry.ts";
import { renderStage } from "./stage.ts";
import {
  INPUT_TEXT,
  nameIn,
  parseLenient,
  parseTemplate,
  renderTemplate,
  templateNames,
  type Template,
} from "../flow/text/template.ts";
import { explainMissing, variable } from "./variables.ts";

const fixed = new WeakMap<Step, Composed>();

export const composer: Compose = {
  system: cached(systemText),
  ownSystem: renderStage,
  say: compose,
};

function compose(flow: Flow, step: Step, say: Exclude<Say, { kind: "results" }>, scene: Scene): Composed {
  switch (say.kind) {
    case "prompt":
      return fixed.get(step) ?? stepPrompt(flow, step, scene);
    case "failed-check":
      return withContract({ kind: "text", text: failureText(flow, step, say.guard, say.result) }, step);
    case "repair":
      return { kind: "text", text: repairText(step, say.errors) };
    case "budget":
      return { kind: "text", text: say.text };
    case "retry":
      return { kind: "text", text: say.reason };
    case "steer":
      return { kind: "text", text: `Call \`${say.tool}\` when the stage is finished.` };
  }
}

/** What reads nothing says the same in every visit. */
function stepPrompt(flow: Flow, step: Step, scene: Scene): Composed {
  const { prompt } = step;
  const composed = withContract(renderPrompt(flow, step, scene), step);
  if (prompt.syntax === "stage" || prompt.variables.length > 0) return composed;
  if (composed.kind === "text" && templateOf(prompt).length === 1) fixed.set(step, composed);
  return composed;
}

function renderPrompt(flow: Flow, step: Step, scene: Scene): Composed {
  const { prompt } = step;
  if (prompt.syntax === "stage") return { kind: "text", text: "Begin." };
  if (prompt.file === null) {
    const why = `No prompt file for step "${step.id}". Tried:\n${prompt.tried.map((path) => `  ${path}`).join("\n")}`;
    return { kind: "unaskable", code: "PR-C3L-004", why };
  }
  const sections = renderSections(flow, step, scene);
  if (sections.kind === "unaskable") return sections;
  const value = (name: string) => variable(flow, step, scene, name) ?? own(sections.texts, name) ?? null;
  for (const name of prompt.variables) {
    const found = value(name);
    // Before the first visit there is nothing to sum up, which is not an error.
    if (found !== null && (found !== "" || name === "previous_summary")) continue;
    return undeclared(flow, step, name);
  }
  const rendered =
    prompt.syntax === "lenient"
      ? renderTemplate(templateOf(prompt), (written) => value(nameIn(written)) ?? written)
      : renderTemplate(templateOf(prompt), value);
  if (rendered.kind === "text") return rendered;
  const why = `${prompt.file} of step "${step.id}" reads {uv-${rendered.name}}, but ${explainMissing(flow, step, rendered.name)}.`;
  return { kind: "unaskable", code: "PR-RESOLVE-005", why };
}

function undeclared(flow: Flow, step: Step, name: string): Composed {
  const declares = name === INPUT_TEXT ? "needs the text of stdin" : `declares {uv-${name}}`;
  const why = `The prompt of step "${step.id}" ${declares}, but ${explainMissing(flow, step, name)}.`;
  return { kind: "unaskable", code: "PR-RESOLVE-003", why };
}

type Sections = { readonly kind: "texts"; readonly texts: { readonly [name: string]: string } };

/** The sections that the prompt takes in, each rendered as a template of its own with the values of this step. */
function renderSections(flow: Flow, step: Step, scene: Scene): Sections | (Composed & { kind: "unaskable" }) {
  if (flow.sections === undefined) return NO_SECTIONS;
  const texts: [name: string, text: string][] = [];
  for (const name of templateNames(templateOf(step.prompt))) {
    const section = own(flow.sections, name);
    if (section === undefined) continue;
    const values = section.builtIn?.values ?? {};
    const rendered = renderTemplate(
      templateOf(section),
      (inner) => own(values, inner) ?? variable(flow, step, scene, inner),
    );
    if (rendered.kind === "missing") {
      const why = `The prompt of step "${step.id}" takes in ${section.file}, which reads {uv-${rendered.name}}, but ${explainMissing(flow, step, rendered.name)}.`;
      return { kind: "unaskable", code: "PR-RESOLVE-005", why };
    }
    texts.push([name, rendered.text]);
  }
  return { kind: "texts", texts: Object.fromEntries(texts) };
}

const NO_SECTIONS: Sections = { kind: "texts", texts: {} };

/** In the system prompt an unknown placeholder stays as it is. */
function systemText(flow: Flow): string {
  const rendered = renderTemplate(templateOf(flow.system), (name) => {
    if (name === "agent_name") return flow.agent;
    if (name === "verdict_criteria") return flow.criteria;
    return own(flow.constants, name) ?? (name === "input_text" ? "{input_text}" : `{uv-${name}}`);
  });
  return rendered.kind === "text" ? rendered.text : "";
}

const templateOf = cached(({ text, syntax }: Prompt): Template =>
  syntax === "lenient" ? parseLenient(text) : parseTemplate(text),
);

function withContract(composed: Composed, step: Step): Composed {
  const contract = contractOf(step);
  return composed.kind === "text" && contract !== ""
    ? { kind: "text", text: `${composed.text}\n\n${contract}` }
    : composed;
}

const contractOf = cached(contractText);

function contractText({ answer }: Step): string {
  if (answer.kind === "text") return "";
  if (answer.channel.kind === "tool")
    return `When you are done, call the tool \`${answer.channel.name}\` with your result.`;
  const schema =
    answer.schema.kind === "schema"
      ? ` that fits this JSON Schema:\n\n${JSON.stringify(answer.schema.schema)}`
      : ".";
  return `When you are done, answer with exactly one JSON object${schema}`;
}

function repairText(step: Step, errors: readonly string[]): string {
  const list = errors.slice(0, 20).map((error) => `- ${error}`);
  return [`Your last answer cannot be used:`, ...list, "", contractText(step) || "Answer again."].join("\n");
}

/** The edition written for this failure, else a plain account of it. Whatever is written, the failure is named. */
function failureText(flow: Flow, step: Step, guard: string | null, result: CheckResult): string {
  const edition = editionOf(flow, guard, result.name);
  if (edition !== undefined && edition.file !== null) return renderRetry(edition.text, result.params);
  const params = Object.entries(result.params)
    .filter(([name]) => !["stdout", "stderr", "summary"].includes(name))
    .map(([name, value]) => `- ${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`);
  return [
    `The check "${result.name}" did not pass (${result.pattern}).`,
    "",
    result.summary,
    ...(params.length === 0 ? [] : ["", ...params]),
    "",
    step.stage === undefined
      ? "Mend the cause, then close again."
      : "Mend the cause, then complete the stage again.",
  ].join("\n");
}

/** The prompt that tells of this failure; `guard` null: a check of the whole flow. */
export function editionOf(flow: Flow, guard: string | null, check: string): Prompt | undefined {
  const checks = (guard === null ? flow.stopGuard : own(flow.steps, guard)?.guard)?.checks;
  return checks?.find((other) => other.check === check)?.edition;
}
