/** Letters to runs as files of a state folder: the suite of every mail. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createFileMail } from "../../../src/run/people/mail-files.ts";
import { mailSuite } from "../../../src/testing/mail-suite.ts";

mailSuite("files", async () => {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-mail-"));
  const state = join(folder, ".lockstep");
  return {
    driver: createFileMail(state),
    other: createFileMail(state),
    drives: async () => undefined,
    remove: async () => rmSync(folder, { recursive: true, force: true }),
  };
});
