/** What a run is started or resumed with. */
import type { Backend, Clock, Journal, Person, Ports } from "../engine/ports.ts";
import type { State } from "../engine/decide/state.ts";
import type { Deed } from "../flow/deed.ts";
import type { Entry } from "../flow/event.ts";
import type { Flow, Granted } from "../flow/flow.ts";
import type { Json } from "../flow/json.ts";
import type { AdoptOptions } from "./adopt.ts";
import type { BackendOptions } from "./world/backend.ts";
import type { Yes } from "./trust/foreign-state.ts";
import type { NetworkWish, SandboxWish } from "./world/config.ts";
import type { TrustOptions } from "./trust/trust.ts";
import type { WorktreeOptions } from "./world/worktree.ts";

export type RunOptions = {
  readonly agent: string;
  /** Parameter values by name; text is turned into the declared type. */
  readonly args?: { readonly [name: string]: Json };
  /** What was piped in, for prompts that read `{input_text}`. */
  readonly input?: string;
  readonly strict?: boolean;
} & WorktreeOptions &
  DriveOptions;

export type ResumeOptions = {
  /** A run id, a unique prefix of one, `@last` or `@failed`. */
  readonly run: string;
  /** Also if a living process drives it: that one can record nothing more from then on. */
  readonly takeOver?: boolean;
  /** Goes on although somebody paused it. */
  readonly unpause?: boolean;
} & AdoptOptions &
  DriveOptions;

/** Asks the person at the terminal; null: no answer. `free`: other words than the choices will do as well. */
export type Ask = (
  question: string,
  choices: readonly string[],
  signal: AbortSignal,
  free?: boolean,
) => Promise<string | null>;

export type DriveOptions = BackendOptions & {
  /** Where the run works; the project is found from here. */
  readonly cwd?: string;
  readonly stateDir?: string;
  /** Where runs are recorded; the project's own journal by default. It is not closed at the end. */
  readonly journal?: Journal;
  readonly clock?: Clock;
  readonly env?: NodeJS.ProcessEnv;
  readonly trust?: Pick<TrustOptions, "digest" | "confirm" | "submitted">;
  /**
   * Whether a state folder, or an imported run, that this user did not make is used: its commands run, and it names the
   * folder to work in. A `journal` that is given is the caller's own.
   */
  readonly trustJournal?: Yes;
  /** Whether commands are confined; the user's own settings decide where this does not. */
  readonly sandbox?: SandboxWish;
  /** What confined commands may reach, in the place of what the agent file and the user's settings say. */
  readonly network?: NetworkWish;
  /** Absolute paths that confined commands never see, besides secrets. */
  readonly unseen?: readonly string[];
  /** Values that must not be recorded, besides those that the environment holds. */
  readonly secrets?: readonly string[];
  readonly signal?: AbortSignal;
  /** Called with the id of the run before it is recorded; of one that is recorded before it is claimed. */
  readonly onRun?: (run: string, isRecorded: boolean) => void;
  /** Called when nothing can refuse the run any more: from here on, stopping it by `signal` is better than a kill. */
  readonly onBegin?: () => void;
  /** Asks the person at the terminal, one question at a time; absent without a terminal. */
  readonly ask?: Ask;
  /** Without a terminal, waits for an answer from another process. */
  readonly wait?: boolean;
  /** How long a question is open, over what the agent says; then it is settled as without a terminal. */
  readonly expireMs?: number;
  /** Hears at once what a person should know, such as an answer that cannot be used. Must not throw. */
  readonly notify?: (text: string) => void;
  /** What stands before the model that was chosen, such as limits that many processes share. */
  readonly meter?: (backend: Backend) => Backend;
  /** Whether `pause` and `stop` from other processes are heeded; they are, unless `journal` is given. */
  readonly steered?: boolean;
  /** When it aborts, what is under way is finished and recorded, and nothing more is begun: any process can go on. */
  readonly yielding?: AbortSignal;
  /** The run yields where all it does is to wait for longer than this. Absent: it waits here, however long. */
  readonly parkMs?: number;
  /** What the run and its steps may spend, in the place of what files and settings say; `resume` raises it. */
  readonly spending?: Granted;
  /** What becomes of a tool call outside of a stage's list when no person can be asked. */
  readonly onPermission?: Person["absent"];
  /** Hears what the model says while it says it, where the backend streams it. Must not throw. */
  readonly onText?: (step: string, delta: string) => void;
  /** How long a hook of the project may take; half a minute unless said. */
  readonly hookTimeoutMs?: number;
  /** Writes a log file below this folder, also where the agent asks for none. */
  readonly log?: string;
  /** Stores the files of a run that travels, before the entry of what may have changed them. */
  readonly snapshot?: Ports["snapshot"];
  /** Its files were put in place, so what makes them ready is run first, and then this. */
  readonly onPrepared?: () => void;
  /** Hears of everything that is recorded, right after it is. */
  readonly observe?: (entry: Entry, state: State, flow: Flow, deeds: readonly Deed[]) => void;
};
