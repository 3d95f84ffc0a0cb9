/** runner.verdict: how the run is declared to end. */
import type { FlowLimits, Guard, StopRule } from "../../flow/flow.ts";
import { isObject, own, readPath, type Json } from "../../flow/json.ts";
import { VERDICT_CONFIG, type AgentSource, type VerdictConfig } from "./agent-shape.ts";
import { criteriaOf } from "./criteria.ts";
import { DEFAULTS } from "./defaults.ts";
import { buildModule, buildState, NEVER, report, type VerdictAt, type VerdictWorld } from "./outside.ts";
import { notActedOn } from "../rules/inert.ts";
import { readShape, type Reader } from "../text/shape.ts";
import { VERDICTS, type VerdictType } from "./verdict-types.ts";

export type DeclaredVerdict = {
  readonly type: VerdictType;
  readonly stop: StopRule;
  readonly limits: FlowLimits;
  readonly criteria: string;
};

export function loadVerdict(agent: AgentSource, reader: Reader, world: VerdictWorld): DeclaredVerdict {
  const { type, config } = agent.runner.verdict;
  const stop = buildRule(type, config, { ...world, reader, pointer: "/runner/verdict/config" });
  const visits = stop.kind === "visits" ? stop.count : (config.maxIterations ?? DEFAULTS.safetyVisits);
  const { github } = agent.runner.integrations;
  const criteria = criteriaOf(stop, github.enabled ? github.defaultClosureAction : "close");
  return { type, stop, limits: { visits }, criteria };
}

/** A count that is reached while checks fail leaves room to fix what they found. */
export function limitsWith({ stop, limits }: DeclaredVerdict, guard: Guard | undefined): FlowLimits {
  if (stop.kind !== "visits" || guard?.onFailure !== "retry") return limits;
  return { visits: stop.count + guard.maxFailures - 1 };
}

function buildRule(type: VerdictType, config: VerdictConfig, at: VerdictAt): StopRule {
  requireSettings(type, config, at);
  switch (type) {
    case "count:iteration":
      return { kind: "visits", count: config.maxIterations ?? DEFAULTS.iterations };
    case "count:check":
      return { kind: "checks", count: config.maxChecks ?? 1 };
    case "poll:state":
      return buildState(config, at);
    case "detect:keyword":
      return config.verdictKeyword === undefined ? NEVER : { kind: "keyword", text: config.verdictKeyword };
    case "detect:structured": {
      const fields = readFields(config.requiredFields, at);
      return config.signalType === undefined ? NEVER : { kind: "signal", type: config.signalType, fields };
    }
    case "detect:graph":
      return { kind: "end" };
    case "meta:composite":
      return { kind: config.operator === "and" ? "all" : "any", of: buildChildren(config, at) };
    case "meta:custom":
      return buildModule(config, at);
  }
}

/** What `poll:state` needs to know of the resource it looks at. */
const REQUIRED_BY_RESOURCE: { readonly [resource: string]: readonly (keyof VerdictConfig)[] } = {
  file: ["path", "targetState"],
  api: ["url", "targetState"],
};

function requireSettings(type: VerdictType, config: VerdictConfig, at: VerdictAt): void {
  const { pointer } = at;
  const byResource =
    type === "poll:state" ? (REQUIRED_BY_RESOURCE[config.resourceType ?? "github-issue"] ?? []) : [];
  for (const key of [...VERDICTS[type].needs, ...byResource]) {
    if (config[key] !== undefined || wasReported(`${pointer}/${key}`, at.reader)) continue;
    const resource = byResource.includes(key) ? ` with resourceType "${config.resourceType}"` : "";
    const message = `The verdict type "${type}"${resource} needs ${key} in ${nameOf(pointer)}.`;
    report(at, "AC-VALID-002", key, message, `Add "${key}" to the config of the verdict.`);
  }
}

/** A setting that is there but wrong has been reported already. */
function wasReported(pointer: string, reader: Reader): boolean {
  return reader.findings.some(
    (finding) => finding.document === reader.document && finding.pointer === pointer,
  );
}

/** A child that could not be read is left out; what is wrong with it has been reported. */
function buildChildren(config: VerdictConfig, at: VerdictAt): readonly StopRule[] {
  const written = readPath(at.reader.document.value, at.pointer.slice(1).split("/"));
  const list = isObject(written) ? own(written, "conditions") : undefined;
  const children = config.conditions ?? [];
  if (!Array.isArray(list) || list.length !== children.length) return [];
  return children.flatMap((child, index) => {
    const { type } = child;
    const here: VerdictAt = { ...at, pointer: `${at.pointer}/conditions/${index}` };
    if (type === undefined) return [];
    if (type === "detect:graph") {
      const message = `The verdict type "detect:graph" cannot be part of a composite: the end of the graph always ends the run.`;
      report(here, "AC-VERDICT-010", "type", message, "Remove it from the conditions.");
      return [];
    }
    const inside: VerdictAt = { ...here, pointer: `${here.pointer}/config` };
    const settings = readShape(VERDICT_CONFIG, child.config, inside.pointer, at.reader);
    if (type !== "count:iteration" && settings.maxIterations !== undefined) {
      const message = `maxIterations of a condition of the type "${type}" has no effect: the limit of the whole verdict applies.`;
      const fix = "Move it to runner.verdict.config.";
      const { document, findings } = at.reader;
      findings.push(notActedOn({ document, pointer: `${inside.pointer}/maxIterations` }, message, fix));
    }
    return [buildRule(type, settings, inside)];
  });
}

function readFields(
  written: Json | undefined,
  at: VerdictAt,
): Extract<StopRule, { kind: "signal" }>["fields"] {
  if (Array.isArray(written)) {
    const names = written as readonly Json[];
    const wrong = names.find((name) => typeof name !== "string");
    if (wrong !== undefined) {
      const message = `requiredFields holds ${JSON.stringify(wrong)}, but must be a list of field names.`;
      report(at, "AC-VALID-001", "requiredFields", message, "Write names, or an object of names and values.");
    }
    return names.flatMap((name) => (typeof name === "string" ? [{ name }] : []));
  }
  return isObject(written) ? Object.entries(written).map(([name, value]) => ({ name, value })) : [];
}

function nameOf(pointer: string): string {
  return pointer.slice(1).replaceAll("/", ".");
}
