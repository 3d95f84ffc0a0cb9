/** Reading the project's journal, without leaving a trace where there is none. */
import { RunnerError } from "../run/errors.ts";
import type { Journal } from "../run/index.ts";
import { openExistingJournal, openOwnJournal, requireRecord } from "../run/records/journal.ts";
import { EXIT } from "../flow/verdict.ts";
import { findProject, recordPlace } from "../run/world/project.ts";
import type { Damage } from "../run/records/runs.ts";
import { UsageError } from "./args.ts";
import type { CommandCall } from "./call.ts";
import type { DriveFlags } from "./commands.ts";
import { shownInLine } from "./text/text.ts";

/** `journal` is null where nothing was ever recorded. */
export async function withJournal<T>(
  call: Pick<CommandCall, "cwd" | "stateDir"> & { readonly host: Pick<CommandCall["host"], "env"> },
  use: (journal: Journal | null, stateDir: string) => Promise<T>,
): Promise<T> {
  const project = findProject(call.cwd, call.stateDir, call.host.env);
  const { stateDir } = project;
  const journal = await openExistingJournal(recordPlace(project), { now: Date.now }, { env: call.host.env });
  try {
    return await use(journal, stateDir);
  } catch (error) {
    throw await explained(error, stateDir, call.host.env);
  } finally {
    await journal?.close();
  }
}

/** Whether runs are recorded on a server, which machines of a fleet may share. */
export function isOnServer(call: Pick<CommandCall, "cwd" | "stateDir" | "host">): boolean {
  return findProject(call.cwd, call.stateDir, call.host.env).recordedAt !== undefined;
}

/** The same for a command about runs that are recorded: `ref` names one of them. */
export async function withRecord<T>(
  call: CommandCall,
  ref: string,
  use: (journal: Journal, stateDir: string) => Promise<T>,
): Promise<T> {
  return await withJournal(call, async (journal, stateDir) => {
    return await use(requireRecord(journal, ref, stateDir), stateDir);
  });
}

/** The same where a file that was exported will do: a name that ends in .json. `run` names the run in the journal. */
export async function withRunOrFile<T>(
  call: CommandCall,
  ref: string,
  use: (journal: Journal, run: string) => Promise<T>,
): Promise<T> {
  if (!ref.endsWith(".json")) return await withRecord(call, ref, (journal) => use(journal, ref));
  const { asInvalid, journalOf, parseBundle } = await import("../run/records/bundle.ts");
  const { MOST_BUNDLE_BYTES } = await import("../run/world/files.ts");
  const { readGiven } = await import("./given-file.ts");
  const bundle = parseBundle(readGiven(call, ref, "EXPORT_INVALID", MOST_BUNDLE_BYTES), ref);
  try {
    return await use(await journalOf(bundle), bundle.run.id);
  } catch (error) {
    throw error instanceof UsageError ? error : asInvalid(ref, error);
  }
}

/** A journal that somebody else wrote may hold anything: what its data makes impossible is not a bug in Lockstep. */
async function explained(error: unknown, stateDir: string, env: NodeJS.ProcessEnv): Promise<unknown> {
  if (!(error instanceof Error) || error instanceof RunnerError || error instanceof UsageError) return error;
  const { stateStanding } = await import("../run/trust/state-folders.ts");
  if (stateStanding(stateDir, env).kind !== "foreign") return error;
  const what = `The records in ${stateDir} cannot be read: ${error.message}. They were not made here and may have been changed.`;
  return new RunnerError("JOURNAL_UNAVAILABLE", what, { cause: error });
}

/** After what could be read of a damaged run. Gives the exit code. */
export function sayPartial({ screen, typed }: CommandCall, { seq, why }: Damage): number {
  const until = seq === null ? "" : `The run ends here, before entry ${seq}. `;
  screen.complain(`${until}${typed(shownInLine(why, 1000))}`);
  return EXIT.unavailable;
}

/** The same for what changes or obeys it: a journal that the user did not make needs a yes first. */
export async function withOwnJournal<T>(
  call: CommandCall<Pick<DriveFlags, "trust-journal">>,
  ref: string | null,
  use: (journal: Journal | null, stateDir: string) => Promise<T>,
  before?: (journal: Journal) => Promise<void>,
): Promise<T> {
  const project = findProject(call.cwd, call.stateDir, call.host.env);
  const { stateDir } = project;
  const { journalAccess } = await import("./conduct.ts");
  const access = journalAccess(call, call.host.stopped());
  const journal = await openOwnJournal(recordPlace(project), { now: Date.now }, access, ref, before);
  try {
    return await use(journal, stateDir);
  } finally {
    await journal?.close();
  }
}
