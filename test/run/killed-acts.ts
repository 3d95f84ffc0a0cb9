/**
 * A process that drives one run with action blocks and is killed with SIGKILL at a chosen journal write; making the run is
 * the first. argv: folder, number of the write. Ends with 0 when the run was shorter.
 */
import { load, openJournal, runLoaded, type Journal } from "../../src/run/index.ts";
import { SCRIPT } from "./acting-script.ts";

const [folder = "", nth = "0"] = process.argv.slice(2);
const agent = await load("worker", { cwd: folder });
const journal = await openJournal(agent.project.stateDir, { now: Date.now });
let writes = 0;

/** What comes before the write has been done, and is not recorded. */
async function deadly<T>(write: () => Promise<T>): Promise<T> {
  writes += 1;
  if (writes === Number(nth)) process.kill(process.pid, "SIGKILL");
  return await write();
}

const killing: Journal = {
  ...journal,
  create: async (run, entries) => {
    const handle = await deadly(() => journal.create(run, entries));
    return { ...handle, append: (more) => deadly(() => handle.append(more)) };
  },
};

await runLoaded(agent, { cwd: folder, journal: killing, script: SCRIPT });
await journal.close();
