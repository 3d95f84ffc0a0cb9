/** What lets an agent run on copies of its project: what a run here would need is there, and its files are trusted here. */
import type { Flow } from "../../flow/flow.ts";
import type { DriveOptions } from "../options.ts";
import type { Project } from "../world/project.ts";
import { readConfig } from "../world/config.ts";
import { settleGround } from "../world/process-starter.ts";
import { requireTrust, trusting, trustState } from "./trust.ts";

export type CopyTerms = Pick<DriveOptions, "sandbox" | "network"> & {
  /** The digest that was trusted: a copy that holds other files is refused. */
  readonly trust: { readonly digest: string };
};

/**
 * SANDBOX_UNAVAILABLE or NOT_TRUSTED, as for a run. The user's settings decide, and are handed on: runs on copies do not
 * read them. `granting`: a person may allow more than a stage's list.
 */
export async function termsForCopies(
  flow: Flow,
  project: Project,
  granting: boolean,
  options: Pick<DriveOptions, "env" | "trust" | "notify" | "sandbox" | "network">,
): Promise<CopyTerms> {
  const { env = process.env } = options;
  const config = readConfig(env);
  const network = options.network ?? config.network;
  const wishes = { sandbox: options.sandbox ?? config.sandbox, ...(network !== null && { network }) };
  const backend = { spec: { id: "scripted" } };
  const setting = { flows: [flow], backend, project, cwd: project.root, config, granting };
  await using ground = await settleGround(setting, { env, ...wishes });
  const trust = trusting(project.root, !ground.isFree, options);
  await requireTrust(flow, trust);
  const { digest } = await trustState(flow, trust);
  return { ...wishes, trust: { digest } };
}
