/** `lockstep salvage`: what can be read of a damaged record, in a new folder, and how to put that in place. */
import { lstatSync } from "node:fs";
import { relative, resolve } from "node:path";
import { shellWord } from "../../flow/text/harmless.ts";
import { EXIT } from "../../flow/verdict.ts";
import { checkRecord } from "../../run/records/check-journal.ts";
import { findProject } from "../../run/world/project.ts";
import { salvageState, type SalvagedRun } from "../../run/records/salvage.ts";
import type { CallOf } from "../commands.ts";
import { count, shownInLine, table } from "../text/text.ts";

export function salvageRuns(call: CallOf<"salvage">): Promise<number> {
  const { screen } = call;
  const { stateDir } = findProject(call.cwd, call.stateDir);
  const out = resolve(call.cwd, call.flags.out ?? `${stateDir}-salvaged`);
  const { runs, strays, isOwn } = salvageState(stateDir, out, call.host.env, Date.now());
  const of = (state: SalvagedRun["state"]) => runs.filter((run) => run.state === state).length;
  const counts = { whole: of("whole"), partial: of("partial"), lost: of("lost") };
  // With --cwd the user stands elsewhere, where relative paths would name other folders.
  const isHere = resolve(call.cwd) === call.host.cwd();
  const word = (path: string) => shellWord(isHere ? relative(call.cwd, path) || path : resolve(path));
  const isAny = counts.whole + counts.partial > 0;
  const place = isAny
    ? [`mv ${word(stateDir)} ${word(freeName(`${stateDir}-damaged`))}`, `mv ${word(out)} ${word(stateDir)}`]
    : [];
  const isDamaged = checkRecord(stateDir)?.faults.some(({ kind }) => kind === "damage") ?? true;
  const code = counts.partial + counts.lost + strays === 0 ? EXIT.completed : EXIT.failed;
  if (call.flags.json) {
    screen.document({ v: 1, stateDir, out, ...counts, strays, damaged: isDamaged, runs, place });
    return Promise.resolve(code);
  }
  if (runs.length > 0) screen.print(table(runs.map(cells)).join("\n"));
  screen.tell(`Rescued into ${out}: ${counts.whole} whole, ${counts.partial} partial, ${counts.lost} lost.`);
  if (strays > 0) screen.tell(`${count(strays, "entry", "entries")} of unidentifiable runs are lost.`);
  if (runs.some(({ isOpen, state }) => isOpen && state === "whole"))
    screen.tell("Unfinished runs may lack their newest entries: inspect a run before you resume it.");
  if (!isAny) screen.tell(`Nothing could be recovered, so leave ${stateDir} where it is.`);
  else if (isDamaged)
    screen.tell(["To replace the damaged folder with it:", ...place.map((line) => `  ${line}`)].join("\n"));
  else screen.tell(`${stateDir} is not damaged: keep using it; ${out} is only a copy.`);
  if (!isOwn)
    screen.tell(
      "The damaged records were not made by you here: after the replacement they are read-only until you pass --trust-journal.",
    );
  return Promise.resolve(code);
}

/** A folder that is there would take in what is moved to its name. */
function freeName(path: string): string {
  for (let number = 1; ; number++) {
    const name = number === 1 ? path : `${path}-${number}`;
    if (lstatSync(name, { throwIfNoEntry: false }) === undefined) return name;
  }
}

function cells({ run, agent, state, readable, entries, isOpen, why }: SalvagedRun): readonly string[] {
  const extent =
    readable === entries
      ? count(entries, "entry", "entries")
      : `${readable} of ${count(entries, "entry", "entries")}`;
  return [shownInLine(run, 64), shownInLine(agent, 40), state, extent, why ?? (isOpen ? "not ended" : "")];
}
