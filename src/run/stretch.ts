/** One stretch of a recorded run, driven by a process that says itself where the files are: until it ends, waits or yields. */
import { join } from "node:path";
import { parseScript } from "../backends/scripted/script.ts";
import { createScripted } from "../backends/scripted/scripted.ts";
import type { Journal } from "../engine/ports.ts";
import { RecordDamaged } from "../journal/errors.ts";
import type { State } from "../engine/decide/state.ts";
import type { Event, Worktree } from "../flow/event.ts";
import { canonicalJson } from "../flow/json.ts";
import { EXIT } from "../flow/verdict.ts";
import type { Result } from "../tell/result.ts";
import { withStack, type Known } from "./open.ts";
import type { DriveOptions, ResumeOptions } from "./options.ts";
import type { RecordedPast } from "./records/past.ts";
import { recall } from "./records/recall.ts";
import { findRun } from "./records/runs.ts";
import { resumeFrom } from "./resume.ts";
import type { SubmittedTrust } from "./trust/trust.ts";
import { findProject } from "./world/project.ts";

export type StretchOptions = Omit<
  DriveOptions,
  "journal" | "cwd" | "stateDir" | "signal" | "yielding" | "onRun" | "onBegin" | "steered"
> & {
  readonly journal: Journal;
  /** The whole id. */
  readonly run: string;
  /**
   * Where the files of the run are on this machine, or what puts them there once the run is claimed; null: where the run
   * says.
   */
  readonly place: StretchPlace | OpenPlace | null;
  /** Whose trust counts for a run that was submitted; that of the submitter unless said. */
  readonly accepts?: SubmittedTrust["accepts"];
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

/** `root`: the folder with the agents. `cwd`: where the run works. Both are there, with the files as the record has them. */
export type StretchPlace = {
  readonly root: string;
  readonly cwd: string;
  readonly worktree?: Worktree;
} & Pick<DriveOptions, "snapshot" | "onPrepared">;

/** Called when nobody else can write to the run any more: what its record says about its files is the newest. */
export type OpenPlace = (recorded: Pick<RecordedPast, "current" | "recalled">) => Promise<StretchPlace>;

export type StretchEnd =
  /** Its end is recorded. */
  | { readonly kind: "ended"; readonly result: Result }
  /** For a person, or for `continue`: nothing has to be done until then. */
  | { readonly kind: "waiting"; readonly result: Result }
  /** For a moment; epoch milliseconds. */
  | { readonly kind: "parked"; readonly until: number }
  /** It can go on anywhere, at once. `isCutOff`: what was under way was given up. */
  | { readonly kind: "yielded"; readonly isCutOff: boolean }
  /** Something that it needs is not there: the journal, a model, a sandbox, its folder. */
  | {
      readonly kind: "unavailable";
      readonly code: string;
      readonly reason: string;
      /** The record of the run cannot be read, and will not be later. */
      readonly isDamaged: boolean;
    }
  /** Another process owns it. */
  | { readonly kind: "lost" }
  /** What all workers together may spend is spent. */
  | { readonly kind: "budget"; readonly reason: string };

/** Does not reject for what the flow, the model or the environment does. */
export async function driveStretch(options: StretchOptions): Promise<StretchEnd> {
  const {
    journal,
    place,
    stateDir,
    takeOver,
    yieldSignal,
    stopSignal,
    accepts = "submitted",
    ...how
  } = options;
  let last: { readonly event: Event; readonly state: State } | null = null;
  const driving: ResumeOptions & { readonly journal: Journal } = {
    ...how,
    journal,
    takeOver,
    steered: true,
    signal: stopSignal,
    yielding: yieldSignal,
    observe: (entry, state, ...more) => {
      last = { event: entry.event, state };
      how.observe?.(entry, state, ...more);
    },
  };
  const stretch = async (stack: AsyncDisposableStack, known: Known) => {
    const row = await findRun(journal, how.run);
    known.run = row.id;
    // Of a place that is opened later the root is known then.
    const root =
      place === null
        ? findProject(await folderOf(journal, row.id)).root
        : "root" in place
          ? place.root
          : stateDir;
    const project = { root, agentsDir: join(root, ".agent"), stateDir };
    const isTravelling = place !== null && driving.trust === undefined;
    const script = await unlessRecorded(how.script, journal, row.id);
    const { script: _given, ...wanted } = driving;
    const asked = { ...wanted, ...(script !== undefined && { script }) };
    const about = { journal, project, row, place, ...(isTravelling && { accepts }) };
    return await resumeFrom(about, asked, stack, known);
  };
  let isDamaged = false;
  const result = await withStack({ agent: "" }, driving, async (stack, known) => {
    try {
      return await stretch(stack, known);
    } catch (error) {
      isDamaged = error instanceof RecordDamaged;
      throw error;
    }
  });
  return endOf(result, last, isDamaged);
}

async function folderOf(journal: Journal, run: string): Promise<string> {
  const [first] = await journal.read(run, 0, 1);
  return first?.event.type === "run.started" ? first.event.cwd : "";
}

/** The script to begin with. undefined: none was given, or it is the recorded one, which continues where it stopped. */
async function unlessRecorded(
  script: StretchOptions["script"],
  journal: Journal,
  run: string,
): Promise<StretchOptions["script"]> {
  if (script === undefined) return undefined;
  const replies = "file" in script ? await parseScript(script.text, script.file) : script;
  const { spec } = recall(await journal.read(run));
  return canonicalJson(spec) === canonicalJson(createScripted(replies).spec) ? undefined : replies;
}

function endOf(
  result: Result,
  last: { readonly event: Event; readonly state: State } | null,
  isDamaged: boolean,
): StretchEnd {
  const { outcome, code, reason, exitCode } = result;
  if (code === "RUN_OWNED_ELSEWHERE") return { kind: "lost" };
  if (code === "FLEET_BUDGET") return { kind: "budget", reason };
  if (outcome === "waiting" || code === "RUN_PAUSED") return { kind: "waiting", result };
  const event = last?.event;
  if (event?.type === "run.yielded") {
    const { waits = [] } = event;
    const until = Math.min(...waits.map((wait) => wait.until));
    const isParked = last!.state.pending.every(({ type }) => type === "wait");
    return isParked ? { kind: "parked", until } : { kind: "yielded", isCutOff: false };
  }
  // A person stopped it: it goes on when a person says so.
  if (event?.type === "run.stopped" && event.by === undefined) return { kind: "waiting", result };
  if (outcome === "interrupted") return { kind: "yielded", isCutOff: true };
  // It had ended before this stretch.
  const isEnded = event?.type === "run.ended" || (event === undefined && result.flow !== null);
  const isLasting = isEnded && !(result.resumable && exitCode === EXIT.unavailable);
  if (isLasting) return { kind: "ended", result };
  return { kind: "unavailable", code: code ?? "UNKNOWN", reason, isDamaged };
}
