/**
 * A process that drives one run and is killed with SIGKILL at a chosen journal write; making the run is the first.
 * argv: folder, number of the write, "before" or "after" its commit. Killed, or ends with 0 when the run was shorter.
 */
import { openJournal, runLoaded, type Journal } from "../../src/run/index.ts";
import { longRun } from "./long-run.ts";

const [folder = "", nth = "0", when = "before"] = process.argv.slice(2);
const { agent, script } = longRun(folder);
const journal = await openJournal(agent.project.stateDir, { now: Date.now });
let writes = 0;

async function deadly<T>(write: () => Promise<T>): Promise<T> {
  writes += 1;
  if (writes === Number(nth) && when === "before") process.kill(process.pid, "SIGKILL");
  const written = await write();
  if (writes === Number(nth) && when === "after") process.kill(process.pid, "SIGKILL");
  return written;
}

const killing: Journal = {
  ...journal,
  create: async (run, entries) => {
    const handle = await deadly(() => journal.create(run, entries));
    return { ...handle, append: (more) => deadly(() => handle.append(more)) };
  },
};

await runLoaded(agent, { cwd: folder, journal: killing, script });
await journal.close();
