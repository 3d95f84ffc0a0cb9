/** What there is for the tests of a call besides memory: copies of projects, and snapshots. */
import type { FileTree } from "../../flow/files.ts";
import type { Grounds } from "../../testing/flow-tests.ts";
import { findProject } from "../../run/world/project.ts";
import { defined } from "../../flow/json.ts";
import { askForTrust } from "../conduct.ts";
import type { CallOf } from "../commands.ts";
import { shellWord, shownInLine } from "../text/text.ts";
import { isCi, type ChosenTest } from "./choose.ts";

export type TestGrounds = {
  readonly of: (agent: string) => Grounds;
  /** What a person should know afterwards. */
  readonly finish: () => readonly string[];
};

/** NOT_TRUSTED or SANDBOX_UNAVAILABLE where a test needs what a run would not get. */
export async function groundsFor(
  call: CallOf<"test">,
  chosen: readonly ChosenTest[],
  files: FileTree,
  signal: AbortSignal,
): Promise<TestGrounds> {
  const { flags, host, screen } = call;
  const project = findProject(call.cwd, call.stateDir);
  const grounds = new Map<string, Grounds>();
  const endings: (() => readonly string[])[] = [];
  for (const agent of new Set(chosen.map(({ of }) => of))) {
    const mine = chosen.filter(({ of }) => of === agent).map(({ test }) => test);
    const hasProject = mine.some(({ ground }) => ground.kind === "project");
    const hasSnapshot =
      agent.all.some(({ expect }) => expect.values.snapshot !== undefined) ||
      (files.list(`.agent/${agent.agent}/tests/snapshots`) ?? []).length > 0;
    const snapshots =
      hasSnapshot || flags.update
        ? (await import("../../testing/snapshots.ts")).openSnapshots({
            root: project.root,
            files,
            tests: agent.all,
            agent: agent.agent,
            update: flags.update,
            isCi: isCi(host.env),
          })
        : null;
    const copies = hasProject
      ? await (
          await import("../../testing/project-ground.ts")
        ).openProjectGround({ agent: agent.agent, flow: agent.flow, project }, mine, {
          env: host.env,
          signal,
          notify: (text) => screen.tell(text),
          trust: defined({
            digest: flags.trust,
            confirm: screen.isAnswering ? askForTrust(call, signal) : undefined,
          }),
          ...defined({ sandbox: flags.sandbox }),
        })
      : null;
    grounds.set(agent.agent, {
      ...(copies !== null && { project: copies }),
      ...(snapshots !== null && { compare: snapshots.compare }),
    });
    if (snapshots !== null)
      endings.push(() => [
        ...snapshots.written.map((path) => `Written: ${shownInLine(path)}`),
        ...staleRemarks(snapshots.stale(), agent.agent, flags.update),
      ]);
  }
  return {
    of: (agent) => grounds.get(agent) ?? {},
    finish: () => endings.flatMap((end) => end()),
  };
}

function staleRemarks(stale: readonly string[], agent: string, isRemoved: boolean): readonly string[] {
  if (isRemoved) return stale.map((path) => `Removed, because no test has it: ${shownInLine(path)}`);
  if (stale.length === 0) return [];
  const what = stale.length === 1 ? `1 snapshot belongs` : `${stale.length} snapshots belong`;
  const files = stale.slice(0, 3).map((path) => shownInLine(path));
  const more = stale.length > files.length ? ", …" : "";
  return [
    `${what} to no test (${files.join(", ")}${more}). Remove with: lockstep test ${shellWord(agent)} --update`,
  ];
}
