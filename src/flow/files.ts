/** Reading, as the pure rooms see it: paths are relative to the project root, with forward slashes. */
import type { Prompt } from "./flow.ts";

export type Files = {
  /** Never throws. A path that leads out of the project root, by `..` or by a link, is refused. */
  readonly read: (path: string) => FileRead;
};

/** Files whose folders can be looked into. */
export type FileTree = Files & {
  /** The names of what is right in a folder, sorted; null when there is no such folder in the project. Never throws. */
  readonly list: (folder: string) => readonly string[] | null;
};

export type FileRead =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "missing" }
  | { readonly kind: "refused"; readonly why: string }
  | { readonly kind: "unreadable"; readonly why: string };

/** Where a prompt file is looked for: coordinates, the templates they are put into, and the folders to try. */
export type PromptRef = {
  readonly c1: string;
  readonly c2: string;
  readonly c3: string;
  readonly edition: string;
  readonly adaptation: string | null;
  readonly template: string;
  readonly templateNoAdaptation: string;
  /** Folders relative to the project root, in order of preference. */
  readonly bases: readonly string[];
  readonly variables: readonly string[];
};

export type FindPrompt = (ref: PromptRef) => Prompt;

/** The SHA-256 of a text, in hex. */
export type Digest = (text: string) => string;
