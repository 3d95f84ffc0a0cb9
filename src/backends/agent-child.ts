/** The process of a coding agent: its input and both outputs are pipes. */
import type { ChildProcessByStdio } from "node:child_process";
import type { Readable, Writable } from "node:stream";

export type AgentChild = ChildProcessByStdio<Writable, Readable, Readable>;
