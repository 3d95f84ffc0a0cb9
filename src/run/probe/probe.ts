/** Every protection of a run, tried on this machine: what commands, tools, a project and Lockstep itself can really do. */
import type { Flow } from "../../flow/flow.ts";
import { tryGround, type SandboxReport, type Surroundings } from "../boundary.ts";
import { commandProbes } from "./probe-commands.ts";
import { PROCESS_TRIALS } from "./probe-process.ts";
import { plant } from "./probe-planted.ts";
import { PROJECT_TRIALS } from "./probe-project.ts";
import { tryAll, type ProbeGroup } from "./probe-table.ts";
import { TOOL_TRIALS } from "./probe-tools.ts";

export type { Probe, ProbeGroup } from "./probe-table.ts";

export type Probed = {
  readonly v: 1;
  readonly agent: string;
  /** A run could begin: its commands are confined, or need not be. */
  readonly ok: boolean;
  readonly sandbox: SandboxReport;
  readonly groups: readonly ProbeGroup[];
};

export async function probe(flow: Flow, around: Surroundings): Promise<Probed> {
  // Pipes are looked for when a sandbox is opened: ours must be there before, and are not needed where there is none.
  const first = await sandboxOf(flow, around);
  await using planted = await plant(around, first.confined && first.trouble === null);
  await using tried = await tryGround(flow, around);
  const { sandbox, ground } = tried;
  const scene = { flow, around, sandbox, ground };
  const groups = [
    { title: "commands, in the sandbox of a run", probes: await commandProbes(scene, planted) },
    { title: "tools of the model", probes: await tryAll(TOOL_TRIALS, scene) },
    { title: "Lockstep's own process", probes: await tryAll(PROCESS_TRIALS, scene) },
    { title: "what this project can do", probes: await tryAll(PROJECT_TRIALS, scene) },
  ];
  return { v: 1, agent: flow.agent, ok: ground !== null, sandbox: first, groups };
}

async function sandboxOf(flow: Flow, around: Surroundings): Promise<SandboxReport> {
  await using tried = await tryGround(flow, around);
  return tried.sandbox;
}
