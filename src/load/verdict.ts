/** runner.verdict: how the run is declared to end. */
import type { FlowLimits, StopRule } from "../flow/flow.ts";
import { isObject, type Json } from "../flow/json.ts";
import { VERDICT_CONFIG, type AgentSource, type VerdictConfig } from "./agent-shape.ts";
import { DEFAULTS } from "./defaults.ts";
import { readShape, type Reader } from "./shape.ts";
import type { VerdictType } from "./verdict-types.ts";

export type Verdict = {
  readonly type: VerdictType;
  readonly stop: StopRule;
  readonly limits: FlowLimits;
  readonly criteria: string;
};

/** What the verdict means for a run. A type whose own rule is not acted on still ends at an end, or at its limit. */
export function loadVerdict(agent: AgentSource, reader: Reader): Verdict {
  const { type, config } = agent.runner.verdict;
  requireSettings(type, config, "/runner/verdict/config", reader);
  checkChildren(config, "/runner/verdict/config", reader);

  const budget = type === "count:iteration" ? DEFAULTS.iterations : DEFAULTS.safetyVisits;
  const visits = config.maxIterations ?? budget;
  return {
    type,
    stop: type === "count:iteration" ? { kind: "visits", count: visits } : { kind: "end" },
    limits: { visits },
    criteria: criteriaOf(type, config, visits),
  };
}

/** The settings that each type cannot do without, as they are documented. */
const REQUIRED: { readonly [type in VerdictType]: readonly (keyof VerdictConfig)[] } = {
  "count:iteration": [],
  "count:check": ["maxChecks"],
  "poll:state": [],
  "detect:keyword": ["verdictKeyword"],
  "detect:structured": ["signalType"],
  "detect:graph": [],
  "meta:composite": ["operator", "conditions"],
  "meta:custom": ["handlerPath"],
};

/** What `poll:state` needs to know of the resource it looks at. */
const REQUIRED_BY_RESOURCE: { readonly [resource: string]: readonly (keyof VerdictConfig)[] } = {
  file: ["path", "targetState"],
  api: ["url", "targetState"],
};

const COMBINABLE: ReadonlySet<VerdictType> = new Set<VerdictType>([
  "count:iteration",
  "count:check",
  "poll:state",
  "detect:keyword",
  "detect:structured",
]);

function requireSettings(type: VerdictType, config: VerdictConfig, pointer: string, reader: Reader): void {
  const byResource =
    type === "poll:state" ? (REQUIRED_BY_RESOURCE[config.resourceType ?? "github-issue"] ?? []) : [];
  for (const key of [...REQUIRED[type], ...byResource]) {
    if (config[key] !== undefined || wasReported(`${pointer}/${key}`, reader)) continue;
    const resource = byResource.includes(key) ? ` with resourceType "${config.resourceType}"` : "";
    reader.findings.push({
      code: "AC-VALID-002",
      document: reader.document,
      pointer: `${pointer}/${key}`,
      message: `The verdict type "${type}"${resource} needs ${key} in ${pointer.slice(1).replaceAll("/", ".")}.`,
      fix: `Add "${key}" to the config of the verdict.`,
    });
  }
}

/** A setting that is there but wrong has been reported already. */
function wasReported(pointer: string, reader: Reader): boolean {
  return reader.findings.some(
    (finding) => finding.document === reader.document && finding.pointer === pointer,
  );
}

function checkChildren(config: VerdictConfig, pointer: string, reader: Reader): void {
  const written = readWritten(reader.document.value, `${pointer}/conditions`);
  for (const [index, child] of (config.conditions ?? []).entries()) {
    const at = `${pointer}/conditions/${index}`;
    // A child that could not be read was left out of the list, and then the numbers no longer agree.
    if (written.length !== config.conditions?.length || child.type === undefined) continue;
    if (!COMBINABLE.has(child.type)) {
      reader.findings.push({
        code: "AC-VERDICT-010",
        document: reader.document,
        pointer: `${at}/type`,
        message: `The verdict type "${child.type}" cannot be part of a composite.`,
        fix: `Use one of: ${[...COMBINABLE].join(", ")}.`,
      });
      continue;
    }
    const settings = readShape(VERDICT_CONFIG, child.config, `${at}/config`, reader);
    requireSettings(child.type, settings, `${at}/config`, reader);
  }
}

function readWritten(value: Json, pointer: string): readonly Json[] {
  let here: Json | undefined = value;
  for (const segment of pointer.slice(1).split("/")) here = isObject(here) ? here[segment] : undefined;
  return Array.isArray(here) ? here : [];
}

/** The sentence that tells the model when its work counts as done. */
function criteriaOf(type: VerdictType, config: VerdictConfig, visits: number): string {
  switch (type) {
    case "count:iteration":
      return visits === 1
        ? "The work is done after one iteration."
        : `The work is done after ${visits} iterations.`;
    case "count:check":
      return `The work is done after ${config.maxChecks ?? 1} status checks.`;
    case "poll:state":
      return "The work is done when the resource it is about has reached its target state.";
    case "detect:keyword":
      return `The work is done when it is verified and you write ${config.verdictKeyword ?? "the agreed keyword"}.`;
    case "detect:structured":
      return `The work is done when you give a block of the type ${config.signalType ?? "agreed on"} with all its fields.`;
    case "detect:graph":
      return "The work is done when the steps have led to a closing step and its checks have passed.";
    case "meta:composite": {
      const parts = (config.conditions ?? []).flatMap((child) =>
        child.type === undefined || !COMBINABLE.has(child.type)
          ? []
          : [childCriteria(child.type, isObject(child.config) ? child.config : {})],
      );
      const joined = config.operator === "and" ? "all of these hold" : "one of these holds";
      return `The work is done as soon as ${joined}: ${parts.join("; ")}.`;
    }
    case "meta:custom":
      return "The work is done when the agent's own rule says so.";
  }
}

function childCriteria(type: VerdictType, config: { readonly [key: string]: Json }): string {
  const say = (key: string, otherwise: string) => {
    const value = Object.hasOwn(config, key) ? config[key] : undefined;
    return typeof value === "string" || typeof value === "number" ? String(value) : otherwise;
  };
  if (type === "count:iteration")
    return `${say("maxIterations", "the agreed number of")} iterations are over`;
  if (type === "count:check") return `${say("maxChecks", "the agreed number of")} status checks are over`;
  if (type === "detect:keyword") return `you have written ${say("verdictKeyword", "the agreed keyword")}`;
  if (type === "detect:structured")
    return `you have given a block of the type ${say("signalType", "agreed on")}`;
  return "the resource has reached its target state";
}
