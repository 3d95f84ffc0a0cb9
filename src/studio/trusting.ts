/** Trust before a run is started from the page: what is not trusted yet is listed, and its digest has to come back. */
import type { Flow } from "../flow/flow.ts";
import { tryGround } from "../run/boundary.ts";
import { flowDigest } from "../run/load.ts";
import { trusting, trustState, type TrustQuestion, type TrustState } from "../run/trust/trust.ts";
import { StudioRefusal, type Studio } from "./route.ts";

/** What trust depends on besides the files. */
export type TrustGround = Pick<Studio, "project" | "cwd" | "env">;

/** How the agent stands with this user. The sandbox is opened once to find out what has to be trusted. */
export async function trustOf(flow: Flow, studio: TrustGround): Promise<TrustState> {
  const { project, env } = studio;
  return await trustState(flow, trusting(project.root, await isConfined(flow, studio), { env }));
}

/** What has to be trusted first; null: nothing. */
export async function untrusted(flow: Flow, studio: TrustGround): Promise<TrustQuestion | null> {
  const { state, root, agent, digest, commands, change } = await trustOf(flow, studio);
  return state === "new" || state === "changed" ? { root, agent, digest, commands, change } : null;
}

/**
 * Refuses with the list of what has to be trusted, unless its digest is given. The command judges the digest again: what
 * changes in between is refused there.
 */
export async function requireTrusted(flow: Flow, studio: Studio, digest: string | undefined): Promise<void> {
  const question = await untrusted(flow, studio);
  if (question === null || question.digest === digest) return;
  const why =
    digest === undefined
      ? `Agent "${flow.agent}" needs your trust first: its files make Lockstep run commands.`
      : `The files of agent "${flow.agent}" have changed since you looked at the list. This is what they do now.`;
  throw new StudioRefusal(409, "NOT_TRUSTED", why, { trust: question });
}

const MOST_KEPT = 100;
const confined = new WeakMap<TrustGround, Map<string, Promise<boolean>>>();

/** Whether the commands of a run would be in a sandbox here, or there are none: asked once for each flow. */
async function isConfined(flow: Flow, studio: TrustGround): Promise<boolean> {
  const known = confined.get(studio) ?? new Map<string, Promise<boolean>>();
  confined.set(studio, known);
  const digest = flowDigest(flow);
  const answer = known.get(digest) ?? tried(flow, studio);
  known.set(digest, answer);
  answer.catch(() => known.delete(digest));
  if (known.size > MOST_KEPT) known.delete(known.keys().next().value!);
  return await answer;
}

async function tried(flow: Flow, { project, cwd, env }: TrustGround): Promise<boolean> {
  await using ground = await tryGround(flow, { project, cwd, env });
  return ground.sandbox.confined || !ground.sandbox.starts;
}
