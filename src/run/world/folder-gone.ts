/** Ports that do nothing in a folder that is not there: the run stops where it stands, and goes on when the folder is back. */
import { RunnerError, type Ports } from "../../engine/ports.ts";
import { isFolder } from "./files.ts";

/** PLACE_GONE unless the folder that a run works in is there. */
export function requireFolder(cwd: string): void {
  if (isFolder(cwd)) return;
  throw new RunnerError(
    "PLACE_GONE",
    `The working folder of the run does not exist: ${cwd}. If it was moved or renamed, move it back; if it is deleted, start a new run.`,
  );
}

/** What uses the folder looks for it first. A model that only answers does not use it. */
export function present(ports: Ports): Ports {
  const { cwd, toolbox, shell, backend } = ports;
  const { run } = backend;
  const after =
    <Args extends readonly unknown[], Result>(act: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      requireFolder(cwd);
      return await act(...args);
    };
  return {
    ...ports,
    ...(run !== undefined && { backend: { ...backend, run: after(run) } }),
    toolbox: { ...toolbox, call: after(toolbox.call), callGranted: after(toolbox.callGranted) },
    shell: { ...shell, check: after(shell.check), perform: after(shell.perform) },
  };
}
