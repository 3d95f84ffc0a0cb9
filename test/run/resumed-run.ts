/** A process that resumes the newest run of a folder slowly, and prints how that went. argv: folder. */
import { setTimeout as delay } from "node:timers/promises";
import { createScripted, resume } from "../../src/run/index.ts";
import { longRun } from "./long-run.ts";

const [folder = ""] = process.argv.slice(2);
const { script } = longRun(folder);
const scripted = createScripted(script, [0, 1, 2]);
const backend = {
  ...scripted,
  turn: async (request: Parameters<NonNullable<typeof scripted.turn>>[0]) => {
    await delay(20);
    return await scripted.turn!(request);
  },
};
const result = await resume({ run: "@last", cwd: folder, backend });
console.log(`${result.code ?? result.outcome} ${result.exitCode}`);
