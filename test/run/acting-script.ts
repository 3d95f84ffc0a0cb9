/** What the model says in runs that are killed: files, and a module of the project. */
import { closing, handoff } from "./acting.ts";

const note = (content: string, more: object = {}) => ({
  type: "note",
  content,
  filename: "notes.md",
  ...more,
});

export const SCRIPT = [
  handoff(note("one"), { type: "plan", content: "first" }),
  closing(note("whole", { filename: "whole.md", mode: "write" }), { type: "plan", content: "second" }),
];
