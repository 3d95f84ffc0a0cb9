/** How the backends of coding agents start and end their programs; what does it is handed in. */
import type { ChildProcessByStdio } from "node:child_process";
import type { Readable, Writable } from "node:stream";

export type AgentProcess = {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  /** Settles when the program has ended, with how it ended. */
  readonly gone: Promise<string>;
  /** The beginning and the end of what it printed to stderr. */
  readonly printed: () => string;
  /** At once, without waiting. */
  readonly kill: () => void;
  /** Resolves when nothing that it started is left. */
  readonly end: () => Promise<void>;
};

export type AgentProcesses = {
  /** A folder for temporary files. Called before anything is started, with the run that it is for. */
  readonly open: (run: string) => Promise<string>;
  readonly start: (program: {
    readonly file: string;
    readonly args: readonly string[];
    readonly cwd: string;
    readonly env: { readonly [name: string]: string | undefined };
  }) => AgentProcess;
  /** Of this folder only the entry `keep` stays at the end. */
  readonly tidy: (folder: string, keep: string) => void;
  /** Ends everything that was started, and removes the folder. */
  readonly close: () => Promise<void>;
};
