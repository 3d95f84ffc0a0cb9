/** A project to attack: its files, and one change that makes it hostile. */
import { replies, script, writeAgent, type World } from "./world.ts";

// oxlint-disable-next-line no-explicit-any -- files are changed at depth, and what is wrong with them is the point
export type Document = { [key: string]: any };
export type Case = {
  readonly name: string;
  readonly prepare: (world: World) => void;
  readonly args: readonly string[];
  readonly code: number;
  readonly says: RegExp;
  /** What it sees of the environment besides. */
  readonly env?: NodeJS.ProcessEnv;
};

export const AGENT = ".agent/a/agent.json";

export const PROMPT = ".agent/a/prompts/steps/initial/note/f_default.md";
export const plain = (world: World) => writeAgent(world, "a");
export const RUN = ["run", "a", "--topic", "t", "--script", "script.json"];
export const GOOD = script(replies.initial(), replies.continuation(), replies.closure());

export const saying = (text: string) => (world: World) => {
  plain(world);
  world.write("script.json", script({ step: "initial.note", text }, { step: "initial.note", text }));
};

export const deep = (depth: number) => "[".repeat(depth) + "]".repeat(depth);

export const many = <T>(count: number, make: (place: number) => T) =>
  Array.from({ length: count }, (_, place) => make(place));
