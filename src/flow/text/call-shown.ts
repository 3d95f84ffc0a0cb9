/** A tool call as a person is asked about it: whole, what it does first, and nothing in it can pose as part of the question. */
import { own, type Json, type JsonObject } from "../json.ts";
import { gutter, visible, visibleInLine } from "./visible.ts";

export type CallShown = {
  readonly text: string;
  /** Something is left out: nobody can allow for a whole run what they have not seen. */
  readonly isCut: boolean;
};

/** Beyond this a call is cut, with a mark: more than that does not fit into what a terminal keeps. */
const MOST = 100_000;
/** So many lines fit on any screen. */
const SCREENFUL = 20;

/** Below `heading`, the command of Bash on lines of its own; then every other field of the input. */
export function callShown(heading: string, { name, input }: Shown): CallShown {
  const command = name === "Bash" ? own(input, "command") : undefined;
  const isLine = typeof command === "string";
  const fields = Object.entries(input).filter(([key]) => !(isLine && key === "command"));
  const parts = [
    ...(isLine ? [gutter(visible(command))] : []),
    ...fields.map(([key, value]) => fieldShown(key, value)),
  ];
  const whole = parts.join("\n");
  const shown = cut(whole);
  const lines = shown.split("\n").length;
  const warning = lines > SCREENFUL ? [`These are ${lines} lines: read all of them, from the top.`] : [];
  return {
    text: [`${heading}:`, ...(shown === "" ? ["  (no input)"] : [shown]), ...warning].join("\n"),
    isCut: shown !== whole,
  };
}

type Shown = { readonly name: string; readonly input: JsonObject };

function fieldShown(key: string, value: Json | undefined): string {
  const name = /^[\w-]+$/.test(key) ? key : visibleInLine(JSON.stringify(key));
  const text = visible(typeof value === "string" ? value : (JSON.stringify(value) ?? ""));
  return text.includes("\n") ? `  ${name}:\n${gutter(text)}` : `  ${name}: ${text}`;
}

function cut(text: string): string {
  if (text.length <= MOST) return text;
  // Never between the two halves of a character.
  const end = /[\ud800-\udbff]/.test(text[MOST - 1]!) ? MOST - 1 : MOST;
  return `${text.slice(0, end)}\n… ${text.length - end} more characters (see them with: lockstep show RUN --events)`;
}
