/** What is due outside of a run, and what an effect in its journal belongs to. */
import type { AtVisit } from "./deed.ts";
import type { Block } from "./action-blocks.ts";
import type { JsonObject } from "./json.ts";
import type { Settings } from "./settings.ts";

export type Due =
  | BlocksDue
  /** The labels of the issue as the run begins. */
  | { readonly kind: "begin"; readonly issue: number }
  /** What becomes of the worktree: commit, merge, push, pull request, removal. */
  | {
      readonly kind: "publish";
      /** What the model ended the run with. */
      readonly answer: JsonObject | null;
      /** The issue of the run, where it may be closed, and the answer that decides about it. */
      readonly closing: IssueClosing | null;
    }
  /** What becomes of the issue when the run is complete. */
  | ({ readonly kind: "close" } & IssueClosing)
  /** The labels of the issue when the run has failed for good. */
  | { readonly kind: "blocked"; readonly issue: number };

/** `answer`: what a closure ended the run with; null: the agent file alone decides. */
export type IssueClosing = { readonly issue: number; readonly answer: JsonObject | null };

/** The action blocks of a settled visit, with the settings that held then. */
export type BlocksDue = AtVisit & {
  readonly kind: "blocks";
  readonly blocks: readonly Block[];
  readonly settings: Pick<Settings, "actions" | "github">;
  /** Whether the step may change anything: a step in `plan` mode may not. */
  readonly mayWrite: boolean;
  /** A closure completed the run with it. */
  readonly completes: boolean;
  /** Once more, after all else: closing an issue waits until the work is published. */
  readonly last?: true;
};

/** A moment of the run, or the visit whose answer asked for it. */
export type EffectOf = Exclude<Due["kind"], "blocks"> | AtVisit;

/** Earlier versions recorded it only within the key. */
export function effectOf({ of, key }: { readonly of?: EffectOf; readonly key: string }): EffectOf {
  if (of !== undefined) return of;
  const asked = /^action\/(.+?)@(\d+)\//s.exec(key);
  if (asked !== null) return { step: asked[1]!, visit: Number(asked[2]) };
  const moment = /^issue\.(begin|github|blocked|end)/.exec(key)?.[1];
  return moment === undefined ? "publish" : MOMENTS[moment as keyof typeof MOMENTS];
}

const MOMENTS = { begin: "begin", github: "begin", blocked: "blocked", end: "close" } as const;

/** An act on GitHub that an answer asked for and that failed may be done later. */
export function isRepeatable(kind: string): boolean {
  return /^action:(?:github-issue|github-comment|issue-action)$/.test(kind);
}
