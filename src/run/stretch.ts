/** One stretch of a recorded run, driven by a process that says itself where the files are: until it ends, waits or yields. */
import type { Journal } from "../engine/ports.ts";
import type { Result } from "../tell/result.ts";
import type { DriveOptions } from "./options.ts";

export type StretchOptions = Omit<
  DriveOptions,
  "journal" | "cwd" | "stateDir" | "signal" | "onRun" | "onBegin"
> & {
  readonly journal: Journal;
  /** The whole id. */
  readonly run: string;
  /** Where the files of the run are on this machine; null: where the run says. */
  readonly place: StretchPlace | null;
  /** Where logs, letters and processes of runs are kept on this machine. */
  readonly stateDir: string;
  /** Also if another process owns it: that one can record nothing more from then on. */
  readonly takeOver: boolean;
  /** What is under way is finished and recorded, nothing more is begun, and the run stays as it is. */
  readonly yieldSignal: AbortSignal;
  /** What is under way is given up at once. */
  readonly stopSignal: AbortSignal;
  /** A wait that is longer ends the stretch, where nothing else is to be done. */
  readonly parkMs: number;
};

/** `root`: the folder with the agents. `cwd`: where the run works, within it or elsewhere. */
export type StretchPlace = { readonly root: string; readonly cwd: string };

export type StretchEnd =
  /** Its end is recorded. */
  | { readonly kind: "ended"; readonly result: Result }
  /** For a person, or for `continue`: nothing has to be done until then. */
  | { readonly kind: "waiting"; readonly result: Result }
  /** For a moment; epoch milliseconds. */
  | { readonly kind: "parked"; readonly until: number }
  /** It can go on anywhere, at once. */
  | { readonly kind: "yielded" }
  /** Something that it needs is not there: the journal, a model, a sandbox, its folder. */
  | { readonly kind: "unavailable"; readonly code: string; readonly reason: string }
  /** Another process owns it. */
  | { readonly kind: "lost" }
  /** What all workers together may spend is spent. */
  | { readonly kind: "budget"; readonly reason: string };

/** `driveStretch`: does not reject for what the flow, the model or the environment does. */
export type DriveStretch = (options: StretchOptions) => Promise<StretchEnd>;
