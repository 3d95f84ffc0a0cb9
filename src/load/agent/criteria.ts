/** The completion criterion as one sentence for the model. */
import type { FileState, Resource, StopRule } from "../../flow/flow.ts";
import type { Json } from "../../flow/json.ts";
import type { ClosureAction } from "../../flow/settings.ts";

/** The model is not asked to close an issue that is to stay open. */
export function criteriaOf(stop: StopRule, action: ClosureAction): string {
  return `The work is done when ${clause(stop, action)}.`;
}

function clause(rule: StopRule, action: ClosureAction): string {
  switch (rule.kind) {
    case "end":
      return "the steps have led to a closing step and its checks have passed";
    case "visits":
      return rule.count === 1 ? "one iteration is over" : `${rule.count} iterations are over`;
    case "checks":
      return rule.count === 1 ? "one status check is over" : `${rule.count} status checks are over`;
    case "keyword":
      return `it is verified and you have written ${rule.text}`;
    case "signal":
      return `you have given a fenced code block of the type ${rule.type} that holds ${fieldWords(rule.fields)}`;
    case "state":
      return resourceWords(rule.resource, action);
    case "module":
      return "the agent's own rule says so";
    case "all":
    case "any": {
      const joined = rule.kind === "all" ? "all of these hold" : "one of these holds";
      return `${joined}: ${rule.of.map((part) => ("of" in part ? `(${clause(part, action)})` : clause(part, action))).join("; ")}`;
    }
  }
}

function fieldWords(fields: Extract<StopRule, { kind: "signal" }>["fields"]): string {
  if (fields.length === 0) return "a JSON object";
  const words = fields.map(({ name, value }) =>
    value === undefined ? name : `${name} = ${JSON.stringify(value)}`,
  );
  return `a JSON object with ${words.length === 1 ? "the field" : "the fields"} ${words.join(", ")}`;
}

function resourceWords(resource: Resource, action: ClosureAction): string {
  switch (resource.kind) {
    case "file":
      return `the file ${readable(resource.path)} ${fileWords(resource.want)}`;
    case "api":
      return `${readable(resource.url)} answers with ${JSON.stringify(resource.want)}`;
    case "github-issue":
      if (action === "label-only") return "what the issue asks for is done (leave the issue itself open)";
      return resource.want === "closed" ? "the issue is closed" : `the issue is ${stateWords(resource.want)}`;
    case "github-project":
      return `the project is ${stateWords(resource.want)}`;
  }
}

function fileWords(want: FileState): string {
  switch (want.kind) {
    case "exists":
      return "is there";
    case "absent":
      return "is gone";
    case "contains":
      return `contains ${JSON.stringify(want.text)}`;
    case "matches":
      return `holds a match for /${want.pattern}/`;
  }
}

function stateWords(want: Json): string {
  return `in the state ${typeof want === "string" ? want : JSON.stringify(want)}`;
}

/** The system prompt is the same for every run of a flow, so an argument is told by its name. */
function readable(template: string): string {
  return template.replaceAll(/\{uv-([^{}]+)\}/g, "<$1>");
}
