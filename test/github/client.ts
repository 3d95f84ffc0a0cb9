/** A visitor of the stand-in, whose clock moves only when somebody sleeps. */
import assert from "node:assert/strict";
import { openGitHub, type GithubClient, type GitHubOptions } from "../../src/effects/github/github.ts";
import { runProcess } from "../../src/effects/process/process.ts";
import type { Clock } from "../../src/engine/ports.ts";
import { programsFor } from "../../src/run/world/programs.ts";
import type { StandIn } from "./stand-in.ts";

export type Visitor = {
  readonly github: GithubClient;
  /** Every pause that was made, in milliseconds. */
  readonly pauses: readonly number[];
};

export const START = Date.UTC(2026, 0, 1);

export function createClock(): { readonly clock: Clock; readonly pauses: number[] } {
  const pauses: number[] = [];
  let now = START;
  const sleep = async (ms: number) => {
    pauses.push(ms);
    now += ms;
  };
  return { clock: { now: () => now, sleep }, pauses };
}

export async function visit(stand: StandIn, more: Partial<GitHubOptions> = {}): Promise<Visitor> {
  const { clock, pauses } = createClock();
  const signal = new AbortController().signal;
  const programs = programsFor(stand.env, []);
  const usual = { env: stand.env, programs, exec: runProcess, cwd: "/", signal, clock };
  const opened = await openGitHub({ ...usual, ...more });
  assert.ok(opened.ok, opened.ok ? "" : opened.why);
  return { github: opened.value, pauses };
}
