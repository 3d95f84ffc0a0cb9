/** Reads `.agent/NAME/tests/settings.yaml` (`.yml`, `.json`). Pure over `files`; never throws. */
import type { FileTree } from "../flow/files.ts";
import { movesOf } from "../flow/branches.ts";
import { readLeg } from "../flow/expectation.ts";
import type { Flow, Step } from "../flow/flow.ts";
import { own, type Json } from "../flow/json.ts";
import { escapeSegment } from "../flow/json-pointer.ts";
import type { Problem } from "../flow/problem.ts";
import { HEARD_PARTS, type HeardPart } from "../flow/flow-test.ts";
import { DRIFT_RULES, NO_SETTINGS, type DriftRule, type TestSettings } from "../flow/test-settings.ts";
import { patternFault } from "../flow/text/pattern.ts";
import { didYouMean } from "../flow/text/suggest.ts";
import { toProblem, type Code } from "./codes.ts";
import type { Finding } from "./rules/rule.ts";
import type { Document } from "./text/document.ts";
import { LEG_FORMS, legFaults } from "./test-expect.ts";
import { testDocument } from "./test-reading.ts";
import { joinPath } from "./text/paths.ts";
import { readShape } from "./text/shape.ts";
import { TEST_SETTINGS } from "./text/tests-shape.ts";

export type SettingsRead = { readonly settings: TestSettings; readonly problems: readonly Problem[] };

export function readTestSettings(flow: Flow, files: FileTree): SettingsRead {
  const folder = joinPath(".agent", `${flow.agent}/tests`);
  const names = files.list(folder) ?? [];
  const name = ["settings.yaml", "settings.yml", "settings.json"].find((one) => names.includes(one));
  if (name === undefined) return { settings: NO_SETTINGS, problems: [] };
  const findings: Finding[] = [];
  const document = testDocument(files, `${folder}/${name}`, findings);
  const settings = document === null ? NO_SETTINGS : settingsIn(flow, document, findings);
  return { settings, problems: findings.map((finding) => toProblem(finding, null)) };
}

function settingsIn(flow: Flow, document: Document, findings: Finding[]): TestSettings {
  const report = (code: Code, pointer: string, message: string, fix: string) =>
    findings.push({ code, document, pointer, message, fix });
  const source = readShape(TEST_SETTINGS, document.value, "", {
    document,
    code: "TEST-SETTING",
    unknown: "TEST-SETTING",
    findings,
  });
  if (source === undefined) return { ...NO_SETTINGS, file: document.file };
  const knownStep = (id: string, pointer: string) => {
    if (Object.hasOwn(flow.steps, id)) return;
    const steps = Object.keys(flow.steps);
    const message = `There is no step "${id}" in the flow.${didYouMean(id, steps)}`;
    report("TEST-SETTING", pointer, message, `Use one of: ${steps.slice(0, 20).join(", ")}.`);
  };
  for (const [kind, least] of Object.entries(source.coverage))
    if (least !== undefined && least > 100)
      report(
        "TEST-SETTING",
        `/coverage/${kind}`,
        `coverage.${kind} is a percentage, and ${least} is more than 100.`,
        "Write a number from 0 to 100.",
      );
  for (const [step, needed] of source.before) {
    const pointer = `/before/${escapeSegment(step)}`;
    knownStep(step, pointer);
    for (const id of textsOf(needed)) knownStep(id, pointer);
    if (textsOf(needed).length === 0)
      report(
        "TEST-SETTING",
        pointer,
        `before.${step} does not name a step.`,
        "Name a step, or a list of steps.",
      );
  }
  const given = (value: { readonly [key: string]: number | undefined }) =>
    Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined));
  return {
    file: document.file,
    coverage: given(source.coverage),
    ignore: source.ignore.map(({ id, why }, at) => ({
      id: id ?? "",
      why: why ?? "",
      line: document.place(`/ignore/${at}`).line,
    })),
    before: Object.fromEntries([...source.before].map(([step, needed]) => [step, textsOf(needed)])),
    never: source.never.flatMap((item, at) => {
      const path = textsOf(item);
      const pointer = `/never/${at}`;
      const items: readonly Json[] = Array.isArray(item) ? item : [item];
      if (items.every((one) => one === "..."))
        report(
          "TEST-SETTING",
          pointer,
          `An item of never names no decision, so it ${items.length === 0 ? "forbids nothing" : "forbids every run"}.`,
          'Write it as in expect.path: "STEP LABEL -> STEP", or a list of these.',
        );
      for (const one of items)
        neverLeg(flow, one, (message, fix) => report("TEST-SETTING", pointer, message, fix));
      return [{ path, line: document.place(pointer).line }];
    }),
    within: given(source.within),
    lines: Object.fromEntries([
      ...[...source.before.keys()].map((step) => [
        `before ${step}`,
        document.place(`/before/${escapeSegment(step)}`).line,
      ]),
      ...source.never.map((item, at) => [
        `never ${textsOf(item).join(", ")}`,
        document.place(`/never/${at}`).line,
      ]),
      ...Object.keys(given(source.within)).map((key) => [
        `within ${key}`,
        document.place(`/within/${key}`).line,
      ]),
    ]) as { readonly [rule: string]: number },
    drift: driftIn(source.drift, (part, message, fix) =>
      report("TEST-SETTING", `/drift/${escapeSegment(part)}`, message, fix),
    ),
  };
}

