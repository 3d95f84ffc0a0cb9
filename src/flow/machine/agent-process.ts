/** How the programs of coding agents are started and ended. `Child`: the process as Node has it. */

export type AgentProgram = {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** Exactly what it sees, beside the marks of its tree. */
  readonly env: { readonly [name: string]: string | undefined };
};

export type AgentProcess<Child> = {
  readonly child: Child;
  /** Settles when the program has ended and its output is read, with how it ended. */
  readonly gone: Promise<string>;
  /** The beginning and the end of what it printed to stderr. */
  readonly printed: () => string;
  /** At once, without waiting. */
  readonly kill: () => void;
  /** Resolves when nothing that it started is left. */
  readonly end: () => Promise<void>;
};

export type AgentProcesses<Child> = {
  /** A folder for temporary files. Called before anything is started, with the run that it is for. */
  readonly open: (run: string) => Promise<string>;
  readonly start: (program: AgentProgram) => AgentProcess<Child>;
  /** Of this folder only the entry `keep` stays at the end. */
  readonly tidy: (folder: string, keep: string) => void;
  /** Ends everything that was started, and removes the folder. */
  readonly close: () => Promise<void>;
};
