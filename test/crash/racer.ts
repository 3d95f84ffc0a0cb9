/**
 * A process that stays, and resumes runs when it is told to. The model of a run answers only when it is told to as well,
 * so that a run is held for as long as it takes to see who else gets it.
 */
import {
  createScripted,
  openJournal,
  resume,
  runLoaded,
  type Backend,
  type Result,
} from "../../src/run/index.ts";
import { agents, modelOf } from "./killed-agents.ts";

export type Order =
  | { readonly do: "start"; readonly agent: string; readonly folder: string; readonly hold: number }
  | {
      readonly do: "resume";
      readonly run: string;
      readonly agent: string;
      readonly folder: string;
      readonly takeOver?: true;
    }
  /** The model answers what it was asked. */
  | { readonly do: "answer" }
  /** Stops where it stands, between two commits: who is stopped in the middle of one holds the whole journal. */
  | { readonly do: "stop" };

export type Told =
  | { readonly is: "asked"; readonly run: string; readonly key: string }
  | {
      readonly is: "over";
      readonly run: string | null;
      readonly code: string | null;
      readonly exitCode: number;
      readonly reason: string;
    };

const tell = (told: Told) => process.send!(told);
let answering = Promise.withResolvers<void>();

/** Answers `hold` questions at once, and then waits. */
function patient(backend: Backend, hold: number): Backend {
  let asked = 0;
  return {
    ...backend,
    turn: async (request) => {
      asked += 1;
      const [run = "", ...key] = request.asker.key.split("/");
      if (asked > hold) {
        tell({ is: "asked", run, key: key.join("/") });
        await answering.promise;
      }
      return await backend.turn!(request);
    },
  };
}

function over({ run, code, exitCode, reason }: Result): void {
  tell({ is: "over", run, code, exitCode, reason });
}

async function obey(order: Order): Promise<void> {
  switch (order.do) {
    case "start": {
      const { loaded, script } = agents(order.folder)[order.agent]!;
      const backend = patient(createScripted(script), order.hold);
      over(await runLoaded(loaded, { cwd: order.folder, backend }));
      break;
    }
    case "resume": {
      const { run, folder, takeOver = false } = order;
      const journal = await openJournal(agents(folder)[order.agent]!.loaded.project.stateDir, {
        now: Date.now,
      });
      try {
        const backend = patient(await modelOf(journal, run, order.agent), 0);
        over(await resume({ run, cwd: folder, journal, backend, takeOver }));
      } finally {
        await journal.close();
      }
      break;
    }
    case "answer":
      answering.resolve();
      answering = Promise.withResolvers();
      break;
    case "stop":
      process.kill(process.pid, "SIGSTOP");
  }
}

process.on("message", (order: Order) => void obey(order));
process.on("disconnect", () => process.exit());
