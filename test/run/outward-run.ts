/**
 * A process that drives one run with effects and is killed with SIGKILL at a chosen journal write, counted from the first
 * that tells of an effect. argv: a JSON object. Killed, or ends with 0 when the run was shorter.
 */
import { openJournal, run, type Journal } from "../../src/run/index.ts";
import type { RunOptions } from "../../src/run/index.ts";

export type Plan = {
  readonly home: string;
  readonly env: { readonly [name: string]: string };
  readonly options: Pick<RunOptions, "finalize" | "branch" | "sandbox" | "args"> & {
    readonly script: NonNullable<RunOptions["script"]>;
  };
  /** 0: somebody else does the killing. */
  readonly nth: number;
  readonly when: "before" | "after";
};

const { home, env, options, nth, when } = JSON.parse(process.argv[2] ?? "{}") as Plan;
const journal = await openJournal(`${home}/.lockstep`, { now: Date.now });
let writes = 0;

const killing: Journal = {
  ...journal,
  create: async (row, entries) => {
    const handle = await journal.create(row, entries);
    return {
      ...handle,
      append: async (more) => {
        if (more.some(({ event }) => event.type.startsWith("effect.") || event.type === "run.ended"))
          writes += 1;
        else return await handle.append(more);
        if (writes === nth && when === "before") process.kill(process.pid, "SIGKILL");
        await handle.append(more);
        if (writes === nth && when === "after") process.kill(process.pid, "SIGKILL");
      },
    };
  },
};

// GitHub asks for a pause between two writes; nobody does here.
const clock = { now: Date.now, sleep: async () => {} };
const result = await run({
  agent: "worker",
  cwd: home,
  journal: killing,
  env,
  clock,
  args: { issue: 1 },
  ...options,
});
await journal.close();
process.exitCode = result.exitCode;
