/** What the sandbox costs beyond what confines: a confined command against bubblewrap itself with the same arguments. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { startsProcesses } from "../src/run/world/processes.ts";
import { findProject } from "../src/run/world/project.ts";
import { decideSandbox } from "../src/run/world/sandbox-decision.ts";
import { placesOf, settle, type SandboxGround } from "../src/run/world/sandbox.ts";
import { sketchFlow } from "../src/testing/flows.ts";
import { median, row, type Row } from "./measure.ts";

const ROUNDS = 80;
const COMMAND = ["true"];

export async function measureSandbox(folder: string): Promise<readonly Row[]> {
  const flow = sketchFlow({ "closure.issue": { edges: { closing: null } } });
  const { sandbox } = flow.settings.boundaries;
  const starts = startsProcesses(flow, false);
  const decision = decideSandbox({ sandbox, wish: "auto", network: "none", starts, unconfinable: null });
  const from = performance.now();
  await using settled = await settle(
    decision,
    placesOf(findProject(folder), folder, process.env),
    process.env,
  );
  const opening = performance.now() - from;
  const ground = await settled.groundAt(folder);
  if (ground.inside === null)
    return [row("a confined command / bubblewrap itself", 0, "x", null, `not measured: ${settled.held.why}`)];
  const [ours, theirs] = await timesOf(
    ground,
    ground.inside.engine.wrap(COMMAND, ground.inside.policy),
    folder,
  );
  const told = `${ours.toFixed(1)} ms against ${theirs.toFixed(1)} ms, median of ${ROUNDS}`;
  return [
    row("a confined command / bubblewrap itself", ours / theirs, "x", 1.3, told),
    row("opening the sandbox, once per folder", opening, "ms", null, "with the attempt to break out of it"),
  ];
}

/** In turns, so that whatever else the machine does meets both alike. */
async function timesOf(
  { exec }: SandboxGround,
  [program = "", ...args]: readonly string[],
  cwd: string,
): Promise<readonly [ours: number, theirs: number]> {
  const { PATH } = process.env;
  const limits = { timeoutMs: 20_000, maxOutputBytes: 1024, signal: new AbortController().signal };
  const ours: number[] = [];
  const theirs: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const first = performance.now();
    await exec({ command: COMMAND, cwd, env: { PATH }, ...limits });
    const second = performance.now();
    const child = spawn(program, args, { cwd, env: { PATH }, stdio: ["ignore", "pipe", "pipe"] });
    await once(child, "close");
    ours.push(second - first);
    theirs.push(performance.now() - second);
  }
  return [median(ours), median(theirs)];
}