function driftIn(
  written: ReadonlyMap<string, string | undefined>,
  refuse: (part: string, message: string, fix: string) => void,
): TestSettings["drift"] {
  const rules: { [part in HeardPart]?: DriftRule } = {};
  for (const [part, rule] of written) {
    const known = HEARD_PARTS.find((one) => one === part);
    const found = DRIFT_RULES.find((one) => one === rule);
    if (known === undefined)
      refuse(
        part,
        `"${part}" is not a part of a request.${didYouMean(part, HEARD_PARTS)}`,
        `Use one of: ${HEARD_PARTS.join(", ")}.`,
      );
    else if (found === undefined)
      refuse(part, `"${rule}" is not a rule for drift.`, `Use one of: ${DRIFT_RULES.join(", ")}.`);
    else rules[known] = found;
  }
  return rules;
}

/** What cannot happen would never be missed. */
function neverLeg(flow: Flow, written: Json, refuse: (message: string, fix: string) => void): void {
  if (written === "...") return;
  if (typeof written === "string" && written.startsWith("re:")) {
    const why = patternFault(written.slice(3));
    if (why !== null)
      refuse(`The pattern "${written}" of never cannot be used: ${why}.`, "Correct the pattern.");
    return;
  }
  const { form, unknown } = legFaults(flow, written);
  if (form !== null) refuse(`never: ${form}`, LEG_FORMS);
  const steps = Object.keys(flow.steps);
  for (const id of unknown)
    refuse(
      `never: there is no step "${id}" in the flow.${didYouMean(id, steps)}`,
      `Use one of: ${steps.slice(0, 20).join(", ")}.`,
    );
  const { step: id = "", label, pattern } = (typeof written === "string" ? readLeg(written) : null) ?? {};
  const step = own(flow.steps, id);
  if (step === undefined) return;
  const labels = labelsOf(step);
  if (label !== undefined && !labels.includes(label))
    refuse(
      `never: step "${step.id}" cannot say "${label}".${didYouMean(label, labels)}`,
      `Use one of: ${labels.join(", ")}.`,
    );
  const patterns = Object.values(flow.checks).map((check) => check.pattern);
  if (pattern !== undefined && pattern !== "*" && !patterns.includes(pattern))
    refuse(
      `never: no check fails with the pattern "${pattern}".${didYouMean(pattern, patterns)}`,
      `Use one of: *, ${patterns.join(", ")}.`,
    );
}

/** Every label that the path of a run can show for the step. */
function labelsOf({ edges, decide, answer, stage }: Step): readonly string[] {
  const chosen =
    decide.by === "const"
      ? [decide.label]
      : [...decide.allow, ...decide.always, ...Object.values(decide.alias), decide.fallback ?? []].flat();
  const missed = answer.kind === "object" && answer.miss.kind === "label" ? [answer.miss.label] : [];
  const renamed = movesOf({ edges }).flatMap((move) =>
    "as" in move && move.as !== undefined ? [move.as] : [],
  );
  const life = stage === undefined ? [] : ["ok", "skip", "fail", "cap"];
  return [...new Set([...Object.keys(edges), ...chosen, ...missed, ...renamed, ...life, "-"])];
}

function textsOf(value: Json): readonly string[] {
  if (typeof value === "string") return [value];
  return Array.isArray(value)
    ? (value as readonly Json[]).filter((one): one is string => typeof one === "string")
    : [];
}
