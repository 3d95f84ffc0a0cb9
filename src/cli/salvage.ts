/** `lockstep salvage`: what can be read of a damaged record, in a new folder, and how to put that in place. */
import { relative, resolve } from "node:path";
import { shellWord } from "../flow/harmless.ts";
import { EXIT } from "../flow/verdict.ts";
import { findProject } from "../run/project.ts";
import { salvageState, type SalvagedRun } from "../run/salvage.ts";
import type { Call } from "./call.ts";
import { count, shownInLine, table } from "./text.ts";

export function salvageRuns(call: Call): Promise<number> {
  const { screen } = call;
  const { stateDir } = findProject(call.cwd, call.stateDir);
  const out = resolve(call.cwd, call.text("out") ?? `${stateDir}-salvaged`);
  const { runs, strays, isOwn } = salvageState(stateDir, out, call.host.env, Date.now());
  const of = (state: SalvagedRun["state"]) => runs.filter((run) => run.state === state).length;
  const counts = { whole: of("whole"), partial: of("partial"), lost: of("lost") };
  const word = (path: string) => shellWord(relative(call.cwd, path) || path);
  const place = [`mv ${word(stateDir)} ${word(`${stateDir}-damaged`)}`, `mv ${word(out)} ${word(stateDir)}`];
  const code = counts.partial + counts.lost + strays === 0 ? EXIT.completed : EXIT.failed;
  if (call.on("json")) {
    screen.document({ v: 1, stateDir, out, ...counts, strays, runs, place });
    return Promise.resolve(code);
  }
  if (runs.length > 0) screen.print(table(runs.map(cells)).join("\n"));
  screen.tell(`Rescued into ${out}: ${counts.whole} whole, ${counts.partial} partial, ${counts.lost} lost.`);
  if (strays > 0) screen.tell(`${count(strays, "entry", "entries")} of runs that cannot be named are lost.`);
  if (runs.some(({ isOpen, state }) => isOpen && state === "whole"))
    screen.tell("Runs that had not ended may lack their newest entries: look at one before you resume it.");
  screen.tell(["To put it in place of the damaged one:", ...place.map((line) => `  ${line}`)].join("\n"));
  if (!isOwn)
    screen.tell(
      "The damaged record was not made by you here: after that it can only be looked at, until you pass --trust-journal.",
    );
  return Promise.resolve(code);
}

function cells({ run, agent, state, readable, entries, isOpen, why }: SalvagedRun): readonly string[] {
  const extent =
    readable === entries
      ? count(entries, "entry", "entries")
      : `${readable} of ${count(entries, "entry", "entries")}`;
  return [shownInLine(run, 64), shownInLine(agent, 40), state, extent, why ?? (isOpen ? "not ended" : "")];
}
