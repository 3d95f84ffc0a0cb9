/** Writes the documents anew that tests compare with: what runs and agents came to, and what is read of them. */
import { execFileSync } from "node:child_process";
import { globSync } from "node:fs";

const root = new URL("../", import.meta.url).pathname;

/** Random inputs are not kept. */
const isKept = (file: string) => !/(?:fuzz|mutations|large)\.test\.ts$/.test(file);

const files = globSync(
  [
    "test/{load,prompts,engine,flow,story,tell}/**/*.test.ts",
    "test/cli/commands/explain.test.ts",
    "test/crash/clock.test.ts",
    "test/run/{dialects,records/replay}.test.ts",
  ],
  { cwd: root },
);
const args = ["--import", "./test/surroundings.ts", "--test", "--test-isolation=none"];
const env = { ...process.env, LOCKSTEP_RECORD: "kept" };
execFileSync(process.execPath, [...args, ...files.filter(isKept).toSorted()], {
  cwd: root,
  stdio: "inherit",
  env,
});
execFileSync(process.execPath, ["test/run/readings.ts"], { cwd: root, stdio: "inherit" });
