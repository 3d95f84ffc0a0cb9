/** Whether a run is over by its stop rule. Pure: what has to be looked up outside was looked up before, or is asked for. */
import { cached } from "../../flow/cached.ts";
import type { StopFacts } from "../../flow/deed.ts";
import { fencesIn } from "../../flow/text/fences.ts";
import type { Flow, StopRule } from "../../flow/flow.ts";
import { isObject, own, parseJson, sameJson, type JsonObject } from "../../flow/json.ts";
import { checksDone, partsOf } from "../../flow/rules.ts";

export type Standing =
  | { readonly kind: "over"; readonly why: string }
  | { readonly kind: "going" }
  /** It depends on what is outside. */
  | { readonly kind: "look" };

export function standing(flow: Flow, facts: StopFacts): Standing {
  return judge(flow.stop, flow, facts);
}

/** The parts of a rule that only a look outside can tell, in the order in which it names them. */
export const outsideOf = cached((rule: StopRule): readonly OutsideRule[] =>
  partsOf(rule).filter((part) => part.kind === "state" || part.kind === "module"),
);

export type OutsideRule = Extract<StopRule, { kind: "state" | "module" }>;

/** Whether the rule has to be fed with what the model says. */
export function listens(rule: StopRule): boolean {
  if (rule.kind === "all" || rule.kind === "any") return rule.of.some(listens);
  return rule.kind === "keyword" || rule.kind === "signal" || rule.kind === "module";
}

const GOING: Standing = { kind: "going" };

function judge(rule: StopRule, flow: Flow, facts: StopFacts): Standing {
  switch (rule.kind) {
    case "end":
      return GOING;
    case "visits":
      return facts.state.iterations < rule.count
        ? GOING
        : over(`${done(rule.count)} iterations: budget reached`);
    case "checks":
      return checksDone(flow, facts.state) < rule.count ? GOING : over(`${done(rule.count)} status checks`);
    case "keyword":
      return says(facts, rule.text) ? over(`The keyword ${rule.text} was given`) : GOING;
    case "signal":
      return hasSignal(rule, facts) || isSignalled(rule, facts, flow)
        ? over(`The signal ${rule.type} was given`)
        : GOING;
    case "state":
    case "module": {
      const sight = facts.sights?.[outsideOf(flow.stop).indexOf(rule)];
      if (sight === undefined) return { kind: "look" };
      return sight.met ? over(sight.what) : GOING;
    }
    case "all": {
      const parts = rule.of.map((part) => judge(part, flow, facts));
      if (parts.length === 0 || parts.some((part) => part.kind === "going")) return GOING;
      const whys = parts.flatMap((part) => (part.kind === "over" ? [part.why] : []));
      return whys.length < parts.length ? { kind: "look" } : { kind: "over", why: whys.join("; ") };
    }
    case "any": {
      const parts = rule.of.map((part) => judge(part, flow, facts));
      return (
        parts.find((part) => part.kind === "over") ?? parts.find((part) => part.kind === "look") ?? GOING
      );
    }
  }
}

function over(why: string): Standing {
  return { kind: "over", why };
}

function done(count: number): string {
  return `Completed ${count}/${count}`;
}

/** In what was said, or in the words of the payload where the backend gives nothing else. */
function says({ said, payload }: StopFacts, keyword: string): boolean {
  return said.includes(keyword) || JSON.stringify(payload).includes(JSON.stringify(keyword).slice(1, -1));
}

/** A fenced block of the type, a payload that names the type, or one that says it is complete; with all its fields. */
function hasSignal(rule: StopRule & { kind: "signal" }, { said, payload }: StopFacts): boolean {
  const named = own(payload, "signal") === rule.type || own(payload, "type") === rule.type;
  const complete = own(payload, "status") === "completed" || own(payload, "result") === "complete";
  if ((named || complete) && holds(rule, payload)) return true;
  return fencedBlocks(said, rule.type).some((block) => {
    const value = parseJson(block);
    return isObject(value) ? holds(rule, value) : rule.fields.length === 0;
  });
}

/** An action block of the type, where such blocks are looked for. */
function isSignalled(rule: StopRule & { kind: "signal" }, { said }: StopFacts, { settings }: Flow): boolean {
  const { enabled, outputFormat } = settings.actions;
  if (!enabled || outputFormat === null) return false;
  return fencedBlocks(said, outputFormat).some((block) => {
    const value = parseJson(block);
    return isObject(value) && own(value, "type") === rule.type && holds(rule, value);
  });
}

function holds({ fields }: StopRule & { kind: "signal" }, value: JsonObject): boolean {
  return fields.every((field) => {
    const found = own(value, field.name);
    return found !== undefined && (field.value === undefined || sameJson(found, field.value));
  });
}

function fencedBlocks(text: string, type: string): readonly string[] {
  const blocks = fencesIn(text, true).filter(({ info, isClosed }) => isClosed && info === type);
  return Array.from(blocks, ({ body }) => body);
}
