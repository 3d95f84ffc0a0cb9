/** Whether a run of a flow can start a process at all: where none can start, there is nothing to confine. */
import { offeredIn } from "../../boundaries/tools/toolbox.ts";
import type { Flow, Step } from "../../flow/flow.ts";
import { serversInUse } from "../../flow/mcp.ts";
import { modulesIn } from "../../flow/rules.ts";

/**
 * Our own programs (git, ripgrep) do not count. `granting`: somebody may grant a stage tools that its list does not have.
 */
export function startsProcesses(flow: Flow, granting: boolean): boolean {
  const { checks, steps, settings } = flow;
  const { mcpServers = {} } = settings;
  return (
    settings.place?.prepare !== undefined ||
    modulesIn(flow).length > 0 ||
    Object.values(steps).some((step) => stepStarts(flow, step, granting)) ||
    Object.values(checks).some(({ kind }) => kind === "command" || kind === "commit-message") ||
    serversInUse(mcpServers, Object.values(steps)).some(([, { kind }]) => kind !== "http")
  );
}

/** A tool that a person may approve counts like one that is allowed. */
function stepStarts(flow: Flow, step: Step, granting: boolean): boolean {
  if (step.by.kind === "command") return true;
  if (granting && step.stage !== undefined && step.tools.mode !== "plan") return true;
  return offeredIn(flow, step, "asking").some(({ name }) => name === "Bash");
}
