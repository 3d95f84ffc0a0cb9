/**
 * A process that runs the machine `m` of a folder and is killed with SIGKILL at a chosen journal write; making the run is
 * the first. argv: folder, number of the write, "before" or "after" its commit. Ends with 0 when the run was shorter.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { openJournal, run, type Journal, type ScriptReply } from "../../src/run/index.ts";

const [folder = "", nth = "0", when = "before"] = process.argv.slice(2);
const script = JSON.parse(readFileSync(join(folder, "script.json"), "utf8")) as readonly ScriptReply[];
const journal = await openJournal(join(folder, ".lockstep"), { now: Date.now });
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
  create: async (made, entries) => {
    const handle = await deadly(() => journal.create(made, entries));
    return { ...handle, append: (more) => deadly(() => handle.append(more)) };
  },
};

const env = { ...process.env, LOCKSTEP_TRUST: "all" };
await run({ agent: "m", cwd: folder, journal: killing, script, env });
await journal.close();
