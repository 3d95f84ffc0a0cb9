/** Reads `.agent/NAME/tests/settings.yaml` (`.yml`, `.json`). Pure over `files`; never throws. */
import type { FileTree } from "../flow/files.ts";
import type { Flow } from "../flow/flow.ts";
import { isObject, type Json } from "../flow/json.ts";
import { escapeSegment } from "../flow/json-pointer.ts";
import type { Problem } from "../flow/problem.ts";
import { HEARD_PARTS, type HeardPart } from "../flow/flow-test.ts";
import {
  DRIFT_RULES,
  NO_SETTINGS,
  type DriftRule,
  type NeverPath,
  type TestSettings,
} from "../flow/test-settings.ts";
import { didYouMean } from "../flow/text/suggest.ts";
import { toProblem, type Code } from "./codes.ts";
import type { Finding } from "./rules/rule.ts";
import type { Document } from "./text/document.ts";
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
    never: neverIn(document, source.never, (at) =>
      report(
        "TEST-SETTING",
        `/never/${at}`,
        "An item of never is neither the text of a path nor a list of texts.",
        'Write it as in expect.path: "STEP LABEL -> STEP", or a list of these.',
      ),
    ),
    within: given(source.within),
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

function neverIn(
  document: Document,
  items: readonly Json[],
  refuse: (at: number) => void,
): readonly NeverPath[] {
  return items.flatMap((item, at) => {
    const path = textsOf(item);
    const isWhole =
      !isObject(item) && path.length > 0 && (!Array.isArray(item) || path.length === item.length);
    if (!isWhole) refuse(at);
    return isWhole ? [{ path, line: document.place(`/never/${at}`).line }] : [];
  });
}

function textsOf(value: Json): readonly string[] {
  if (typeof value === "string") return [value];
  return Array.isArray(value)
    ? (value as readonly Json[]).filter((one): one is string => typeof one === "string")
    : [];
}
