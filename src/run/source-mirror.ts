/** The repository that a travelling run comes from: what this worker may fetch and push, and its mirror here. */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { CHECKOUT_MS, type Git } from "../effects/git/git.ts";
import { CHECKED, must, SnapshotFailed } from "../effects/git/snapshot.ts";
import { inTurn, takeTurn } from "../effects/process/turn.ts";
import { RunnerError } from "../engine/ports.ts";
import type { Event, Remote } from "../flow/event.ts";
import { shownInLine } from "../flow/text/harmless.ts";
import { ANY_REPOSITORY, mayFetch, readRepositoryAddress } from "./source-address.ts";
import { makeFolder } from "../journal/make-folder.ts";

export type MirrorOptions = {
  /** The folder of this worker for mirrors and for the files of runs. */
  readonly work: string;
  /** Its `run.started`, which names a source. */
  readonly started: Event & { readonly type: "run.started" };
  /** Patterns of the addresses that this worker fetches from; any but files of its own machine where it is absent. */
  readonly repositories?: readonly string[];
};

export function mirrorOf(work: string, { url }: Remote): string {
  return join(work, "mirrors", `${createHash("sha256").update(url).digest("hex").slice(0, 32)}.git`);
}

/** Whether git complains about its own files here, and not about a server that is away. */
export function isDamage(why: string, mirror: string): boolean {
  return why.includes(mirror) || /corrupt|loose object|packfile|bad object|unable to read/i.test(why);
}

/** Why this worker has nothing to do with the address; null: it may fetch from there and push to it. */
function forbidden(
  { repositories = ANY_REPOSITORY }: Pick<MirrorOptions, "repositories">,
  { url }: Remote,
): string | null {
  const address = readRepositoryAddress(url);
  if ("fault" in address) return address.fault;
  return mayFetch(address, repositories)
    ? null
    : "no pattern matches it. Add its address to fleet.repositories in the config.json of the worker";
}

/** The remote that git is configured with. A forbidden one is left out if the run has its files without it and pushes nothing. */
export function remoteFor(options: MirrorOptions, remote: Remote | null): Remote | null {
  const fault = remote === null ? null : forbidden(options, remote);
  if (remote === null || fault === null) return remote;
  const { run, worktree } = options.started;
  const { push, createPr } = worktree?.finalize ?? {};
  if (push !== true && createPr !== true) return null;
  throw new RunnerError(
    "REPOSITORY_FORBIDDEN",
    `This worker does not push the result of run ${run} to ${shownInLine(remote.url, 200)}: ${fault}.`,
  );
}

/** The mirror of a repository, with this commit in it. */
export async function fetched(
  options: MirrorOptions,
  git: Git,
  remote: Remote,
  commit: string,
): Promise<string> {
  const { work, started } = options;
  const fault = forbidden(options, remote);
  if (fault !== null)
    throw new RunnerError(
      "REPOSITORY_FORBIDDEN",
      `This worker does not fetch the files of run ${started.run} from ${shownInLine(remote.url, 200)}: ${fault}.`,
    );
  const mirror = mirrorOf(work, remote);
  return await inTurn(mirror, async () => {
    makeFolder(mirror);
    const turn = await takeTurn(mirror);
    if ("why" in turn)
      throw new RunnerError("WORKTREE_UNAVAILABLE", `The mirror of ${remote.url} is not free: ${turn.why}.`);
    try {
      const at = ["--git-dir", mirror];
      if (!existsSync(join(mirror, "HEAD")))
        must(await git(mirror, ["init", "--quiet", "--bare", "--template=", mirror]));
      const has = async () => (await git(mirror, [...at, "cat-file", "-e", `${commit}^{tree}`])).ok;
      if (await has()) return mirror;
      const flags = ["--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"];
      const how = { timeoutMs: CHECKOUT_MS, outside: true } as const;
      const fetch = (refs: string) =>
        git(mirror, [...at, ...CHECKED, "fetch", ...flags, "--", remote.url, refs], how);
      const exact = await fetch(`+${commit}:refs/lockstep/${commit}`);
      // Some servers give only what a branch names.
      const all = exact.ok ? exact : await fetch("+refs/heads/*:refs/lockstep/heads/*");
      if (!all.ok && isDamage(all.why, mirror)) throw new SnapshotFailed(all.why);
      if (!all.ok)
        throw new RunnerError(
          "WORKTREE_UNAVAILABLE",
          `git cannot fetch ${remote.url}: ${shownInLine(all.why, 300)}.`,
        );
      if (!(await has()))
        throw new RunnerError(
          "WORKTREE_UNAVAILABLE",
          `${remote.url} does not have the commit ${commit} of run ${started.run}.`,
        );
      return mirror;
    } finally {
      turn.release();
    }
  });
}
