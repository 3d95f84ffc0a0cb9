/** env-faults, the full disk: it fills up at each write of a run, and the run goes on once there is room. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { createMemoryJournal, runLoaded } from "../../src/run/index.ts";
import { canMount, mounted } from "../mounted.ts";
import { needs } from "../needs.ts";
import { agents } from "./killed-agents.ts";

describe("a disk that fills up", () => {
  const mounting = needs(...canMount());
  for (const agent of ["long", "stages", "large"]) {
    it(`at each write of ${agent}: exit 3, nothing lost, and the run goes on later`, mounting, async () => {
      const disk = mkdtempSync(join(tmpdir(), "lockstep-full-"));
      try {
        const told = await filled(disk, agent);
        const { loaded, script } = agents("/")[agent]!;
        const journal = createMemoryJournal();
        const { run } = await runLoaded(loaded, { cwd: "/", journal, script });
        const entries = await journal.read(run!);
        // The end is written together with what led to it.
        const writes = Array.from({ length: entries.length - 1 }, (_, index) => index);
        assert.deepEqual(
          writes.filter((count) => !told.has(count)),
          [],
          "writes at which the disk was never full",
        );
      } finally {
        rmSync(disk, { recursive: true, force: true });
      }
    });
  }
});

/** How many entries were there when the disk was full, of all the times. */
function filled(disk: string, agent: string): Promise<ReadonlySet<number>> {
  const program = fileURLToPath(new URL("full.ts", import.meta.url));
  const [command = "", ...mount] = mounted(`mount -t tmpfs -o size=4m none "${disk}"`);
  const args = [...mount, process.execPath, program, disk, agent];
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
    let [stdout, stderr] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
    child.on("error", reject);
    child.on("close", (code) => {
      if (code === 0) resolve(new Set(stdout.trim().split("\n").map(Number)));
      else reject(new Error(`full.ts ended with ${code}: ${stderr}`));
    });
  });
}
