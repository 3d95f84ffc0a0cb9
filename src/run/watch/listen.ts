/** What hears of a run besides the program that started it: its log file, traces, and notices. None of them can fail a run. */
import type { Prepared } from "../../engine/schema/prepared.ts";
import { existsSync, realpathSync } from "node:fs";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { openPins } from "../../boundaries/tools/pinned.ts";
import { openLogFile, openLogFolder, type LogOptions } from "../../effects/log-file.ts";
import { EMPTY_STATE } from "../../engine/decide/state.ts";
import type { Hear } from "../../engine/drive/drive.ts";
import type { Pins } from "../../flow/machine/ground.ts";
import type { Moment } from "../../story/story.ts";
import type { RecordedPast } from "../records/past.ts";
import { isInsideProject } from "../world/files.ts";
import { inThisTurn } from "../world/read-once-a-turn.ts";
import { formatLine, LEVELS } from "../../tell/log-line.ts";
import { logLines } from "../../tell/log.ts";
import { errorText } from "../../flow/text/harmless.ts";
import type { NotifyTargets } from "./notices.ts";
import { makeFolder } from "../../journal/make-folder.ts";

export type Listener = {
  /** Hears of the entries that were written before this stretch of the run, where anything of it wants them. */
  readonly catchUp: (past: Pick<RecordedPast, "folded" | "retell">) => Promise<void>;
  /** Hears of one of them. */
  readonly recall: Hear;
  readonly hear: Hear;
  /** What a person should know of it. The second time it does nothing more. */
  readonly close: () => Promise<readonly string[]>;
};

/** One of them; what it throws silences it. */
export type Ear = {
  readonly recall: (moment: Moment) => void;
  readonly hear: (moment: Moment) => void;
  readonly close: () => Promise<readonly string[]> | readonly string[];
};

export type ListenContext = {
  readonly flow: Prepared;
  readonly run: string;
  readonly startedAt: number;
  readonly isResumed: boolean;
  /** Of the project. */
  readonly root: string;
  readonly env: NodeJS.ProcessEnv;
  /** Whether the environment asks for traces. */
  readonly traced: boolean;
  /** Who is notified of it. */
  readonly notify: NotifyTargets;
  /** A folder for the log file, whatever the agent says. */
  readonly log: string | undefined;
};

export async function listen(around: ListenContext): Promise<Listener> {
  const warnings: string[] = [];
  const ears: Ear[] = [];
  const isLogged = around.log !== undefined || around.flow.settings.logging.enabled;
  if (isLogged) {
    ears.push(safe("The log file", warnings, () => openLog(around)));
  }
  if (around.traced) {
    const { createTraces } = await import("./traces.ts");
    ears.push(safe("Traces", warnings, () => createTraces(around)));
  }
  if (Object.keys(around.notify).length > 0) {
    const { createNotices } = await import("./notices.ts");
    ears.push(safe("Notices", warnings, () => createNotices(around)));
  }
  const { flow } = around;
  let before = EMPTY_STATE;
  let closing: Promise<readonly string[]> | null = null;
  const to =
    (listen: (ear: Ear, moment: Moment) => void): Hear =>
    (entry, after, deeds) => {
      for (const ear of ears) listen(ear, { entry, flow, before, after, deeds });
      before = after;
    };
  const recall = to((ear, moment) => ear.recall(moment));
  return {
    catchUp: async ({ folded, retell }) => {
      if (isLogged || around.traced) await retell(recall);
      before = folded().state;
    },
    recall,
    hear: to((ear, moment) => ear.hear(moment)),
    close: () => (closing ??= closeAll(ears, warnings)),
  };
}

async function closeAll(ears: readonly Ear[], warnings: string[]): Promise<readonly string[]> {
  for (const ear of ears) warnings.push(...(await ear.close()));
  return warnings;
}

/** Opened when it first hears something. A fault is reported once; after that it hears nothing more. */
function safe(name: string, warnings: string[], open: () => Ear): Ear {
  let ear: Ear | null = null;
  let isDeaf = false;
  const failed = (error: unknown) => `${name} could not be written: ${errorText(error)}`;
  const attempt = (work: (ear: Ear) => void) => {
    if (isDeaf) return;
    try {
      work((ear ??= open()));
    } catch (error) {
      isDeaf = true;
      warnings.push(failed(error));
    }
  };
  return {
    recall: (moment) => attempt((open) => open.recall(moment)),
    hear: (moment) => attempt((open) => open.hear(moment)),
    close: async () => {
      try {
        return (await ear?.close()) ?? [];
      } catch (error) {
        return [failed(error)];
      }
    },
  };
}

function openLog({ flow, run, startedAt, isResumed, root, log }: ListenContext): Ear {
  const { directory, format, level = "debug", maxFiles } = flow.settings.logging;
  const file = openLogFile({
    ...logFolder(root, directory, log),
    agent: flow.agent,
    run,
    startedAt,
    isResumed,
    ending: format === "jsonl" ? "jsonl" : "log",
    maxFiles,
  });
  const least = LEVELS.indexOf(level);
  const write: Ear["hear"] = (moment) => {
    // The file of a run is known by its first line.
    const isFirst = (place: number) => place === 0 && moment.entry.seq === 1;
    let text = "";
    for (const [place, line] of logLines(moment).entries())
      if (LEVELS.indexOf(line.level) >= least || isFirst(place)) text += `${formatLine(line, format)}\n`;
    if (text !== "") file.write(text);
  };
  return {
    recall: write,
    hear: write,
    close: () => {
      file.close();
      return file.trouble === null ? [] : [file.trouble];
    },
  };
}

type Where = { readonly folder: string; readonly pins: Pins; readonly parts: readonly string[] };

/** Judged, opened and held once for all runs that begin in the same turn of the event loop. */
function logFolder(
  root: string,
  directory: string,
  log: string | undefined,
): Pick<LogOptions, "folder" | "held"> {
  return inThisTurn(["log folder", root, directory, log], () => {
    const { folder, pins, parts } = log === undefined ? insideOf(root, directory) : namedByUser(log);
    setImmediate(() => pins[Symbol.dispose]());
    return { folder, held: openLogFolder(pins, parts) };
  });
}

/** A folder that an agent names lies in its project, also when links are followed, and stays the one that was judged. */
function insideOf(root: string, directory: string): Where {
  const folder = resolve(root, directory);
  const top = realpathSync.native(root);
  let there = folder;
  while (!existsSync(there)) there = dirname(there);
  const real = realpathSync.native(there);
  if (!isInsideProject(resolve(root), folder) || !isInsideProject(top, real))
    throw new Error(`${directory} leads out of the project`);
  const parts = relative(top, join(real, relative(there, folder))).split(sep);
  return { folder, pins: openPins(top), parts: parts.filter((part) => part !== "") };
}

/** A folder that the user names may lie anywhere, and links on the way to it are the user's own. */
function namedByUser(log: string): Where {
  const folder = resolve(log);
  if (makeFolder(dirname(folder)) === undefined && existsSync(folder))
    return { folder, pins: openPins(realpathSync.native(folder)), parts: [] };
  return { folder, pins: openPins(realpathSync.native(dirname(folder))), parts: [basename(folder)] };
}
