/** Trust before a server starts a run: what is not trusted yet is listed, and its digest has to come back. */
import type { Flow } from "../flow/flow.ts";
import { tryGround } from "../run/boundary.ts";
import { flowDigest } from "../run/load.ts";
import { trusting, trustState, type TrustQuestion, type TrustState } from "../run/trust/trust.ts";
import type { Project } from "../run/world/project.ts";
import { RequestRefusal } from "./refusal.ts";

/** What trust depends on besides the files. */
export type TrustGround = {
  readonly project: Project;
  /** The folder that commands are started in. */
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
};

/** How the agent stands with this user. The sandbox is opened once to find out what has to be trusted. */
export async function trustOf(flow: Flow, ground: TrustGround): Promise<TrustState> {
  const { project, env } = ground;
  return await trustState(flow, trusting(project.root, await isConfined(flow, ground), { env }));
}

/** What has to be trusted first; null: nothing. */
export async function untrusted(flow: Flow, ground: TrustGround): Promise<TrustQuestion | null> {
  const { state, root, agent, digest, commands, change } = await trustOf(flow, ground);
  return state === "new" || state === "changed" ? { root, agent, digest, commands, change } : null;
}

/**
 * Refuses with the list of what has to be trusted, unless its digest is given. The command judges the digest again: what
 * changes in between is refused there.
 */
export async function requireTrusted(
  flow: Flow,
  ground: TrustGround,
  digest: string | undefined,
): Promise<void> {
  const question = await untrusted(flow, ground);
  if (question === null || question.digest === digest) return;
  const why =
    digest === undefined
      ? `Agent "${flow.agent}" needs your trust first: its files make Lockstep run commands.`
      : `The files of agent "${flow.agent}" have changed since you looked at the list. This is what they do now.`;
  throw new RequestRefusal(409, "NOT_TRUSTED", why, { trust: question });
}

const MOST_KEPT = 100;
const confined = new WeakMap<TrustGround, Map<string, Promise<boolean>>>();

/** Whether the commands of a run would be in a sandbox here, or there are none: asked once for each flow. */
async function isConfined(flow: Flow, ground: TrustGround): Promise<boolean> {
  const known = confined.get(ground) ?? new Map<string, Promise<boolean>>();
  confined.set(ground, known);
  const digest = flowDigest(flow);
  const answer = known.get(digest) ?? tried(flow, ground);
  known.set(digest, answer);
  answer.catch(() => known.delete(digest));
  if (known.size > MOST_KEPT) known.delete(known.keys().next().value!);
  return await answer;
}

async function tried(flow: Flow, { project, cwd, env }: TrustGround): Promise<boolean> {
  await using ground = await tryGround(flow, { project, cwd, env });
  return ground.sandbox.confined || !ground.sandbox.starts;
}
