/** What somebody meant whose line names no command, or leaves out what the command needs. */
import { didYouMean } from "../../flow/text/suggest.ts";
import { RunnerError } from "../../run/errors.ts";
import { findProject, listAgents } from "../../run/world/project.ts";
import type { UsageError } from "../args.ts";
import { shellWord, shownInLine } from "./text.ts";

/** Words of other programs, and of people who have read nothing yet. */
export const OTHER_WORDS: { readonly [word: string]: string } = {
  start: "run",
  exec: "run",
  execute: "run",
  launch: "run",
  new: "init",
  create: "init",
  add: "init",
  generate: "init",
  scaffold: "init",
  templates: "init --template help",
  ls: "list",
  agents: "list",
  status: "runs",
  ps: "runs",
  history: "runs",
  validate: "check",
  lint: "check",
  verify: "check",
  tests: "test",
  kill: "stop",
  cancel: "stop",
  abort: "stop",
  retry: "resume",
  rerun: "resume",
  ui: "studio",
  web: "studio",
  dashboard: "studio",
  serve: "studio",
  server: "mcp",
  view: "show",
  inspect: "show",
  info: "show",
  log: "logs",
  draw: "graph",
  config: "models",
  setup: "doctor",
  install: "doctor",
  version: "--version",
};

const MOST_NAMED = 10;

/** A sentence with what to type instead, which ends the message; empty: nothing is near. */
export function meantBy({ near, lacks }: UsageError, cwd: string): string {
  if (near?.isCommand === true) return commandMeant(near.word, near.candidates, cwd);
  if (lacks === "run") return " Give the id of a run from `lockstep runs`, or @last for the newest.";
  if (lacks === "agent") return agentsThere(agentsIn(cwd));
  return near === null ? "" : didYouMean(near.word, near.candidates);
}

function commandMeant(word: string, candidates: readonly string[], cwd: string): string {
  if (agentsIn(cwd)?.includes(word) === true)
    return ` There is an agent of this name. Start it with: lockstep run ${shellWord(word)}`;
  const other = Object.hasOwn(OTHER_WORDS, word.toLowerCase()) ? OTHER_WORDS[word.toLowerCase()]! : null;
  return other === null ? didYouMean(word, candidates) : ` Did you mean "${other}"?`;
}

function agentsThere(names: readonly string[] | null): string {
  if (names === null) return "";
  if (names.length === 0) return " There is no agent here. Create one with: lockstep init notes";
  const named = names.slice(0, MOST_NAMED).map((name) => shownInLine(name, 80));
  const more = names.length > MOST_NAMED ? `, and ${names.length - MOST_NAMED} more` : "";
  return names.length === 1
    ? ` The agent here is ${named[0]}.`
    : ` The agents here are ${named.join(", ")}${more}.`;
}

/** null: it cannot be known. */
function agentsIn(cwd: string): readonly string[] | null {
  try {
    return listAgents(findProject(cwd));
  } catch (error) {
    if (error instanceof RunnerError) return null;
    throw error;
  }
}
