/** runner.actions: which blocks of an answer are carried out, and by what. */
import { BUILT_IN, handlerOf, isBuiltIn, isHandled, isOnGitHub, namesIssue } from "../../flow/handlers.ts";
import type { Module } from "../../flow/flow.ts";
import { ACTIONS, type Actions } from "../../flow/settings.ts";
import { recordOf } from "../text/record.ts";
import type { AgentSource } from "./agent-shape.ts";
import type { Code } from "../codes.ts";
import { notActedOn } from "../rules/inert.ts";
import { findModule, type VerdictWorld } from "./outside.ts";
import { escapeSegment } from "../../flow/json-pointer.ts";
import type { Reader } from "../text/shape.ts";
import { didYouMean } from "../../flow/text/suggest.ts";

export type ActionWorld = VerdictWorld & {
  /** A run may be started with more than those. */
  readonly isOpen?: boolean;
  readonly reader: Reader;
};

export function loadActions({ runner }: AgentSource, world: ActionWorld): Actions {
  const { enabled, handlers } = runner.actions;
  const modules = [...handlers].flatMap(([type, handler]) => {
    const module = enabled ? moduleOf(type, handler, world) : null;
    return module === null ? [] : [[type, module] as const];
  });
  const actions: Actions = {
    ...recordOf(ACTIONS, runner.actions),
    ...(modules.length > 0 && { modules: Object.fromEntries(modules) }),
  };
  if (enabled) checkTypes(actions, runner.integrations.github.enabled, world);
  return actions;
}

/** null: it is built in, or it is none; what is wrong with it is reported. */
function moduleOf(type: string, handler: string, world: ActionWorld): Module | null {
  if (isBuiltIn(handler)) return null;
  const at = `handlers/${escapeSegment(type)}`;
  if (!handler.startsWith("./")) {
    const message = `The handler "${handler}" of the type "${type}" is neither a built-in handler nor a path that starts with ./.${didYouMean(handler, BUILT_IN)}`;
    const fix = `Use one of ${BUILT_IN.join(", ")}, or a module of the agent such as ./handlers/${type}.mjs.`;
    report(world, "ACTION-HANDLER", at, message, fix);
    return null;
  }
  const found = findModule(handler, world);
  if ("digest" in found) return found;
  report(world, "ACTION-HANDLER", at, found.message, found.fix);
  return null;
}

function checkTypes(actions: Actions, onGitHub: boolean, world: ActionWorld): void {
  const { types, handlers } = actions;
  if (types.length === 0) {
    const message = "runner.actions is enabled but lists no types, so no block is carried out.";
    const fix = "List the types in runner.actions.types, or set enabled to false.";
    report(world, "ACTION-NO-TYPES", "", message, fix);
  }
  const stray = Object.keys(handlers).find((type) => !types.includes(type));
  if (stray !== undefined) {
    const message = `There is a handler for the type "${stray}", which is not among the types.${didYouMean(stray, types)}`;
    const fix = `Add "${stray}" to runner.actions.types, or remove its handler.`;
    report(world, "ACTION-STRAY", `handlers/${escapeSegment(stray)}`, message, fix);
  }
  const plain = types.filter((type) => !isHandled(actions, type));
  if (plain.length > 0) {
    const message = `Blocks of the type ${plain.map((type) => `"${type}"`).join(", ")} have no handler: they only appear in the log and the result.`;
    const fix = 'Set a handler in runner.actions.handlers; "builtin:log" if logging is enough.';
    report(world, "ACTION-LOG-ONLY", "types", message, fix);
  }
  const used = types.map((type) => ({ type, handler: handlerOf(actions, type) }));
  const barred = onGitHub ? undefined : used.find(({ handler }) => isOnGitHub(handler));
  if (barred !== undefined) {
    const message = `Blocks of the type "${barred.type}" have no effect: ${barred.handler} needs GitHub, and runner.integrations.github.enabled is false.`;
    const { document, findings } = world.reader;
    const fix = "Enable GitHub, or name another handler.";
    findings.push(notActedOn({ document, pointer: "/runner/actions/types" }, message, fix));
    return;
  }
  const about = used.find(({ handler }) => namesIssue(handler));
  const isTold = world.parameters.some(({ name }) => name === "issue") || world.isOpen === true;
  if (about === undefined || isTold || actions.otherIssues === true) return;
  const message = `Blocks of the type "${about.type}" may only act on the run's own issue, but the agent has no parameter "issue" to name it.`;
  report(world, "AC-VERDICT-001", "types", message, 'Declare a parameter "issue" of the type number.');
}

function report({ reader }: ActionWorld, code: Code, key: string, message: string, fix: string): void {
  const pointer = key === "" ? "/runner/actions" : `/runner/actions/${key}`;
  reader.findings.push({ code, document: reader.document, pointer, message, fix });
}
