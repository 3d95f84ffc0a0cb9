/** What only the command knows, and a server of ours has to: how it is started, and which flags it has. */
import type { FileTree } from "../flow/files.ts";
import type { Flow, Parameter } from "../flow/flow.ts";
import type { LoadedAgent } from "../run/load.ts";
import type { DriverOptions } from "./drive.ts";

export type CommandKnowledge = {
  readonly program: DriverOptions["program"];
  /** Loads an agent for its command line, on which some flags are taken. */
  readonly load: (name: string, files: FileTree) => Promise<LoadedAgent>;
  /** What can be given to an agent with a flag. */
  readonly parametersOf: (flow: Flow | null) => readonly Parameter[];
};
