/** Findings as SARIF 2.1.0, the form in which code hosts and editors take them. */
import type { Files } from "../../flow/files.ts";
import type { Problem } from "../../flow/problem.ts";
import { CODES, type Rule } from "../../load/codes.ts";
import { escapeSegment } from "../../flow/json-pointer.ts";
import { scanJson, type Scan } from "../../flow/text/places.ts";

const SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json";

export function toSarif(problems: readonly Problem[], files: Files, version: string) {
  const codes = [...new Set(problems.map(({ code }) => code))];
  const scans = new Map<string, Scan | null>();
  const scanOf = (file: string): Scan | null => {
    const known = scans.get(file);
    if (known !== undefined) return known;
    const read = files.read(file);
    const scan = read.kind === "text" && file.endsWith(".json") ? scanJson(read.text) : null;
    scans.set(file, scan);
    return scan;
  };
  return {
    $schema: SCHEMA,
    version: "2.1.0",
    runs: [
      {
        tool: { driver: { name: "lockstep", version, rules: codes.map(toRule) } },
        columnKind: "utf16CodeUnits",
        results: problems.map((problem) => toResult(problem, codes, scanOf(problem.file))),
      },
    ],
  };
}

function toRule(code: string) {
  const rules: { readonly [code: string]: Rule } = CODES;
  const rule = Object.hasOwn(rules, code) ? rules[code] : undefined;
  return {
    id: code,
    shortDescription: { text: rule?.title ?? code },
    ...(rule && {
      fullDescription: { text: rule.why },
      defaultConfiguration: { level: rule.severity },
    }),
  };
}

function toResult(problem: Problem, codes: readonly string[], scan: Scan | null) {
  const { code, severity, file, line, column, pointer, step, message, why, fix, witness } = problem;
  return {
    ruleId: code,
    ruleIndex: codes.indexOf(code),
    level: severity,
    message: { text: `${message}\nWhy: ${why}\nFix: ${fix}` },
    locations: [
      {
        physicalLocation: physical(file, line, column),
        ...(step !== null && { logicalLocations: [{ name: step, fullyQualifiedName: step, kind: "step" }] }),
      },
    ],
    ...(witness.length > 0 && { codeFlows: [flowOf(file, witness, scan)] }),
    properties: { pointer, fix, why, step, witness },
  };
}

/** Each step of the way at its entry in the registry, when the finding is about that file. */
function flowOf(file: string, witness: readonly string[], scan: Scan | null) {
  return {
    message: { text: witness.join(" → ") },
    threadFlows: [
      {
        locations: witness.map((step) => {
          const place = scan?.place(`/steps/${escapeSegment(step)}`) ?? { line: 1, column: 1 };
          return {
            location: {
              physicalLocation: physical(file, place.line, place.column),
              logicalLocations: [{ name: step, fullyQualifiedName: step, kind: "step" }],
              message: { text: step },
            },
          };
        }),
      },
    ],
  };
}

function physical(file: string, line: number, column: number) {
  const uri = file.split("/").map(encodeURIComponent).join("/");
  return {
    artifactLocation: { uri, uriBaseId: "%SRCROOT%" },
    region: { startLine: line, startColumn: column },
  };
}
