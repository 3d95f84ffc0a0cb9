/** What a verdict looks at outside of the run: a file, an address, an issue, a module of the project. */
import type { Digest, Files } from "../../flow/files.ts";
import type { FileState, Module, Parameter, Resource, StopRule } from "../../flow/flow.ts";
import { isObject, readPath, type Json, type JsonObject } from "../../flow/json.ts";
import type { VerdictConfig } from "./agent-shape.ts";
import type { Code } from "../codes.ts";
import { regexFault } from "../registry/guards.ts";
import { escapesProject, joinPath } from "../text/paths.ts";
import type { Reader } from "../text/shape.ts";
import { didYouMean } from "../../flow/text/suggest.ts";

/** What a rule may name besides its own settings. */
export type VerdictWorld = {
  /** The agent's folder, from the project's root. */
  readonly folder: string;
  readonly files: Files;
  readonly digest: Digest;
  readonly parameters: readonly Parameter[];
};

/** Where a rule is written, and what it may name. */
export type VerdictAt = VerdictWorld & { readonly reader: Reader; readonly pointer: string };

/** What stands in for a setting that is missing or wrong; the finding about it keeps the flow from running. */
export const NEVER: StopRule = { kind: "any", of: [] };

export function buildState(config: VerdictConfig, at: VerdictAt): StopRule {
  const resource = buildResource(config, at);
  return resource === null ? NEVER : { kind: "state", resource };
}

function buildResource(config: VerdictConfig, at: VerdictAt): Resource | null {
  const { resourceType: kind = "github-issue", targetState, path, url } = config;
  if (kind === "file") {
    const want = fileState(targetState, at);
    if (path === undefined || want === null) return null;
    checkVariables(path, "path", at);
    if (escapesProject(joinPath("", path))) {
      const message = `The file "${path}" is outside the working folder of the run, so it is not checked.`;
      report(at, "AC-SERVICE-003", "path", message, "Name a path below the working folder.");
    }
    return { kind, path, want };
  }
  if (kind === "api") {
    if (url === undefined || targetState === undefined) return null;
    checkVariables(url, "url", at);
    checkAddress(url, at);
    return { kind, url, want: targetState };
  }
  const [name, word] = kind === "github-issue" ? ["issue", "an issue"] : ["project", "a project"];
  if (!at.parameters.some((parameter) => parameter.name === name)) {
    const message = `The verdict depends on ${word} on GitHub, but the agent has no parameter "${name}" to name it.`;
    report(at, "AC-VERDICT-001", "", message, `Declare a parameter "${name}" of the type number.`);
  }
  if (kind === "github-issue" && targetState !== undefined) checkIssueState(targetState, at);
  return { kind, want: targetState ?? "closed" };
}

/** What an issue can be like. The fields of a project are its owner's, and not known here. */
function checkIssueState(want: Json, at: VerdictAt): void {
  if (typeof want === "string" && !ISSUE_STATES.includes(want.toLowerCase().replaceAll(" ", "_"))) {
    const message = `targetState is "${want}", which is not a state of an issue.${didYouMean(want, ISSUE_STATES)}`;
    report(at, "AC-VALID-001", "targetState", message, `Write one of ${ISSUE_STATES.join(", ")}.`);
  }
  const unknown = isObject(want) ? Object.keys(want).find((key) => !ISSUE_FACTS.includes(key)) : undefined;
  if (unknown === undefined) return;
  const message = `targetState asks for "${unknown}" of an issue, which the verdict cannot check.${didYouMean(unknown, ISSUE_FACTS)}`;
  report(at, "AC-VALID-001", "targetState", message, `Ask for some of ${ISSUE_FACTS.join(", ")}.`);
}

const ISSUE_STATES = ["open", "closed", "completed", "not_planned", "duplicate", "reopened"];
const ISSUE_FACTS = ["state", "state_reason", "stateReason", "labels", "assignees"];

