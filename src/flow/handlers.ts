/** What carries out an action block of each type: a word for what is built in, or a module of the agent. */
import { own } from "./json.ts";
import type { Actions } from "./settings.ts";

export const BUILT_IN = [
  "builtin:log",
  "builtin:file",
  "builtin:github-issue",
  "builtin:github-comment",
  "builtin:issue-action",
  "builtin:completion-signal",
] as const;

export type BuiltIn = (typeof BUILT_IN)[number];

/** Types that mean something without being mapped to anything. */
const BY_TYPE: ReadonlyMap<string, BuiltIn> = new Map([["issue-action", "builtin:issue-action"]]);

/** As it is written, or what holds when nothing is. */
export function handlerOf({ handlers }: Pick<Actions, "handlers">, type: string): string {
  return own(handlers, type) ?? BY_TYPE.get(type) ?? "builtin:log";
}

/** Whether somebody said what becomes of the type. */
export function isHandled({ handlers }: Pick<Actions, "handlers">, type: string): boolean {
  return own(handlers, type) !== undefined || BY_TYPE.has(type);
}

export function isBuiltIn(handler: string): handler is BuiltIn {
  return (BUILT_IN as readonly string[]).includes(handler);
}

/** Whether it changes something on GitHub. */
export function isOnGitHub(handler: string): boolean {
  return isBuiltIn(handler) && (handler.startsWith("builtin:github-") || handler === "builtin:issue-action");
}

/** Whether the issue it acts on is named by the block. */
export function namesIssue(handler: string): boolean {
  return handler === "builtin:github-comment" || handler === "builtin:issue-action";
}
