/**
 * A process that drives one run and is killed with SIGKILL at a chosen journal write.
 * argv: folder, number of the append, "before" or "after" its commit. Killed, or ends with 0 when the run was shorter.
 */
import { openJournal, runLoaded, type Journal } from "../../src/run/index.ts";
import { longRun } from "./long-run.ts";

const [folder = "", nth = "0", when = "before"] = process.argv.slice(2);
const { agent, script } = longRun(folder);
const journal = await openJournal(agent.project.stateDir, { now: Date.now });
let appends = 0;

const killing: Journal = {
  ...journal,
  create: async (run) => {
    const handle = await journal.create(run);
    return {
      ...handle,
      append: async (entries) => {
        appends += 1;
        if (appends === Number(nth) && when === "before") process.kill(process.pid, "SIGKILL");
        await handle.append(entries);
        if (appends === Number(nth) && when === "after") process.kill(process.pid, "SIGKILL");
      },
    };
  },
};

await runLoaded(agent, { cwd: folder, journal: killing, script });
await journal.close();