function fileState(target: Json | undefined, at: VerdictAt): FileState | null {
  if (target === undefined) return null;
  if (typeof target !== "string" || target === "") {
    const message = `targetState of a file is ${typeof target === "string" ? "empty" : "an object"}.`;
    const fix = "Write exists, absent, a text, or re: with a pattern.";
    report(at, "AC-VALID-001", "targetState", message, fix);
    return null;
  }
  if (target === "exists" || target === "absent") return { kind: target };
  if (!target.startsWith("re:")) return { kind: "contains", text: target };
  const pattern = target.slice("re:".length);
  const fault = regexFault(pattern);
  if (fault === null) return { kind: "matches", pattern };
  const message = `The regular expression ${pattern} in targetState is not valid: ${fault}.`;
  report(at, "AC-VALID-001", "targetState", message, "Correct the regular expression (JavaScript, flag u).");
  return null;
}

/** What a path or address reads must be given at the start of every run. */
function checkVariables(template: string, key: "path" | "url", at: VerdictAt): void {
  for (const [, name = ""] of template.matchAll(/\{uv-([^{}]+)\}/g)) {
    const parameter = at.parameters.find((other) => other.name === name);
    if (parameter === undefined) {
      const names = at.parameters.map((other) => other.name);
      const message = `The ${key} of the verdict reads {uv-${name}}, but there is no such parameter.${didYouMean(name, names)}`;
      report(at, "PR-RESOLVE-003", key, message, `Declare "${name}" as a parameter, or correct the name.`);
    } else if (!parameter.required && parameter.default === undefined) {
      const message = `The ${key} of the verdict reads {uv-${name}}, which may have no value; then nothing is checked.`;
      report(at, "UV-OPTIONAL", key, message, `Make "${name}" required, or give it a default.`);
    }
  }
}

/** Only http and https; and never a host that an argument chooses, since trust is given to the address as written. */
function checkAddress(url: string, at: VerdictAt): void {
  const [one, other] = ["a", "b"].map((word) => parseAddress(url.replaceAll(/\{uv-[^{}]+\}/g, word)));
  if (one === null || one === undefined) {
    const message = `url is "${url}", but must start with http:// or https://.`;
    report(at, "AC-VALID-001", "url", message, "Write the full URL.");
  } else if (one.origin !== other?.origin || one.username !== "" || one.password !== "") {
    const message = `The host of the URL "${url}" must not contain a variable or a password.`;
    report(at, "AC-VALID-001", "url", message, "Use variables only after the host.");
  }
}

function parseAddress(text: string): URL | null {
  const url = URL.parse(text);
  return url !== null && (url.protocol === "http:" || url.protocol === "https:") ? url : null;
}

export function buildModule({ handlerPath }: VerdictConfig, at: VerdictAt): StopRule {
  if (handlerPath === undefined) return NEVER;
  const module = findModule(handlerPath, at);
  if ("digest" in module) return { kind: "module", module, config: writtenConfig(at) };
  report(at, "AC-VERDICT-004", "handlerPath", module.message, module.fix);
  return NEVER;
}

/** A file of the agent that is run as code, or why there is none. */
export function findModule(
  path: string,
  { folder, files, digest }: Pick<VerdictWorld, "folder" | "files" | "digest">,
): Module | { readonly message: string; readonly fix: string } {
  const file = joinPath(folder, path);
  if (escapesProject(file) || !file.startsWith(`${folder}/`))
    return { message: `The module "${path}" is outside ${folder}.`, fix: `Move it into ${folder}.` };
  if (!/\.(?:mjs|js|ts)$/.test(file))
    return { message: `The module "${path}" is not a .mjs, .js or .ts file.`, fix: "Name an ES module." };
  const read = files.read(file);
  if (read.kind === "missing") return { message: `There is no module ${file}.`, fix: `Create ${file}.` };
  if (read.kind !== "text")
    return { message: `The module ${file} cannot be read: ${read.why}.`, fix: "Make it readable." };
  return { file, digest: digest(read.text) };
}

/** As its author wrote it: a module of the project may have settings of its own. */
function writtenConfig({ reader, pointer }: VerdictAt): JsonObject {
  const written = readPath(reader.document.value, pointer.slice(1).split("/"));
  return isObject(written) ? written : {};
}

export function report(at: VerdictAt, code: Code, key: string, message: string, fix: string): void {
  const pointer = key === "" ? at.pointer : `${at.pointer}/${key}`;
  at.reader.findings.push({ code, document: at.reader.document, pointer, message, fix });
}
