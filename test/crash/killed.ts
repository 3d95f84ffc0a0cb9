/**
 * A process that drives the runs of a folder, the unfinished ones first and then new ones, until it is killed. It tells
 * on stdout what it does: `asked RUN KEY`, and `kept RUN SEQ` for whatever was acknowledged.
 * argv: folder, the number of the operation (a journal write or a question) it kills itself at, "before" or "after" it;
 * "once": it ends by itself after one round.
 */
import { writeSync } from "node:fs";
import { join } from "node:path";
import {
  createScripted,
  openJournal,
  resume,
  runLoaded,
  type Backend,
  type Journal,
} from "../../src/run/index.ts";
import type { RunHandle } from "../../src/engine/ports.ts";
import { agents, modelOf } from "./killed-agents.ts";

const [folder = "", nth = "0", when = "before"] = process.argv.slice(2);
const journal = await openJournal(join(folder, ".lockstep"), { now: Date.now });
const tell = (line: string) => writeSync(1, `${line}\n`);
let operations = 0;

async function deadly<T>(work: () => Promise<T>): Promise<T> {
  operations += 1;
  const isTheOne = operations === Number(nth);
  if (isTheOne && when === "before") process.kill(process.pid, "SIGKILL");
  const done = await work();
  if (isTheOne && when === "after") process.kill(process.pid, "SIGKILL");
  return done;
}

const telling = (handle: RunHandle): RunHandle => ({
  ...handle,
  append: async (entries, adopted) => {
    await deadly(() => handle.append(entries, adopted));
    tell(`kept ${handle.run} ${entries.at(-1)?.seq}`);
  },
});
const deadlyJournal: Journal = {
  ...journal,
  create: async (run, entries) => {
    const handle = await deadly(() => journal.create(run, entries));
    tell(`kept ${run.id} 1`);
    return telling(handle);
  },
  claim: async (run, how) => telling(await deadly(() => journal.claim(run, how))),
};

function listening(backend: Backend): Backend {
  return {
    ...backend,
    turn: async (request) => {
      const [run = "", ...key] = request.asker.key.split("/");
      tell(`asked ${run} ${key.join("/")}`);
      return await deadly(() => backend.turn!(request));
    },
  };
}

const unfinished = (await journal.list()).filter(({ last }) => last?.event.type !== "run.ended");
await Promise.all(
  unfinished.map(async ({ id, agent }) => {
    const backend = listening(await modelOf(journal, id, agent));
    await resume({ run: id, cwd: folder, journal: deadlyJournal, backend });
  }),
);

async function newRuns(): Promise<void> {
  await Promise.all(
    Object.values(agents(folder)).map(async ({ loaded, script }) => {
      const backend = listening(createScripted(script));
      await runLoaded(loaded, { cwd: folder, journal: deadlyJournal, backend });
    }),
  );
}

await newRuns();
if (when !== "once") for (;;) await newRuns();
await journal.close();
