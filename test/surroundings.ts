/**
 * What every test finds around it, loaded before any: none of the settings of the person who runs the suite, and agents
 * that are trusted. Tests about trust give an environment of their own.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

if (process.env.LOCKSTEP_TESTED === undefined) {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-settings-"));
  process.env.LOCKSTEP_TESTED = folder;
  process.env.XDG_CONFIG_HOME = folder;
  process.env.LOCKSTEP_TRUST = "all";
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
}
